//! Arithmetic, order, membership. Logic and equality hold for all types and stand in the evaluator.
//! <https://github.com/google/cel-spec/blob/master/doc/langdef.md#list-of-standard-definitions>

use std::cmp::Ordering;
use std::sync::Arc;

use super::Function;
use crate::apiserver::cel::types::{Overload, Run, Type};
use crate::apiserver::cel::value::{Key, List, Merge, Value, compare, same_key};

pub(super) const FUNCTIONS: &[Function] = &[
    ("_+_(int, int) -> int", add),
    ("_+_(uint, uint) -> uint", add),
    ("_+_(double, double) -> double", add),
    ("_+_(string, string) -> string", add),
    ("_+_(bytes, bytes) -> bytes", add),
    ("_+_(list<A>, list<A>) -> list<A>", add),
    ("_+_(timestamp, duration) -> timestamp", add),
    ("_+_(duration, timestamp) -> timestamp", add),
    ("_+_(duration, duration) -> duration", add),
    ("_-_(int, int) -> int", subtract),
    ("_-_(uint, uint) -> uint", subtract),
    ("_-_(double, double) -> double", subtract),
    ("_-_(timestamp, timestamp) -> duration", subtract),
    ("_-_(timestamp, duration) -> timestamp", subtract),
    ("_-_(duration, duration) -> duration", subtract),
    ("_*_(int, int) -> int", multiply),
    ("_*_(uint, uint) -> uint", multiply),
    ("_*_(double, double) -> double", multiply),
    ("_/_(int, int) -> int", divide),
    ("_/_(uint, uint) -> uint", divide),
    ("_/_(double, double) -> double", divide),
    ("_%_(int, int) -> int", remainder),
    ("_%_(uint, uint) -> uint", remainder),
    ("-_(int) -> int", negate),
    ("-_(double) -> double", negate),
    ("@in(A, list<A>) -> bool", contained),
    ("@in(A, map<A, B>) -> bool", contained),
    ("_[_](list<A>, int) -> A", index),
    ("_[_](map<A, B>, A) -> B", index),
    ("_==_(A, A) -> bool", |args| Ok((args[0] == args[1]).into())),
    ("_!=_(A, A) -> bool", |args| Ok((args[0] != args[1]).into())),
    ("!_(bool) -> bool", |args| Ok((args[0] != Value::Bool(true)).into())),
    // These do not look at all of their arguments: the evaluator does them itself.
    ("_&&_(bool, bool) -> bool", lazy),
    ("_||_(bool, bool) -> bool", lazy),
    ("_?_:_(bool, A, A) -> A", lazy),
    ("@not_strictly_false(bool) -> bool", lazy),
    ("size(string) -> int", size),
    ("size(bytes) -> int", size),
    ("size(list<A>) -> int", size),
    ("size(map<A, B>) -> int", size),
    ("string.size() -> int", size),
    ("bytes.size() -> int", size),
    ("list<A>.size() -> int", size),
    ("map<A, B>.size() -> int", size),
    ("type(A) -> type<A>", |args| Ok(Value::Type(args[0].type_name().into()))),
    ("dyn(A) -> dyn", |args| Ok(args[0].clone())),
];

/// `<`, `<=`, `>`, `>=`: the pairs of types that have an order, and which orders make each true.
pub(super) fn comparisons() -> impl Iterator<Item = Overload> {
    const NUMBERS: [Type; 3] = [Type::Int, Type::Uint, Type::Double];
    const OTHERS: [Type; 5] = [Type::Bool, Type::String, Type::Bytes, Type::Timestamp, Type::Duration];
    let operators: [(&'static str, Run); 4] = [
        ("_<_", |args| ordered(args, Ordering::is_lt)),
        ("_<=_", |args| ordered(args, Ordering::is_le)),
        ("_>_", |args| ordered(args, Ordering::is_gt)),
        ("_>=_", |args| ordered(args, Ordering::is_ge)),
    ];
    let numbers = NUMBERS.into_iter().flat_map(|a| NUMBERS.map(|b| vec![a.clone(), b]));
    let pairs: Vec<Vec<Type>> = numbers.chain(OTHERS.map(|of| vec![of.clone(), of])).collect();
    operators.into_iter().flat_map(move |(name, run)| {
        let overload = move |arguments| Overload { name, member: false, arguments, result: Type::Bool, run };
        pairs.clone().into_iter().map(overload)
    })
}

fn lazy(_: &[Value]) -> Result<Value, String> {
    Err(NO_OVERLOAD.to_owned())
}

const NO_OVERLOAD: &str = "no such overload";
const OVERFLOW: &str = "integer overflow";

fn int(value: Option<i64>) -> Result<Value, String> {
    value.map(Value::Int).ok_or_else(|| OVERFLOW.to_owned())
}

fn uint(value: Option<u64>) -> Result<Value, String> {
    value.map(Value::Uint).ok_or_else(|| "unsigned integer overflow".to_owned())
}

fn duration(value: Option<jiff::SignedDuration>) -> Result<Value, String> {
    value.map(Value::Duration).ok_or_else(|| "duration overflow".to_owned())
}

fn timestamp(value: Result<jiff::Timestamp, jiff::Error>) -> Result<Value, String> {
    value.map(Value::Timestamp).map_err(|_| "timestamp overflow".to_owned())
}

fn add(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) if a.len() + b.len() > super::TEXT_BYTES_MAX => {
            Err("string is too long".to_owned())
        }
        (Value::String(a), Value::String(b)) => Ok(format!("{a}{b}").into()),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => Ok(Value::List(Arc::new(concatenate(a, b)))),
        (Value::Timestamp(time), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(time)) => {
            timestamp(time.checked_add(*by))
        }
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

/// Lists with a merge type take up what they do not have yet.
fn concatenate(a: &List, b: &List) -> List {
    let mut items = a.items.clone();
    match &a.merge {
        Merge::Atomic => items.extend(b.items.iter().cloned()),
        Merge::Set => {
            let new: Vec<Value> = b.items.iter().filter(|item| !items.contains(item)).cloned().collect();
            items.extend(new);
        }
        Merge::Map(keys) => {
            for item in &b.items {
                match items.iter_mut().find(|known| same_key(known, item, keys)) {
                    Some(known) => *known = item.clone(),
                    None => items.push(item.clone()),
                }
            }
        }
    }
    List { items, merge: a.merge.clone() }
}

fn subtract(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(Value::Duration(a.duration_since(*b))),
        (Value::Timestamp(time), Value::Duration(by)) => timestamp(time.checked_sub(*by)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn multiply(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_mul(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_mul(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn divide(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err("division by zero".to_owned()),
        (Value::Int(a), Value::Int(b)) => int(a.checked_div(*b)),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a / b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn remainder(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err("modulus by zero".to_owned()),
        (Value::Int(a), Value::Int(b)) => int(a.checked_rem(*b)),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a % b)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn negate(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Int(number) => int(number.checked_neg()),
        Value::Double(number) => Ok(Value::Double(-number)),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn ordered(args: &[Value], wanted: fn(Ordering) -> bool) -> Result<Value, String> {
    match compare(&args[0], &args[1]) {
        Some(ordering) => Ok(Value::Bool(wanted(ordering))),
        // Not a number has no order.
        None => Ok(Value::Bool(false)),
    }
}

fn contained(args: &[Value]) -> Result<Value, String> {
    match &args[1] {
        Value::List(list) => Ok(list.items.contains(&args[0]).into()),
        Value::Map(map) => Ok(Key::of(&args[0]).is_some_and(|key| map.contains_key(&key)).into()),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

/// An item of a list, an entry of a map. The text tells what is not there.
pub fn index(args: &[Value]) -> Result<Value, String> {
    match (&args[0], &args[1]) {
        (Value::Map(map), key) => {
            let found = Key::of(key).and_then(|key| map.get(&key).cloned());
            found.ok_or_else(|| format!("no such key: {}", Key::of(key).map(|key| key.to_string()).unwrap_or_default()))
        }
        (Value::List(list), at) => match Key::of(at) {
            Some(Key::Int(at)) => {
                let item = usize::try_from(at).ok().and_then(|at| list.items.get(at));
                item.cloned().ok_or_else(|| format!("index out of bounds: {at}"))
            }
            _ => Err(format!("unsupported index type '{}' in list", at.type_name())),
        },
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn size(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::String(text) => Ok(text.chars().count().into()),
        Value::Bytes(bytes) => Ok(bytes.len().into()),
        Value::List(list) => Ok(list.items.len().into()),
        Value::Map(map) => Ok(map.len().into()),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}
