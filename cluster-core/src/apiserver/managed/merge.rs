//! An applied configuration merged into an object, and fields taken out of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::types::{List, MapShape, Shape, Type};
use crate::api::field_set::{FieldSet, PathElement};

/// The object with what the configuration says. Both are known to be of the type.
pub fn merge(object: &Value, config: &Value, of: Type<'_>) -> Value {
    values(Some(object), Some(config), of).unwrap_or(Value::Null)
}

type Side<'v> = Option<&'v Value>;

fn values(object: Side<'_>, config: Side<'_>, of: Type<'_>) -> Option<Value> {
    let winner = || config.or(object).cloned();
    match of.shape_for(config.or(object)) {
        None | Some(Shape::Scalar(_)) => winner(),
        Some(Shape::List(list)) => {
            let (old, new) = (object.and_then(Value::as_array), config.and_then(Value::as_array));
            if list.is_atomic() || old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty) {
                return winner();
            }
            let merged = lists(old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice), &list);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Some(Shape::Map(map)) => {
            let (old, new) = (object.and_then(Value::as_object), config.and_then(Value::as_object));
            if map.atomic || old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty) {
                return winner();
            }
            let merged = maps(old, new, &map);
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
    }
}

fn maps(
    object: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    map: &MapShape<'_>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for name in object.into_iter().chain(config).flat_map(Map::keys) {
        let (old, new) = (object.and_then(|map| map.get(name)), config.and_then(|map| map.get(name)));
        if !merged.contains_key(name)
            && let Some(value) = values(old, new, map.field(name).unwrap_or(Type::Deduced))
        {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

/// The configuration's elements keep their order, and those that only the object has keep their places between them.
fn lists(object: &[Value], config: &[Value], list: &List<'_>) -> Vec<Value> {
    let named = |items: &[Value]| -> Vec<PathElement> {
        let name = |(index, item)| list.element(item).unwrap_or(PathElement::Index(index as i64));
        items.iter().enumerate().map(name).collect()
    };
    let (old, new) = (named(object), named(config));
    let mut known: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (element, item) in old.iter().zip(object) {
        // Elements that stand there twice are not merged but replaced.
        known.entry(element).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let wanted: BTreeMap<&PathElement, &Value> = new.iter().zip(config).collect();
    let both =
        |element: &PathElement| values(known.get(element).copied().flatten(), wanted.get(element).copied(), list.items);
    let mut shared = new.iter().filter(|element| known.contains_key(element));
    let mut next_shared = shared.next();
    let mut done = std::collections::BTreeSet::new();
    let mut merged = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        if let (Some(ours), Some(theirs)) = (old.get(left), new.get(right)) {
            if ours == theirs {
                done.insert(ours);
                merged.extend(both(ours));
                (left, right) = (left + 1, right + 1);
                next_shared = shared.next();
                continue;
            }
            if wanted.contains_key(ours) && next_shared.is_some_and(|next| next != ours) {
                left += 1;
                continue;
            }
        }
        if let Some(ours) = old.get(left) {
            if !wanted.contains_key(ours) {
                merged.extend(values(object.get(left), None, list.items));
                left += 1;
                continue;
            }
            if done.contains(ours) {
                left += 1;
            }
        }
        if let Some(theirs) = new.get(right) {
            done.insert(theirs);
            merged.extend(both(theirs));
            right += 1;
            if next_shared == Some(theirs) {
                next_shared = shared.next();
            }
        }
    }
    merged
}

/// The value without the fields of a set.
pub fn remove(value: &Value, fields: &FieldSet, of: Type<'_>) -> Value {
    match (of.shape_for(Some(value)), value) {
        (Some(Shape::List(list)), Value::Array(items)) if !list.is_atomic() => {
            let kept = |item: &Value| match list.element(item) {
                Ok(element) if fields.has(&element) => None,
                Ok(element) => Some(part(item, fields.below(&element), list.items)),
                Err(_) => Some(item.clone()),
            };
            let items: Vec<Value> = items.iter().filter_map(kept).collect();
            if items.is_empty() { Value::Null } else { Value::Array(items) }
        }
        (Some(Shape::Map(map)), Value::Object(object)) if !map.atomic => {
            let kept = |(name, value): (&String, &Value)| {
                let element = PathElement::field(name);
                let below = || part(value, fields.below(&element), map.field(name).unwrap_or(Type::Deduced));
                (!fields.has(&element)).then(|| (name.clone(), below()))
            };
            let object: Map<String, Value> = object.iter().filter_map(kept).collect();
            if object.is_empty() { Value::Null } else { Value::Object(object) }
        }
        (Some(Shape::Scalar(_)), _) => value.clone(),
        _ => Value::Null,
    }
}

fn part(value: &Value, fields: Option<&FieldSet>, of: Type<'_>) -> Value {
    fields.map_or_else(|| value.clone(), |fields| remove(value, fields, of))
}

/// Takes out the empty lists and maps that the API does not keep: those of fields that may be absent.
pub fn omit_empty(value: &mut Value, of: Type<'_>) {
    match (of.shape_for(Some(value)), value) {
        (Some(Shape::List(list)), Value::Array(items)) => {
            items.iter_mut().for_each(|item| omit_empty(item, list.items))
        }
        (Some(Shape::Map(map)), Value::Object(fields)) if map.is_struct() => fields.retain(|name, field| {
            let Some(of) = map.field(name) else { return true };
            omit_empty(field, of);
            let is_empty = match (&*field, of.shape_for(Some(field))) {
                (Value::Array(items), _) => items.is_empty(),
                (Value::Object(fields), Some(Shape::Map(map))) => fields.is_empty() && map.is_open(),
                _ => false,
            };
            !is_empty || map.is_required(name)
        }),
        _ => {}
    }
}

/// The set with the named fields that lead to its paths. Whoever owns a field of a struct owns the struct.
pub fn with_named_fields(fields: &FieldSet, of: Type<'_>) -> FieldSet {
    fn walk(fields: &FieldSet, of: Option<Type<'_>>, path: &mut Vec<PathElement>, all: &mut FieldSet) {
        let shapes = of.map(Type::shapes).unwrap_or_default();
        for (element, member, below) in fields.elements() {
            path.push(element.clone());
            let (named, inner) = match (element, shapes.map, shapes.list) {
                (PathElement::Field(name), Some(map), _) => (map.named_field(name).is_some(), map.field(name)),
                (PathElement::Key(_), _, Some(list)) => (false, Some(list.items)),
                _ => (false, None),
            };
            if member || named && !below.is_empty() {
                all.insert(path);
            }
            walk(below, inner, path, all);
            path.pop();
        }
    }
    let mut all = FieldSet::default();
    walk(fields, Some(of), &mut Vec::new(), &mut all);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_keeps_what_others_put_between() {
        let schema = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let of = Type::Custom { schema: &schema, whole: false, open: false };
        assert_eq!(merge(&json!(["a", "b"]), &json!(["c", "b"]), of), json!(["a", "c", "b"]));
        assert_eq!(merge(&json!(["a", "b", "c"]), &json!(["c", "a"]), of), json!(["b", "c", "a"]));
        let gone = FieldSet::from_json(&json!({"v:\"a\"": {}})).unwrap();
        assert_eq!(remove(&json!(["a", "b"]), &gone, of), json!(["b"]));
        assert_eq!(remove(&json!(["a"]), &gone, of), json!(null));
    }
}
