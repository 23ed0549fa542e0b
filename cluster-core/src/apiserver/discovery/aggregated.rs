//! Discovery in one document: `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2` (KEP-3352).
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>

use serde_json::{Map, Value, json};

use super::{ApiServer, Group, groups, is_custom, subresource_kind};
use crate::api::Name;
use crate::api::kind::KindRef;

/// All groups below `/apis`, or the core group of `/api`.
pub fn list(server: &ApiServer, core: bool) -> Value {
    let groups = groups(server.kinds());
    let items: Vec<Value> =
        groups.iter().filter(|group| group.name.is_empty() == core).map(|group| described(server, group)).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn described(server: &ApiServer, group: &Group<'_>) -> Value {
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = version.kinds.iter().map(|kind| resource(server, kind)).collect();
            json!({"version": version.name, "freshness": "Current", "resources": resources})
        })
        .collect();
    json!({"metadata": metadata, "versions": versions})
}

fn resource(server: &ApiServer, kind: &KindRef) -> Value {
    // Built-in resources leave the group and version of their own kind to the reader.
    let own = if is_custom(kind) { (&*kind.group, &*kind.version) } else { ("", "") };
    let response =
        |(group, version): (&str, &str), kind: &str| json!({"group": group, "version": version, "kind": kind});
    let words = |names: &[Name]| names.iter().map(|name| Value::from(&**name)).collect::<Value>();
    let mut resource = Map::new();
    resource.insert("resource".into(), Value::from(&*kind.resource));
    resource.insert("responseKind".into(), response(own, &kind.kind));
    resource.insert("scope".into(), if kind.namespaced { "Namespaced" } else { "Cluster" }.into());
    resource.insert("singularResource".into(), Value::from(&*kind.singular));
    resource.insert("verbs".into(), words(&server.listed_verbs(kind)));
    for (field, names) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !names.is_empty() {
            resource.insert(field.into(), words(names));
        }
    }
    let subresource = |(name, verbs): &(Name, Vec<Name>)| {
        let (group_version, kind) = subresource_kind(kind, name);
        json!({"subresource": &**name, "responseKind": response(group_version.unwrap_or(own), &kind), "verbs": words(verbs)})
    };
    if !kind.subresources.is_empty() {
        resource.insert("subresources".into(), kind.subresources.iter().map(subresource).collect());
    }
    Value::Object(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_names_everything() {
        let server = ApiServer::new();
        let core = list(&server, true);
        assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(core["items"][0]["versions"][0]["resources"][0]["resource"], "bindings");
        let apis = list(&server, false);
        assert_eq!(apis["items"][1]["metadata"]["name"], "apps");
        let deployments = &apis["items"][1]["versions"][0]["resources"][2];
        assert_eq!(deployments["shortNames"], json!(["deploy"]));
        assert_eq!(
            deployments["subresources"][0]["responseKind"],
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
        );
    }
}
