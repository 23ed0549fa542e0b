//! `metadata.managedFields`: who manages which fields of an object.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

pub mod apply;
mod compare;
pub mod go;
mod merge;
pub mod scale;
mod types;

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value, json};

use crate::api::Name;
use crate::api::field_set::{FieldSet, PathElement};
use crate::api::kind::KindRef;
use crate::api::managed::{Entry, Managed, Write};
use crate::api::object::Object;
use crate::api::request::{Body, Request};
use crate::clock::Time;
use compare::compare;
use types::{Type, empty};

/// More updaters than this share an entry, the oldest first.
const UPDATERS_MAX: usize = 10;

/// The manager of that shared entry.
const ANCIENT: &str = "ancient-changes";

/// So many writes wait for somebody to ask; then they are worked out unasked.
const PENDING_MAX: usize = 16;

/// The entries of an object, in the order in which the API lists them.
pub fn entries(object: &Object) -> &[Entry] {
    object.managed.entries(&after_write)
}

/// The whole object as the API sends it.
pub fn to_json(object: &Object) -> Value {
    let mut json = object.to_json();
    json["metadata"] = metadata_json(object);
    json
}

/// The metadata of an object, with its managers.
pub fn metadata_json(object: &Object) -> Value {
    let mut json = object.metadata_json();
    let entries = entries(object);
    if !entries.is_empty() {
        json["managedFields"] = entries.iter().map(entry_json).collect();
    }
    json
}

/// The first value that a kind has no room for, as the decoder of strategic merge patches says it.
pub fn misfit(value: &Value, kind: &KindRef) -> Option<String> {
    compare::misfit(value, Type::of(kind))
}

/// Takes out the empty lists and maps that the API does not keep.
pub fn omit_empty(value: &mut Value, kind: &KindRef) {
    merge::omit_empty(value, Type::of(kind));
}

/// Who writes, as managedFields names it: the many writes of components share their names.
pub fn manager(request: &Request) -> Name {
    static CONTROLLERS: LazyLock<Name> = LazyLock::new(|| "kube-controller-manager".into());
    static KUBELET: LazyLock<Name> = LazyLock::new(|| "kubelet".into());
    let (named, actor) = (&request.options.field_manager, &request.actor);
    if !named.is_empty() {
        return named.as_str().into();
    }
    match actor.split_once('/') {
        None if actor.is_empty() => "unknown".into(),
        None if actor.ends_with("-controller") => CONTROLLERS.clone(),
        None => actor.clone(),
        Some(("kubelet", _)) => KUBELET.clone(),
        Some((program, _)) => program.into(),
    }
}

/// Takes the managers out of the metadata that a client sent. They replace those of the object, unless the client says
/// nothing of use; `[{}]` forgets them all. Says whether they are other than they were.
pub fn take_sent(old: Option<&Object>, new: &mut Object, request: &Request) -> bool {
    let known = old.map(|old| old.managed.clone()).unwrap_or_default();
    let sent = match &new.metadata().managed_fields {
        None => None,
        Some(_) => new.metadata_mut().managed_fields.take(),
    };
    let replacement = match sent.as_deref() {
        None => None,
        Some(_) if !request.subresource.is_empty() => None,
        Some([one]) if *one == ManagedFieldsEntry::default() => Some(Vec::new()),
        Some(sent) => {
            let sent = sent.iter().map(read_entry).collect::<Result<Vec<_>, _>>();
            sent.ok().filter(|sent| !sent.is_empty())
        }
    };
    let replacement = replacement.filter(|sent| old.map_or(&[][..], entries) != sent);
    let replaced = replacement.is_some();
    new.managed = replacement.map_or(known, Managed::of);
    replaced
}

/// Notes that the writer now manages what it changes from `old` to `new`; nobody manages what changes after this.
pub fn record(old: Option<&Object>, new: &mut Object, request: &Request, now: Time) {
    if old.is_some() && new.managed.is_nobody() {
        return;
    }
    let write = Write {
        manager: manager(request),
        subresource: request.subresource,
        kind: new.kind.clone(),
        time: now.to_meta().0.as_second(),
        before: old.map(Object::parts),
        after: new.parts(),
    };
    let managed = std::mem::take(&mut new.managed);
    new.managed = match managed.last_write() {
        // A component that reports again and again leaves one write behind.
        Some((last, before)) if matches!(request.body, Body::Object(_)) && continues(last, &write) => {
            before.clone().after(Write { before: last.before.clone(), ..write })
        }
        _ => {
            if managed.pending() >= PENDING_MAX {
                managed.entries(&after_write);
            }
            managed.after(write)
        }
    };
}

fn continues(last: &Write, next: &Write) -> bool {
    last.manager == next.manager
        && last.subresource == next.subresource
        && last.kind == next.kind
        && next.before.as_ref().is_some_and(|stored| stored.is(&last.after))
}

/// The managers after a write that was no apply.
fn after_write(managers: &[Entry], write: &Write) -> Vec<Entry> {
    if managers.is_empty() && write.before.is_some() {
        // Nobody has kept track of this object.
        return Vec::new();
    }
    let kind = &write.kind;
    let before = write.before.as_ref().map_or_else(|| empty(kind), |parts| parts.to_json(kind));
    let found = compare(&before, &write.after.to_json(kind), Type::of(kind)).without(&reset(kind, write.subresource));
    let changed = found.changed();
    let lost = changed.clone().union(&found.removed);
    let mut managers: Vec<Entry> = managers.to_vec();
    managers.iter_mut().for_each(|entry| entry.fields = entry.fields.difference(&lost));
    let fields = changed.difference(stripped());
    if !fields.is_empty() {
        let entry = Entry {
            manager: write.manager.clone(),
            applied: false,
            api_version: kind.api_version().into(),
            subresource: write.subresource.into(),
            time: Some(write.time),
            fields,
        };
        match managers.iter_mut().find(|known| is_same_manager(known, &entry)) {
            Some(known) => *known = Entry { fields: entry.fields.union(&known.fields), ..entry },
            None => managers.push(entry),
        }
    }
    managers.retain(|entry| !entry.fields.is_empty());
    cap(&mut managers);
    sort(&mut managers);
    managers
}

/// Appliers are the same in any version.
fn is_same_manager(a: &Entry, b: &Entry) -> bool {
    a.manager == b.manager
        && a.applied == b.applied
        && a.subresource == b.subresource
        && (a.applied || a.api_version == b.api_version)
}

/// Merges the oldest updaters of a version into one until few enough are left.
fn cap(managers: &mut Vec<Entry>) {
    let (mut appliers, mut updaters): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(managers).into_iter().partition(|entry| entry.applied);
    updaters.sort_by(|a, b| (a.time.unwrap_or(0), &a.manager).cmp(&(b.time.unwrap_or(0), &b.manager)));
    let mut place = 0;
    while updaters.len() > UPDATERS_MAX && place < updaters.len() {
        let older = updaters[..place].iter().position(|entry| entry.api_version == updaters[place].api_version);
        let Some(older) = older else {
            place += 1;
            continue;
        };
        let next = updaters.remove(place);
        let bucket = &mut updaters[older];
        bucket.fields = std::mem::take(&mut bucket.fields).union(&next.fields);
        (bucket.manager, bucket.subresource, bucket.time) = (ANCIENT.into(), Name::default(), next.time);
    }
    appliers.append(&mut updaters);
    *managers = appliers;
}

fn sort(managers: &mut [Entry]) {
    let key = |entry: &Entry| (!entry.applied, entry.time.unwrap_or(0));
    let names = |entry: &Entry| (entry.manager.clone(), entry.api_version.clone(), entry.subresource.clone());
    managers.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| names(a).cmp(&names(b))));
}

/// Equal but for their times.
pub fn same_fields(a: &[Entry], b: &[Entry]) -> bool {
    let within = |a: &[Entry], b: &[Entry]| {
        a.iter().all(|entry| b.iter().any(|other| Entry { time: entry.time, ..other.clone() } == *entry))
    };
    a.len() == b.len() && within(a, b)
}

fn set(paths: &[&[&str]]) -> FieldSet {
    paths.iter().map(|path| path.iter().map(|name| PathElement::field(name)).collect()).collect()
}

/// Fields that have no manager.
fn stripped() -> &'static FieldSet {
    static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
        let metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let metadata = metadata.iter().map(|name| vec![PathElement::field("metadata"), PathElement::field(name)]);
        metadata.collect::<FieldSet>().union(&set(&[&["apiVersion"], &["kind"], &["metadata"]]))
    });
    &STRIPPED
}

/// Fields that the server sets back when this subresource is written.
fn reset(kind: &KindRef, subresource: &str) -> FieldSet {
    match (subresource, &*kind.group, &*kind.kind) {
        ("", ..) if kind.has_subresource("status") => set(&[&["status"]]),
        ("status", "", "Pod") => {
            set(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        ("status", "apps", "Deployment") => set(&[&["spec"], &["metadata", "labels"]]),
        ("status", "apiextensions.k8s.io", _) => set(&[&["spec"], &["metadata"]]),
        ("status", ..) if kind.schema.is_some() => set(&[&["spec"], &["metadata"]]),
        ("status", ..) => set(&[&["spec"]]),
        _ => FieldSet::default(),
    }
}

fn entry_json(entry: &Entry) -> Value {
    let mut json = json!({
        "manager": &*entry.manager,
        "operation": if entry.applied { "Apply" } else { "Update" },
        "apiVersion": &*entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.to_json(),
    });
    if let Some(time) = entry.time.and_then(|seconds| Timestamp::from_second(seconds).ok()) {
        json["time"] = time.to_string().into();
    }
    if !entry.subresource.is_empty() {
        json["subresource"] = (&*entry.subresource).into();
    }
    json
}

fn read_entry(sent: &ManagedFieldsEntry) -> Result<Entry, String> {
    let text = |text: &Option<String>| -> Name { text.as_deref().unwrap_or_default().into() };
    let applied = match sent.operation.as_deref() {
        Some("Apply") => true,
        Some("Update") => false,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    if sent.api_version.as_deref().unwrap_or_default().is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    if sent.fields_type.as_deref() != Some("FieldsV1") {
        return Err(format!("invalid fieldsType {:?}", sent.fields_type.as_deref().unwrap_or_default()));
    }
    let fields = sent.fields_v1.as_ref().map_or_else(|| Value::Object(Map::new()), |fields| fields.0.clone());
    Ok(Entry {
        manager: text(&sent.manager),
        applied,
        api_version: text(&sent.api_version),
        subresource: text(&sent.subresource),
        time: sent.time.as_ref().map(|time| time.0.as_second()),
        fields: FieldSet::from_json(&fields)?,
    })
}

#[cfg(test)]
mod tests;
