//! The patch of a client-side apply: from what was applied last, what is wanted and what is there.
//! <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/#how-apply-calculates-differences-and-merges-changes>

use cluster_core::api::merge_keys::{Patch, rule};
use cluster_core::api::schema::Schema;
use serde_json::{Map, Value, json};

/// The three states of a value: fields that `modified` lacks but `original` had are deleted, fields that `current` has
/// otherwise are set, and what only `current` has stays. `{}` if there is nothing to do.
pub fn patch(original: &Value, modified: &Value, current: &Value, schema: Option<Schema<'_>>) -> Value {
    let none = Map::new();
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let current = current.as_object().unwrap_or(&none);
    Value::Object(of_maps(&fields(original), &fields(modified), current, schema))
}

type Fields = Map<String, Value>;

fn of_maps(original: &Fields, modified: &Fields, current: &Fields, schema: Option<Schema<'_>>) -> Fields {
    let mut patch = Map::new();
    for (field, wanted) in modified {
        let known = schema.and_then(|schema| schema.property(field));
        let strategy = schema
            .and_then(|schema| schema.type_name())
            .map_or(Patch::Replace, |name| rule(name.strip_prefix("io.k8s.").unwrap_or(name), field).1);
        let before = original.get(field).unwrap_or(&Value::Null);
        match (wanted, current.get(field)) {
            (Value::Null, None) => {}
            (_, None) => {
                patch.insert(field.clone(), wanted.clone());
            }
            (Value::Object(wanted), Some(Value::Object(have))) => {
                let before = before.as_object().cloned().unwrap_or_default();
                let mut inner = of_maps(&before, wanted, have, known);
                if strategy == Patch::RetainKeys && !inner.is_empty() {
                    inner.insert("$retainKeys".into(), wanted.keys().cloned().collect());
                }
                if !inner.is_empty() {
                    patch.insert(field.clone(), Value::Object(inner));
                }
            }
            (Value::Array(wanted), Some(Value::Array(have))) => {
                let before = before.as_array().map(Vec::as_slice).unwrap_or_default();
                let lists = Lists { before, wanted, have };
                match strategy {
                    Patch::Merge("") => lists.of_scalars(field, &mut patch),
                    Patch::Merge(key) => lists.of_objects(field, key, false, known, &mut patch),
                    Patch::MergeRetainingKeys(key) => lists.of_objects(field, key, true, known, &mut patch),
                    _ if wanted != have => {
                        patch.insert(field.clone(), Value::Array(wanted.clone()));
                    }
                    _ => {}
                }
            }
            (_, Some(have)) if wanted != have => {
                patch.insert(field.clone(), wanted.clone());
            }
            _ => {}
        }
    }
    for field in original.keys().filter(|field| !modified.contains_key(*field)) {
        patch.insert(field.clone(), Value::Null);
    }
    patch
}

struct Lists<'a> {
    before: &'a [Value],
    wanted: &'a [Value],
    have: &'a [Value],
}

impl Lists<'_> {
    /// Lists that are sets.
    fn of_scalars(&self, field: &str, patch: &mut Fields) {
        let added: Vec<Value> = self.wanted.iter().filter(|item| !self.have.contains(item)).cloned().collect();
        let gone: Vec<Value> = self.before.iter().filter(|item| !self.wanted.contains(item)).cloned().collect();
        if added.is_empty() && gone.is_empty() {
            return;
        }
        patch.insert(format!("$setElementOrder/{field}"), Value::Array(self.wanted.to_vec()));
        if !added.is_empty() {
            patch.insert(field.to_owned(), Value::Array(added));
        }
        if !gone.is_empty() {
            patch.insert(format!("$deleteFromPrimitiveList/{field}"), Value::Array(gone));
        }
    }

    /// Lists whose elements are told apart by a key.
    fn of_objects(&self, field: &str, key: &str, retain_keys: bool, list: Option<Schema<'_>>, patch: &mut Fields) {
        let element = list.and_then(|list| list.items());
        let same = |list: &[Value], item: &Value| list.iter().find(|other| other.get(key) == item.get(key)).cloned();
        let mut changes = Vec::new();
        for item in self.wanted {
            let Some(have) = same(self.have, item) else {
                changes.push(item.clone());
                continue;
            };
            let before = same(self.before, item).unwrap_or_default();
            let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
            let mut inner = of_maps(&fields(&before), &fields(item), &fields(&have), element);
            if !inner.is_empty() {
                if retain_keys {
                    inner.insert("$retainKeys".into(), fields(item).keys().cloned().collect());
                }
                inner.insert(key.to_owned(), item.get(key).cloned().unwrap_or_default());
                changes.push(Value::Object(inner));
            }
        }
        for item in self.before.iter().filter(|item| same(self.wanted, item).is_none()) {
            changes.push(json!({"$patch": "delete", key: item.get(key)}));
        }
        if changes.is_empty() {
            return;
        }
        let order = self.wanted.iter().map(|item| json!({key: item.get(key)})).collect();
        patch.insert(format!("$setElementOrder/{field}"), order);
        patch.insert(field.to_owned(), Value::Array(changes));
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::api::kind::KindRef;
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    fn deployment(containers: Value, replicas: Option<i64>) -> Value {
        let mut value = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        if let Some(replicas) = replicas {
            value["spec"]["replicas"] = replicas.into();
        }
        value
    }

    #[test]
    fn only_what_the_person_manages_changes() {
        let original = deployment(
            json!([{"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "1"}]}, {"name": "old"}]),
            Some(2),
        );
        let modified = deployment(json!([{"name": "web", "image": "nginx:2"}]), None);
        let current = deployment(
            json!([{"name": "web", "image": "nginx:1", "imagePullPolicy": "Always", "env": [{"name": "A", "value": "1"}]}, {"name": "old"}, {"name": "injected"}]),
            Some(5),
        );
        let schema = Schema::of(KindRef::of::<Deployment>());
        assert_eq!(
            patch(&original, &modified, &current, schema),
            json!({"spec": {"replicas": null, "template": {"spec": {
                "$setElementOrder/containers": [{"name": "web"}],
                "containers": [
                    {"name": "web", "image": "nginx:2", "env": null},
                    {"$patch": "delete", "name": "old"},
                ],
            }}}})
        );
    }

    #[test]
    fn nothing_to_do_is_an_empty_patch() {
        let wanted = deployment(json!([{"name": "web"}]), None);
        let current = deployment(json!([{"name": "web", "image": "x"}]), Some(1));
        assert_eq!(patch(&wanted, &wanted, &current, Schema::of(KindRef::of::<Deployment>())), json!({}));
    }
}
