//! What extends the API: definitions, services of other API servers, admission policies and webhooks.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ParamKind, ParamRef,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::Value;

use super::age::{age, created_at};
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    CustomResourceDefinition: "Name, Created At@" => |object, _| cells![&*object.key.name, created_at(object)],
    APIService: "Name, Service, Available, Age" => api_service,
    MutatingWebhookConfiguration: "Name, Webhooks#, Age" => |object, now| {
        let webhooks = object.spec::<MutatingWebhookConfiguration>().webhooks.as_ref().map_or(0, Vec::len);
        cells![&*object.key.name, webhooks, age(object, now)]
    },
    ValidatingWebhookConfiguration: "Name, Webhooks#, Age" => |object, now| {
        let webhooks = object.spec::<ValidatingWebhookConfiguration>().webhooks.as_ref().map_or(0, Vec::len);
        cells![&*object.key.name, webhooks, age(object, now)]
    },
    MutatingAdmissionPolicy: "Name, Mutations#, ParamKind, Age" => |object, now| {
        let spec = object.spec::<MutatingAdmissionPolicy>();
        let mutations = spec.mutations.as_ref().map_or(0, Vec::len);
        cells![&*object.key.name, mutations, param_kind(spec.param_kind.as_ref()), age(object, now)]
    },
    ValidatingAdmissionPolicy: "Name, Validations#, ParamKind, Age" => |object, now| {
        let spec = object.spec::<ValidatingAdmissionPolicy>();
        let validations = spec.validations.as_ref().map_or(0, Vec::len);
        cells![&*object.key.name, validations, param_kind(spec.param_kind.as_ref()), age(object, now)]
    },
    MutatingAdmissionPolicyBinding: "Name, PolicyName, ParamRef, Age" => |object, now| {
        let spec = object.spec::<MutatingAdmissionPolicyBinding>();
        binding(object, spec.policy_name.as_deref(), spec.param_ref.as_ref(), now)
    },
    ValidatingAdmissionPolicyBinding: "Name, PolicyName, ParamRef, Age" => |object, now| {
        let spec = object.spec::<ValidatingAdmissionPolicyBinding>();
        binding(object, Some(spec.policy_name.as_str()), spec.param_ref.as_ref(), now)
    },
}

fn api_service(object: &Object, now: Time) -> Vec<Value> {
    let service = object.spec::<APIService>().service.as_ref().map(|service| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", text(&service.namespace), text(&service.name))
    });
    let conditions = object.status::<APIService>().conditions.iter().flatten();
    let available = conditions.into_iter().find(|condition| condition.type_ == "Available");
    let available = available.map_or("Unknown".to_owned(), |condition| match condition.status.as_str() {
        "True" => "True".to_owned(),
        status => format!("{status} ({})", condition.reason.as_deref().unwrap_or_default()),
    });
    cells![&*object.key.name, service.unwrap_or_else(|| "Local".into()), available, age(object, now)]
}

fn param_kind(kind: Option<&ParamKind>) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    kind.map_or("<unset>".into(), |kind| format!("{}/{}", text(&kind.api_version), text(&kind.kind)))
}

fn binding(object: &Object, policy: Option<&str>, parameter: Option<&ParamRef>, now: Time) -> Vec<Value> {
    let reference = parameter.map_or("<unset>".to_owned(), |reference| match (&reference.namespace, &reference.name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (None, Some(name)) => format!("*/{name}"),
        _ => "<selector>".to_owned(),
    });
    cells![&*object.key.name, policy.unwrap_or_default(), reference, age(object, now)]
}
