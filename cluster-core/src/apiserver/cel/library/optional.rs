//! Values that may be absent. <https://pkg.go.dev/github.com/google/cel-go/cel#OptionalTypes>

use super::Function;
use super::operators::index;
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("optional.of(A) -> optional<A>", |args| Ok(Some(args[0].clone()).into())),
    ("optional.none() -> optional<A>", |_| Ok(None.into())),
    ("optional.ofNonZeroValue(A) -> optional<A>", |args| Ok((!is_zero(&args[0])).then(|| args[0].clone()).into())),
    ("optional<A>.hasValue() -> bool", |args| Ok(inner(&args[0]).is_some().into())),
    ("optional<A>.value() -> A", |args| {
        inner(&args[0]).cloned().ok_or_else(|| "optional.none() dereference".to_owned())
    }),
    ("optional<A>.or(optional<A>) -> optional<A>", |args| {
        Ok(if inner(&args[0]).is_some() { args[0].clone() } else { args[1].clone() })
    }),
    ("optional<A>.orValue(A) -> A", |args| Ok(inner(&args[0]).unwrap_or(&args[1]).clone())),
    ("_[?_](list<A>, int) -> optional<A>", select),
    ("_[?_](map<A, B>, A) -> optional<B>", select),
    ("_[?_](optional<list<A>>, int) -> optional<A>", select),
    ("_[?_](optional<map<A, B>>, A) -> optional<B>", select),
    ("list<A>.first() -> optional<A>", |args| Ok(end(&args[0], |items| items.first()).into())),
    ("list<A>.last() -> optional<A>", |args| Ok(end(&args[0], |items| items.last()).into())),
];

fn inner(value: &Value) -> Option<&Value> {
    match value {
        Value::Optional(inner) => inner.as_deref(),
        _ => None,
    }
}

/// `x[?k]` and `x.?k`: nothing where there is nothing.
pub(in crate::apiserver::cel) fn select(args: &[Value]) -> Result<Value, String> {
    let from = match &args[0] {
        Value::Optional(None) => return Ok(None.into()),
        Value::Optional(Some(value)) => (**value).clone(),
        value => value.clone(),
    };
    Ok(index(&[from, args[1].clone()]).ok().into())
}

fn end(list: &Value, of: fn(&[Value]) -> Option<&Value>) -> Option<Value> {
    match list {
        Value::List(list) => of(&list.items).cloned(),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(bool) => !bool,
        Value::Int(int) => *int == 0,
        Value::Uint(uint) => *uint == 0,
        Value::Double(double) => *double == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.is_zero(),
        Value::Optional(inner) => inner.is_none(),
        _ => false,
    }
}
