//! APIServices: which server answers for which group and version.
//! <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceCondition};

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};

pub struct Rules;

impl Strategy for Rules {
    /// Its name follows from its spec; see [`Strategy::validate`].
    fn check_name(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn default(&self, object: &mut Object) {
        if let Some(service) = &mut object.spec_mut::<APIService>().service {
            service.port.get_or_insert(443);
        }
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        if object.spec::<APIService>().service.is_none() {
            object.status_mut::<APIService>().conditions = Some(vec![APIServiceCondition {
                type_: "Available".into(),
                status: "True".into(),
                reason: Some("Local".into()),
                message: Some("Local APIServices are always available".into()),
                last_transition_time: Some(moment.now.to_meta()),
            }]);
        }
        Ok(())
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<APIService>(), Path::new("spec"), Causes::new());
        let (group, version) = (spec.group.as_deref().unwrap_or_default(), spec.version.as_deref().unwrap_or_default());
        let name = format!("{version}.{group}");
        if *object.key.name != *name {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {name:?}");
            causes.invalid(&Path::new("metadata.name"), &*object.key.name, detail);
        }
        if group.is_empty() {
            // The core group has one version.
            if version != "v1" {
                causes.required(&path.child("group"), "only v1 may have an empty group and it better be legacy kube");
            }
        } else {
            causes.invalid_each(&path.child("group"), group, names::dns_subdomain(group));
        }
        causes.invalid_each(&path.child("version"), version, names::dns_1035_label(version));
        for (field, number, max) in [
            ("groupPriorityMinimum", spec.group_priority_minimum, 20_000),
            ("versionPriority", spec.version_priority, 1000),
        ] {
            if !(1..=max).contains(&number) {
                let detail = format!("must be positive and less than {max}");
                causes.invalid(&path.child(field), number, detail);
            }
        }
        let (service_path, skips) = (path.child("service"), spec.insecure_skip_tls_verify == Some(true));
        match &spec.service {
            None if skips => {
                causes.invalid(
                    &path.child("insecureSkipTLSVerify"),
                    true,
                    "local APIServices may not have insecureSkipTLSVerify",
                );
            }
            None => {}
            Some(service) => {
                for (field, text) in [("namespace", &service.namespace), ("name", &service.name)] {
                    if text.as_deref().unwrap_or_default().is_empty() {
                        causes.required(&service_path.child(field), "");
                    }
                }
            }
        }
        if skips && spec.ca_bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty()) {
            let detail = "may not be true if caBundle is present";
            causes.invalid(&path.child("insecureSkipTLSVerify"), true, detail);
        }
        causes.into()
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}
