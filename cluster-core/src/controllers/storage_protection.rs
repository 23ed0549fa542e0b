//! persistentvolumeclaim-protection-controller and persistentvolume-protection-controller: what is deleted while it is in
//! use goes when it no longer is.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection>

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::store::Change;

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

pub struct ClaimProtection;

impl Controller for ClaimProtection {
    fn name(&self) -> &str {
        "persistentvolumeclaim-protection-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(PersistentVolumeClaim::kind()), Watch::with(Pod::kind(), claims_of_gone)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(claim) = view.get::<PersistentVolumeClaim>(key) else { return plan };
        let is_used = || view.list::<Pod>(&key.namespace).any(|pod| uses(pod, &key.name));
        if !claim.is_terminating() {
            protect(claim, CLAIM_FINALIZER, &mut plan);
        } else if !is_used() {
            release(claim, CLAIM_FINALIZER, &mut plan);
        }
        plan
    }
}

pub struct VolumeProtection;

impl Controller for VolumeProtection {
    fn name(&self) -> &str {
        "persistentvolume-protection-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(PersistentVolume::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(volume) = view.get::<PersistentVolume>(key) else { return plan };
        if !volume.is_terminating() {
            protect(volume, VOLUME_FINALIZER, &mut plan);
        } else if volume.status::<PersistentVolume>().phase.as_deref() != Some("Bound") {
            release(volume, VOLUME_FINALIZER, &mut plan);
        }
        plan
    }
}

/// A pod uses its claims until it has ended, if it ever came to a node.
fn uses(pod: &Object, claim: &str) -> bool {
    pod.spec::<Pod>().node_name.is_some() && !pods::is_finished(pod) && pods::claims(pod).any(|name| name == claim)
}

/// The claims of a pod that is gone or has ended.
fn claims_of_gone(_: &View<'_>, change: &Change) -> Vec<Key> {
    let pod = change.object();
    if change.after.is_some() && !pods::is_finished(pod) {
        return Vec::new();
    }
    pods::claims(pod).map(|name| Key::new(pod.key.namespace.clone(), name)).collect()
}

fn has(object: &Object, finalizer: &str) -> bool {
    object.metadata().finalizers.iter().flatten().any(|known| known == finalizer)
}

fn protect(object: &Object, finalizer: &str, plan: &mut Plan) {
    if !has(object, finalizer) {
        let mut held = object.clone();
        held.metadata_mut().finalizers.get_or_insert_default().push(finalizer.into());
        plan.update(held, "it is to stay while it is in use").tolerate(&["NotFound"]);
    }
}

fn release(object: &Object, finalizer: &str, plan: &mut Plan) {
    if has(object, finalizer) {
        let mut released = object.clone();
        released.metadata_mut().finalizers.get_or_insert_default().retain(|known| known != finalizer);
        plan.update(released, "nothing uses it any more").tolerate(&["NotFound"]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{control_plane, create, delete, settle};
    use super::*;

    #[test]
    fn a_claim_goes_when_the_last_pod_that_uses_it_is_gone() {
        let mut cluster = control_plane();
        settle(&mut cluster);
        let requests = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        create::<PersistentVolumeClaim>(&mut cluster, json!({"metadata": {"name": "data"}, "spec": requests}));
        create::<Pod>(
            &mut cluster,
            json!({"metadata": {"name": "db"}, "spec": {
                "nodeName": "node-1", "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "db", "image": "db"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            }}),
        );
        settle(&mut cluster);
        delete::<PersistentVolumeClaim>(&mut cluster, "data").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<PersistentVolumeClaim>("default", "data").is_some_and(Object::is_terminating));
        delete::<Pod>(&mut cluster, "db").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<PersistentVolumeClaim>("default", "data").is_none());
    }
}
