//! persistentvolume-expander-controller: a bound claim asks for more than it has. No plugin of Kubernetes' own can grow a
//! volume any more; it says that somebody else has to.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::{Key, quantity};
use crate::store::Change;

pub struct VolumeExpander;

impl Controller for VolumeExpander {
    fn name(&self) -> &str {
        "persistentvolume-expander-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(PersistentVolumeClaim::kind(), claims_that_grow)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if let Some(claim) = view.get::<PersistentVolumeClaim>(key).filter(|claim| wants_more(claim)) {
            let message = "waiting for an external controller to expand this PVC";
            plan.event(EventNote::normal(claim, "ExternalExpanding", message).from("volume_expand"));
        }
        plan
    }
}

fn claims_that_grow(_: &View<'_>, change: &Change) -> Vec<Key> {
    let grown = |claim: &&Object| change.before.as_ref().is_none_or(|before| asked(before) < asked(claim));
    change.after.iter().filter(grown).map(|claim| claim.key.clone()).collect()
}

fn wants_more(claim: &Object) -> bool {
    let status = claim.status::<PersistentVolumeClaim>();
    status.phase.as_deref() == Some("Bound") && asked(claim) > storage(status.capacity.as_ref())
}

fn asked(claim: &Object) -> i64 {
    let resources = claim.spec::<PersistentVolumeClaim>().resources.as_ref();
    storage(resources.and_then(|resources| resources.requests.as_ref()))
}

/// In bytes.
fn storage(amounts: Option<&BTreeMap<String, Quantity>>) -> i64 {
    amounts.and_then(|amounts| amounts.get("storage")).map_or(0, quantity::units)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PersistentVolume;
    use k8s_openapi::api::storage::v1::StorageClass;
    use serde_json::json;

    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_claim_that_is_to_grow_waits_for_somebody_else() {
        let mut cluster = control_plane();
        let class =
            json!({"metadata": {"name": "disks"}, "provisioner": "example.com/disks", "allowVolumeExpansion": true});
        create::<StorageClass>(&mut cluster, class);
        let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks",
            "hostPath": {"path": "/tmp/d"}});
        create::<PersistentVolume>(&mut cluster, json!({"metadata": {"name": "v"}, "spec": spec}));
        settle(&mut cluster);
        let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "disks",
            "resources": {"requests": {"storage": "1Gi"}}});
        create::<PersistentVolumeClaim>(&mut cluster, json!({"metadata": {"name": "c"}, "spec": spec}));
        settle(&mut cluster);
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        patch::<PersistentVolumeClaim>(&mut cluster, "c", more).unwrap();
        settle(&mut cluster);
        assert_eq!(events(&cluster, "c"), ["ExternalExpanding waiting for an external controller to expand this PVC"]);
    }
}
