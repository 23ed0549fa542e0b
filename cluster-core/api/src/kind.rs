//! Kinds of objects: what a row of the table in `kinds.rs` says, and how objects of that kind are read and written.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec, TokenRequestStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Name;
use super::object::Part;

/// A kind as the API serves it. Built-in kinds stand in a table; a CustomResourceDefinition makes one at run time.
pub struct Kind {
    /// Which table of the store holds its objects; kinds that are two versions of one thing share it.
    pub slot: usize,
    pub group: Name,
    pub version: Name,
    pub kind: Name,
    /// The plural name in URLs.
    pub resource: Name,
    pub singular: Name,
    pub namespaced: bool,
    pub short_names: Vec<Name>,
    pub categories: Vec<Name>,
    pub verbs: Vec<Name>,
    /// Name and verbs of each subresource.
    pub subresources: Vec<(Name, Vec<Name>)>,
    pub codec: Codec,
    /// The OpenAPI name of its type; empty for custom kinds.
    pub type_name: Name,
    /// The OpenAPI schema of a custom kind.
    pub schema: Option<Arc<Value>>,
    /// What the apiserver keeps of the definition of a custom kind.
    pub definition: Option<Arc<dyn Any + Send + Sync>>,
    /// What requests for a deprecated version are warned of; empty if it is not deprecated.
    pub warning: Name,
}

/// How the two parts of an object become JSON and back. The parts are a spec and a status, or, where a kind has its
/// fields at the top level, the whole thing and nothing.
#[derive(Clone, Copy)]
pub struct Codec {
    /// Takes the object without apiVersion, kind and metadata.
    pub decode: fn(Map<String, Value>) -> Decoded,
    pub encode: fn(spec: &Part, status: &Part) -> Map<String, Value>,
    /// The status of an object that nobody has reported on.
    pub new_status: fn() -> Part,
    pub spec_equal: fn(&Part, &Part) -> bool,
    pub status_equal: fn(&Part, &Part) -> bool,
    /// The fields stand at the top level instead of under `spec` and `status`.
    pub whole: bool,
    pub has_status: bool,
}

/// The two parts of an object, or what is wrong with it.
pub type Decoded = Result<(Part, Part), DecodeError>;

/// A value of the wrong type, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeError {
    pub path: String,
    pub message: String,
}

#[derive(Clone)]
pub struct KindRef(Arc<Kind>);

impl KindRef {
    pub fn new(kind: Kind) -> KindRef {
        KindRef(Arc::new(kind))
    }

    /// The built-in kind of a k8s-openapi type.
    pub fn of<K: Resource>() -> &'static KindRef {
        K::kind()
    }

    /// It is this very description of a kind, not only one of the same group, version and kind.
    pub fn is(&self, other: &KindRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `pods`, `deployments.apps`: how messages name a resource.
    pub fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.resource.to_string() } else { format!("{}.{}", self.resource, self.group) }
    }

    /// `deployment.apps/web`: how kubectl names an object.
    pub fn qualified_name(&self, name: &str) -> String {
        if self.group.is_empty() {
            format!("{}/{name}", self.singular)
        } else {
            format!("{}.{}/{name}", self.singular, self.group)
        }
    }

    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|(subresource, _)| **subresource == *name)
    }

    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| **allowed == *verb)
    }

    /// Where etcd keeps the objects of this kind: `/registry/pods`.
    pub fn registry_prefix(&self) -> String {
        match (&*self.group, &*self.resource) {
            ("", "nodes") => "/registry/minions".into(),
            ("", "services") => "/registry/services/specs".into(),
            ("", "endpoints") => "/registry/services/endpoints".into(),
            ("networking.k8s.io", "ingresses") => "/registry/ingress".into(),
            ("discovery.k8s.io", _) | ("", _) => format!("/registry/{}", self.resource),
            (group, _) if group.contains('.') && !group.ends_with(".k8s.io") => {
                format!("/registry/{group}/{}", self.resource)
            }
            ("apiextensions.k8s.io" | "apiregistration.k8s.io", _) => {
                format!("/registry/{}/{}", self.group, self.resource)
            }
            _ => format!("/registry/{}", self.resource),
        }
    }
}

impl std::ops::Deref for KindRef {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        &self.0
    }
}

impl PartialEq for KindRef {
    fn eq(&self, other: &KindRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.slot == other.slot && self.group == other.group && self.version == other.version)
    }
}

impl Eq for KindRef {}

impl fmt::Debug for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// A k8s-openapi type that the API serves, with the types of its parts.
pub trait Resource: Any + Sized {
    type Spec: Any + Send + Sync + Clone + Default;
    type Status: Any + Send + Sync + Clone + Default;

    fn kind() -> &'static KindRef;
}

fn from_value<T: DeserializeOwned>(value: Value, prefix: &str) -> Result<T, DecodeError> {
    T::deserialize(&value).map_err(|error| {
        let path = match place_of_error(value, &|value| T::deserialize(value).is_err()) {
            place if place.is_empty() => prefix.trim_end_matches('.').to_owned(),
            place => format!("{prefix}{place}"),
        };
        DecodeError { path, message: error.to_string() }
    })
}

/// Where the first value of a wrong type stands: step by step the first part that is wrong without the others. A
/// deserializer that keeps track of its place would have to be compiled once more for every type of the API.
fn place_of_error(mut whole: Value, is_wrong: &dyn Fn(&Value) -> bool) -> String {
    let (mut place, mut pointer) = (String::new(), String::new());
    loop {
        let parts: Vec<(String, String, Value)> = match whole.pointer(&pointer) {
            Some(Value::Object(fields)) => {
                let dot = if place.is_empty() { "" } else { "." };
                let token = |name: &str| name.replace('~', "~0").replace('/', "~1");
                let part = |(name, value): (&String, &Value)| {
                    (format!("{place}{dot}{name}"), format!("{pointer}/{}", token(name)), json!({name: value}))
                };
                fields.iter().map(part).collect()
            }
            Some(Value::Array(items)) => {
                let part = |(index, item)| (format!("{place}[{index}]"), format!("{pointer}/0"), json!([item]));
                items.iter().enumerate().map(part).collect()
            }
            _ => return place,
        };
        let wrong = parts.into_iter().find_map(|(place, pointer_to, part)| {
            let mut alone = whole.clone();
            *alone.pointer_mut(&pointer)? = part;
            is_wrong(&alone).then_some((place, pointer_to, alone))
        });
        match wrong {
            Some(found) => (place, pointer, whole) = found,
            None => return place,
        }
    }
}

fn to_value<T: Serialize>(value: &T) -> Value {
    // The types of k8s-openapi serialize to JSON without fail: string keys, finite numbers.
    serde_json::to_value(value).unwrap_or_default()
}

pub(super) fn decode_metadata(value: Value) -> Result<ObjectMeta, DecodeError> {
    match value {
        Value::Null => Ok(ObjectMeta::default()),
        value => from_value(value, "metadata."),
    }
}

fn part<T: Any + Send + Sync>(value: T) -> Part {
    Arc::new(value)
}

fn equal<T: Any + PartialEq>(a: &Part, b: &Part) -> bool {
    Arc::ptr_eq(a, b) || a.downcast_ref::<T>() == b.downcast_ref::<T>()
}

/// Kinds with `spec` and perhaps `status`.
pub(super) fn split_codec<S, T>(has_status: bool) -> Codec
where
    S: Any + Send + Sync + Default + Clone + PartialEq + Serialize + DeserializeOwned,
    T: Any + Send + Sync + Default + Clone + PartialEq + Serialize + DeserializeOwned,
{
    fn take<P: Any + Send + Sync + Default + DeserializeOwned>(
        object: &mut Map<String, Value>,
        field: &str,
    ) -> Result<Part, DecodeError> {
        match object.remove(field) {
            None | Some(Value::Null) => Ok(part(P::default())),
            Some(value) => from_value::<P>(value, &format!("{field}.")).map(part),
        }
    }
    fn decode<S, T>(mut object: Map<String, Value>) -> Result<(Part, Part), DecodeError>
    where
        S: Any + Send + Sync + Default + DeserializeOwned,
        T: Any + Send + Sync + Default + DeserializeOwned,
    {
        let status = if TypeId::of::<T>() == TypeId::of::<()>() { part(()) } else { take::<T>(&mut object, "status")? };
        Ok((take::<S>(&mut object, "spec")?, status))
    }
    fn encode<S: Any + Serialize, T: Any + Serialize>(spec: &Part, status: &Part) -> Map<String, Value> {
        let mut object = Map::new();
        if let Some(spec) = spec.downcast_ref::<S>() {
            object.insert("spec".into(), to_value(spec));
        }
        if TypeId::of::<T>() != TypeId::of::<()>()
            && let Some(status) = status.downcast_ref::<T>()
        {
            object.insert("status".into(), to_value(status));
        }
        object
    }
    Codec {
        decode: decode::<S, T>,
        encode: encode::<S, T>,
        new_status: || part(T::default()),
        spec_equal: equal::<S>,
        status_equal: equal::<T>,
        whole: false,
        has_status,
    }
}

/// Kinds whose fields stand at the top level.
pub(super) fn whole_codec<K>() -> Codec
where
    K: Any + Send + Sync + Default + Clone + PartialEq + Serialize + DeserializeOwned + k8s_openapi::Resource,
{
    fn decode<K>(mut object: Map<String, Value>) -> Result<(Part, Part), DecodeError>
    where
        K: Any + Send + Sync + DeserializeOwned + k8s_openapi::Resource,
    {
        object.insert("apiVersion".into(), K::API_VERSION.into());
        object.insert("kind".into(), K::KIND.into());
        object.insert("metadata".into(), Value::Object(Map::new()));
        Ok((part(from_value::<K>(Value::Object(object), "")?), part(())))
    }
    fn encode<K: Any + Serialize>(spec: &Part, _: &Part) -> Map<String, Value> {
        match spec.downcast_ref::<K>().map(to_value) {
            Some(Value::Object(mut object)) => {
                for shared in ["apiVersion", "kind", "metadata"] {
                    object.remove(shared);
                }
                object
            }
            _ => Map::new(),
        }
    }
    Codec {
        decode: decode::<K>,
        encode: encode::<K>,
        new_status: || part(()),
        spec_equal: equal::<K>,
        status_equal: |_, _| true,
        whole: true,
        has_status: false,
    }
}

/// Kinds whose fields stand at the top level and are read into a type that has nothing else.
pub(super) fn bare_codec<F>() -> Codec
where
    F: Any + Send + Sync + Clone + PartialEq + Serialize + DeserializeOwned,
{
    Codec {
        decode: |object| Ok((part(from_value::<F>(Value::Object(object), "")?), part(()))),
        encode: |spec, _| match spec.downcast_ref::<F>().map(to_value) {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        },
        new_status: || part(()),
        spec_equal: equal::<F>,
        status_equal: |_, _| true,
        whole: true,
        has_status: false,
    }
}

/// Custom resources: JSON. The spec part holds every field but apiVersion, kind, metadata and status.
pub const JSON_CODEC: Codec = Codec {
    decode: |mut object| {
        let status = object.remove("status").unwrap_or_default();
        Ok((part(Value::Object(object)), part(status)))
    },
    encode: |spec, status| {
        let mut object = match spec.downcast_ref::<Value>() {
            Some(Value::Object(object)) => object.clone(),
            _ => Map::new(),
        };
        if let Some(status) = status.downcast_ref::<Value>()
            && !status.is_null()
        {
            object.insert("status".into(), status.clone());
        }
        object
    },
    new_status: || part(Value::Null),
    spec_equal: equal::<Value>,
    status_equal: equal::<Value>,
    whole: true,
    has_status: true,
};

/// The kind of the `scale` subresource, which has no collection of its own.
pub fn scale_kind() -> KindRef {
    use k8s_openapi::api::autoscaling::v1::{ScaleSpec, ScaleStatus};
    KindRef::from(Row {
        slot: usize::MAX,
        group: "autoscaling",
        version: "v1",
        kind: "Scale",
        resource: "scales",
        singular: "scale",
        namespaced: true,
        short_names: &[],
        categories: &[],
        verbs: "",
        subresources: "",
        codec: split_codec::<ScaleSpec, ScaleStatus>(true),
        type_name: "io.k8s.api.autoscaling.v1.Scale".into(),
    })
}

/// What the `token` subresource of ServiceAccounts takes and gives; it has no collection of its own.
impl Resource for TokenRequest {
    type Spec = TokenRequestSpec;
    type Status = TokenRequestStatus;

    fn kind() -> &'static KindRef {
        static KIND: LazyLock<KindRef> = LazyLock::new(|| {
            KindRef::from(Row {
                slot: usize::MAX,
                group: "authentication.k8s.io",
                version: "v1",
                kind: "TokenRequest",
                resource: "tokenrequests",
                singular: "tokenrequest",
                namespaced: true,
                short_names: &[],
                categories: &[],
                verbs: "",
                subresources: "",
                codec: split_codec::<TokenRequestSpec, TokenRequestStatus>(true),
                type_name: "io.k8s.api.authentication.v1.TokenRequest".into(),
            })
        });
        &KIND
    }
}

fn words(list: &str, separator: char) -> Vec<Name> {
    list.split(separator).filter(|word| !word.is_empty()).map(Name::from).collect()
}

pub(super) struct Row<'a> {
    pub slot: usize,
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
    pub resource: &'a str,
    pub singular: &'a str,
    pub namespaced: bool,
    pub short_names: &'a [&'a str],
    pub categories: &'a [&'a str],
    pub verbs: &'a str,
    /// `status:get/patch/update,scale:get`
    pub subresources: &'a str,
    pub codec: Codec,
    pub type_name: String,
}

impl From<Row<'_>> for KindRef {
    fn from(row: Row<'_>) -> KindRef {
        KindRef::new(Kind {
            slot: row.slot,
            group: row.group.into(),
            version: row.version.into(),
            kind: row.kind.into(),
            resource: row.resource.into(),
            singular: row.singular.into(),
            namespaced: row.namespaced,
            short_names: row.short_names.iter().map(|&name| name.into()).collect(),
            categories: row.categories.iter().map(|&name| name.into()).collect(),
            verbs: words(row.verbs, ','),
            subresources: row
                .subresources
                .split(',')
                .filter_map(|entry| entry.split_once(':'))
                .map(|(name, verbs)| (name.into(), words(verbs, '/')))
                .collect(),
            codec: row.codec,
            type_name: row.type_name.into(),
            schema: None,
            definition: None,
            warning: Name::default(),
        })
    }
}

/// Writes the table of kinds, [`built_in`](super::kinds::built_in), and the [`Resource`] impl of each row.
macro_rules! kinds {
    (@scope ns) => { true };
    (@scope cluster) => { false };
    (@verbs crud) => { "create,delete,deletecollection,get,list,patch,update,watch" };
    (@verbs only $verbs:literal) => { $verbs };
    (@type ($($path:ident)::+) $type:ident) => { k8s_openapi::$($path)::+::$type };
    (@spec $module:tt $type:ident whole) => { kinds!(@type $module $type) };
    (@spec $module:tt $type:ident bare($fields:ident)) => { $fields };
    (@spec $module:tt $type:ident spec($spec:ident $($status:tt)*)) => { kinds!(@type $module $spec) };
    (@status $module:tt spec($spec:ident, $status:ident)) => { kinds!(@type $module $status) };
    (@status $module:tt $($other:tt)*) => { () };
    (@codec $module:tt $type:ident whole) => { whole_codec::<kinds!(@type $module $type)>() };
    (@codec $module:tt $type:ident bare($fields:ident)) => { bare_codec::<$fields>() };
    (@codec $module:tt $type:ident spec($spec:ident)) => { split_codec::<kinds!(@type $module $spec), ()>(false) };
    (@codec $module:tt $type:ident spec($spec:ident, $status:ident)) => {
        split_codec::<kinds!(@type $module $spec), kinds!(@type $module $status)>(true)
    };
    ($(
        $module:tt $type:ident: $group:literal $version:literal $resource:literal $singular:literal $scope:ident
        $short:tt $categories:tt $shape:ident $(($($parts:tt)*))? $verbs:ident $($only:literal)? $(+ $subresources:literal)?,
    )*) => {
        static BUILT_IN: LazyLock<Vec<KindRef>> = LazyLock::new(|| {
            let mut rows = vec![$(
                Row {
                    slot: 0,
                    group: $group,
                    version: $version,
                    kind: stringify!($type),
                    resource: $resource,
                    singular: $singular,
                    namespaced: kinds!(@scope $scope),
                    short_names: &$short,
                    categories: &$categories,
                    verbs: kinds!(@verbs $verbs $($only)?),
                    subresources: concat!("" $(, $subresources)?),
                    codec: kinds!(@codec $module $type $shape $(($($parts)*))?),
                    type_name: <kinds!(@type $module $type) as schemars::JsonSchema>::schema_name().into_owned(),
                },
            )*];
            assign_slots(&mut rows);
            rows.into_iter().map(KindRef::from).collect()
        });

        /// Tells a generator of schemas of every type in the table.
        pub(super) fn register_schemas(generator: &mut schemars::SchemaGenerator) {
            $(generator.subschema_for::<kinds!(@type $module $type)>();)*
        }

        $(impl Resource for kinds!(@type $module $type) {
            type Spec = kinds!(@spec $module $type $shape $(($($parts)*))?);
            type Status = kinds!(@status $module $shape $(($($parts)*))?);

            fn kind() -> &'static KindRef {
                static KIND: LazyLock<&'static KindRef> = LazyLock::new(|| row($group, $version, stringify!($type)));
                &KIND
            }
        })*
    };
}

pub(super) use kinds;
