//! Templates of JSONPath, as kubectl has them. (k8s.io/client-go/util/jsonpath)
//! <https://kubernetes.io/docs/reference/kubectl/jsonpath/>

mod go;
mod parse;

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

pub use go::{go_syntax, go_text, type_name};
pub use parse::unquoted;

/// A template: text with paths, ranges and literals in braces.
#[derive(Clone, Debug)]
pub struct Template {
    pub source: String,
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Number(Number),
    Bool(bool),
    /// A word: `range`, `end`.
    Identifier(String),
    /// What stands between braces: each node takes what the one before it found.
    List(Vec<Node>),
    Field(String),
    /// `[from:to:step]`
    Array(Option<i64>, Bound, Option<i64>),
    Union(Vec<Vec<Node>>),
    /// `[?(left operator right)]`
    Filter(Vec<Node>, Vec<Node>, String),
    Wildcard,
    /// `..`
    Recursive,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    value: Option<i64>,
    /// Not written down: one more than the index.
    derived: bool,
}

type Found<'a> = Vec<Cow<'a, Value>>;

/// # Errors
/// What is wrong with the template, as kubectl says it.
pub fn parse(text: &str) -> Result<Template, String> {
    Ok(Template { source: text.to_owned(), nodes: parse::parse(text)? })
}

impl Template {
    /// The text that it makes of a value. Fields that are not there make nothing.
    pub fn execute(&self, value: &Value) -> Result<String, String> {
        let texts = self.found(value)?;
        let text = |found: &Found<'_>| found.iter().map(|value| printed(value)).collect::<Vec<_>>().join(" ");
        Ok(texts.iter().map(text).collect())
    }

    /// The same as JSON: a list for each part of the template.
    pub fn execute_as_json(&self, value: &Value) -> Result<String, String> {
        let lists = self.found(value)?.into_iter().map(|found| {
            let list = Value::Array(found.into_iter().map(Cow::into_owned).collect());
            super::output::json_text(&list, "    ") + "\n"
        });
        Ok(lists.collect())
    }

    /// The values that it finds.
    pub fn values(&self, value: &Value) -> Result<Vec<Value>, String> {
        Ok(self.found(value)?.into_iter().flatten().map(Cow::into_owned).collect())
    }

    /// The first value that its first part finds.
    pub fn first(&self, value: &Value) -> Result<Option<Value>, String> {
        let first = self.found(value)?.into_iter().next();
        Ok(first.and_then(|found| found.into_iter().next()).map(Cow::into_owned))
    }

    fn found<'a>(&'a self, value: &'a Value) -> Result<Vec<Found<'a>>, String> {
        block(&self.nodes, 0, &Cow::Borrowed(value), 0).map(|(found, _)| found)
    }
}

/// A value as `-o jsonpath` prints it: text bare, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => super::output::json_line(other),
    }
}

/// What the nodes find from a place on; those of a range up to its end, and where that is.
fn block<'a>(
    nodes: &'a [Node],
    from: usize,
    value: &Cow<'a, Value>,
    depth: usize,
) -> Result<(Vec<Found<'a>>, Option<usize>), String> {
    let mut all = Vec::new();
    let mut at = from;
    while let Some(node) = nodes.get(at) {
        let word = match node {
            Node::List(list) => list.iter().find_map(|node| match node {
                Node::Identifier(name) => Some(name.as_str()),
                _ => None,
            }),
            _ => None,
        };
        if word == Some("end") {
            if depth == 0 {
                return Err("not in range, nothing to end".into());
            }
            return Ok((all, Some(at)));
        }
        let found = walk(node, vec![value.clone()])?;
        if word == Some("range") {
            let mut end = None;
            // Where a range without values ends has to be found out, too.
            let values = if found.is_empty() { vec![Cow::Owned(Value::Null)] } else { found.clone() };
            for value in &values {
                let (inside, ended) = block(nodes, at + 1, value, depth + 1)?;
                end = ended;
                if !found.is_empty() {
                    all.extend(inside);
                }
            }
            at = end.unwrap_or(at);
        } else {
            all.push(found);
        }
        at += 1;
    }
    Ok((all, None))
}

fn list<'a>(nodes: &'a [Node], input: Found<'a>) -> Result<Found<'a>, String> {
    nodes.iter().try_fold(input, |found, node| walk(node, found))
}

fn walk<'a>(node: &'a Node, input: Found<'a>) -> Result<Found<'a>, String> {
    let literal = |value: Value| input.iter().map(|_| Cow::Owned(value.clone())).collect();
    match node {
        Node::Text(text) => Ok(vec![Cow::Owned(Value::from(text.as_str()))]),
        Node::Number(number) => Ok(literal(Value::Number(number.clone()))),
        Node::Bool(is_true) => Ok(literal(Value::Bool(*is_true))),
        Node::Identifier(name) if name == "range" || name == "end" => Ok(input),
        Node::Identifier(name) => Err(format!("unrecognized identifier {name}")),
        Node::List(nodes) => list(nodes, input),
        Node::Field(name) => Ok(input.into_iter().filter_map(|value| field(value, name)).collect()),
        Node::Wildcard => Ok(input.into_iter().flat_map(children).collect()),
        Node::Recursive => {
            let mut all = Vec::new();
            input.into_iter().for_each(|value| descend(value, &mut all));
            Ok(all)
        }
        Node::Array(from, to, step) => {
            let slices = input.into_iter().map(|value| slice(value, *from, *to, *step));
            Ok(slices.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        Node::Union(parts) => {
            let found = parts.iter().map(|part| list(part, input.clone()));
            Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        Node::Filter(left, right, operator) => filter(input, left, right, operator),
    }
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

/// The items of a list, the values of a map.
fn children(value: Cow<'_, Value>) -> Vec<Cow<'_, Value>> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        _ => Vec::new(),
    }
}

/// A value and all below it that hold something.
fn descend<'a>(value: Cow<'a, Value>, all: &mut Found<'a>) {
    let below = children(value.clone());
    let is_text = matches!(&*value, Value::String(text) if !text.is_empty());
    if is_text || !below.is_empty() {
        all.push(value);
    }
    below.into_iter().for_each(|value| descend(value, all));
}

fn slice<'a>(
    value: Cow<'a, Value>,
    from: Option<i64>,
    to: Bound,
    step: Option<i64>,
) -> Result<Vec<Cow<'a, Value>>, String> {
    let length = match &*value {
        Value::Array(items) => items.len() as i64,
        Value::Null => return Ok(Vec::new()),
        other => return Err(format!("{} is not array or slice", type_name(other))),
    };
    let from = from.unwrap_or(0);
    let from = if from < 0 { from + length } else { from };
    let end = to.value.unwrap_or(length);
    let end = if end < 0 || end == 0 && to.derived { end + length } else { end };
    if from == end {
        return Ok(Vec::new());
    }
    let outside = |index: i64| format!("array index out of bounds: index {index}, length {length}");
    if !(0..length).contains(&from) {
        return Err(outside(from));
    }
    if !(0..=length).contains(&end) {
        return Err(outside(end - 1));
    }
    if from > end {
        return Err(format!("starting index {from} is greater than ending index {end}"));
    }
    let step = match step {
        Some(step) if step <= 0 => return Err("step must be > 0".into()),
        step => usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX),
    };
    let (from, count) = (from as usize, (end - from) as usize);
    Ok(children(value).into_iter().skip(from).take(count).step_by(step).collect())
}

fn filter<'a>(input: Found<'a>, left: &'a [Node], right: &'a [Node], operator: &str) -> Result<Found<'a>, String> {
    let mut all = Vec::new();
    for value in input {
        if !value.is_array() {
            return Err(format!("{} is not array or slice and cannot be filtered", go_text(&value)));
        }
        for item in children(value) {
            let lefts = list(left, vec![item.clone()]);
            if operator == "exists" {
                all.extend(lefts.is_ok_and(|lefts| !lefts.is_empty()).then_some(item));
                continue;
            }
            let (Some(left), Some(right)) = (single(lefts?)?, single(list(right, vec![item.clone()])?)?) else {
                continue;
            };
            if compare(&left, operator, &right)? {
                all.push(item);
            }
        }
    }
    Ok(all)
}

fn single(mut found: Found<'_>) -> Result<Option<Cow<'_, Value>>, String> {
    if found.len() > 1 { Err("can only compare one element at a time".into()) } else { Ok(found.pop()) }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => match operator {
            "==" | "!=" => Some(left.cmp(right)),
            _ => return Err("invalid type for comparison".into()),
        },
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right)),
            _ => return Err("incompatible types for comparison".into()),
        },
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err("invalid type for comparison".into());
        }
        _ => return Err("incompatible types for comparison".into()),
    };
    match operator {
        "==" => Ok(order == Some(Ordering::Equal)),
        "!=" => Ok(order != Some(Ordering::Equal)),
        "<" => Ok(order == Some(Ordering::Less)),
        ">" => Ok(order == Some(Ordering::Greater)),
        "<=" => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        ">=" => Ok(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
        other => Err(format!("unrecognized filter operator {other}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn run(template: &str) -> String {
        let value = json!({
            "items": [
                {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, "n": 1},
                {"metadata": {"name": "b"}, "n": 2, "conditions": [{"type": "Ready", "status": "True"}]},
            ],
            "map": {"k": "<v>"},
        });
        match parse(template).and_then(|template| template.execute(&value)) {
            Ok(text) => text,
            Err(problem) => format!("! {problem}"),
        }
    }

    #[test]
    fn templates() {
        for (template, expected) in [
            ("{.items[*].metadata.name}", "a b"),
            ("{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{\"\\n\"}{end}", "a\t1\nb\t2\n"),
            ("{range .items[*]}{.n}{range .conditions[*]}={.type}{end};{end}.", "1;2=Ready;."),
            ("{range .none[*]}{.n}{end}over", "over"),
            ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "x"),
            ("{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "x"),
            ("{.items[?(@.n>1)].metadata.name}", "b"),
            ("{.items[*].conditions[?(@.type==\"Ready\")].status}", "True"),
            ("{.items[?(@.conditions)].n}", "2"),
            ("{.map}", "{\"k\":\"\\u003cv\\u003e\"}"),
            ("{..name}", "a b"),
            ("{.items[-1:].n} and {.items[0,1].n}", "2 and 1 2"),
            ("{.items[-1].n}", "2"),
            ("{.none.more}", ""),
            ("plain", "plain"),
        ] {
            assert_eq!(run(template), expected, "{template}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_client_gos_words() {
        for (template, expected) in [
            ("{.map.k", "unclosed action"),
            ("{.items[7].n}", "array index out of bounds: index 7, length 2"),
            ("{.map[0]}", "map[string]interface {} is not array or slice"),
            ("{.items[a]}", "invalid array index a"),
            ("{.items[0}", "unterminated array"),
            ("{map}", "unrecognized identifier map"),
            ("{=}", "unrecognized character in action: U+003D '='"),
            ("{end}", "not in range, nothing to end"),
            ("{.items[?(@.n==\"1\")]}", "incompatible types for comparison"),
            ("{\"open}", "unterminated quoted string"),
        ] {
            assert_eq!(run(template), format!("! {expected}"), "{template}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(template in "[{}.\\[\\]*@$?()='\"a-c0-2:,\\\\ é-]{0,24}") {
            run(&template);
        }
    }
}
