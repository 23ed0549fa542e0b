//! ValidatingAdmissionPolicy: refuses what its expressions do not hold of.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec};

use super::environment::{Scene, Shown};
use super::expressions::{Common, Expression};
use super::{Attributes, matching, params};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::apiserver::cel::Budget;
use crate::apiserver::cel::types::Type;
use crate::apiserver::cel::value::Value;

const MESSAGE_BYTES_MAX: usize = 5 * 1024;

pub struct Policy {
    pub common: Common,
    pub validations: Vec<Validation>,
    pub audit_annotations: Vec<Expression>,
}

pub struct Validation {
    pub expression: Expression,
    message: String,
    pub message_expression: Option<Expression>,
    reason: String,
}

impl Policy {
    pub fn of(spec: &ValidatingAdmissionPolicySpec) -> Policy {
        let common = Common::of(
            &spec.match_constraints,
            &spec.match_conditions,
            &spec.variables,
            &spec.param_kind,
            &spec.failure_policy,
        );
        let environment = common.environment();
        let validations = spec.validations.iter().flatten().map(|validation| Validation {
            expression: Expression::compile(&validation.expression, &environment, &[Type::Bool]),
            message: validation.message.as_deref().unwrap_or_default().trim().to_owned(),
            message_expression: validation
                .message_expression
                .as_deref()
                .filter(|source| !source.is_empty())
                .map(|source| Expression::compile(source, &environment, &[Type::String])),
            reason: validation.reason.clone().unwrap_or_default(),
        });
        let annotations = spec.audit_annotations.iter().flatten();
        Policy {
            validations: validations.collect(),
            audit_annotations: annotations
                .map(|annotation| {
                    Expression::compile(&annotation.value_expression, &environment, &[Type::String, Type::Null])
                })
                .collect(),
            common,
        }
    }

    /// Why the request is to be denied: messages and reasons, in the order of the validations.
    fn denials(&self, scene: &Scene<'_>) -> Vec<Denial> {
        let budget = Budget::default();
        let failed = |text: String| Denial { message: text, reason: String::new(), only_denies: false };
        match self.common.meets_conditions(scene, &budget) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(text) => return vec![failed(text)],
        }
        let mut denials = Vec::new();
        for validation in &self.validations {
            match validation.expression.evaluate(scene, &budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => denials.push(Denial {
                    message: validation.told(scene, &budget),
                    reason: validation.reason.clone(),
                    only_denies: false,
                }),
                Err(_) if self.common.ignores_failures => {}
                Err(error) => denials.push(failed(validation.expression.told(&error))),
            }
        }
        for annotation in &self.audit_annotations {
            if let Err(error) = annotation.evaluate(scene, &budget)
                && !self.common.ignores_failures
            {
                denials.push(Denial { only_denies: true, ..failed(annotation.told(&error)) });
            }
        }
        denials
    }
}

impl Validation {
    fn told(&self, scene: &Scene<'_>, budget: &Budget) -> String {
        if let Some(expression) = &self.message_expression
            && let Ok(Value::String(text)) = expression.evaluate(scene, budget)
        {
            let text = text.trim();
            if !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_BYTES_MAX {
                return text.to_owned();
            }
        }
        match self.message.as_str() {
            "" => format!("failed expression: {}", self.expression.source.trim()),
            message => message.to_owned(),
        }
    }
}

struct Denial {
    message: String,
    /// Empty for `Invalid`.
    reason: String,
    /// Whatever the binding's actions.
    only_denies: bool,
}

/// Asks all policies about a request; `object` is what would be written, `None` for a deletion. Only the first denial is
/// told.
pub fn validate(
    server: &ApiServer,
    attributes: &Attributes<'_>,
    object: Option<&Object>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    if server.policies.validating.is_empty() || matching::is_exempt(attributes) {
        return Ok(());
    }
    let mut shown: Option<Shown> = None;
    let mut denied: Option<(String, String)> = None;
    for (name, policy, binding) in server.policies.validating() {
        let spec = binding.spec::<ValidatingAdmissionPolicyBinding>();
        let is_meant = matching::matches(server, attributes, object, &policy.common.constraints)
            && spec.match_resources.as_ref().is_none_or(|wanted| matching::matches(server, attributes, object, wanted));
        if !is_meant {
            continue;
        }
        let binding_name = &binding.key.name;
        let mut deny = |message: &str, reason: &str| {
            let message =
                format!("ValidatingAdmissionPolicy '{name}' with binding '{binding_name}' denied request: {message}");
            denied.get_or_insert((message, reason.to_owned()));
        };
        let namespace = object.or(attributes.old).map(|object| object.key.namespace.clone()).unwrap_or_default();
        let params = match params::collect(server, &policy.common.param_kind, &spec.param_ref, &namespace) {
            Ok(params) => params,
            Err(_) if policy.common.ignores_failures => continue,
            Err(text) => {
                deny(&text, "");
                continue;
            }
        };
        let shown = shown.get_or_insert_with(|| Shown::of(server, attributes, object));
        for params in params {
            let scene = Scene::new(shown.clone(), params, &policy.common.variables);
            for denial in policy.denials(&scene) {
                let acts = |action: &str| spec.validation_actions.iter().any(|known| known == action);
                if denial.only_denies || acts("Deny") {
                    deny(&denial.message, &denial.reason);
                }
                if acts("Warn") && !denial.only_denies {
                    warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{binding_name}': {}",
                        denial.message
                    ));
                }
            }
        }
    }
    match denied {
        None => Ok(()),
        Some((message, reason)) => Err(refusal(attributes, object, &message, &reason)),
    }
}

/// A denial as the API tells it.
pub(super) fn refusal(attributes: &Attributes<'_>, object: Option<&Object>, message: &str, reason: &str) -> Status {
    let name = object.or(attributes.old).map(|object| object.key.name.clone()).unwrap_or_default();
    let mut status = Status::forbidden(&attributes.request.kind, &name, message);
    (status.code, status.reason) = match reason {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let cause = crate::api::status::Cause { reason: "", message: message.to_owned(), field: String::new() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}
