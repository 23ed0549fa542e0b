//! Kinds that CustomResourceDefinitions bring.
//! <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources/>

mod conversion;
pub mod definition;
mod expressions;
pub mod formats;
pub mod lifecycle;
pub mod rules;
pub mod schema;
mod selectable;
mod structural;
pub mod values;

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
};
use serde_json::Value;

use crate::api::kind::{JSON_CODEC, Kind, KindRef};
use crate::api::object::{Object, Part};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::apiserver::validation::field::Causes;
use crate::store::{Change, Store};
use schema::Schema;

/// What a definition says, compiled.
pub struct Definition {
    versions: Vec<Version>,
    /// Which version is stored.
    storage: usize,
    /// The program that makes one version of another.
    converter: Option<conversion::Converter>,
}

/// One version of a custom kind.
pub struct Version {
    pub name: String,
    served: bool,
    pub schema: Option<Schema>,
    /// Where the scale subresource finds its numbers.
    pub scale: Option<CustomResourceSubresourceScale>,
    /// Fields that selectors may name, such as `spec.color`.
    selectable: Vec<String>,
}

/// What a kind carries: its definition, and which version it is.
struct Place {
    definition: Arc<Definition>,
    version: usize,
}

fn place(kind: &Kind) -> Option<&Place> {
    kind.definition.as_ref()?.downcast_ref()
}

/// A kind by its definition alone, which nobody serves: that of a file.
pub fn kind_of(definition: &Object) -> KindRef {
    let compiled = Arc::new(Definition::of(definition));
    kinds_of(definition, usize::MAX, &compiled).swap_remove(0)
}

/// A value of such a kind, if it has the right types and no field that is not known.
///
/// # Errors
/// 400 for unknown fields, 422 for wrong types.
pub fn read_strictly(kind: &KindRef, value: &Value) -> Result<Value, Status> {
    let mut read = value.clone();
    let Some(schema) = version(kind).and_then(|version| version.schema.as_ref()) else { return Ok(read) };
    let mut unknown = Vec::new();
    schema::prune_resource(&mut read, schema, &mut unknown);
    if !unknown.is_empty() {
        let told: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        return Err(Status::bad_request(format!("strict decoding error: {}", told.join(", "))));
    }
    let mut causes = Causes::new();
    values::validate(&read, None, schema, "", &mut causes);
    if causes.is_empty() { Ok(read) } else { Err(Status::invalid(kind, "", causes.into())) }
}

/// The version that a custom kind is; `None` for built-in kinds.
pub fn version(kind: &Kind) -> Option<&Version> {
    let place = place(kind)?;
    place.definition.versions.get(place.version)
}

/// The names of all versions of a custom kind; `None` for built-in kinds.
pub fn versions(kind: &Kind) -> Option<impl Iterator<Item = &str>> {
    Some(place(kind)?.definition.versions.iter().map(|version| version.name.as_str()))
}

/// The kinds of the definitions that exist now.
#[derive(Clone, Default)]
pub struct CustomKinds {
    by_definition: imbl::OrdMap<Key, Entry>,
    /// Definitions that no object tells of.
    own: imbl::OrdMap<Key, Object>,
    /// Something was written that definitions have to react to.
    unsettled: bool,
}

#[derive(Clone)]
struct Entry {
    slot: usize,
    /// The definition's spec, as long as which nothing has to be compiled again.
    spec: Part,
    definition: Arc<Definition>,
    /// Every version, in the definition's order.
    kinds: Vec<KindRef>,
    established: bool,
    terminating: bool,
}

impl CustomKinds {
    /// The kinds that are served.
    pub fn kinds(&self) -> impl Iterator<Item = &KindRef> {
        let established = self.by_definition.values().filter(|entry| entry.established);
        established.flat_map(|entry| {
            entry
                .kinds
                .iter()
                .zip(&entry.definition.versions)
                .filter(|(_, version)| version.served)
                .map(|(kind, _)| kind)
        })
    }

    /// Follows the definitions as they are written and deleted.
    pub fn observe(&mut self, change: &Change, store: &mut Store) {
        let object = change.object();
        if object.kind.definition.is_some() {
            self.unsettled |= change.after.is_none();
        }
        if !object.is::<CustomResourceDefinition>() {
            return;
        }
        self.unsettled = true;
        if change.after.is_none() {
            self.by_definition.remove(&object.key);
            return;
        }
        let known = self.by_definition.get(&object.key);
        let slot = known.map_or_else(|| store.add_slot(), |known| known.slot);
        let definition = match known {
            Some(known) if Arc::ptr_eq(&known.spec, object.spec_part()) => known.definition.clone(),
            _ => Arc::new(Definition::of(object)),
        };
        let established = lifecycle::has_condition(object, "Established");
        self.by_definition.insert(object.key.clone(), Entry::new(object, slot, definition, established));
    }

    /// Serves the kind of a definition that no object tells of.
    pub fn serve_own(&mut self, object: &Object, store: &mut Store) {
        let definition = Arc::new(Definition::of(object));
        self.by_definition.insert(object.key.clone(), Entry::new(object, store.add_slot(), definition, true));
        self.own.insert(object.key.clone(), object.clone());
    }

    pub fn is_own(&self, kind: &KindRef) -> bool {
        self.own_definition(kind).is_some()
    }

    /// The definition of such a kind.
    pub fn own_definition(&self, kind: &KindRef) -> Option<&Object> {
        self.own.get(&Key::cluster(kind.qualified_resource()))
    }

    fn entry(&self, kind: &KindRef) -> Option<&Entry> {
        kind.definition.as_ref()?;
        self.by_definition.values().find(|entry| entry.slot == kind.slot)
    }

    /// The definition of this kind is being deleted.
    pub fn is_terminating(&self, kind: &KindRef) -> bool {
        self.entry(kind).is_some_and(|entry| entry.terminating)
    }
}

impl Entry {
    fn new(object: &Object, slot: usize, definition: Arc<Definition>, established: bool) -> Entry {
        Entry {
            slot,
            spec: object.spec_part().clone(),
            kinds: kinds_of(object, slot, &definition),
            definition,
            established,
            terminating: lifecycle::has_condition(object, "Terminating"),
        }
    }
}

impl Definition {
    fn of(object: &Object) -> Definition {
        let spec = object.spec::<CustomResourceDefinition>();
        let storage = spec.versions.iter().position(|version| version.storage).unwrap_or(0);
        let converter = spec.conversion.as_ref().and_then(conversion::Converter::of);
        Definition { versions: spec.versions.iter().map(Version::of).collect(), storage, converter }
    }
}

impl Version {
    fn of(version: &CustomResourceDefinitionVersion) -> Version {
        let props = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let path = |path: &str| path.trim_start_matches('.').to_owned();
        Version {
            name: version.name.clone(),
            served: version.served,
            schema: props.map(Schema::of_resource),
            scale: version.subresources.as_ref().and_then(|subresources| subresources.scale.clone()),
            selectable: version.selectable_fields.iter().flatten().map(|field| path(&field.json_path)).collect(),
        }
    }
}

/// A stored object as a request for this kind sees it: what is missing gets the defaults of the version that it is
/// stored in, and in another version it has only what that knows. What a program has to convert stays as it is: for that
/// ask [`super::ApiServer::in_version_of`].
pub fn as_kind(object: Object, kind: &KindRef) -> Object {
    let Some(place) = place(kind).filter(|_| !object.kind.is(kind)) else { return object };
    if place.definition.converter.is_some() && object.kind.version != kind.version {
        return object;
    }
    let value = completed(&object, &place.definition);
    read(object, value, kind)
}

/// A program makes one version of this kind of another.
pub fn has_converter(kind: &KindRef) -> bool {
    place(kind).is_some_and(|place| place.definition.converter.is_some())
}

/// An object with what the version that it is in knows and adds.
fn completed(object: &Object, definition: &Definition) -> Value {
    let own = definition.versions.iter().find(|version| *version.name == *object.kind.version);
    let mut value = object.to_json();
    if let Some(schema) = own.and_then(|version| version.schema.as_ref()) {
        schema::prune_resource(&mut value, schema, &mut Vec::new());
        schema::default(&mut value, schema);
    }
    value
}

/// Takes away what the version of a custom kind does not know.
pub fn prune(kind: &KindRef, value: &mut Value) {
    if let Some(schema) = version(kind).and_then(|version| version.schema.as_ref()) {
        schema::prune_resource(value, schema, &mut Vec::new());
    }
}

/// The object in another version: the fields that this knows.
fn in_version(mut object: Object, kind: &KindRef) -> Object {
    if object.kind.version == kind.version {
        object.kind = kind.clone();
        return object;
    }
    let value = object.to_json();
    read(object, value, kind)
}

fn read(object: Object, mut value: Value, kind: &KindRef) -> Object {
    prune(kind, &mut value);
    match Object::from_json(kind, value) {
        Ok(mut read) => {
            read.set_metadata(object.metadata_arc().clone());
            read.managed = object.managed.clone();
            read.revision = object.revision;
            read
        }
        // Fields of custom resources are JSON, whatever they hold.
        Err(_) => object,
    }
}

/// Selectors may name this field of a custom kind.
pub fn is_selectable(kind: &KindRef, path: &str) -> bool {
    version(kind).is_some_and(|version| version.selectable.iter().any(|known| known == path))
}

/// A field of a custom resource as selectors see it: a text, empty where there is none. `None` for built-in kinds.
pub fn field<'a>(object: &'a Object, path: &str) -> Option<Cow<'a, str>> {
    object.kind.definition.as_ref()?;
    let mut steps = path.split('.').peekable();
    let mut value = match steps.peek() {
        Some(&"status") => {
            steps.next();
            object.status_part().downcast_ref::<Value>()
        }
        _ => object.spec_part().downcast_ref::<Value>(),
    };
    for step in steps {
        value = value.and_then(|value| value.get(step));
    }
    Some(match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    })
}

fn kinds_of(object: &Object, slot: usize, definition: &Arc<Definition>) -> Vec<KindRef> {
    let spec = object.spec::<CustomResourceDefinition>();
    let status = object.status::<CustomResourceDefinition>();
    let accepted = status.accepted_names.as_ref().filter(|names| !names.kind.is_empty() && !names.plural.is_empty());
    let served = accepted.unwrap_or(&spec.names);
    let names = |list: &Option<Vec<String>>| list.iter().flatten().map(|name| Name::from(name.as_str())).collect();
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let kind = |(index, version): (usize, &CustomResourceDefinitionVersion)| {
        let subresources = version.subresources.as_ref();
        let part = ["get", "patch", "update"].map(Name::from).to_vec();
        let mut parts = Vec::new();
        if subresources.is_some_and(|s| s.status.is_some()) {
            parts.push((Name::from("status"), part.clone()));
        }
        if subresources.is_some_and(|s| s.scale.is_some()) {
            parts.push((Name::from("scale"), part));
        }
        let lower = served.kind.to_lowercase();
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        KindRef::new(Kind {
            slot,
            group: spec.group.as_str().into(),
            version: version.name.as_str().into(),
            kind: served.kind.as_str().into(),
            resource: served.plural.as_str().into(),
            singular: served.singular.as_deref().filter(|name| !name.is_empty()).unwrap_or(&lower).into(),
            namespaced: spec.scope == "Namespaced",
            short_names: names(&served.short_names),
            categories: names(&served.categories),
            verbs: verbs.map(Name::from).to_vec(),
            subresources: parts,
            codec: JSON_CODEC,
            type_name: "".into(),
            schema: schema.and_then(|schema| serde_json::to_value(schema).ok()).map(Arc::new),
            definition: Some(Arc::new(Place { definition: definition.clone(), version: index })),
            warning: deprecation(spec.group.as_str(), &served.kind, version, &spec.versions),
        })
    };
    spec.versions.iter().enumerate().map(kind).collect()
}

/// What requests for a deprecated version are told: the definition's words, or which version to use instead.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-deprecation>
fn deprecation(
    group: &str,
    kind: &str,
    version: &CustomResourceDefinitionVersion,
    all: &[CustomResourceDefinitionVersion],
) -> Name {
    if version.deprecated != Some(true) {
        return Name::default();
    }
    if let Some(written) = version.deprecation_warning.as_deref() {
        return written.into();
    }
    let newer = all.iter().filter(|other| other.served && other.deprecated != Some(true));
    let best =
        newer.max_by_key(|other| priority(&other.name)).filter(|other| priority(&other.name) > priority(&version.name));
    let instead = best.map(|best| format!("; use {group}/{} {kind}", best.name)).unwrap_or_default();
    format!("{group}/{} {kind} is deprecated{instead}", version.name).as_str().into()
}

/// How versions are ordered: v2, v1, v1beta1, v1alpha1, then others.
pub fn priority(version: &str) -> (u8, u32, u32) {
    let read = |text: &str| -> Option<(u8, u32, u32)> {
        let text = text.strip_prefix('v')?;
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (major, rest) = text.split_at(end);
        let major = major.parse().ok()?;
        let (level, minor) = if let Some(minor) = rest.strip_prefix("beta") {
            (2, minor.parse().ok()?)
        } else if let Some(minor) = rest.strip_prefix("alpha") {
            (1, minor.parse().ok()?)
        } else {
            (3, if rest.is_empty() { 0 } else { return None })
        };
        Some((level, major, minor))
    };
    read(version).unwrap_or((0, 0, 0))
}
