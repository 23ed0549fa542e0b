//! Discovery document by document: `/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`.
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#unaggregated-discovery>

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{ApiServer, Group, groups, subresource_kind};
use crate::api::Name;
use crate::api::kind::KindRef;

/// `/api`: the versions of the core group, and the address at which clients reach it.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`
pub fn list(server: &ApiServer) -> Value {
    let groups = groups(server.kinds());
    let groups: Vec<Value> = groups.iter().filter(|group| !group.name.is_empty()).map(described).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`, if there is such a group.
pub fn group(server: &ApiServer, name: &str) -> Option<Value> {
    let groups = groups(server.kinds());
    let mut group = groups.iter().find(|group| !name.is_empty() && group.name == name).map(described)?;
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

fn described(group: &Group<'_>) -> Value {
    let version = |name: &str| json!({"groupVersion": group.group_version(name), "version": name});
    let versions: Vec<Value> = group.versions.iter().map(|known| version(known.name)).collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1`, `/apis/GROUP/VERSION`, if there is such a version.
pub fn resources(server: &ApiServer, group: &str, version: &str) -> Option<Value> {
    let groups = groups(server.kinds());
    let group = groups.iter().find(|known| known.name == group)?;
    let version = group.versions.iter().find(|known| known.name == version)?;
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group.group_version(version.name),
        "resources": version.kinds.iter().flat_map(|kind| entries(server, kind)).collect::<Vec<Value>>(),
    });
    // The core group's list says no apiVersion.
    if !group.name.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// A resource, then its subresources.
fn entries(server: &ApiServer, kind: &KindRef) -> Vec<Value> {
    let mut resource = Map::new();
    resource.insert("name".into(), text(&kind.resource));
    resource.insert("singularName".into(), text(&kind.singular));
    resource.insert("namespaced".into(), kind.namespaced.into());
    resource.insert("kind".into(), text(&kind.kind));
    resource.insert("verbs".into(), server.listed_verbs(kind).iter().map(text).collect());
    for (field, names) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !names.is_empty() {
            resource.insert(field.into(), names.iter().map(text).collect());
        }
    }
    if let Some((group, version)) = server.storage_version(kind) {
        resource.insert("storageVersionHash".into(), storage_version_hash(group, version, &kind.kind).into());
    }
    let subresource = |(name, verbs): &(Name, Vec<Name>)| {
        let (group_version, response) = subresource_kind(kind, name);
        let verbs: Vec<Value> = verbs.iter().map(text).collect();
        let mut entry = json!({
            "name": format!("{}/{name}", kind.resource), "singularName": "", "namespaced": kind.namespaced,
            "kind": response, "verbs": verbs,
        });
        if let Some((group, version)) = group_version {
            entry["group"] = group.into();
            entry["version"] = version.into();
        }
        entry
    };
    let subresources: Vec<Value> = kind.subresources.iter().map(subresource).collect();
    std::iter::once(Value::Object(resource)).chain(subresources).collect()
}

fn text(name: &Name) -> Value {
    Value::from(&**name)
}

/// Tells clients when objects come to be stored in another version (KEP-1929).
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    data_encoding::BASE64.encode(&digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_lists_its_resources_with_their_subresources() {
        let list = resources(&ApiServer::new(), "apps", "v1").unwrap();
        let names: Vec<&str> =
            list["resources"].as_array().unwrap().iter().filter_map(|r| r["name"].as_str()).collect();
        assert!(
            names.starts_with(&["controllerrevisions", "daemonsets", "daemonsets/status", "deployments"]),
            "{names:?}"
        );
        let scale = &list["resources"][4];
        assert_eq!(
            (&scale["name"], &scale["group"], &scale["kind"]),
            (&"deployments/scale".into(), &"autoscaling".into(), &"Scale".into())
        );
        assert_eq!(list["resources"][3]["storageVersionHash"], "8aSe+NMegvE=");
        assert_eq!(resources(&ApiServer::new(), "apps", "v2"), None);
    }

    #[test]
    fn both_versions_of_autoscalers_are_stored_as_one() {
        let hash = |version| {
            resources(&ApiServer::new(), "autoscaling", version).unwrap()["resources"][0]["storageVersionHash"].clone()
        };
        assert_eq!(hash("v1"), hash("v2"));
    }
}
