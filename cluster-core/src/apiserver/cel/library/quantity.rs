//! Quantities. <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library>

use std::cmp::Ordering;

use super::Function;
use crate::api::quantity;
use crate::apiserver::cel::value::Value;

/// An amount in thousandths.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity(quantity::Millis);

pub(super) const FUNCTIONS: &[Function] = &[
    ("quantity(string) -> kubernetes.Quantity", parse),
    ("isQuantity(string) -> bool", |args| Ok(parse(args).is_ok().into())),
    ("kubernetes.Quantity.sign() -> int", |args| Ok(Value::Int(millis(&args[0])?.signum() as i64))),
    ("kubernetes.Quantity.isInteger() -> bool", |args| Ok(integer(&args[0])?.is_some().into())),
    ("kubernetes.Quantity.asInteger() -> int", |args| {
        integer(&args[0])?.map(Value::Int).ok_or_else(|| "cannot convert value to integer".to_owned())
    }),
    ("kubernetes.Quantity.asApproximateFloat() -> double", |args| Ok(Value::Double(millis(&args[0])? as f64 / 1000.0))),
    ("kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool", |args| {
        Ok((order(args)? == Ordering::Greater).into())
    }),
    ("kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool", |args| Ok((order(args)? == Ordering::Less).into())),
    ("kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int", |args| Ok(Value::Int(order(args)? as i64))),
    ("kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity", |args| combine(args, i128::checked_add)),
    ("kubernetes.Quantity.add(int) -> kubernetes.Quantity", |args| combine(args, i128::checked_add)),
    ("kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity", |args| combine(args, i128::checked_sub)),
    ("kubernetes.Quantity.sub(int) -> kubernetes.Quantity", |args| combine(args, i128::checked_sub)),
];

fn parse(args: &[Value]) -> Result<Value, String> {
    let parsed = match &args[0] {
        Value::String(text) => quantity::parse(text),
        _ => None,
    };
    let refused = "quantities must match the regular expression \
                   '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    parsed.map(|millis| Value::Quantity(Quantity(millis).into())).ok_or_else(|| refused.to_owned())
}

fn millis(value: &Value) -> Result<i128, String> {
    match value {
        Value::Quantity(quantity) => Ok(quantity.0),
        Value::Int(units) => Ok(i128::from(*units) * 1000),
        _ => Err("no such overload".to_owned()),
    }
}

fn integer(value: &Value) -> Result<Option<i64>, String> {
    let millis = millis(value)?;
    Ok((millis % 1000 == 0).then(|| i64::try_from(millis / 1000).ok()).flatten())
}

fn order(args: &[Value]) -> Result<Ordering, String> {
    Ok(millis(&args[0])?.cmp(&millis(&args[1])?))
}

fn combine(args: &[Value], by: fn(i128, i128) -> Option<i128>) -> Result<Value, String> {
    let made = by(millis(&args[0])?, millis(&args[1])?).ok_or("quantity overflow")?;
    Ok(Value::Quantity(Quantity(made).into()))
}
