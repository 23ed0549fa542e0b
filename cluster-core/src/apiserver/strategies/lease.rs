//! Leases: who holds what, and since when. <https://kubernetes.io/docs/concepts/architecture/leases/>

use k8s_openapi::api::coordination::v1::Lease;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};

pub struct Rules;

impl Strategy for Rules {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<Lease>(), Path::new("spec"), Causes::new());
        if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
            causes.invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0");
        }
        causes.non_negative(&path.child("leaseTransitions"), spec.lease_transitions);
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn a_put_creates_a_lease_and_then_has_to_name_its_revision() {
        let mut api = Api::new::<Lease>();
        let mut lease = json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"holderIdentity": "x"}});
        let made = api.put(lease.clone()).unwrap();
        assert_eq!(made["spec"]["holderIdentity"], "x");
        lease["metadata"] = json!({"name": "a"});
        let refused = api.put(lease.clone());
        assert_eq!(told(refused), ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"]);
        lease["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
        lease["spec"]["leaseDurationSeconds"] = 0.into();
        let refused = api.put(lease);
        assert_eq!(told(refused), ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]);
    }
}
