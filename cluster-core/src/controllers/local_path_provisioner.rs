//! rancher.io/local-path: makes volumes for claims whose class names it, each a directory of the node that the claim's
//! pod goes to, and deletes them when they are released. No part of Kubernetes, but what small clusters come with.
//! <https://github.com/rancher/local-path-provisioner>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;

const NAME: &str = "rancher.io/local-path";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Where the directories are.
const ROOT: &str = "/opt/local-path-provisioner";

pub struct LocalPathProvisioner;

impl Controller for LocalPathProvisioner {
    fn name(&self) -> &str {
        NAME
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(PersistentVolumeClaim::kind()),
            Watch::itself(PersistentVolume::kind()),
            // Only looked up.
            Watch::with(StorageClass::kind(), |_, _| Vec::new()),
            Watch::with(Node::kind(), |_, _| Vec::new()),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if let Some(claim) = view.get::<PersistentVolumeClaim>(key).filter(|claim| asks_for_volume(claim)) {
            provision(claim, view, &mut plan);
        } else if let Some(volume) = view.get::<PersistentVolume>(key).filter(|volume| is_to_go(volume)) {
            plan.delete(volume, "its claim is gone and its policy is Delete");
        }
        plan
    }
}

fn asks_for_volume(claim: &Object) -> bool {
    let has_volume = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().is_some_and(|name| !name.is_empty());
    claim.annotation(PROVISIONER) == Some(NAME) && !has_volume && !claim.is_terminating()
}

fn is_to_go(volume: &Object) -> bool {
    volume.annotation(PROVISIONED_BY) == Some(NAME)
        && volume.status::<PersistentVolume>().phase.as_deref() == Some("Released")
        && volume.spec::<PersistentVolume>().persistent_volume_reclaim_policy.as_deref() == Some("Delete")
        && !volume.is_terminating()
}

fn provision(claim: &Object, view: &View<'_>, plan: &mut Plan) {
    let spec = claim.spec::<PersistentVolumeClaim>();
    let class_name = spec.storage_class_name.as_deref().unwrap_or_default();
    let Some(class) = view.get::<StorageClass>(&Key::cluster(class_name)).map(|class| class.spec::<StorageClass>())
    else {
        return;
    };
    let node = claim.annotation(SELECTED_NODE);
    if node.is_none() && class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer") {
        return;
    }
    let name = format!("pvc-{}", claim.uid());
    if view.get::<PersistentVolume>(&Key::cluster(name.as_str())).is_some() {
        return;
    }
    let message = format!("External provisioner is provisioning volume for claim \"{}\"", claim.key);
    plan.event(EventNote::normal(claim, "Provisioning", message));
    let node = node.and_then(|node| view.get::<Node>(&Key::cluster(node)));
    match volume(&name, claim, spec, class, node) {
        Ok(volume) => {
            let done =
                EventNote::normal(claim, "ProvisioningSucceeded", format!("Successfully provisioned volume {name}"));
            plan.create(volume, "a claim of its class waits for it").event(done).tolerate(&["AlreadyExists"]);
        }
        Err(reason) => {
            let message = format!("failed to provision volume with StorageClass {class_name:?}: {reason}");
            plan.event(EventNote::warning(claim, "ProvisioningFailed", message));
        }
    }
}

fn volume(
    name: &str,
    claim: &Object,
    wish: &PersistentVolumeClaimSpec,
    class: &StorageClass,
    node: Option<&Object>,
) -> Result<Object, &'static str> {
    let is_of_one_node = |mode: &String| matches!(mode.as_str(), "ReadWriteOnce" | "ReadWriteOncePod");
    if wish.selector.is_some() {
        return Err("claim.Spec.Selector is not supported");
    }
    if !wish.access_modes.iter().flatten().all(is_of_one_node) {
        return Err("NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes");
    }
    let node = node.ok_or("configuration error, no node was specified")?;
    let requests = wish.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")).cloned().unwrap_or_default();
    let path = format!("{ROOT}/{name}_{}_{}", claim.key.namespace, claim.key.name);
    let hostname = node.label(HOSTNAME).unwrap_or(&node.key.name).to_owned();
    let at_node = NodeSelectorRequirement { key: HOSTNAME.into(), operator: "In".into(), values: Some(vec![hostname]) };
    let term = NodeSelectorTerm { match_expressions: Some(vec![at_node]), ..Default::default() };
    let spec = PersistentVolumeSpec {
        access_modes: wish.access_modes.clone(),
        capacity: Some(BTreeMap::from([("storage".to_owned(), size)])),
        claim_ref: Some(ObjectReference {
            api_version: Some(claim.kind.api_version()),
            kind: Some(claim.kind.kind.to_string()),
            name: Some(claim.key.name.to_string()),
            namespace: Some(claim.key.namespace.to_string()),
            uid: Some(claim.uid().to_owned()),
            resource_version: Some(claim.revision.to_string()),
            field_path: None,
        }),
        host_path: Some(HostPathVolumeSource { path, type_: Some("DirectoryOrCreate".into()) }),
        mount_options: class.mount_options.clone(),
        node_affinity: Some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }),
        persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
        storage_class_name: wish.storage_class_name.clone(),
        volume_mode: wish.volume_mode.clone(),
        ..PersistentVolumeSpec::default()
    };
    let mut volume = Object::new::<PersistentVolume>("", name, spec);
    let annotations = [(PROVISIONED_BY, NAME), ("local.path.provisioner/selected-node", &*node.key.name)];
    let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
    volume.metadata_mut().annotations = Some(BTreeMap::from(annotations));
    Ok(volume)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::*;
    use super::*;
    use crate::Cluster;

    fn claim(cluster: &mut Cluster, mode: &str) {
        create::<StorageClass>(
            cluster,
            json!({"metadata": {"name": "local"}, "provisioner": NAME, "volumeBindingMode": mode}),
        );
        settle(cluster);
        let requests = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": requests});
        create::<PersistentVolumeClaim>(cluster, json!({"metadata": {"name": "c"}, "spec": spec}));
        settle(cluster);
    }

    #[test]
    fn a_volume_is_made_where_the_pod_goes_and_goes_with_its_claim() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-7");
        claim(&mut cluster, "WaitForFirstConsumer");
        assert_eq!(cluster.list::<PersistentVolume>("").count(), 0);
        let selected = json!({"metadata": {"annotations": {SELECTED_NODE: "node-7"}}});
        patch::<PersistentVolumeClaim>(&mut cluster, "c", selected).unwrap();
        settle(&mut cluster);
        let bound = cluster.get::<PersistentVolumeClaim>("default", "c").unwrap();
        assert_eq!(bound.status::<PersistentVolumeClaim>().phase.as_deref(), Some("Bound"));
        let name = format!("pvc-{}", bound.uid());
        assert_eq!(bound.spec::<PersistentVolumeClaim>().volume_name, Some(name.clone()));
        assert!(
            events(&cluster, "c").contains(&format!("ProvisioningSucceeded Successfully provisioned volume {name}"))
        );
        delete::<PersistentVolumeClaim>(&mut cluster, "c").unwrap();
        settle(&mut cluster);
        assert_eq!(cluster.list::<PersistentVolume>("").count(), 0);
    }

    #[test]
    fn without_a_node_it_says_what_is_wrong() {
        let mut cluster = control_plane();
        claim(&mut cluster, "Immediate");
        let reason = "configuration error, no node was specified";
        let failed = format!("ProvisioningFailed failed to provision volume with StorageClass \"local\": {reason}");
        assert!(events(&cluster, "c").contains(&failed));
    }
}
