//! The ReplicaSet of the present template: how it is found, made, and given its revision.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{EventNote, Sync, annotations, status, total, wanted};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::clock::Time;
use crate::random::safe_encode;

const HASH_LABEL: &str = "pod-template-hash";

/// What became of the ReplicaSet of the present template.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum NewSet {
    /// All is written down already (or there is none and none was asked for): the sync can go on.
    Known,
    /// Something was written first.
    Written,
}

/// The oldest ReplicaSet with this template.
pub(super) fn position_of_new(sets: &[Object], template: &PodTemplateSpec) -> Option<usize> {
    sets.iter().position(|set| set.spec::<ReplicaSet>().template.as_ref().is_some_and(|t| same_template(t, template)))
}

/// Equal but for the hash label.
fn same_template(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    a.spec == b.spec && without_hash(a) == without_hash(b)
}

fn without_hash(template: &PodTemplateSpec) -> ObjectMeta {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH_LABEL);
    }
    metadata.labels = metadata.labels.filter(|labels| !labels.is_empty());
    metadata.annotations = metadata.annotations.filter(|annotations| !annotations.is_empty());
    metadata
}

/// A short name for a template: FNV-1a of its JSON and of the count of collisions so far.
fn template_hash(template: &PodTemplateSpec, collision_count: Option<i32>) -> String {
    let json = serde_json::to_vec(template).unwrap_or_default();
    let collisions = collision_count.map(|count| (count as u64).to_le_bytes()).into_iter().flatten();
    let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    let hash = json.into_iter().chain(collisions).fold(2_166_136_261, fold);
    safe_encode(&hash.to_string())
}

impl Sync<'_> {
    /// Brings what is known of the new ReplicaSet up to date, if there is one.
    pub(super) fn update_new(&mut self) -> NewSet {
        let Some(index) = self.new else { return NewSet::Known };
        let revision = self.next_revision();
        let set = &mut self.sets[index];
        let noted = annotations::note_revision(set, self.deployment, revision);
        if noted || set.spec::<ReplicaSet>().min_ready_seconds != self.spec.min_ready_seconds {
            if set.spec::<ReplicaSet>().min_ready_seconds != self.spec.min_ready_seconds {
                set.spec_mut::<ReplicaSet>().min_ready_seconds = self.spec.min_ready_seconds;
            }
            self.plan.update(set.clone(), "it has the present template");
            return NewSet::Written;
        }
        let (name, revision) = (set.key.name.clone(), annotations::revision(set));
        let mut deployment = self.deployment.clone();
        let mut changed = status::note_revision(&mut deployment, revision);
        if status::has_deadline(self.spec) && status::condition(self.deployment, "Progressing").is_none() {
            let text = format!("Found new replica set \"{name}\"");
            status::set(&mut deployment, "Progressing", "True", "FoundNewReplicaSet", text, self.view.now);
            changed = true;
        }
        if changed {
            self.plan.update_status(deployment, "its newest revision is another");
            return NewSet::Written;
        }
        NewSet::Known
    }

    /// The same, but makes the new ReplicaSet if there is none.
    pub(super) fn ensure_new(&mut self) -> NewSet {
        if self.new.is_some() {
            return self.update_new();
        }
        let set = self.build_new();
        let (name, size) = (set.key.name.clone(), wanted(&set));
        let revision = annotations::revision(&set);
        let write = self.plan.create(set, "no ReplicaSet has the present template");
        if size > 0 {
            let text = format!("Scaled up replica set {name} from 0 to {size}");
            write.event(EventNote::normal(self.deployment, "ScalingReplicaSet", text));
        }
        write.tolerate(&["NamespaceTerminating"]).confess(self.deployment.clone(), tell_failure);
        let mut deployment = self.deployment.clone();
        status::note_revision(&mut deployment, revision);
        if status::has_deadline(self.spec) {
            let text = format!("Created new replica set \"{name}\"");
            status::set(&mut deployment, "Progressing", "True", "NewReplicaSetCreated", text, self.view.now);
        }
        self.plan.update_status(deployment, "it has a new ReplicaSet");
        NewSet::Written
    }

    fn next_revision(&self) -> i64 {
        self.old().map(annotations::revision).max().unwrap_or(0) + 1
    }

    fn build_new(&self) -> Object {
        let deployment = self.deployment;
        let collisions = deployment.status::<Deployment>().collision_count;
        let hash = template_hash(&self.spec.template, collisions);
        let mut template = self.spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH_LABEL.into(), hash.clone());
        let labels = labels.clone();
        let mut selector = self.spec.selector.clone();
        selector.match_labels.get_or_insert_default().insert(HASH_LABEL.into(), hash.clone());
        let spec = ReplicaSetSpec {
            replicas: Some(self.new_size(0)),
            min_ready_seconds: self.spec.min_ready_seconds,
            selector,
            template: Some(template),
        };
        // The name of a Deployment may be as long as any name: the hash must still fit.
        let stem: String = deployment.key.name.chars().take(253 - 1 - hash.len()).collect();
        let mut set = Object::new::<ReplicaSet>(&deployment.key.namespace, &format!("{stem}-{hash}"), spec);
        let metadata = set.metadata_mut();
        metadata.labels = Some(labels);
        metadata.owner_references = Some(vec![deployment.controller_reference()]);
        annotations::note_revision(&mut set, deployment, self.next_revision());
        annotations::note_size(&mut set, self.replicas, self.most());
        set
    }

    /// The size that the new ReplicaSet, which has `size` pods, may grow to now.
    pub(super) fn new_size(&self, size: i32) -> i32 {
        let strategy = self.spec.strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate") {
            return self.replicas;
        }
        let room = self.most() - total(self.sets.iter().map(wanted));
        if room <= 0 { size } else { size + room.min(self.replicas - size) }
    }
}

/// Another ReplicaSet has the name: the next hash will be a different one. Any other refusal is told as it is.
fn tell_failure(deployment: &mut Object, refusal: &Status, now: Time) {
    if refusal.reason == "AlreadyExists" {
        *deployment.status_mut::<Deployment>().collision_count.get_or_insert(0) += 1;
    } else if status::has_deadline(deployment.spec::<Deployment>()) {
        let name = refusal.details.as_ref().map_or("", |details| &details.name);
        let text = format!("Failed to create new replica set \"{name}\": {}", refusal.message);
        status::set(deployment, "Progressing", "False", "ReplicaSetCreateError", text, now);
    }
}
