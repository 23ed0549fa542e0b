//! Lists seen as sets. <https://pkg.go.dev/github.com/google/cel-go/ext#Sets>

use super::Function;
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("sets.contains(list<A>, list<A>) -> bool", |args| Ok(contains(&args[0], &args[1]).into())),
    ("sets.equivalent(list<A>, list<A>) -> bool", |args| {
        Ok((contains(&args[0], &args[1]) && contains(&args[1], &args[0])).into())
    }),
    ("sets.intersects(list<A>, list<A>) -> bool", |args| {
        Ok(items(&args[1]).iter().any(|item| items(&args[0]).contains(item)).into())
    }),
];

fn items(value: &Value) -> &[Value] {
    match value {
        Value::List(list) => &list.items,
        _ => &[],
    }
}

fn contains(a: &Value, b: &Value) -> bool {
    items(b).iter().all(|item| items(a).contains(item))
}
