//! Kubernetes' list library, and the functions on lists that later versions of it took over from CEL.
//! <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-list-library>

use std::cmp::Ordering;

use jiff::SignedDuration;

use super::Function;
use crate::apiserver::cel::value::{List, Merge, Value, compare};

pub(super) const FUNCTIONS: &[Function] = &[
    ("list<A>.isSorted() -> bool", is_sorted),
    ("list<int>.sum() -> int", sum),
    ("list<uint>.sum() -> uint", sum),
    ("list<double>.sum() -> double", sum),
    ("list<duration>.sum() -> duration", sum),
    ("list<A>.min() -> A", |args| extreme(args, "min", Ordering::Less)),
    ("list<A>.max() -> A", |args| extreme(args, "max", Ordering::Greater)),
    ("list<A>.indexOf(A) -> int", |args| position(args, |items, wanted| items.iter().position(|item| item == wanted))),
    ("list<A>.lastIndexOf(A) -> int", |args| {
        position(args, |items, wanted| items.iter().rposition(|item| item == wanted))
    }),
    ("list<A>.slice(int, int) -> list<A>", slice),
    ("list<A>.reverse() -> list<A>", |args| Ok(items(&args[0]).iter().rev().cloned().collect::<Vec<_>>().into())),
    ("list<A>.sort() -> list<A>", sort),
    ("list<A>.distinct() -> list<A>", distinct),
    ("list<dyn>.flatten() -> list<dyn>", |args| Ok(flatten(items(&args[0]), 1).into())),
    ("list<dyn>.flatten(int) -> list<dyn>", |args| match &args[1] {
        Value::Int(depth) if *depth >= 0 => Ok(flatten(items(&args[0]), *depth).into()),
        _ => Err("level must be non-negative".to_owned()),
    }),
    ("lists.range(int) -> list<int>", range),
    // What transformMap becomes; the evaluator adds to the map that it has.
    ("cel.@mapInsert(map<A, B>, A, B) -> map<A, B>", |args| Ok(args[0].clone())),
    // What sortBy becomes: the list, and what each of its items is sorted by.
    ("list<A>.@sortByAssociatedKeys(list<B>) -> list<A>", sort_by),
];

fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(list) => &list.items,
        _ => &[],
    }
}

fn is_sorted(args: &[Value]) -> Result<Value, String> {
    for pair in items(&args[0]).windows(2) {
        match compare(&pair[0], &pair[1]) {
            Some(Ordering::Greater) => return Ok(false.into()),
            Some(_) => {}
            None => return Err("no such overload".to_owned()),
        }
    }
    Ok(true.into())
}

fn sum(args: &[Value]) -> Result<Value, String> {
    let mut total = match items(&args[0]).first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(_) => Value::Duration(SignedDuration::ZERO),
    };
    for item in items(&args[0]) {
        total = match (&total, item) {
            (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or("integer overflow")?),
            (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(*b).ok_or("unsigned integer overflow")?),
            (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
            (Value::Duration(a), Value::Duration(b)) => Value::Duration(a.checked_add(*b).ok_or("duration overflow")?),
            _ => return Err("no such overload".to_owned()),
        };
    }
    Ok(total)
}

fn extreme(args: &[Value], name: &str, wanted: Ordering) -> Result<Value, String> {
    let mut items = items(&args[0]).iter();
    let mut best = items.next().ok_or_else(|| format!("{name} called on empty list"))?;
    for item in items {
        let ordering = compare(item, best).ok_or("no such overload")?;
        if ordering == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

fn position(args: &[Value], of: fn(&[Value], &Value) -> Option<usize>) -> Result<Value, String> {
    Ok(Value::Int(of(items(&args[0]), &args[1]).map_or(-1, |at| at as i64)))
}

fn slice(args: &[Value]) -> Result<Value, String> {
    let (Value::Int(start), Value::Int(end)) = (&args[1], &args[2]) else { return Err("no such overload".to_owned()) };
    let list = items(&args[0]);
    if *start < 0 || *end < 0 {
        return Err(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return Err(format!("cannot slice({start}, {end}), start index must be less than or equal to end index"));
    }
    let found = list.get(*start as usize..*end as usize);
    let found = found.ok_or_else(|| format!("cannot slice({start}, {end}), list is length {}", list.len()))?;
    Ok(found.to_vec().into())
}

fn sort(args: &[Value]) -> Result<Value, String> {
    sort_by(&[args[0].clone(), args[0].clone()])
}

fn sort_by(args: &[Value]) -> Result<Value, String> {
    let mut pairs: Vec<(Value, Value)> = items(&args[1]).iter().cloned().zip(items(&args[0]).iter().cloned()).collect();
    let comparable = pairs.windows(2).all(|pair| compare(&pair[0].0, &pair[1].0).is_some());
    if !comparable {
        return Err("list elements must have the same type".to_owned());
    }
    pairs.sort_by(|a, b| compare(&a.0, &b.0).unwrap_or(Ordering::Equal));
    Ok(pairs.into_iter().map(|(_, item)| item).collect::<Vec<_>>().into())
}

fn distinct(args: &[Value]) -> Result<Value, String> {
    let mut found: Vec<Value> = Vec::new();
    for item in items(&args[0]) {
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
    Ok(Value::List(List { items: found, merge: Merge::Atomic }.into()))
}

fn flatten(items: &[Value], depth: i64) -> Vec<Value> {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Value::List(list) if depth > 0 => flat.extend(flatten(&list.items, depth - 1)),
            other => flat.push(other.clone()),
        }
    }
    flat
}

fn range(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Int(count) if *count > 1_000_000 => Err("range is too long".to_owned()),
        Value::Int(count) => Ok((0..*count).map(Value::Int).collect::<Vec<_>>().into()),
        _ => Err("no such overload".to_owned()),
    }
}
