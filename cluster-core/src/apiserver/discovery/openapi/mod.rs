//! The API as OpenAPI describes it: a document for each group and version, and the old one for everything.
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition>

mod paths;
mod schemas;
pub mod v2;

use serde_json::{Map, Value, json};

use super::{Group, VERSION, Version};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// `api/v1`, `apis/apps/v1`: what stands behind `/openapi/v3/`.
pub fn name(group: &Group<'_>, version: &Version<'_>) -> String {
    let root = if group.name.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", group.group_version(version.name))
}

/// The document of one group and version.
pub fn document(group: &Group<'_>, version: &Version<'_>) -> Value {
    let mut paths = Map::new();
    paths.insert(format!("/{}/", name(group, version)), paths::resources(group, version));
    for kind in &version.kinds {
        paths::add(&mut paths, kind);
    }
    let schemas = schemas::reached_from(version, &paths);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {
                "type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer Token authentication",
            }},
        },
        "security": [{"BearerToken": []}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::ApiServer;
    use crate::apiserver::discovery::groups;

    fn apps() -> Value {
        let server = ApiServer::new();
        let groups = groups(server.kinds());
        let apps = groups.iter().find(|group| group.name == "apps").unwrap();
        assert_eq!(name(apps, &apps.versions[0]), "apis/apps/v1");
        document(apps, &apps.versions[0])
    }

    /// Every reference of a document.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn a_document_describes_its_types_and_no_reference_is_open() {
        let document = apps();
        let schemas = &document["components"]["schemas"];
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.get(name).is_some(), "{name}");
        }
        let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
        let gvk = json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
        assert_eq!(deployment["x-kubernetes-group-version-kind"], gvk);
        let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-list-type"], "map");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"], "atomic");
        assert!(schemas.get("io.k8s.api.batch.v1.Job").is_none());
    }

    #[test]
    fn paths_tell_what_can_be_done() {
        let document = apps();
        let one = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
        assert_eq!(one["patch"]["operationId"], "patchAppsV1NamespacedDeployment");
        assert_eq!(one["patch"]["x-kubernetes-action"], "patch");
        let parameters = one["patch"]["parameters"].as_array().unwrap();
        let names: Vec<&str> = parameters.iter().filter_map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
        let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"];
        assert_eq!(scale["operationId"], "readAppsV1NamespacedDeploymentScale");
        assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
        let all = &document["paths"]["/apis/apps/v1/deployments"]["get"];
        assert_eq!(all["operationId"], "listAppsV1DeploymentForAllNamespaces");
    }
}
