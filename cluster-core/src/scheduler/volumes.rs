//! The volumes that pods claim: which nodes they can be reached from, and which volume a claim gets that was left for
//! the scheduler to decide. <https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use serde_json::json;

use super::actor;
use super::filters::Rejection;
use super::filters::volume_zone::TOPOLOGY;
use super::node::NodeInfo;
use super::pod::Ask;
use super::terms::NodeTerm;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{PatchType, Request};
use crate::api::status::Status;
use crate::api::{Key, Name, quantity};
use crate::trace::Causes;
use crate::world::World;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

#[derive(Clone, Debug, Default)]
pub struct Volumes {
    claims: imbl::OrdMap<Key, Object>,
    volumes: imbl::OrdMap<Name, Object>,
    classes: imbl::OrdMap<Name, Object>,
    /// What drivers say of nodes.
    drivers: imbl::OrdMap<Name, Object>,
    /// Volumes that were decided on for a claim, before the watch tells so.
    promised: imbl::OrdMap<Name, Key>,
}

/// What is to be written for a claim before its pod can be bound.
#[derive(Clone, Debug)]
pub enum Step {
    /// The claim gets this volume.
    Bind { claim: Key, volume: Name },
    /// A volume is to be made where the claim's pod goes.
    Provision { claim: Key },
}

impl Volumes {
    /// False if it is about something else.
    pub fn put(&mut self, object: &Object) -> bool {
        if object.is::<PersistentVolumeClaim>() {
            self.claims.insert(object.key.clone(), object.clone());
        } else if object.is::<PersistentVolume>() {
            if object.spec::<PersistentVolume>().claim_ref.is_some() {
                self.promised.remove(&object.key.name);
            }
            self.volumes.insert(object.key.name.clone(), object.clone());
        } else if object.is::<StorageClass>() {
            self.classes.insert(object.key.name.clone(), object.clone());
        } else if object.is::<CSINode>() {
            self.drivers.insert(object.key.name.clone(), object.clone());
        } else {
            return false;
        }
        true
    }

    pub fn remove(&mut self, object: &Object) -> bool {
        if object.is::<PersistentVolumeClaim>() {
            self.claims.remove(&object.key);
        } else if object.is::<PersistentVolume>() {
            self.volumes.remove(&object.key.name);
        } else if object.is::<StorageClass>() {
            self.classes.remove(&object.key.name);
        } else if object.is::<CSINode>() {
            self.drivers.remove(&object.key.name);
        } else {
            return false;
        }
        true
    }

    /// Why the pod can't go to any node.
    pub fn refusal(&self, ask: &Ask) -> Option<String> {
        ask.claims.iter().find_map(|name| {
            let Some(claim) = self.claim(ask, name) else {
                return Some(match ask.ephemeral_claims.contains(name) {
                    true => format!(
                        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                    ),
                    false => format!("persistentvolumeclaim \"{name}\" not found"),
                });
            };
            if claim.status::<PersistentVolumeClaim>().phase.as_deref() == Some("Lost") {
                let volume = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default();
                return Some(format!(
                    "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
                ));
            }
            if claim.is_terminating() {
                return Some(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            let is_left_to_us = is_bound(claim) || self.class_to_wait(claim).is_some();
            (!is_left_to_us).then(|| "pod has unbound immediate PersistentVolumeClaims".to_owned())
        })
    }

    /// Whether the pod's claims can be met on a node.
    pub fn check(&self, ask: &Ask, node: &NodeInfo) -> Result<(), Rejection> {
        let refuse = |reason: &'static str| Err(Rejection::unresolvable("VolumeBinding", reason));
        for claim in ask.claims.iter().filter_map(|name| self.claim(ask, name)).filter(|claim| is_bound(claim)) {
            let volume = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default();
            match self.volumes.get(&Name::from(volume)) {
                Some(volume) if reaches(volume, node) => {}
                Some(_) => return refuse("node(s) didn't match PersistentVolume's node affinity"),
                None => return refuse("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
            }
        }
        match self.steps(ask, node) {
            Some(_) => Ok(()),
            None => refuse("node(s) didn't find available persistent volumes to bind"),
        }
    }

    /// The claim may be used by one pod at a time.
    pub fn is_for_one_pod(&self, ask: &Ask, name: &str) -> bool {
        let claim = self.claim(ask, name).map(|claim| claim.spec::<PersistentVolumeClaim>());
        claim.is_some_and(|claim| claim.access_modes.iter().flatten().any(|mode| mode == "ReadWriteOncePod"))
    }

    /// The volumes that the pod's claims are bound to have the node's zone and region, as far as they have any.
    pub fn are_in_zone(&self, ask: &Ask, node: &NodeInfo) -> bool {
        ask.claims.iter().filter_map(|name| self.claim(ask, name)).all(|claim| {
            let name = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default();
            self.volumes.get(&Name::from(name)).is_none_or(|volume| {
                TOPOLOGY.iter().filter_map(|label| Some((label, volume.label(label)?))).all(|(label, places)| {
                    node.label(label).is_some_and(|here| places.split("__").any(|place| place == here))
                })
            })
        })
    }

    /// With the volumes of the pod, no driver has more of them on the node than it can.
    pub fn are_within_limits(&self, ask: &Ask, node: &NodeInfo) -> bool {
        let Some(drivers) = self.drivers.get(&node.name).filter(|_| !ask.claims.is_empty()) else { return true };
        let wanted = self.attachments(ask);
        let there: BTreeSet<_> = node.pods.iter().flat_map(|pod| self.attachments(&pod.ask)).collect();
        drivers.spec::<CSINode>().drivers.iter().all(|driver| {
            let limit = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            let is_of = |volume: &&(&str, String)| volume.0 == driver.name;
            let more = wanted.iter().filter(is_of).filter(|volume| !there.contains(volume)).count();
            let all = there.iter().filter(is_of).count() + more;
            more == 0 || limit.is_none_or(|limit| all <= usize::try_from(limit).unwrap_or(0))
        })
    }

    /// The volumes that are attached for a pod, or will be: by driver, each once however many pods share it.
    fn attachments(&self, ask: &Ask) -> BTreeSet<(&str, String)> {
        let attachment = |claim: &Object| {
            let name = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default();
            let volume = self.volumes.get(&Name::from(name)).map(|volume| volume.spec::<PersistentVolume>());
            match volume {
                Some(volume) => volume.csi.as_ref().map(|csi| (csi.driver.as_str(), csi.volume_handle.clone())),
                // It will be made by the provisioner of its class.
                None => Some((self.class_to_wait(claim)?.provisioner.as_str(), format!("claim {}", claim.uid()))),
            }
        };
        // What is in the map outlives the look at it.
        let claims = ask.claims.iter().filter_map(|name| self.claim(ask, name));
        claims.filter_map(attachment).collect()
    }

    /// What must be written so that the unbound claims are met on a node; `None` if they can't be.
    pub fn steps(&self, ask: &Ask, node: &NodeInfo) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let mut taken: Vec<Name> = Vec::new();
        for claim in ask.claims.iter().filter_map(|name| self.claim(ask, name)).filter(|claim| !is_bound(claim)) {
            let fitting = self.volumes.values().filter(|volume| {
                self.is_free(volume, &claim.key)
                    && !taken.contains(&volume.key.name)
                    && satisfies(volume, claim)
                    && reaches(volume, node)
            });
            let claim_key = claim.key.clone();
            if let Some(volume) = fitting.min_by_key(|volume| (capacity(volume), volume.key.name.clone())) {
                taken.push(volume.key.name.clone());
                steps.push(Step::Bind { claim: claim_key, volume: volume.key.name.clone() });
            } else if self.class_to_wait(claim).is_some_and(|class| class.provisioner != NO_PROVISIONER) {
                steps.push(Step::Provision { claim: claim_key });
            } else {
                return None;
            }
        }
        Some(steps)
    }

    pub fn promise(&mut self, steps: &[Step]) {
        for step in steps {
            if let Step::Bind { claim, volume } = step {
                self.promised.insert(volume.clone(), claim.clone());
            }
        }
    }

    pub fn take_back(&mut self, steps: &[Step]) {
        for step in steps {
            if let Step::Bind { volume, .. } = step {
                self.promised.remove(volume);
            }
        }
    }

    pub fn are_bound(&self, steps: &[Step]) -> bool {
        steps.iter().all(|step| {
            let (Step::Bind { claim, .. } | Step::Provision { claim }) = step;
            self.claims.get(claim).is_some_and(is_bound)
        })
    }

    /// Writes a step; the controller of volumes does the rest.
    pub fn carry_out(&self, step: &Step, node: &Name, causes: &Causes, world: &mut World) -> Result<(), Status> {
        let request = match step {
            Step::Bind { claim, volume } => {
                let uid = self.claims.get(claim).map(Object::uid).unwrap_or_default();
                let reference = json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid,
                    "namespace": &*claim.namespace, "name": &*claim.name,
                });
                let body = json!({
                    "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                    "spec": {"claimRef": reference},
                });
                let kind = KindRef::of::<PersistentVolume>();
                Request::patch(&actor(), kind, Key::cluster(volume.clone()), PatchType::Merge, body)
                    .because("the claim's pod goes where this volume is")
            }
            Step::Provision { claim } => {
                let body = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": &**node}}});
                Request::patch(&actor(), PersistentVolumeClaim::kind(), claim.clone(), PatchType::Merge, body)
                    .because("its pod goes there")
            }
        };
        world.request(request.caused_by(causes.clone())).map(|_| ())
    }

    fn claim(&self, ask: &Ask, name: &str) -> Option<&Object> {
        self.claims.get(&Key::new(ask.namespace.clone(), name))
    }

    /// The claim's class, if binding waits for a pod.
    fn class_to_wait(&self, claim: &Object) -> Option<&StorageClass> {
        let name = claim.spec::<PersistentVolumeClaim>().storage_class_name.as_deref()?;
        let class = self.classes.get(&Name::from(name))?.spec::<StorageClass>();
        (class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")).then_some(class)
    }

    fn is_free(&self, volume: &Object, claim: &Key) -> bool {
        let promised_to_other = self.promised.get(&volume.key.name).is_some_and(|other| other != claim);
        !promised_to_other
            && match &volume.spec::<PersistentVolume>().claim_ref {
                Some(reference) => {
                    reference.name.as_deref() == Some(&*claim.name)
                        && reference.namespace.as_deref() == Some(&*claim.namespace)
                }
                None => volume.status::<PersistentVolume>().phase.as_deref() == Some("Available"),
            }
    }
}

fn is_bound(claim: &Object) -> bool {
    let volume = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref();
    volume.is_some_and(|name| !name.is_empty()) && claim.annotation(BIND_COMPLETED).is_some()
}

fn reaches(volume: &Object, node: &NodeInfo) -> bool {
    let affinity = volume.spec::<PersistentVolume>().node_affinity.as_ref();
    affinity.and_then(|affinity| affinity.required.as_ref()).is_none_or(|required| {
        required.node_selector_terms.iter().any(|term| NodeTerm::read(term).matches(&node.name, node.labels()))
    })
}

/// Class, size and access modes.
fn satisfies(volume: &Object, claim: &Object) -> bool {
    let (offer, wish) = (volume.spec::<PersistentVolume>(), claim.spec::<PersistentVolumeClaim>());
    let requests = wish.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")).map_or(0, quantity::units);
    let modes = offer.access_modes.as_deref().unwrap_or_default();
    offer.storage_class_name.as_deref().unwrap_or_default() == wish.storage_class_name.as_deref().unwrap_or_default()
        && capacity(volume) >= size
        && wish.access_modes.iter().flatten().all(|mode| modes.contains(mode))
}

/// In bytes.
fn capacity(volume: &Object) -> i64 {
    let capacity = volume.spec::<PersistentVolume>().capacity.as_ref();
    capacity.and_then(|capacity| capacity.get("storage")).map_or(0, quantity::units)
}
