//! Kinds that CustomResourceDefinitions bring.
//! <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/custom-resources/>

pub mod schema;

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use crate::api::kind::{JSON_CODEC, Kind, KindRef};
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::store::{Change, Store};

/// The kinds of the definitions that exist now.
#[derive(Clone, Default)]
pub struct CustomKinds {
    by_definition: imbl::OrdMap<Key, Vec<KindRef>>,
}

impl CustomKinds {
    pub fn kinds(&self) -> impl Iterator<Item = &KindRef> {
        self.by_definition.values().flatten()
    }

    /// Follows the definitions as they are written and deleted.
    pub fn observe(&mut self, change: &Change, store: &mut Store) {
        let object = change.object();
        if !object.is::<CustomResourceDefinition>() {
            return;
        }
        if change.after.is_none() {
            self.by_definition.remove(&object.key);
            return;
        }
        let slot = match self.by_definition.get(&object.key).and_then(|kinds| kinds.first()) {
            Some(known) => known.slot,
            None => store.add_slot(),
        };
        self.by_definition.insert(object.key.clone(), kinds_of(object, slot));
    }
}

fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<Arc<serde_json::Value>> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    serde_json::to_value(schema).ok().map(Arc::new)
}

fn kinds_of(definition: &Object, slot: usize) -> Vec<KindRef> {
    let spec = definition.spec::<CustomResourceDefinition>();
    let names = |list: &Option<Vec<String>>| list.iter().flatten().map(|name| Name::from(name.as_str())).collect();
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let kind = |version: &CustomResourceDefinitionVersion| {
        let subresources = version.subresources.as_ref();
        let part = ["get", "patch", "update"].map(Name::from).to_vec();
        let mut served = Vec::new();
        if subresources.is_some_and(|s| s.status.is_some()) {
            served.push((Name::from("status"), part.clone()));
        }
        if subresources.is_some_and(|s| s.scale.is_some()) {
            served.push((Name::from("scale"), part));
        }
        let lower = spec.names.kind.to_lowercase();
        KindRef::new(Kind {
            slot,
            group: spec.group.as_str().into(),
            version: version.name.as_str().into(),
            kind: spec.names.kind.as_str().into(),
            resource: spec.names.plural.as_str().into(),
            singular: spec.names.singular.as_deref().filter(|name| !name.is_empty()).unwrap_or(&lower).into(),
            namespaced: spec.scope == "Namespaced",
            short_names: names(&spec.names.short_names),
            categories: names(&spec.names.categories),
            verbs: verbs.map(Name::from).to_vec(),
            subresources: served,
            codec: JSON_CODEC,
            type_name: "".into(),
            schema: schema_of(version),
        })
    };
    spec.versions.iter().filter(|version| version.served).map(kind).collect()
}
