//! Objects: a kind, metadata and two parts, each shared behind an `Arc`, so that a change of status copies no spec.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value};

use super::kind::{DecodeError, KindRef, Resource, decode_metadata};
use super::managed::Managed;
use super::{Key, Name, wire};

/// A typed piece of an object whose type its kind knows.
pub type Part = Arc<dyn Any + Send + Sync>;

/// An API object. The store, the record and every cache keep it: cloning it costs one reference count, and changing one
/// that is shared makes it a version of its own.
#[derive(Clone)]
pub struct Object(Arc<Version>);

/// One version of an object.
#[derive(Clone)]
pub struct Version {
    pub kind: KindRef,
    pub key: Key,
    /// The store's revision of the last write; 0 before the first. `metadata.resourceVersion` is empty in memory.
    pub revision: u64,
    /// Stands outside of the metadata, which has none in memory.
    pub managed: Managed,
    metadata: Arc<ObjectMeta>,
    spec: Part,
    status: Part,
}

impl Deref for Object {
    type Target = Version;

    fn deref(&self) -> &Version {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Version {
        Arc::make_mut(&mut self.0)
    }
}

/// What an object is made of, without its name and revision.
#[derive(Clone)]
pub struct Parts {
    metadata: Arc<ObjectMeta>,
    spec: Part,
    status: Part,
}

impl Parts {
    /// The object without its revision and managers.
    pub fn to_json(&self, kind: &KindRef) -> Value {
        whole(kind, serde_json::to_value(&*self.metadata).unwrap_or_default(), &self.spec, &self.status)
    }

    /// Made of the very same parts, not of equal ones.
    pub fn is(&self, other: &Parts) -> bool {
        Arc::ptr_eq(&self.metadata, &other.metadata)
            && Arc::ptr_eq(&self.spec, &other.spec)
            && Arc::ptr_eq(&self.status, &other.status)
    }
}

impl Object {
    /// A new object of a built-in kind, with nothing but its name.
    pub fn new<K: Resource>(namespace: &str, name: &str, spec: K::Spec) -> Object {
        let metadata = ObjectMeta {
            name: (!name.is_empty()).then(|| name.to_owned()),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            ..ObjectMeta::default()
        };
        Object::assemble(K::kind().clone(), metadata, Arc::new(spec), Arc::new(K::Status::default()))
    }

    fn assemble(kind: KindRef, metadata: ObjectMeta, spec: Part, status: Part) -> Object {
        let key = key_of(&kind, &metadata);
        Object(Arc::new(Version {
            kind,
            key,
            revision: 0,
            managed: Managed::default(),
            metadata: Arc::new(metadata),
            spec,
            status,
        }))
    }

    /// Reads JSON; apiVersion and kind of the value are not looked at.
    pub fn from_json(kind: &KindRef, value: Value) -> Result<Object, DecodeError> {
        let Value::Object(mut object) = value else {
            return Err(DecodeError { path: String::new(), message: "expected an object".into() });
        };
        object.remove("apiVersion");
        object.remove("kind");
        let mut metadata = decode_metadata(object.remove("metadata").unwrap_or_default())?;
        let revision = metadata.resource_version.take().and_then(|text| text.parse().ok()).unwrap_or(0);
        let (spec, status) = (kind.codec.decode)(object)?;
        let mut object = Object::assemble(kind.clone(), metadata, spec, status);
        object.revision = revision;
        Ok(object)
    }

    /// Tells this version from all others, as long as a clone of it is kept.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub fn parts(&self) -> Parts {
        Parts { metadata: self.metadata.clone(), spec: self.spec.clone(), status: self.status.clone() }
    }

    /// The object as the API sends it, but for `metadata.managedFields`.
    pub fn to_json(&self) -> Value {
        whole(&self.kind, self.metadata_json(), &self.spec, &self.status)
    }

    pub fn metadata_json(&self) -> Value {
        let mut metadata = serde_json::to_value(&*self.metadata).unwrap_or_default();
        if self.revision > 0
            && let Value::Object(fields) = &mut metadata
        {
            fields.insert("resourceVersion".into(), self.revision.to_string().into());
        }
        metadata
    }

    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The metadata, to be changed. Call [`Object::rename`] to change name or namespace.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        Arc::make_mut(&mut self.metadata)
    }

    pub fn rename(&mut self, key: Key) {
        let metadata = self.metadata_mut();
        metadata.name = Some(key.name.to_string());
        metadata.namespace = (!key.namespace.is_empty()).then(|| key.namespace.to_string());
        self.key = key;
    }

    /// True if this is of the kind `K` (of any version that is stored with it).
    pub fn is<K: Resource>(&self) -> bool {
        self.kind.slot == K::kind().slot && (*self.spec).is::<K::Spec>()
    }

    /// The spec (for kinds without one: the whole, metadata left empty). The object must be of the kind `K`.
    pub fn spec<K: Resource>(&self) -> &K::Spec {
        self.spec.downcast_ref().unwrap_or_else(|| self.wrong_kind::<K>())
    }

    pub fn status<K: Resource>(&self) -> &K::Status {
        self.status.downcast_ref().unwrap_or_else(|| self.wrong_kind::<K>())
    }

    pub fn spec_mut<K: Resource>(&mut self) -> &mut K::Spec {
        if !(*self.spec).is::<K::Spec>() {
            self.wrong_kind::<K>()
        }
        part_mut(&mut self.spec)
    }

    pub fn status_mut<K: Resource>(&mut self) -> &mut K::Status {
        if !(*self.status).is::<K::Status>() {
            self.wrong_kind::<K>()
        }
        part_mut(&mut self.status)
    }

    /// The spec's `Arc`, so that many objects can share one.
    pub fn spec_part(&self) -> &Part {
        &self.spec
    }

    pub fn status_part(&self) -> &Part {
        &self.status
    }

    pub fn set_spec_part(&mut self, spec: Part) {
        self.spec = spec;
    }

    pub fn set_status_part(&mut self, status: Part) {
        self.status = status;
    }

    pub fn set_metadata(&mut self, metadata: Arc<ObjectMeta>) {
        self.metadata = metadata;
    }

    pub fn metadata_arc(&self) -> &Arc<ObjectMeta> {
        &self.metadata
    }

    pub fn same_spec(&self, other: &Object) -> bool {
        (self.kind.codec.spec_equal)(&self.spec, &other.spec)
    }

    pub fn same_status(&self, other: &Object) -> bool {
        (self.kind.codec.status_equal)(&self.status, &other.status)
    }

    /// Equal in everything but the revision.
    pub fn same(&self, other: &Object) -> bool {
        (Arc::ptr_eq(&self.metadata, &other.metadata) || self.metadata == other.metadata)
            && self.same_spec(other)
            && self.same_status(other)
    }

    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Somebody asked for its deletion and it waits for finalizers or its grace period.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The owner that manages it.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
    }

    /// The reference that a child carries to be managed by this object.
    pub fn controller_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind.api_version(),
            kind: self.kind.kind.to_string(),
            name: self.key.name.to_string(),
            uid: self.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    fn wrong_kind<K: Resource>(&self) -> ! {
        panic!("{:?} {} was read as {:?}", self.kind, self.key, K::kind())
    }
}

fn whole(kind: &KindRef, metadata: Value, spec: &Part, status: &Part) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".into(), kind.api_version().into());
    object.insert("kind".into(), Value::String(kind.kind.to_string()));
    object.insert("metadata".into(), metadata);
    object.append(&mut (kind.codec.encode)(spec, status));
    wire::complete(kind, &mut object);
    Value::Object(object)
}

fn part_mut<T: Any + Send + Sync + Clone + Default>(part: &mut Part) -> &mut T {
    if Arc::get_mut(part).is_none() {
        let copy = part.downcast_ref::<T>().cloned().unwrap_or_default();
        *part = Arc::new(copy);
    }
    let whole = Arc::get_mut(part).and_then(|part| part.downcast_mut());
    whole.expect("just made unique, of a type that the caller checked")
}

fn key_of(kind: &KindRef, metadata: &ObjectMeta) -> Key {
    let name = |text: &Option<String>| text.as_deref().map(Name::from).unwrap_or_default();
    let namespace = if kind.namespaced { name(&metadata.namespace) } else { Name::default() };
    Key { namespace, name: name(&metadata.name) }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}@{}", self.kind, self.key, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use serde_json::json;

    use super::*;

    #[test]
    fn json_comes_back_as_it_went_in() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default", "resourceVersion": "7"},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            "status": {},
        });
        let object = Object::from_json(KindRef::of::<Pod>(), pod.clone()).unwrap();
        assert_eq!(object.spec::<Pod>().containers[0].image.as_deref(), Some("nginx"));
        assert_eq!(object.revision, 7);
        assert_eq!(object.to_json(), pod);

        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}});
        let object = Object::from_json(KindRef::of::<ConfigMap>(), map.clone()).unwrap();
        assert_eq!(object.to_json(), map);
    }

    #[test]
    fn a_wrong_type_is_named_with_its_place() {
        let pod = json!({"spec": {"containers": [{"name": "web", "ports": [{"containerPort": "http"}]}]}});
        let error = Object::from_json(KindRef::of::<Pod>(), pod).unwrap_err();
        assert_eq!(error.path, "spec.containers[0].ports[0].containerPort");
    }

    #[test]
    fn a_change_of_status_shares_the_spec() {
        let pod = Object::new::<Pod>("default", "web", Default::default());
        let mut other = pod.clone();
        other.status_mut::<Pod>().phase = Some("Running".into());
        assert!(Arc::ptr_eq(pod.spec_part(), other.spec_part()));
        assert_eq!(pod.status::<Pod>().phase, None);
    }
}
