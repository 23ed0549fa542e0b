//! Which fields two versions of an object differ in.

use std::collections::BTreeMap;

use serde_json::Value;

use super::go;
use super::types::{List, MapShape, Scalar, Shape, Type};
use crate::api::field_set::{FieldSet, Path, PathElement};

#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

/// Compares two values of a type.
pub fn compare(before: &Value, after: &Value, of: Type<'_>) -> Comparison {
    let mut walk = Walk::default();
    walk.values(Some(before), Some(after), of);
    walk.found
}

/// Equal as API values are: numbers by what they count.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

#[derive(Default)]
struct Walk {
    path: Path,
    found: Comparison,
}

type Side<'v> = Option<&'v Value>;

impl Walk {
    fn values(&mut self, before: Side<'_>, after: Side<'_>, of: Type<'_>) {
        let shape_before = of.shape_for(before);
        let shape_after = of.shape_for(after);
        let mut leaf = false;
        match (before, after) {
            (_, None) => leaf = self.shape(before, after, shape_before),
            (None, _) => leaf = self.shape(before, after, shape_after),
            _ if same_shape(shape_before, shape_after) => leaf = self.shape(before, after, shape_after),
            _ => {
                self.shape(before, after, shape_before);
                leaf |= self.shape(before, after, shape_after);
            }
        }
        if !leaf {
            match (before, after) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Says whether the value has one owner.
    fn shape(&mut self, before: Side<'_>, after: Side<'_>, shape: Option<Shape<'_>>) -> bool {
        match shape {
            None => false,
            Some(Shape::Scalar(_)) => self.leaf(before, after),
            Some(Shape::List(list)) => {
                let (old, new) = (before.and_then(Value::as_array), after.and_then(Value::as_array));
                if list.is_atomic() || old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty) {
                    return self.leaf(before, after);
                }
                self.lists(old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice), &list);
                false
            }
            Some(Shape::Map(map)) => {
                let (old, new) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
                if map.atomic || old.is_none_or(serde_json::Map::is_empty) && new.is_none_or(serde_json::Map::is_empty)
                {
                    return self.leaf(before, after);
                }
                self.maps(old, new, &map);
                false
            }
        }
    }

    fn leaf(&mut self, before: Side<'_>, after: Side<'_>) -> bool {
        match (before, after) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(before), Some(after)) if !equal(before, after) => self.found.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn maps(
        &mut self,
        before: Option<&serde_json::Map<String, Value>>,
        after: Option<&serde_json::Map<String, Value>>,
        map: &MapShape<'_>,
    ) {
        let old = before.into_iter().flatten().map(|(name, _)| name);
        let new = after.into_iter().flatten().map(|(name, _)| name);
        let new = new.filter(|name| before.is_none_or(|before| !before.contains_key(*name)));
        for name in old.chain(new) {
            let (old, new) = (before.and_then(|map| map.get(name)), after.and_then(|map| map.get(name)));
            if old == new {
                continue;
            }
            let of = map.field(name).unwrap_or(Type::Deduced);
            self.at(PathElement::field(name), |walk| walk.values(old, new, of));
        }
    }

    fn lists(&mut self, before: &[Value], after: &[Value], list: &List<'_>) {
        let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in before {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().0.push(item);
            }
        }
        for item in after {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in pairs {
            let items = list.items;
            self.at(element, |walk| match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => walk.values(old.first().copied(), new.first().copied(), items),
                // Elements that stand there twice have one owner together.
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !equal(old, new)) {
                        walk.found.modified.insert(&walk.path);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(one) = new.first() {
                        walk.values(None, Some(one), items);
                    }
                    walk.found.removed.insert(&walk.path);
                }
                _ => {
                    if let Some(one) = old.first() {
                        walk.values(Some(one), None, items);
                    }
                    walk.found.added.insert(&walk.path);
                }
            });
        }
    }

    fn at(&mut self, element: PathElement, what: impl FnOnce(&mut Walk)) {
        self.path.push(element);
        what(self);
        self.path.pop();
    }
}

fn same_shape(a: Option<Shape<'_>>, b: Option<Shape<'_>>) -> bool {
    matches!(
        (a, b),
        (Some(Shape::Scalar(_)), Some(Shape::Scalar(_)))
            | (Some(Shape::List(_)), Some(Shape::List(_)))
            | (Some(Shape::Map(_)), Some(Shape::Map(_)))
            | (None, None)
    )
}

impl Comparison {
    /// The differences outside of the fields that the server sets back.
    pub fn without(&self, fields: &FieldSet) -> Comparison {
        Comparison {
            added: self.added.without(fields),
            modified: self.modified.without(fields),
            removed: self.removed.without(fields),
        }
    }

    /// What is new or other than it was.
    pub fn changed(&self) -> FieldSet {
        self.added.clone().union(&self.modified)
    }
}

/// The fields that a value says something about: what its applier owns.
pub fn fields_of(value: &Value, of: Type<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, of, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, of: Type<'_>, path: &mut Path, set: &mut FieldSet) {
    match of.shape_for(Some(value)) {
        None => {}
        Some(Shape::Scalar(_)) => set.insert(path),
        Some(Shape::List(list)) if list.is_atomic() => set.insert(path),
        Some(Shape::Map(map)) if map.atomic => set.insert(path),
        Some(Shape::List(list)) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            let elements: Vec<_> = items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
            let mut count: BTreeMap<&PathElement, usize> = BTreeMap::new();
            for (element, _) in &elements {
                *count.entry(element).or_default() += 1;
            }
            for (element, item) in &elements {
                path.push(element.clone());
                if count.get(element) == Some(&1) {
                    collect(item, list.items, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Some(Shape::Map(map)) => {
            for (name, field) in value.as_object().into_iter().flatten() {
                path.push(PathElement::field(name));
                collect(field, map.field(name).unwrap_or(Type::Deduced), path, set);
                let empty = field.is_null() || field.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || map.named_field(name).is_none() {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

/// What a value has that its type does not allow, as `.path: problem`.
pub fn check(value: &Value, of: Type<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    check_at(value, of, "", &mut problems);
    problems
}

fn check_at(value: &Value, of: Type<'_>, path: &str, problems: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let problem = |problem: String| if path.is_empty() { problem } else { format!("{path}: {problem}") };
    let shown = || go::pointed(value);
    match of.shape_for(Some(value)) {
        None => {}
        Some(Shape::Scalar(scalar)) => {
            let text = match (scalar, value) {
                (Scalar::Number, Value::Number(_))
                | (Scalar::Text, Value::String(_))
                | (Scalar::Boolean, Value::Bool(_))
                | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
                (Scalar::Number, _) => "expected numeric (int or float), got *value.valueUnstructured".to_owned(),
                (Scalar::Text, _) => {
                    format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::source(value))
                }
                (Scalar::Boolean, _) => format!("expected boolean, got {}", shown()),
                (Scalar::Any, _) => format!("expected any scalar, got {}", shown()),
            };
            problems.push(problem(text));
        }
        Some(Shape::List(list)) => {
            let Value::Array(items) = value else {
                return problems.push(problem(format!("expected list, got {}", shown())));
            };
            let mut seen = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = if list.is_atomic() { Ok(PathElement::Index(index as i64)) } else { list.element(item) };
                let element = match element {
                    Ok(element) => element,
                    Err(reason) => return problems.push(problem(format!("element {index}: {reason}"))),
                };
                let place = format!("{path}{element}");
                if !seen.insert(element.clone()) {
                    problems.push(problem(format!("duplicate entries for key {element}")));
                }
                check_at(item, list.items, &place, problems);
            }
        }
        Some(Shape::Map(map)) => {
            let Value::Object(fields) = value else {
                return problems.push(problem(format!("expected map, got {}", shown())));
            };
            for (name, field) in fields {
                let place = format!("{path}.{name}");
                match map.field(name) {
                    Some(of) => check_at(field, of, &place, problems),
                    None => return problems.push(format!("{place}: field not declared in schema")),
                }
            }
        }
    }
}

/// The first value of another type than its place has.
pub fn misfit(value: &Value, of: Type<'_>) -> Option<String> {
    let kind = match value {
        Value::Null => return None,
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match (of.shape_for(Some(value))?, value) {
        (Shape::Map(map), Value::Object(fields)) => {
            fields.iter().find_map(|(name, field)| misfit(field, map.field(name)?))
        }
        (Shape::List(list), Value::Array(items)) => items.iter().find_map(|item| misfit(item, list.items)),
        (Shape::Map(map), _) if map.is_struct() => Some(format!("cannot restore struct from: {kind}")),
        (Shape::Map(_), _) => Some(format!("cannot restore map from {kind}")),
        (Shape::List(_), _) => Some(format!("cannot restore slice from {kind}")),
        (Shape::Scalar(Scalar::Number), Value::Number(_))
        | (Shape::Scalar(Scalar::Text), Value::String(_))
        | (Shape::Scalar(Scalar::Boolean), Value::Bool(_))
        | (Shape::Scalar(Scalar::Any), _) => None,
        (Shape::Scalar(scalar), _) => {
            let wanted = match scalar {
                Scalar::Number => "int32",
                Scalar::Boolean => "bool",
                Scalar::Text | Scalar::Any => "string",
            };
            // Go could make a letter of a number, and is told not to; for all else it knows no way.
            Some(match (kind, wanted) {
                ("int64", "string") => format!("cannot convert {kind} to {wanted}"),
                _ => format!("unrecognized type: {wanted}"),
            })
        }
    }
}
