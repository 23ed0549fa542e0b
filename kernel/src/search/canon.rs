//! Canonical digests: two states that differ only in uids, generated names, revisions and times are the same state.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cluster_core::api::object::Object;
use cluster_core::api::{Key, Name};
use cluster_core::trace::RequestEntry;
use serde_json::Value;

/// What the cluster has drawn at random so far, and what it is called in a digest.
#[derive(Clone, Default)]
pub struct Names(Arc<Known>);

#[derive(Clone, Default)]
struct Known {
    /// uids and generated names.
    names: BTreeMap<Name, u64>,
    /// How often something of a name has been created.
    counts: BTreeMap<u64, u64>,
}

impl Names {
    /// Gives names to what a write has created: an object of a name the how manieth, and a generated name likewise.
    pub fn learn(&mut self, request: &RequestEntry) {
        let (None, Some(created)) = (&request.before, &request.after) else { return };
        let known = Arc::make_mut(&mut self.0);
        let metadata = created.metadata();
        if let Some(prefix) = metadata.generate_name.as_deref().filter(|prefix| created.key.name.starts_with(prefix)) {
            let count = known.counts.entry(digest_of(&("generated", &*created.kind.kind, prefix))).or_insert(0);
            *count += 1;
            known.names.insert(created.key.name.clone(), digest_of(&(prefix, *count)));
        }
        let name = known.names.get(&created.key.name).copied();
        let place = digest_of(&(
            &*created.kind.kind,
            &*created.key.namespace,
            name,
            name.is_none().then_some(&*created.key.name),
        ));
        let count = known.counts.entry(place).or_insert(0);
        *count += 1;
        known.names.insert(created.uid().into(), digest_of(&(place, *count)));
    }

    pub fn key(&self, key: &Key) -> u64 {
        digest_of(&(&*key.namespace, self.name(&key.name)))
    }

    fn name(&self, text: &str) -> u64 {
        self.0.names.get(text).copied().unwrap_or_else(|| digest_of(text))
    }

    /// An object without its revision and without any moment.
    pub fn object(&self, object: &Object) -> u64 {
        let mut hasher = DefaultHasher::new();
        object.kind.kind.hash(&mut hasher);
        self.feed(&object.to_json(), &mut hasher);
        hasher.finish()
    }

    fn feed(&self, value: &Value, hasher: &mut DefaultHasher) {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(name, _)| {
                    !matches!(name.as_str(), "resourceVersion" | "managedFields" | "creationTimestamp" | "generateName")
                });
                for (name, value) in fields {
                    name.hash(hasher);
                    self.feed(value, hasher);
                }
                0xff_u8.hash(hasher);
            }
            Value::Array(items) => {
                items.len().hash(hasher);
                items.iter().for_each(|item| self.feed(item, hasher));
            }
            Value::String(text) if is_moment(text) => "a moment".hash(hasher),
            // The volume with a Pod's token has a name of its own.
            Value::String(text) if text.starts_with("kube-api-access-") => "a token".hash(hasher),
            Value::String(text) => self.name(text).hash(hasher),
            Value::Number(number) => number.to_string().hash(hasher),
            Value::Bool(bool) => bool.hash(hasher),
            Value::Null => 0_u8.hash(hasher),
        }
    }
}

/// What people would compare at the end: the content of objects, without what tells how they came about.
pub fn content<'a>(objects: impl Iterator<Item = &'a Object>) -> u64 {
    objects
        .map(|object| {
            let mut json = object.to_json();
            let generated = object.metadata().generate_name.clone();
            if let Some(metadata) = json["metadata"].as_object_mut() {
                metadata.retain(|name, _| {
                    matches!(name.as_str(), "name" | "namespace" | "labels" | "annotations" | "ownerReferences")
                });
                if let Some(prefix) = generated {
                    metadata.insert("name".to_owned(), Value::String(prefix));
                }
                let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
                for owner in owners.into_iter().flatten() {
                    owner["uid"] = Value::Null;
                }
            }
            if let Some(status) = json["status"].as_object_mut() {
                status.remove("observedGeneration");
            }
            let mut hasher = DefaultHasher::new();
            object.kind.kind.hash(&mut hasher);
            Names::default().feed(&json, &mut hasher);
            hasher.finish()
        })
        .fold(0, u64::wrapping_add)
}

pub fn digest_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// `2026-01-01T00:00:00Z`, with or without a fraction.
fn is_moment(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && bytes.ends_with(b"Z") && bytes[0].is_ascii_digit()
}
