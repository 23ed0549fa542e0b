//! Server-side apply: a configuration merged into an object, and its author in charge of what it says.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/>

use serde_json::{Value, json};

use super::compare::{check, compare, equal, fields_of};
use super::merge::{merge, remove, with_named_fields};
use super::types::{Type, empty};
use super::{is_same_manager, reset, sort, stripped};
use crate::api::Name;
use crate::api::field_set::{FieldSet, Path, path_text};
use crate::api::kind::KindRef;
use crate::api::managed::Entry;
use crate::api::status::{Cause, Status};

/// Who managed an object before anybody kept track.
const BEFORE: &str = "before-first-apply";

/// Whose configurations move from client-side apply to server-side apply.
const KUBECTL: &str = "kubectl";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A configuration that somebody applies.
pub struct Applied<'a> {
    pub kind: &'a KindRef,
    pub config: &'a Value,
    pub manager: Name,
    pub subresource: &'a str,
    /// Takes fields from other managers.
    pub force: bool,
    /// In seconds since 1970.
    pub time: i64,
}

impl Applied<'_> {
    /// What the configuration says that the kind does not allow.
    pub fn check(&self) -> Result<(), Status> {
        let problems = check(self.config, Type::of(self.kind));
        if problems.is_empty() {
            return Ok(());
        }
        let text = |pointer: &str| self.config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let problems = match problems.as_slice() {
            [one] => one.clone(),
            more => format!("errors:\n  {}", more.join("\n  ")),
        };
        let Self { kind, .. } = self;
        let typed = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
        Err(Status::unexplained(format!(
            "failed to create typed patch object ({namespace}/{name}; {typed}): {problems}"
        )))
    }

    /// Applies to an object (none: there is none yet) with these managers: the new object, and its managers.
    pub fn apply(&self, live: Option<&Value>, managers: &[Entry]) -> Result<(Value, Vec<Entry>), Status> {
        let nothing = json!({"apiVersion": self.kind.api_version(), "kind": &*self.kind.kind, "metadata": {}});
        let mut managers = managers.to_vec();
        if let (Some(live), true) = (live, managers.is_empty()) {
            managers.extend(self.before_first(live));
        }
        let live = live.unwrap_or(&nothing);
        let (mut object, mut managers) = match self.merge(live, managers.clone(), self.force) {
            Err(conflicts) => {
                let left = self.left_conflicts(live, conflicts);
                if !left.is_empty() {
                    return Err(refusal(&left));
                }
                self.merge(live, managers, true).map_err(|conflicts| refusal(&conflicts))?
            }
            Ok(applied) => applied,
        };
        sort(&mut managers);
        self.follow_last_applied(&mut object);
        Ok((object, managers))
    }

    /// Everything that stands in an object which nobody kept track of.
    fn before_first(&self, live: &Value) -> Option<Entry> {
        let found = compare(&empty(self.kind), live, Type::of(self.kind)).without(&reset(self.kind, self.subresource));
        let fields = found.changed().difference(stripped());
        (!fields.is_empty()).then(|| Entry {
            manager: BEFORE.into(),
            applied: false,
            api_version: self.kind.api_version().into(),
            subresource: self.subresource.into(),
            time: Some(self.time),
            fields,
        })
    }

    fn merge(&self, live: &Value, mut managers: Vec<Entry>, force: bool) -> Result<(Value, Vec<Entry>), Vec<Conflict>> {
        let of = Type::of(self.kind);
        let reset = reset(self.kind, self.subresource);
        let mut own = Entry {
            manager: self.manager.clone(),
            applied: true,
            api_version: self.kind.api_version().into(),
            subresource: self.subresource.into(),
            time: None,
            fields: fields_of(self.config, of).without(&reset),
        };
        let last = managers.iter().position(|entry| is_same_manager(entry, &own)).map(|place| managers.remove(place));
        own.time = last.as_ref().and_then(|last| last.time);
        let merged = merge(live, self.config, of);
        let others = managers.iter().chain([&own]).fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
        let object = last.map_or_else(|| merged.clone(), |last| prune(&merged, &last.fields, &others, of));
        let found = compare(live, &object, of).without(&reset);
        let changed = found.changed();
        let mut conflicts = Vec::new();
        for entry in &mut managers {
            let taken = entry.fields.intersection(&changed);
            conflicts.extend(taken.paths().into_iter().map(|path| Conflict { with: Entry::clone(entry), path }));
            entry.fields = entry.fields.difference(&taken).difference(&found.removed);
        }
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        if !equal(live, &object) {
            own.time = Some(self.time);
        }
        own.fields = own.fields.difference(stripped());
        managers.push(own);
        managers.retain(|entry| !entry.fields.is_empty());
        Ok((object, managers))
    }

    /// The conflicts that are none: kubectl takes over what it applied on the client before.
    fn left_conflicts(&self, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
        let own =
            last_applied(live).filter(|_| *self.manager == *KUBECTL).and_then(|text| serde_json::from_str(text).ok());
        let Some(own) = own.filter(|own: &Value| own["apiVersion"] == *self.kind.api_version()) else {
            return conflicts;
        };
        let of = Type::of(self.kind);
        let found = compare(&own, live, of);
        let fields = fields_of(&own, of).difference(&found.changed()).difference(&found.removed);
        conflicts.into_iter().filter(|conflict| !fields.contains(&conflict.path)).collect()
    }

    /// The annotation of client-side apply, where there is one, says what kubectl applied last.
    fn follow_last_applied(&self, object: &mut Value) {
        if *self.manager != *KUBECTL || last_applied(object).is_none_or(str::is_empty) {
            return;
        }
        let mut config = self.config.clone();
        if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
        object["metadata"]["annotations"][LAST_APPLIED] = format!("{}\n", super::go::json_line(&config)).into();
    }
}

fn last_applied(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()
}

/// Takes out what a manager applied last time and nobody owns now.
fn prune(merged: &Value, last: &FieldSet, owned: &FieldSet, of: Type<'_>) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let last = with_named_fields(last, of);
    let fields = with_named_fields(&fields_of(merged, of), of);
    let kept = |value: &Value| with_named_fields(&fields_of(value, of), of);
    // Whatever was only beside the fields of the last time stays.
    let pruned = remove(merged, &last, of);
    let pruned = remove(merged, &fields.difference(&kept(&pruned).union(&with_named_fields(owned, of))), of);
    remove(merged, &fields.difference(&kept(&pruned)).intersection(&last), of)
}

/// A field that another manager owns and that the configuration changes.
struct Conflict {
    with: Entry,
    path: Path,
}

impl Conflict {
    /// `"kubectl" with subresource "scale" using apps/v1`.
    fn manager(&self) -> String {
        let Entry { manager, subresource, api_version, applied, .. } = &self.with;
        let subresource =
            if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
        let version = if *applied { String::new() } else { format!(" using {api_version}") };
        format!("{manager:?}{subresource}{version}")
    }
}

fn refusal(conflicts: &[Conflict]) -> Status {
    let cause = |conflict: &Conflict| Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {}", conflict.manager()),
        field: path_text(&conflict.path),
    };
    let causes: Vec<Cause> = conflicts.iter().map(cause).collect();
    let message = match conflicts {
        [one] => format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager(), path_text(&one.path)),
        many => {
            let mut lines: Vec<String> = Vec::new();
            let mut sorted: Vec<&Conflict> = many.iter().collect();
            sorted.sort_by(|a, b| key(a).cmp(&key(b)));
            for group in sorted.chunk_by(|a, b| is_same_manager(&a.with, &b.with)) {
                lines.extend(group.first().map(|first| format!("conflicts with {}:", first.manager())));
                lines.extend(group.iter().map(|conflict| format!("- {}", path_text(&conflict.path))));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    Status::apply_conflict(message, causes)
}

fn key(conflict: &Conflict) -> (&str, bool, &str, &str) {
    let Entry { manager, applied, api_version, subresource, .. } = &conflict.with;
    (manager, !applied, api_version, subresource)
}
