//! Owner references: one that is given twice is kept once, and the writer is warned.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/>

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::api::object::Object;

/// When the doubles came in, for the warning.
pub const AFTER_ADMISSION: &str = " after mutating admission happens";

pub fn keep_once(object: &mut Object, warnings: &mut Vec<String>, when: &str) {
    let owners = object.metadata().owner_references.as_deref().unwrap_or_default();
    let is_double = |index: usize| owners[..index].contains(&owners[index]);
    let doubles: Vec<&str> =
        (1..owners.len()).filter(|&index| is_double(index)).map(|index| &*owners[index].uid).collect();
    if doubles.is_empty() {
        return;
    }
    warnings.push(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        doubles.join(", ")
    ));
    let mut once: Vec<OwnerReference> = Vec::new();
    for owner in owners {
        if !once.contains(owner) {
            once.push(owner.clone());
        }
    }
    object.metadata_mut().owner_references = Some(once);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn an_owner_that_is_given_twice_is_kept_once() {
        let mut maps = Api::new::<ConfigMap>();
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
        let owners = json!([owner("1"), owner("2"), owner("1")]);
        let made = maps.create(json!({"metadata": {"name": "a", "ownerReferences": owners}})).unwrap();
        assert_eq!(made["metadata"]["ownerReferences"], json!([owner("1"), owner("2")]));

        let patched = maps.merge("a", json!({"metadata": {"ownerReferences": [owner("3"), owner("3")]}})).unwrap();
        assert_eq!(patched["metadata"]["ownerReferences"], json!([owner("3")]));
    }

    #[test]
    fn the_version_of_an_owner_is_shown_as_it_was_given() {
        let owner = json!({"apiVersion": "a/b/c", "kind": "Pod", "name": "p", "uid": "1"});
        assert_eq!(
            Api::new::<ConfigMap>().refusal(json!({"metadata": {"name": "a", "ownerReferences": [owner]}})),
            ["metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"]
        );
    }
}
