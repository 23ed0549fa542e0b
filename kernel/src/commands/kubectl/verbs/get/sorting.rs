//! `--sort-by`

use std::cmp::Ordering;

use cluster_core::api::quantity;
use cluster_core::apiserver::table::Row;
use serde_json::Value;

use super::super::super::failure::{Failure, message};
use super::super::super::jsonpath::Template;
use super::super::super::output::column_path;
use super::super::super::resources::Item;
use super::super::super::verb::Call;

/// The field that is sorted by, if one is.
pub fn path(call: &Call<'_, '_>) -> Result<Option<Template>, Failure> {
    call.parsed.text("sort-by").filter(|path| !path.is_empty()).map(column_path).transpose()
}

pub fn sort_items(call: &Call<'_, '_>, items: &mut Vec<Item>) -> Result<(), Failure> {
    match path(call)? {
        Some(path) if items.len() > 1 => sort(&path, items, |item| item.value.clone()),
        _ => Ok(()),
    }
}

pub fn sort_rows(path: &Template, rows: &mut Vec<Row>) -> Result<(), Failure> {
    sort(path, rows, |row| row.object.to_json())
}

/// Numbers and quantities by their size, times and text by their letters, what lacks the field first.
fn sort<T>(path: &Template, all: &mut Vec<T>, json: impl Fn(&T) -> Value) -> Result<(), Failure> {
    let keys = all.iter().map(|one| path.first(&json(one))).collect::<Result<Vec<_>, _>>().map_err(Failure::Message)?;
    if keys.iter().all(Option::is_none) {
        return message(format!("couldn't find any field with path {:?} in the list of objects", path.source));
    }
    let amount = |key: &Option<Value>| key.as_ref().and_then(Value::as_str).and_then(quantity::parse);
    let texts = || keys.iter().filter(|key| matches!(key, Some(Value::String(_))));
    let are_amounts = texts().all(|key| amount(key).is_some());
    let compare = |left: &Value, right: &Value| match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64().unwrap_or(0.0).total_cmp(&right.as_f64().unwrap_or(0.0))
        }
        (Value::String(left), Value::String(right)) if are_amounts => {
            quantity::parse(left).cmp(&quantity::parse(right))
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ => Ordering::Equal,
    };
    let mut keyed: Vec<(Option<Value>, T)> = keys.into_iter().zip(all.drain(..)).collect();
    keyed.sort_by(|(left, _), (right, _)| match (left, right) {
        (Some(left), Some(right)) => compare(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    });
    // As kubectl's sort moves them, the last of what lacks the field comes first.
    let lacking = keyed.iter().take_while(|(key, _)| key.is_none()).count();
    keyed[..lacking].reverse();
    all.extend(keyed.into_iter().map(|(_, one)| one));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sorted(values: &[Value]) -> Vec<String> {
        let path = column_path(".n").unwrap();
        let mut all: Vec<Value> = values.iter().map(|value| json!({"n": value, "is": value.to_string()})).collect();
        all.iter_mut().filter(|one| one["n"].is_null()).for_each(|one| {
            one.as_object_mut().unwrap().remove("n");
        });
        match sort(&path, &mut all, Value::clone) {
            Ok(()) => all.iter().map(|one| one["is"].as_str().unwrap().to_owned()).collect(),
            Err(failure) => vec![failure.text("kubectl get")],
        }
    }

    #[test]
    fn by_size_or_by_letters() {
        assert_eq!(sorted(&[json!(10), json!(9), Value::Null]), ["null", "9", "10"]);
        assert_eq!(sorted(&[json!("2Gi"), json!("500Mi")]), ["\"500Mi\"", "\"2Gi\""]);
        assert_eq!(sorted(&[json!("b"), json!("10"), json!("9")]), ["\"10\"", "\"9\"", "\"b\""]);
        assert_eq!(
            sorted(&[Value::Null, Value::Null]),
            ["error: couldn't find any field with path \"{.n}\" in the list of objects\n"]
        );
    }
}
