//! ephemeral-volume-controller: makes the claims of volumes that live and die with their pod.
//! <https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes>

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod};

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::store::Change;

pub struct EphemeralVolumeController;

impl Controller for EphemeralVolumeController {
    fn name(&self) -> &str {
        "ephemeral-volume-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::with(Pod::kind(), pods_with_templates),
            // A claim that goes is made anew.
            Watch::owner(PersistentVolumeClaim::kind(), Pod::kind()),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(pod) = view.get::<Pod>(key).filter(|pod| pods::is_active(pod)) else { return plan };
        for (volume, template) in templates(pod) {
            let key = Key::new(key.namespace.clone(), format!("{}-{volume}", key.name));
            let warned = |reason: String| {
                EventNote::warning(pod, "FailedBinding", format!("ephemeral volume {volume}: {reason}"))
                    .from("ephemeral_volume")
            };
            match view.get::<PersistentVolumeClaim>(&key) {
                Some(claim) if claim.controller().is_some_and(|owner| owner.uid == pod.uid()) => {}
                Some(_) => {
                    let reason = format!("PVC \"{key}\" was not created for pod \"{}\" (pod is not owner)", pod.key);
                    plan.event(warned(reason));
                }
                None => {
                    let failed = warned(format!("create PVC {}: ", key.name));
                    plan.create(build(pod, key, template), "a volume of its pod is a claim").on_failure(failed);
                }
            }
        }
        plan
    }
}

fn templates(pod: &Object) -> impl Iterator<Item = (&str, &PersistentVolumeClaimTemplate)> {
    let volumes = pod.spec::<Pod>().volumes.iter().flatten();
    volumes.filter_map(|volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        Some((volume.name.as_str(), template))
    })
}

fn pods_with_templates(_: &View<'_>, change: &Change) -> Vec<Key> {
    change.after.iter().filter(|pod| templates(pod).next().is_some()).map(|pod| pod.key.clone()).collect()
}

fn build(pod: &Object, key: Key, template: &PersistentVolumeClaimTemplate) -> Object {
    let mut claim = Object::new::<PersistentVolumeClaim>(&key.namespace, &key.name, template.spec.clone());
    let from = template.metadata.clone().unwrap_or_default();
    let metadata = claim.metadata_mut();
    metadata.labels = from.labels;
    metadata.annotations = from.annotations;
    metadata.owner_references = Some(vec![pod.controller_reference()]);
    claim
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::*;
    use super::*;

    fn pod() -> Value {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c", "image": "img:1"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
        }})
    }

    #[test]
    fn a_pod_gets_a_claim_of_its_own_that_goes_with_it() {
        let mut cluster = control_plane();
        let pod = create::<Pod>(&mut cluster, pod());
        settle(&mut cluster);
        let claim = cluster.get::<PersistentVolumeClaim>("default", "p-scratch").unwrap();
        assert_eq!((claim.label("a"), claim.controller()), (Some("b"), Some(&pod.controller_reference())));
        delete::<Pod>(&mut cluster, "p").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<PersistentVolumeClaim>("default", "p-scratch").is_none());
    }

    #[test]
    fn a_claim_of_somebody_else_is_left_alone() {
        let mut cluster = control_plane();
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        create::<PersistentVolumeClaim>(&mut cluster, json!({"metadata": {"name": "p-scratch"}, "spec": spec}));
        settle(&mut cluster);
        create::<Pod>(&mut cluster, pod());
        settle(&mut cluster);
        let reason = "PVC \"default/p-scratch\" was not created for pod \"default/p\" (pod is not owner)";
        assert_eq!(events(&cluster, "p"), [format!("FailedBinding ephemeral volume scratch: {reason}")]);
    }
}
