//! What holds for the metadata of every kind: names, labels, annotations, owners, finalizers.
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/>

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::names;
use crate::api::object::Object;
use crate::api::selector::Labels;
use crate::apiserver::strategy::Strategy;

/// All keys and values of an object's annotations together.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// Finalizers that the API itself knows and that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// The metadata of a new object.
pub fn validate(object: &Object, strategy: &dyn Strategy) -> Causes {
    let (mut causes, path) = (Causes::new(), Path::new("metadata"));
    let metadata = object.metadata();
    if let Some(prefix) = metadata.generate_name.as_deref().filter(|prefix| !prefix.is_empty()) {
        causes.invalid_each(&path.child("generateName"), prefix, strategy.check_name(&names::as_prefix(prefix)));
    }
    let name = &*object.key.name;
    if name.is_empty() {
        causes.required(&path.child("name"), "name or generateName is required");
    } else {
        causes.invalid_each(&path.child("name"), name, strategy.check_name(name));
    }
    if object.kind.namespaced {
        let namespace = &*object.key.namespace;
        if namespace.is_empty() {
            causes.required(&path.child("namespace"), "");
        } else {
            causes.invalid_each(&path.child("namespace"), namespace, names::dns_label(namespace));
        }
    }
    common(&mut causes, metadata, &path);
    finalizers(&mut causes, metadata, &path.child("finalizers"));
    qualified_finalizers(&mut causes, metadata, &path.child("finalizers"));
    causes
}

/// The metadata of an object that is written over `old`. The API checks most of it twice, once for all kinds and once more
/// for the kind itself, and lists what it finds as often.
pub fn validate_update(old: &Object, new: &Object) -> Causes {
    let (mut causes, path) = (Causes::new(), Path::new("metadata"));
    if std::ptr::eq(old.metadata(), new.metadata()) {
        return causes;
    }
    let metadata = new.metadata();
    common(&mut causes, metadata, &path);
    finalizers(&mut causes, metadata, &path.child("finalizers"));
    changes(&mut causes, old, new, &path);
    changes(&mut causes, old, new, &path);
    qualified_finalizers(&mut causes, metadata, &path.child("finalizers"));
    causes
}

fn common(causes: &mut Causes, metadata: &ObjectMeta, path: &Path) {
    if let Some(map) = &metadata.labels {
        labels(causes, map, &path.child("labels"));
    }
    if let Some(map) = &metadata.annotations {
        annotations(causes, map, &path.child("annotations"));
    }
    owner_references(causes, metadata.owner_references.as_deref().unwrap_or_default(), &path.child("ownerReferences"));
}

/// What may not change, whatever the kind.
fn changes(causes: &mut Causes, old: &Object, new: &Object, path: &Path) {
    let (before, after) = (old.metadata(), new.metadata());
    if old.is_terminating() {
        let known = before.finalizers.as_deref().unwrap_or_default();
        let mut added: Vec<&String> = after.finalizers.iter().flatten().filter(|f| !known.contains(f)).collect();
        added.sort();
        added.dedup();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.forbidden(&path.child("finalizers"), &detail);
        }
    }
    causes.immutable(&path.child("uid"), &before.uid, &after.uid);
    causes.immutable(&path.child("deletionTimestamp"), &before.deletion_timestamp, &after.deletion_timestamp);
    let grace = path.child("deletionGracePeriodSeconds");
    causes.immutable(&grace, &before.deletion_grace_period_seconds, &after.deletion_grace_period_seconds);
    common(causes, after, path);
}

/// Labels of an object or a template, or those that a selector asks for.
pub fn labels(causes: &mut Causes, labels: &Labels, path: &Path) {
    for (key, value) in labels {
        causes.invalid_each(path, key, names::qualified_name(key));
        causes.invalid_each(path, value, names::label_value(value));
    }
}

/// Annotations of an object or a template.
pub fn annotations(causes: &mut Causes, annotations: &Labels, path: &Path) {
    for key in annotations.keys() {
        causes.invalid_each(path, key, names::qualified_name(&key.to_lowercase()));
    }
    let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        causes.too_long(path, ANNOTATIONS_BYTES_MAX);
    }
}

fn owner_references(causes: &mut Causes, owners: &[OwnerReference], path: &Path) {
    let mut controller: Option<&OwnerReference> = None;
    for owner in owners {
        let (group, version) = match owner.api_version.split_once('/') {
            None => ("", owner.api_version.as_str()),
            Some((_, version)) if version.contains('/') => ("", ""),
            Some(parts) => parts,
        };
        if version.is_empty() {
            causes.invalid(&path.child("apiVersion"), owner.api_version.as_str(), "version must not be empty");
        }
        let fields = [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)];
        for (field, _) in fields.iter().filter(|(_, text)| text.is_empty()) {
            causes.invalid(&path.child(field), "", "must not be empty");
        }
        if (group, version, &*owner.kind) == ("", "v1", "Event") {
            causes.invalid_shown(path, &shown(owner), "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner.controller != Some(true) {
            continue;
        }
        if let Some(first) = controller {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                first.kind, first.name, owner.kind, owner.name
            );
            let all: Vec<String> = owners.iter().map(shown).collect();
            causes.invalid_shown(path, &format!("[{}]", all.join(",")), detail);
        } else {
            controller = Some(owner);
        }
    }
}

/// An owner as JSON, with its fields in the API's order.
fn shown(owner: &OwnerReference) -> String {
    let mut fields = vec![
        format!("\"apiVersion\":{}", json!(owner.api_version)),
        format!("\"kind\":{}", json!(owner.kind)),
        format!("\"name\":{}", json!(owner.name)),
        format!("\"uid\":{}", json!(owner.uid)),
    ];
    let flags = [("controller", owner.controller), ("blockOwnerDeletion", owner.block_owner_deletion)];
    fields.extend(flags.iter().filter_map(|(field, flag)| Some(format!("\"{field}\":{}", (*flag)?))));
    format!("{{{}}}", fields.join(","))
}

fn finalizers(causes: &mut Causes, metadata: &ObjectMeta, path: &Path) {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    for finalizer in finalizers {
        causes.invalid_each(path, finalizer, names::qualified_name(finalizer));
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.invalid(path, Value::from(finalizers), detail);
    }
}

fn qualified_finalizers(causes: &mut Causes, metadata: &ObjectMeta, path: &Path) {
    for (index, finalizer) in metadata.finalizers.iter().flatten().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(&path.index(index), finalizer.as_str(), detail);
        }
    }
}
