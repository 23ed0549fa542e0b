//! Templates of JSONPath, as kubectl has them.
//! <https://kubernetes.io/docs/reference/kubectl/jsonpath/>

use serde_json::Value;

/// A template: text with paths, ranges and literals in braces.
#[derive(Clone, Debug)]
pub struct Template {
    pub source: String,
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Text(String),
    Path(Vec<Step>),
    Range(Vec<Step>, Vec<Node>),
}

#[derive(Clone, Debug)]
enum Step {
    /// `$`
    Root,
    Field(String),
    /// `..`
    Descend,
    /// `*`, of a list or a map.
    Any,
    /// `[1:3]`, `[-1]`, as Go slices: from, to, step.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    Union(Vec<Vec<Step>>),
    Filter(Operand, Option<(String, Operand)>),
}

#[derive(Clone, Debug)]
enum Operand {
    Path(Vec<Step>),
    Value(Value),
}

pub fn parse(text: &str) -> Result<Template, String> {
    let mut rest = text;
    let mut open: Vec<(Vec<Step>, Vec<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    while !rest.is_empty() {
        let Some(start) = rest.find('{') else {
            nodes.push(Node::Text(rest.to_owned()));
            break;
        };
        if start > 0 {
            nodes.push(Node::Text(rest[..start].to_owned()));
        }
        let end = closing(&rest[start..], '{', '}').ok_or("unclosed action")? + start;
        let action = rest[start + 1..end].trim();
        rest = &rest[end + 1..];
        if action == "end" {
            let (path, outer) = open.pop().ok_or("not in range, nothing to end")?;
            let body = std::mem::replace(&mut nodes, outer);
            nodes.push(Node::Range(path, body));
        } else if let Some(path) = action.strip_prefix("range ") {
            open.push((steps(path.trim())?, std::mem::take(&mut nodes)));
        } else {
            parts(action, &mut nodes)?;
        }
    }
    if !open.is_empty() {
        return Err("unterminated range, expected {end}".into());
    }
    Ok(Template { source: text.to_owned(), nodes })
}

/// The place of the bracket that closes the one at the start, outside of quotes.
fn closing(text: &str, opening: char, closing: char) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match quote {
            Some(_) if letter == '\\' => {
                letters.next();
            }
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == opening => depth += 1,
            None if letter == closing => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            None => {}
        }
    }
    None
}

/// The inside of braces: literals and paths, one behind the other.
fn parts(action: &str, nodes: &mut Vec<Node>) -> Result<(), String> {
    let mut rest = action.trim();
    while !rest.is_empty() {
        if let Some(quote) = rest.chars().next().filter(|letter| matches!(letter, '"' | '\'')) {
            let end = end_of_quote(rest, quote).ok_or("unterminated quoted string")?;
            nodes.push(Node::Text(unquote(&rest[1..end])));
            rest = rest[end + 1..].trim_start();
        } else {
            let end = end_of_path(rest);
            nodes.push(Node::Path(steps(&rest[..end])?));
            rest = rest[end..].trim_start();
        }
    }
    Ok(())
}

fn end_of_quote(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            letter if letter == quote => return Some(index),
            _ => {}
        }
    }
    None
}

fn unquote(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}

fn end_of_path(text: &str) -> usize {
    let mut index = 0;
    while let Some(letter) = text[index..].chars().next() {
        match letter {
            '[' => match closing(&text[index..], '[', ']') {
                Some(end) => index += end + 1,
                None => return text.len(),
            },
            '\\' => index += 1 + text[index + 1..].chars().next().map_or(0, char::len_utf8),
            ' ' | '"' | '\'' => return index,
            other => index += other.len_utf8(),
        }
    }
    text.len()
}

fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path.trim();
    if !rest.starts_with(['.', '[', '$', '@']) {
        return Err(format!("unrecognized identifier {rest}"));
    }
    while let Some(letter) = rest.chars().next() {
        match letter {
            '$' => {
                steps.push(Step::Root);
                rest = &rest[1..];
            }
            '@' => rest = &rest[1..],
            '[' => {
                let end = closing(rest, '[', ']').ok_or("unterminated array")?;
                steps.push(bracket(rest[1..end].trim())?);
                rest = &rest[end + 1..];
            }
            _ => {
                if let Some(tail) = rest.strip_prefix("..") {
                    steps.push(Step::Descend);
                    rest = tail;
                } else {
                    rest = rest.strip_prefix('.').unwrap_or(rest);
                }
                let (name, tail) = field(rest);
                rest = tail;
                match name.as_str() {
                    "" => {}
                    "*" => steps.push(Step::Any),
                    _ => steps.push(Step::Field(name)),
                }
                if rest.starts_with(|letter: char| !matches!(letter, '.' | '[')) {
                    return Err(format!("unrecognized character in action: {:?}", rest.chars().next().unwrap_or(' ')));
                }
            }
        }
    }
    Ok(steps)
}

/// A field's name up to the next `.` or `[`; `\.` is a dot in a name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            '.' | '[' | ' ' | '$' | '@' | ']' | '(' | ')' | '=' | '<' | '>' | '!' | ',' => {
                return (name, &text[index..]);
            }
            other => name.push(other),
        }
    }
    (name, "")
}

fn bracket(inside: &str) -> Result<Step, String> {
    if let Some(filter) = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        return parse_filter(filter.trim());
    }
    let parts = split_outside_quotes(inside, ',');
    if parts.len() > 1 {
        let each = parts.iter().map(|part| Ok(vec![bracket(part.trim())?])).collect::<Result<_, String>>()?;
        return Ok(Step::Union(each));
    }
    if inside == "*" {
        return Ok(Step::Any);
    }
    if let Some(quote) = inside.chars().next().filter(|letter| matches!(letter, '"' | '\''))
        && inside.len() >= 2
        && inside.ends_with(quote)
    {
        return Ok(Step::Field(unquote(&inside[1..inside.len() - 1])));
    }
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("invalid array index {inside}"));
    let bounds: Vec<&str> = inside.split(':').collect();
    let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    match bounds.as_slice() {
        [index] => number(index).map(Step::Index),
        [from, to] => Ok(Step::Slice(bound(from)?, bound(to)?, 1)),
        [from, to, step] => match bound(step)?.unwrap_or(1) {
            step if step > 0 => Ok(Step::Slice(bound(from)?, bound(to)?, step)),
            _ => Err("step must be > 0".into()),
        },
        _ => Err(format!("invalid array index {inside}")),
    }
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (index, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == separator => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            None => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_filter(text: &str) -> Result<Step, String> {
    for operator in ["==", "!=", "<=", ">=", "<", ">"] {
        let mut quote = None;
        for (index, letter) in text.char_indices() {
            match quote {
                Some(open) if letter == open => quote = None,
                Some(_) => {}
                None if letter == '"' || letter == '\'' => quote = Some(letter),
                None if text[index..].starts_with(operator) => {
                    let right = operand(text[index + operator.len()..].trim())?;
                    return Ok(Step::Filter(operand(text[..index].trim())?, Some((operator.to_owned(), right))));
                }
                None => {}
            }
        }
    }
    Ok(Step::Filter(operand(text)?, None))
}

fn operand(text: &str) -> Result<Operand, String> {
    if text.starts_with(['@', '$', '.']) {
        return steps(text).map(Operand::Path);
    }
    if text.len() >= 2 && text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']) {
        return Ok(Operand::Value(unquote(&text[1..text.len() - 1]).into()));
    }
    match text {
        "true" => Ok(Operand::Value(true.into())),
        "false" => Ok(Operand::Value(false.into())),
        _ => serde_json::from_str(text)
            .map(Operand::Value)
            .map_err(|_| format!("unrecognized character in filter {text}")),
    }
}

impl Template {
    /// The text that it makes of a value. Fields that are not there make nothing.
    pub fn execute(&self, value: &Value) -> Result<String, String> {
        let mut text = String::new();
        execute(&self.nodes, value, value, &mut text)?;
        Ok(text)
    }

    /// The values that its paths find.
    pub fn values(&self, value: &Value) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        for node in &self.nodes {
            if let Node::Path(steps) = node {
                all.extend(find(steps, value, value)?.into_iter().cloned());
            }
        }
        Ok(all)
    }
}

fn execute(nodes: &[Node], value: &Value, root: &Value, text: &mut String) -> Result<(), String> {
    for node in nodes {
        match node {
            Node::Text(literal) => text.push_str(literal),
            Node::Path(steps) => {
                let found: Vec<String> = find(steps, value, root)?.into_iter().map(printed).collect();
                text.push_str(&found.join(" "));
            }
            Node::Range(steps, body) => {
                for item in find(steps, value, root)? {
                    match item {
                        Value::Array(items)
                            if !matches!(steps.last(), Some(Step::Any | Step::Slice(..) | Step::Filter(..))) =>
                        {
                            for item in items {
                                execute(body, item, root, text)?;
                            }
                        }
                        item => execute(body, item, root, text)?,
                    }
                }
            }
        }
    }
    Ok(())
}

/// A value as `-o jsonpath` prints it: text bare, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => super::output::json_line(other),
    }
}

/// A value as Go prints it: `map[app:web]`, `[a b]`, `<nil>`.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(field, value)| format!("{field}:{}", go_text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

fn find<'a>(steps: &[Step], value: &'a Value, root: &'a Value) -> Result<Vec<&'a Value>, String> {
    let mut found = vec![value];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            take(step, value, root, &mut next)?;
        }
        found = next;
    }
    Ok(found)
}

fn take<'a>(step: &Step, value: &'a Value, root: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), String> {
    match step {
        Step::Root => found.push(root),
        Step::Field(name) => found.extend(value.get(name)),
        Step::Any => match value {
            Value::Array(items) => found.extend(items),
            Value::Object(fields) => found.extend(fields.values()),
            _ => {}
        },
        Step::Descend => descend(value, found),
        Step::Index(index) => {
            if let Value::Array(items) = value {
                let place = if *index < 0 { index + items.len() as i64 } else { *index };
                let item = usize::try_from(place).ok().and_then(|place| items.get(place));
                found.push(
                    item.ok_or_else(|| format!("array index out of bounds: index {index}, length {}", items.len()))?,
                );
            } else if !value.is_null() {
                return Err(format!("{} is not array or slice", go_text(value)));
            }
        }
        Step::Slice(from, to, step) => {
            if let Value::Array(items) = value {
                let count = items.len() as i64;
                let place = |bound: i64| (if bound < 0 { bound + count } else { bound }).clamp(0, count) as usize;
                let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(count)));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                found.extend(items.iter().take(to).skip(from).step_by(step));
            }
        }
        Step::Union(all) => {
            for steps in all {
                found.extend(find(steps, value, root)?);
            }
        }
        Step::Filter(left, right) => {
            if let Value::Array(items) = value {
                for item in items {
                    if holds(left, right.as_ref(), item, root) {
                        found.push(item);
                    }
                }
            }
        }
    }
    Ok(())
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| descend(value, found)),
        _ => {}
    }
}

fn holds(left: &Operand, right: Option<&(String, Operand)>, item: &Value, root: &Value) -> bool {
    let first = |operand: &Operand| match operand {
        Operand::Value(value) => Some(value.clone()),
        Operand::Path(steps) => find(steps, item, root).ok()?.first().copied().cloned(),
    };
    let Some(left) = first(left) else { return false };
    let Some((operator, right)) = right else { return true };
    let Some(right) = first(right) else { return false };
    let order = match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.partial_cmp(&right),
        _ => go_text(&left).partial_cmp(&go_text(&right)),
    };
    use std::cmp::Ordering::{Equal, Greater, Less};
    match operator.as_str() {
        "==" => order == Some(Equal),
        "!=" => order != Some(Equal),
        "<" => order == Some(Less),
        ">" => order == Some(Greater),
        "<=" => matches!(order, Some(Less | Equal)),
        _ => matches!(order, Some(Greater | Equal)),
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
            ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "x"),
            ("{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}", "x"),
            ("{.items[?(@.n>1)].metadata.name}", "b"),
            ("{.items[*].conditions[?(@.type==\"Ready\")].status}", "True"),
            ("{.map}", "{\"k\":\"\\u003cv\\u003e\"}"),
            ("{..name}", "a b"),
            ("{.items[-1:].n} and {.items[0,1].n}", "2 and 1 2"),
            ("{.none.more}", ""),
            ("{.map.k", "! unclosed action"),
            ("{.items[7].n}", "! array index out of bounds: index 7, length 2"),
        ] {
            assert_eq!(run(template), expected, "{template}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(template in "[{}.\\[\\]*@$?()='\"a-c0-2:,\\\\ é-]{0,24}") {
            run(&template);
        }
    }
}
