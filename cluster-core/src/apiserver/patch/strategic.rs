//! Strategic merge: lists of objects merge by a key that their type names, and a patch can say what to delete.
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>

use serde_json::{Map, Value};

use crate::api::merge_keys::{Patch, rule};
use crate::api::schema::Schema;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into a value of a type; without a type as JSON merge does. The error says what the patch lacks.
pub fn merge(target: &mut Value, patch: &Value, schema: Option<Schema<'_>>) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return Ok(()) };
    match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *fields = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            fields.clear();
            return Ok(());
        }
        Some(other) => return Err(format!("Unknown patch type: {other}")),
    }
    if let Some(Value::Array(kept)) = patch.get(RETAIN_KEYS) {
        fields.retain(|field, _| kept.iter().any(|name| name == field));
    }
    for (field, value) in patch {
        if let Some(list) = field.strip_prefix(DELETE_FROM_LIST) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (fields.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if field.starts_with('$') {
            continue;
        }
        if value.is_null() {
            fields.remove(field);
            continue;
        }
        let known = schema.and_then(|schema| schema.property(field));
        let strategy = schema
            .and_then(|schema| schema.type_name())
            .map_or(Patch::Replace, |name| rule(name.strip_prefix("io.k8s.").unwrap_or(name), field).1);
        let target = fields.entry(field.clone()).or_insert(Value::Null);
        match (value, strategy) {
            (Value::Array(items), Patch::Merge("")) => merge_scalars(target, items),
            (Value::Array(items), Patch::Merge(key) | Patch::MergeRetainingKeys(key)) => {
                merge_list(target, items, key, known.and_then(|list| list.items()))?;
            }
            (Value::Object(_), _) => merge(target, value, known)?,
            _ => *target = value.clone(),
        }
    }
    for (field, order) in patch {
        if let (Some(list), Value::Array(order)) = (field.strip_prefix(ELEMENT_ORDER), order)
            && let Some(Value::Array(items)) = fields.get_mut(list)
        {
            put_in_order(items, order);
        }
    }
    Ok(())
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch
        .iter()
        .filter(|(field, _)| !field.starts_with('$'))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect()
}

/// Lists of scalars merge as sets.
fn merge_scalars(target: &mut Value, items: &[Value]) {
    let mut merged = target.as_array().cloned().unwrap_or_default();
    for item in items {
        if !merged.contains(item) {
            merged.push(item.clone());
        }
    }
    *target = Value::Array(merged);
}

/// Lists of objects merge by key; new elements go before the old ones.
fn merge_list(target: &mut Value, items: &[Value], key: &str, schema: Option<Schema<'_>>) -> Result<(), String> {
    let mut merged = target.as_array().cloned().unwrap_or_default();
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).unwrap_or_default().to_owned();
    if items.iter().any(|item| directive(item) == "replace" && item.as_object().is_some_and(|o| o.len() == 1)) {
        merged.clear();
    }
    let mut added = Vec::new();
    for item in items {
        let directive = directive(item);
        if directive == "replace" && item.as_object().is_some_and(|fields| fields.len() == 1) {
            continue;
        }
        let Some(wanted) = item.get(key) else {
            return Err(format!("map: {item} does not contain declared merge key: {key}"));
        };
        let same = |known: &&mut Value| known.get(key) == Some(wanted);
        match directive.as_str() {
            "delete" => merged.retain(|known| known.get(key) != Some(wanted)),
            "replace" | "merge" | "" => match merged.iter_mut().find(same) {
                Some(known) => merge(known, item, schema)?,
                None => {
                    let mut fresh = Value::Null;
                    merge(&mut fresh, item, schema)?;
                    added.push(fresh);
                }
            },
            other => return Err(format!("Unknown patch type: {other}")),
        }
    }
    added.append(&mut merged);
    *target = Value::Array(added);
    Ok(())
}

/// Elements that the patch's author knew stand in the author's order; the others keep their places between them.
fn put_in_order(items: &mut Vec<Value>, order: &[Value]) {
    let place = |item: &Value| {
        order.iter().position(|wanted| match wanted {
            Value::Object(keys) => keys.iter().all(|(key, value)| item.get(key) == Some(value)),
            scalar => scalar == item,
        })
    };
    let (mut known, others): (Vec<_>, Vec<_>) =
        std::mem::take(items).into_iter().partition(|item| place(item).is_some());
    known.sort_by_key(|item| place(item));
    known.extend(others);
    *items = known;
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;
    use crate::api::kind::KindRef;

    fn merged(mut target: Value, patch: Value) -> Result<Value, String> {
        merge(&mut target, &patch, Schema::of(KindRef::of::<Deployment>()))?;
        Ok(target)
    }

    fn containers(list: Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": list}}}})
    }

    #[test]
    fn containers_merge_by_name() {
        let old = containers(json!([{"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "1"}]}]));
        let patch = containers(json!([{"name": "web", "image": "nginx:2"}, {"name": "log", "image": "busybox"}]));
        let new = containers(json!([
            {"name": "log", "image": "busybox"},
            {"name": "web", "image": "nginx:2", "env": [{"name": "A", "value": "1"}]},
        ]));
        assert_eq!(merged(old, patch), Ok(new));
    }

    #[test]
    fn a_patch_can_delete_and_order() {
        let old = containers(json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
        let mut patch = containers(json!([{"name": "b", "$patch": "delete"}]));
        patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = json!([{"name": "c"}, {"name": "a"}]);
        assert_eq!(merged(old, patch), Ok(containers(json!([{"name": "c"}, {"name": "a"}]))));
    }

    #[test]
    fn a_change_of_strategy_drops_what_no_longer_belongs() {
        let old = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}});
        assert_eq!(merged(old, patch), Ok(json!({"spec": {"strategy": {"type": "Recreate"}}})));
    }

    #[test]
    fn an_element_without_its_key_is_refused() {
        let error = merged(containers(json!([])), containers(json!([{"image": "nginx"}]))).unwrap_err();
        assert!(error.contains("does not contain declared merge key: name"), "{error}");
    }
}
