//! The kinds that a server says it serves, from discovery in one document (KEP-3352).
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>

use cluster_core::api::Name;
use cluster_core::api::kind::{JSON_CODEC, Kind, KindRef};
use cluster_core::api::kinds::built_in;
use cluster_core::api::status::Status;
use serde_json::Value;

pub const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Custom kinds have no table in a store here; their slots begin behind those of built-in kinds.
const CUSTOM_SLOT_MIN: usize = 1 << 20;

/// The kinds of a document, in its order. `known` tells kinds of several documents apart.
///
/// # Errors
/// The server is older than Kubernetes 1.30 and does not write such documents.
pub fn kinds(document: &Value, known: usize) -> Result<Vec<KindRef>, Status> {
    if document["kind"] != "APIGroupDiscoveryList" {
        return Err(Status::not_acceptable("the server has no aggregated discovery (Kubernetes 1.30 and newer have)"));
    }
    let mut kinds: Vec<KindRef> = Vec::new();
    for group in list(&document["items"]) {
        let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        for version in list(&group["versions"]) {
            let version_name = version["version"].as_str().unwrap_or_default();
            for resource in list(&version["resources"]) {
                let slot = CUSTOM_SLOT_MIN + known + kinds.len();
                kinds.push(KindRef::new(kind(name, version_name, resource, slot)));
            }
        }
    }
    Ok(kinds)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn names(value: &Value) -> Vec<Name> {
    list(value).filter_map(Value::as_str).map(Name::from).collect()
}

/// A kind as the server describes it. How objects are read is known of built-in kinds; others are JSON.
fn kind(group: &str, version: &str, resource: &Value, slot: usize) -> Kind {
    let text = |value: &Value| Name::from(value.as_str().unwrap_or_default());
    let kind = text(&resource["responseKind"]["kind"]);
    let ours = |known: &&KindRef| *known.group == *group && *known.version == *version && known.kind == kind;
    let ours = built_in().iter().find(ours);
    let plural = text(&resource["resource"]);
    let singular = match resource["singularResource"].as_str() {
        Some(singular) if !singular.is_empty() => singular.into(),
        _ => kind.to_lowercase().as_str().into(),
    };
    let subresources = list(&resource["subresources"]);
    Kind {
        slot: ours.map_or(slot, |kind| kind.slot),
        group: group.into(),
        version: version.into(),
        kind,
        resource: plural,
        singular,
        namespaced: resource["scope"] == "Namespaced",
        short_names: names(&resource["shortNames"]),
        categories: names(&resource["categories"]),
        verbs: names(&resource["verbs"]),
        subresources: subresources.map(|one| (text(&one["subresource"]), names(&one["verbs"]))).collect(),
        codec: ours.map_or(JSON_CODEC, |kind| kind.codec),
        type_name: ours.map(|kind| kind.type_name.clone()).unwrap_or_default(),
        schema: None,
        definition: None,
        warning: Name::default(),
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::apiserver::ApiServer;
    use cluster_core::apiserver::discovery::aggregated;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_our_own_server_says_is_what_it_has() {
        let server = ApiServer::new();
        let mut told = Vec::new();
        for core in [true, false] {
            told.extend(kinds(&aggregated::list(&server, core), told.len()).unwrap());
        }
        for kind in built_in() {
            let found = told.iter().find(|told| *told == kind).unwrap_or_else(|| panic!("{kind:?} is not told of"));
            assert_eq!((&found.resource, &found.short_names), (&kind.resource, &kind.short_names));
        }
    }

    #[test]
    fn custom_kinds_are_told_apart() {
        let resource = |name: &str| json!({"resource": name, "responseKind": {"kind": name}, "scope": "Namespaced"});
        let versions = json!([{"version": "v1", "resources": [resource("a"), resource("b")]}]);
        let items = json!([{"metadata": {"name": "example.com"}, "versions": versions}]);
        let kinds = kinds(&json!({"kind": "APIGroupDiscoveryList", "items": items}), 0).unwrap();
        assert_ne!(kinds[0], kinds[1]);
        assert_eq!(kinds[1].qualified_name("x"), "b.example.com/x");
        assert!(super::kinds(&json!({"kind": "APIGroupList"}), 0).is_err());
    }
}
