use serde_json::{Value, json};

use crate::Key;

static NULL: Value = Value::Null;

/// Short words for the parts that every Kubernetes object has. What is absent reads as `""` or null.
pub trait Object {
    fn api_version(&self) -> &str;
    fn kind(&self) -> &str;
    fn name(&self) -> &str;
    /// Empty for an object without a namespace.
    fn namespace(&self) -> &str;
    fn uid(&self) -> &str;
    fn key(&self) -> Key;
    fn meta(&self) -> &Value;
    fn spec(&self) -> &Value;
    fn status(&self) -> &Value;
    /// Counts the changes of the spec; a status tells by `observedGeneration` which one it speaks of.
    fn generation(&self) -> i64;
    fn label(&self, name: &str) -> Option<&str>;
    fn annotation(&self, name: &str) -> Option<&str>;
    /// True once a delete was asked for and finalizers still hold the object.
    fn deleting(&self) -> bool;
    fn has_finalizer(&self, name: &str) -> bool;
    /// The status (`True`, `False`, `Unknown`) of a condition of this type.
    fn condition(&self, type_: &str) -> Option<&str>;
    /// True if the controlling owner reference names the uid of `owner`.
    fn owned_by(&self, owner: &Value) -> bool;
}

impl Object for Value {
    fn api_version(&self) -> &str {
        text(&self["apiVersion"])
    }

    fn kind(&self) -> &str {
        text(&self["kind"])
    }

    fn name(&self) -> &str {
        text(&self["metadata"]["name"])
    }

    fn namespace(&self) -> &str {
        text(&self["metadata"]["namespace"])
    }

    fn uid(&self) -> &str {
        text(&self["metadata"]["uid"])
    }

    fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    fn meta(&self) -> &Value {
        self.get("metadata").unwrap_or(&NULL)
    }

    fn spec(&self) -> &Value {
        self.get("spec").unwrap_or(&NULL)
    }

    fn status(&self) -> &Value {
        self.get("status").unwrap_or(&NULL)
    }

    fn generation(&self) -> i64 {
        self["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self["metadata"]["labels"][name].as_str()
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self["metadata"]["annotations"][name].as_str()
    }

    fn deleting(&self) -> bool {
        !self["metadata"]["deletionTimestamp"].is_null()
    }

    fn has_finalizer(&self, name: &str) -> bool {
        items(&self["metadata"]["finalizers"]).iter().any(|finalizer| finalizer == name)
    }

    fn condition(&self, type_: &str) -> Option<&str> {
        items(&self["status"]["conditions"]).iter().find(|one| one["type"] == type_)?["status"].as_str()
    }

    fn owned_by(&self, owner: &Value) -> bool {
        !owner.uid().is_empty()
            && items(&self["metadata"]["ownerReferences"])
                .iter()
                .any(|reference| reference["controller"] == true && reference["uid"] == owner.uid())
    }
}

/// `child` as an object that `owner` controls: in its namespace, and deleted with it.
/// See <https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/>.
pub fn child_of(owner: &Value, mut child: Value) -> Value {
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner.api_version(),
        "kind": owner.kind(),
        "name": owner.name(),
        "uid": owner.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    if !owner.namespace().is_empty() {
        child["metadata"]["namespace"] = json!(owner.namespace());
    }
    child
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_names_its_owner_and_lives_in_its_namespace() {
        let pool = json!({"apiVersion": "example.com/v1", "kind": "Pool",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}});
        let pod = child_of(&pool, json!({"kind": "Pod", "metadata": {"name": "web-0"}}));
        assert_eq!(pod.key().to_string(), "shop/web-0");
        assert!(pod.owned_by(&pool));
        assert!(!pod.owned_by(&json!({"metadata": {"uid": "u-2"}})), "another uid is another owner");
        assert!(!json!({}).owned_by(&json!({})), "nothing owns nothing");
    }

    #[test]
    fn what_is_absent_reads_as_empty() {
        let bare = json!({"kind": "Pod"});
        assert_eq!((bare.name(), bare.uid(), bare.generation()), ("", "", 0));
        assert!(bare.spec().is_null() && !bare.deleting() && bare.condition("Ready").is_none());
    }

    #[test]
    fn conditions_and_finalizers_are_found_by_name() {
        let pod = json!({
            "metadata": {"finalizers": ["example.com/clean"]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        });
        assert_eq!(pod.condition("Ready"), Some("False"));
        assert!(pod.has_finalizer("example.com/clean") && !pod.has_finalizer("other"));
    }
}
