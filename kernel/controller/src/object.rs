use serde_json::{Value, json};

use crate::{Key, Time};

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

/// Sets the condition of a type in a status. The moment of its last change stays unless it changes now.
/// See <https://pkg.go.dev/k8s.io/apimachinery/pkg/api/meta#SetStatusCondition>.
pub fn set_condition(status: &mut Value, type_: &str, holds: bool, reason: &str, message: &str, now: Time) {
    let word = if holds { "True" } else { "False" };
    let mut conditions = items(&status["conditions"]).to_vec();
    let known = conditions.iter().position(|one| one["type"] == type_);
    let before = known.map(|index| &conditions[index]).filter(|one| one["status"] == word);
    let since = before.map_or_else(|| json!(now.to_string()), |one| one["lastTransitionTime"].clone());
    let condition =
        json!({"type": type_, "status": word, "reason": reason, "message": message, "lastTransitionTime": since});
    match known {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    status["conditions"] = json!(conditions);
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

    #[test]
    fn a_condition_keeps_its_moment_while_it_stays_the_same() {
        let mut status = Value::Null;
        let mut told = |holds: bool, reason: &str, seconds: i64| {
            set_condition(&mut status, "Ready", holds, reason, "", Time(seconds * 1000));
            let conditions = status["conditions"].as_array().expect("conditions").clone();
            assert_eq!(conditions.len(), 1);
            conditions[0]["lastTransitionTime"].clone()
        };
        assert_eq!(told(true, "Synced", 1), "1970-01-01T00:00:01Z");
        assert_eq!(told(true, "SyncedAgain", 2), "1970-01-01T00:00:01Z");
        assert_eq!(told(false, "NoAnswer", 3), "1970-01-01T00:00:03Z");
    }
}
