//! Strategic merge: lists of objects merge by a key that their type names, and a patch can say what to delete.
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>

use serde_json::{Map, Value};

use crate::api::merge_keys::{Patch, rule};
use crate::api::schema::Schema;
use crate::api::status::Status;
use crate::apiserver::managed::go;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

type Fields = Map<String, Value>;

/// Merges a patch into a value of a type.
pub fn merge(target: &mut Value, patch: &Value, schema: Option<Schema<'_>>) -> Result<(), Status> {
    match (target, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch, schema),
        (_, Value::Null) => Ok(()),
        (target, patch) => {
            *target = plain(patch);
            Ok(())
        }
    }
}

fn merge_fields(fields: &mut Fields, patch: &Fields, schema: Option<Schema<'_>>) -> Result<(), Status> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => {
            *fields =
                patch.iter().filter(|(name, _)| *name != DIRECTIVE).map(|(n, v)| (n.clone(), v.clone())).collect();
            return Ok(());
        }
        Some(directive) if directive == "delete" => {
            fields.clear();
            return Ok(());
        }
        Some(directive) => return Err(unknown_directive(directive, patch)),
    }
    retain_keys(fields, patch)?;
    let mut ordered = Vec::new();
    for (field, order) in patch.iter().filter(|(field, _)| field.starts_with(ELEMENT_ORDER)) {
        let list = directed(field, ELEMENT_ORDER)?;
        order_list(fields, list, patch.get(list), order, schema)?;
        ordered.push(list);
    }
    for (field, value) in patch {
        let directive = field == RETAIN_KEYS || field.starts_with(ELEMENT_ORDER);
        if directive || ordered.contains(&field.as_str()) {
            continue;
        }
        if field.starts_with(DELETE_FROM_LIST) {
            let list = directed(field, DELETE_FROM_LIST)?;
            if let (Some(Value::Array(items)), Value::Array(gone)) = (fields.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        let (known, strategy) = described(schema, field);
        match (fields.get_mut(field), value) {
            (_, Value::Null) => {
                fields.remove(field);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge_fields(old, new, known)?,
            (Some(Value::Array(old)), Value::Array(new)) => {
                let merged = merge_lists(old, new, strategy, known.and_then(|list| list.items()))?;
                *old = merged;
            }
            _ => {
                fields.insert(field.clone(), plain(value));
            }
        }
    }
    Ok(())
}

fn described<'a>(schema: Option<Schema<'a>>, field: &str) -> (Option<Schema<'a>>, Patch) {
    let known = schema.and_then(|schema| schema.property(field));
    let type_name = schema.and_then(|schema| schema.type_name());
    let strategy = type_name.map(|name| rule(name.strip_prefix("io.k8s.").unwrap_or(name), field).1);
    (known, strategy.unwrap_or(Patch::Replace))
}

/// The field that a directive like `$setElementOrder/containers` is about.
fn directed<'f>(field: &'f str, directive: &str) -> Result<&'f str, Status> {
    let about = field.strip_prefix(directive).and_then(|rest| rest.strip_prefix('/'));
    let what = if directive == ELEMENT_ORDER { "setElementOrder" } else { "primitive" };
    about.ok_or_else(|| Status::bad_request(format!("invalid patch format of {what} list")))
}

fn unknown_directive(directive: &Value, patch: &Fields) -> Status {
    let patch = go::text(&Value::Object(patch.clone()));
    Status::unexplained(format!("unknown patch type: {} in map: {patch}", go::text(directive)))
}

fn no_merge_key(item: &Value, key: &str) -> Status {
    Status::unexplained(format!("map: {} does not contain declared merge key: {key}", go::text(item)))
}

/// Drops the fields that the patch does not name as those of a union that stay.
fn retain_keys(fields: &mut Fields, patch: &Fields) -> Result<(), Status> {
    let Some(kept) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let refused = || Status::bad_request("invalid patch format of retainKeys");
    let kept = kept.as_array().ok_or_else(refused)?;
    let is_kept = |field: &str| kept.iter().any(|name| name == field);
    let unsaid = |(field, value): (&String, &Value)| {
        !value.is_null()
            && field != RETAIN_KEYS
            && !field.starts_with(DELETE_FROM_LIST)
            && !field.starts_with(ELEMENT_ORDER)
            && !is_kept(field)
    };
    if patch.iter().any(unsaid) {
        return Err(refused());
    }
    fields.retain(|field, _| is_kept(field));
    Ok(())
}

/// A value that nothing is merged into: without directives and nulls.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_directive = |field: &str| {
                field == DIRECTIVE
                    || field == RETAIN_KEYS
                    || field.starts_with(ELEMENT_ORDER)
                    || field.starts_with(DELETE_FROM_LIST)
            };
            let kept = fields.iter().filter(|(field, value)| !is_directive(field) && !value.is_null());
            Value::Object(kept.map(|(field, value)| (field.clone(), plain(value))).collect())
        }
        Value::Array(items) => {
            let whole = |item: &&Value| item.get(DIRECTIVE).is_none_or(|directive| directive == "merge");
            Value::Array(items.iter().filter(whole).map(plain).collect())
        }
        scalar => scalar.clone(),
    }
}

fn merge_lists(
    old: &[Value],
    patch: &[Value],
    strategy: Patch,
    items: Option<Schema<'_>>,
) -> Result<Vec<Value>, Status> {
    let key = match strategy {
        Patch::Merge(key) | Patch::MergeRetainingKeys(key) => key,
        Patch::Replace | Patch::RetainKeys => {
            return Ok(plain(&Value::Array(patch.to_vec())).as_array().cloned().unwrap_or_default());
        }
    };
    if old.is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    check_alike(old, patch)?;
    if !old.iter().chain(patch).any(Value::is_object) {
        let mut merged: Vec<Value> = Vec::new();
        for item in old.iter().chain(patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return put_in_order(merged, patch, old, "");
    }
    let mut merged = old.to_vec();
    let (mut fresh, mut replace) = (Vec::new(), false);
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            fresh.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
                merged.retain(|known| known.get(key) != Some(gone));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(Status::unexplained("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(directive, item.as_object().unwrap_or(&Fields::new()))),
        }
    }
    if replace {
        return Ok(fresh.iter().map(plain).collect());
    }
    let order = merged.clone();
    for item in &fresh {
        let wanted = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
        match merged.iter_mut().find(|known| known.get(key) == Some(wanted)) {
            Some(known) => merge(known, item, items)?,
            None => merged.push(plain(item)),
        }
    }
    put_in_order(merged, &fresh, &order, key)
}

/// All elements are objects, or all are scalars of one type.
fn check_alike(old: &[Value], patch: &[Value]) -> Result<(), Status> {
    let mut all = old.iter().chain(patch);
    let Some(first) = all.next() else { return Err(Status::unexplained("no elements in any given slices")) };
    if first.is_array() {
        return Err(Status::unprocessable("lists of lists are not supported"));
    }
    if all.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let lists = Value::Array(vec![Value::Array(old.to_vec()), Value::Array(patch.to_vec())]);
        return Err(Status::unexplained(format!("list element types are not identical: {}", go::text(&lists))));
    }
    Ok(())
}

/// Merges a list and puts it into the order of `$setElementOrder`.
fn order_list(
    fields: &mut Fields,
    list: &str,
    patch: Option<&Value>,
    order: &Value,
    schema: Option<Schema<'_>>,
) -> Result<(), Status> {
    let wrong = |value: &Value| Status::unexplained(format!("expected a list for {list}, but got {}", go::text(value)));
    let items = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => Err(wrong(other)),
    };
    let order = items(Some(order))?.unwrap_or_default();
    let (old, new) = (items(fields.get(list))?, items(patch)?);
    let (known, strategy) = described(schema, list);
    let key = match strategy {
        Patch::Merge(key) | Patch::MergeRetainingKeys(key) => key,
        Patch::Replace | Patch::RetainKeys => "",
    };
    check_order(new.as_deref().unwrap_or_default(), &order, key)?;
    let merged = match (&old, &new) {
        (None, None) => return Ok(()),
        (Some(old), None) => old.clone(),
        (None, Some(new)) => plain(&Value::Array(new.clone())).as_array().cloned().unwrap_or_default(),
        (Some(old), Some(new)) => merge_lists(old, new, strategy, known.and_then(|list| list.items()))?,
    };
    let ordered = put_in_order(merged, &order, old.as_deref().unwrap_or_default(), key)?;
    fields.insert(list.to_owned(), Value::Array(ordered));
    Ok(())
}

/// The elements of a patch stand in the order that it asks for.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), Status> {
    if order.is_empty() {
        return Ok(());
    }
    let kept = patch.iter().filter(|item| item.get(DIRECTIVE).is_none_or(|directive| directive != "delete"));
    let mut rest = order.iter();
    for item in kept {
        if !rest.any(|wanted| is_same(item, wanted, key)) {
            let (patch, order) = (Value::Array(patch.to_vec()), Value::Array(order.to_vec()));
            return Err(Status::unexplained(format!(
                "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
                go::text(&patch),
                go::text(&order)
            )));
        }
    }
    Ok(())
}

fn is_same(a: &Value, b: &Value, key: &str) -> bool {
    if key.is_empty() { a == b } else { a.get(key).is_some() && a.get(key) == b.get(key) }
}

/// Elements that the patch's author knew stand in the author's order; each other one goes before the first of them that
/// it stood before.
fn put_in_order(items: Vec<Value>, order: &[Value], before: &[Value], key: &str) -> Result<Vec<Value>, Status> {
    if !key.is_empty()
        && let Some(nameless) = items.iter().chain(order).find(|item| item.get(key).is_none())
    {
        return Err(no_merge_key(nameless, key));
    }
    let place = |item: &Value, order: &[Value]| order.iter().position(|other| is_same(item, other, key));
    let (mut known, mut others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| place(item, order).is_some());
    known.sort_by_key(|item| place(item, order));
    others.sort_by_key(|item| place(item, before));
    let mut others = others.into_iter().peekable();
    let mut ordered = Vec::new();
    for item in known {
        let here = place(&item, before);
        while let Some(other) =
            others.next_if(|other| here.is_some() && place(other, before).is_some_and(|at| Some(at) < here))
        {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others);
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;
    use crate::api::kind::KindRef;

    fn merged(mut target: Value, patch: Value) -> Result<Value, String> {
        merge(&mut target, &patch, Schema::of(KindRef::of::<Deployment>())).map_err(|status| status.message)?;
        Ok(target)
    }

    fn pod(spec: Value) -> Value {
        json!({"spec": {"template": {"spec": spec}}})
    }

    fn containers(list: Value) -> Value {
        pod(json!({"containers": list}))
    }

    #[test]
    fn containers_merge_by_name() {
        let old = containers(json!([{"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "1"}]}]));
        let patch = containers(json!([{"name": "web", "image": "nginx:2"}, {"name": "log", "image": "busybox"}]));
        let new = containers(json!([
            {"name": "web", "image": "nginx:2", "env": [{"name": "A", "value": "1"}]},
            {"name": "log", "image": "busybox"},
        ]));
        assert_eq!(merged(old.clone(), patch), Ok(new));
        let before = merged(old, containers(json!([{"name": "log", "image": "busybox"}]))).unwrap();
        assert_eq!(before["spec"]["template"]["spec"]["containers"][0]["name"], "log");
    }

    #[test]
    fn a_patch_can_delete_and_order() {
        let old = containers(json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
        let order = json!([{"name": "c"}, {"name": "a"}]);
        let patch =
            pod(json!({"containers": [{"name": "b", "$patch": "delete"}], "$setElementOrder/containers": order}));
        assert_eq!(merged(old.clone(), patch), Ok(containers(json!([{"name": "c"}, {"name": "a"}]))));

        let patch = pod(json!({"containers": [{"name": "x"}], "$setElementOrder/containers": [{"name": "a"}]}));
        let refused = merged(old.clone(), patch).unwrap_err();
        assert!(refused.starts_with("The order in patch list:\n[map[name:x]]\n doesn't match"), "{refused}");
        let patch = containers(json!([{"$patch": "replace"}, {"name": "d"}]));
        assert_eq!(merged(old, patch), Ok(containers(json!([{"name": "d"}]))));
    }

    #[test]
    fn a_change_of_strategy_drops_what_no_longer_belongs() {
        let old = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}});
        assert_eq!(merged(old.clone(), patch), Ok(json!({"spec": {"strategy": {"type": "Recreate"}}})));
        let patch = json!({"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["rollingUpdate"]}}});
        assert_eq!(merged(old, patch).unwrap_err(), "invalid patch format of retainKeys");
    }

    #[test]
    fn what_can_not_be_merged_is_named() {
        let error = merged(containers(json!([])), containers(json!([{"image": "nginx"}]))).unwrap_err();
        assert_eq!(error, "map: map[image:nginx] does not contain declared merge key: name");
        let old = json!({"metadata": {"annotations": {"a": "1"}, "finalizers": ["x.io/a"]}});
        let error =
            merged(old.clone(), json!({"metadata": {"annotations": {"$patch": "merge", "b": "2"}}})).unwrap_err();
        assert_eq!(error, "unknown patch type: merge in map: map[$patch:merge b:2]");
        let error = merged(old, json!({"metadata": {"finalizers": [{"$patch": "replace"}]}})).unwrap_err();
        assert_eq!(error, "list element types are not identical: [[x.io/a] [map[$patch:replace]]]");
    }
}
