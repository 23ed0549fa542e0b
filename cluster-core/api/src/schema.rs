//! The schemas of built-in types, as OpenAPI describes them: which fields there are, of which type, what they mean.

use std::sync::LazyLock;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde_json::{Map, Value};

use super::kind::{Kind, KindRef};
use super::kinds;

static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    kinds::register_schemas(&mut generator);
    // What requests and answers hold beside the kinds of the table.
    generator.subschema_for::<Scale>();
    generator.subschema_for::<Eviction>();
    generator.subschema_for::<TokenRequest>();
    generator.subschema_for::<meta::APIResourceList>();
    generator.subschema_for::<meta::DeleteOptions>();
    generator.subschema_for::<meta::ListMeta>();
    generator.subschema_for::<meta::Patch>();
    generator.subschema_for::<meta::Status>();
    generator.subschema_for::<meta::WatchEvent<Eviction>>();
    let mut definitions = generator.take_definitions(true);
    add_enumerations(&mut definitions);
    definitions
});

/// Which values fields may have: the types of Rust don't tell.
fn add_enumerations(definitions: &mut Map<String, Value>) {
    let mut lines = include_str!("enums.txt").lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some((name, field)) = lines.next().and_then(|line| line.split_once(' ')) {
        let mut values = Vec::new();
        let mut told = String::from("\n\nPossible enum values:");
        while let Some(line) = lines.next_if(|line| line.starts_with("- ")) {
            let (value, meaning) = line[2..].split_once("\" ").unwrap_or((&line[2..], ""));
            let value = value.trim_matches('"');
            told.push_str(format!("\n - `{value:?}` {meaning}").trim_end());
            values.push(Value::from(value));
        }
        let of_items = field.strip_suffix("[]");
        let path = format!("/properties/{}", of_items.unwrap_or(field));
        let Some(schema) = definitions.get_mut(&format!("io.k8s.{name}")).and_then(|type_| type_.pointer_mut(&path))
        else {
            continue;
        };
        if of_items.is_some() {
            schema["items"]["enum"] = values.into();
        } else {
            let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            schema["description"] = format!("{description}{told}").into();
            schema["enum"] = values.into();
        }
    }
}

/// All types by their OpenAPI names, such as `io.k8s.api.core.v1.PodSpec`.
pub fn definitions() -> &'static Map<String, Value> {
    &DEFINITIONS
}

/// The OpenAPI name of what a manifest's apiVersion and kind say: a built-in kind, or the body of a subresource.
pub fn type_of(api_version: &str, kind: &str) -> Option<&'static str> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let matches = |known: &&KindRef| *known.group == *group && *known.version == *version && *known.kind == *kind;
    if let Some(known) = kinds::built_in().iter().find(matches) {
        return Some(&known.type_name);
    }
    let package = match (group, kind) {
        (_, "DeleteOptions") | ("", "Status") => "apimachinery.pkg.apis.meta.v1".to_owned(),
        ("", _) => format!("api.core.{version}"),
        (group, _) => format!("api.{}.{version}", group.split('.').next().unwrap_or(group)),
    };
    DEFINITIONS.get_key_value(&format!("io.k8s.{package}.{kind}")).map(|(name, _)| name.as_str())
}

/// A place in a schema: the description of a field or of a type.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    /// The field as its parent describes it, perhaps a reference to a type.
    field: &'a Value,
    /// The name of the type that `field` itself is.
    name: Option<&'a str>,
}

impl Schema<'static> {
    /// The schema of a built-in kind; custom kinds have none here.
    pub fn of(kind: &Kind) -> Option<Schema<'static>> {
        Schema::named(&kind.type_name)
    }

    /// The schema of a built-in type, by its OpenAPI name.
    pub fn named(type_name: &str) -> Option<Schema<'static>> {
        definitions().get_key_value(type_name).map(|(name, field)| Schema { field, name: Some(name) })
    }
}

impl<'a> Schema<'a> {
    pub fn new(field: &'a Value) -> Schema<'a> {
        Schema { field, name: None }
    }

    /// The type's OpenAPI name, if it has one.
    pub fn type_name(&self) -> Option<&'a str> {
        let reference = self.reference().map(|reference| reference.rsplit('/').next().unwrap_or(reference));
        reference.or(self.name)
    }

    fn reference(&self) -> Option<&'a str> {
        let direct = self.field.get("$ref");
        let wrapped = || self.field.get("allOf")?.get(0)?.get("$ref");
        direct.or_else(wrapped)?.as_str()
    }

    /// What the type says, references followed.
    pub fn resolved(&self) -> &'a Value {
        self.type_name().and_then(|name| definitions().get(name)).unwrap_or(self.field)
    }

    /// What the field says about itself, or else its type.
    pub fn description(&self) -> &'a str {
        let own = self.field.get("description").and_then(Value::as_str);
        own.or_else(|| self.resolved().get("description")?.as_str()).unwrap_or_default()
    }

    /// What the field says about itself.
    pub fn own_description(&self) -> Option<&'a str> {
        self.field.get("description").and_then(Value::as_str)
    }

    /// What the field says about itself, and then what its type says, with those of the items or values that it holds.
    pub fn descriptions(&self) -> Vec<&'a str> {
        let text = |schema: &'a Value| schema.get("description").and_then(Value::as_str);
        let mut all: Vec<&str> = text(self.field).into_iter().collect();
        let type_ = self.resolved();
        if !std::ptr::eq(type_, self.field) {
            all.extend(text(type_));
        }
        if let Some(inner) = self.items().or_else(|| self.values()) {
            all.extend(inner.descriptions());
        }
        all
    }

    /// The values that it may have, if only some.
    pub fn enumeration(&self) -> Vec<&'a str> {
        let values = self.field.get("enum").or_else(|| self.resolved().get("enum")).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn property(&self, name: &str) -> Option<Schema<'a>> {
        let resolved = self.resolved();
        let named = resolved.get("properties").and_then(|properties| properties.get(name));
        // A map has one schema for all its values.
        named.or_else(|| resolved.get("additionalProperties").filter(|values| values.is_object())).map(Schema::new)
    }

    pub fn properties(&self) -> impl Iterator<Item = (&'a str, Schema<'a>)> + use<'a> {
        let properties = self.resolved().get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, field)| (name.as_str(), Schema::new(field)))
    }

    /// Its fields have names that the writer chooses.
    pub fn is_map(&self) -> bool {
        let resolved = self.resolved();
        resolved.get("additionalProperties").is_some_and(Value::is_object) && resolved.get("properties").is_none()
    }

    /// Of a map, what its values are.
    pub fn values(&self) -> Option<Schema<'a>> {
        self.resolved().get("additionalProperties").filter(|values| values.is_object()).map(Schema::new)
    }

    pub fn items(&self) -> Option<Schema<'a>> {
        self.resolved().get("items").map(Schema::new)
    }

    pub fn is_required(&self, property: &str) -> bool {
        let required = self.resolved().get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|name| name == property)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn a_path_leads_from_type_to_type() {
        let deployment = Schema::of(KindRef::of::<Deployment>()).unwrap();
        let template = deployment.property("spec").unwrap().property("template").unwrap();
        let containers = template.property("spec").unwrap().property("containers").unwrap();
        assert_eq!(template.property("spec").unwrap().type_name(), Some("io.k8s.api.core.v1.PodSpec"));
        assert_eq!(containers.items().unwrap().type_name(), Some("io.k8s.api.core.v1.Container"));
        assert!(containers.items().unwrap().is_required("name"));
        assert!(containers.description().starts_with("List of containers"));
        let inner = containers.descriptions();
        assert!(inner[1].starts_with("A single application container"), "{inner:?}");
    }

    #[test]
    fn a_field_has_the_values_that_kubernetes_lists() {
        let of = |name, field| Schema::named(name).and_then(|type_| type_.property(field)).unwrap();
        let policy = of("io.k8s.api.core.v1.PodSpec", "restartPolicy");
        assert_eq!(policy.enumeration(), ["Always", "Never", "OnFailure"]);
        let strategy = of("io.k8s.api.apps.v1.DeploymentStrategy", "type");
        assert!(strategy.description().contains("\n - `\"Recreate\"` Kill all existing pods before"));
        let modes = of("io.k8s.api.core.v1.PersistentVolumeClaimSpec", "accessModes");
        assert!(modes.items().unwrap().enumeration().contains(&"ReadWriteOnce"));
    }
}
