//! From nodes and a value to text. (text/template's exec)

use serde_json::Value;

use super::super::jsonpath::go_text;
use super::functions::{self, is_true};
use super::{Command, Node, Operand, Pipeline, Template, What};

/// Templates may call themselves, but not without end.
const CALLS_MAX: usize = 1000;
/// A template that writes more than this is at fault.
const BYTES_MAX: usize = 64 << 20;

pub fn execute(template: &Template, value: &Value) -> (String, Result<(), String>) {
    let mut run = Run { template, text: String::new(), variables: vec![("$".into(), value.clone())], calls: 0 };
    let outcome = run.nodes(&template.nodes, value).map(|_| ());
    (run.text, outcome)
}

/// Where it goes on after some nodes.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Run<'t> {
    template: &'t Template,
    text: String,
    variables: Vec<(String, Value)>,
    calls: usize,
}

impl Run<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<Flow, String> {
        for node in nodes {
            let flow = self.node(node, dot)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<Flow, String> {
        if self.text.len() > BYTES_MAX {
            return Err("template: output: the text is too long".into());
        }
        match node {
            Node::Text(text) => self.text.push_str(text),
            Node::Print(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    self.text.push_str(&shown(&value));
                }
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::If(pipeline, body, otherwise) | Node::With(pipeline, body, otherwise) => {
                let known = self.variables.len();
                let value = self.pipeline(pipeline, dot)?;
                let is_with = matches!(node, Node::With(..));
                let flow = match is_true(&value) {
                    true => self.nodes(body, if is_with { &value } else { dot }),
                    false => self.nodes(otherwise, dot),
                };
                self.variables.truncate(known);
                return flow;
            }
            Node::Range(pipeline, body, otherwise) => return self.range(pipeline, body, otherwise, dot),
            Node::Template(name, pipeline) => self.call(name, pipeline.as_ref(), dot)?,
        }
        Ok(Flow::On)
    }

    fn range(&mut self, pipeline: &Pipeline, body: &[Node], otherwise: &[Node], dot: &Value) -> Result<Flow, String> {
        let known = self.variables.len();
        let value = self.value(pipeline, dot)?;
        let items: Vec<(Value, Value)> = match value {
            Value::Array(items) => items.into_iter().enumerate().map(|(place, item)| (place.into(), item)).collect(),
            Value::Object(fields) => fields.into_iter().map(|(key, value)| (key.into(), value)).collect(),
            Value::Number(count) if count.is_i64() => (0..count.as_i64().unwrap_or(0).min(BYTES_MAX as i64))
                .map(|place| (place.into(), place.into()))
                .collect(),
            Value::Null => Vec::new(),
            other => {
                return Err(self.failure(first(pipeline), &format!("range can't iterate over {}", go_text(&other))));
            }
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        for (key, item) in items {
            match pipeline.variables.as_slice() {
                [one] => self.set(one, item.clone(), pipeline.assigns),
                [index, one] => {
                    self.set(index, key, pipeline.assigns);
                    self.set(one, item.clone(), pipeline.assigns);
                }
                _ => {}
            }
            let flow = self.nodes(body, &item);
            self.variables.truncate(known);
            if flow? == Flow::Break {
                break;
            }
        }
        Ok(Flow::On)
    }

    fn call(&mut self, name: &str, pipeline: Option<&Pipeline>, dot: &Value) -> Result<(), String> {
        let value = pipeline.map_or(Ok(Value::Null), |pipeline| self.pipeline(pipeline, dot))?;
        let Some((_, body)) = self.template.defined.iter().rfind(|(known, _)| known == name) else {
            return Err(format!("template: output: template {name:?} not defined"));
        };
        self.calls += 1;
        if self.calls > CALLS_MAX {
            return Err(format!("template: output: exceeded maximum template depth ({CALLS_MAX})"));
        }
        let outer = std::mem::replace(&mut self.variables, vec![("$".into(), value.clone())]);
        let outcome = self.nodes(body, &value);
        self.variables = outer;
        self.calls -= 1;
        outcome.map(|_| ())
    }

    fn set(&mut self, name: &str, value: Value, assigns: bool) {
        match self.variables.iter_mut().rfind(|(known, _)| known == name) {
            Some((_, known)) if assigns => *known = value,
            _ => self.variables.push((name.to_owned(), value)),
        }
    }

    /// The value of a pipeline, which its variable takes, too.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, String> {
        let value = self.value(pipeline, dot)?;
        if let Some(name) = pipeline.variables.first() {
            self.set(name, value.clone(), pipeline.assigns);
        }
        Ok(value)
    }

    fn value(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, String> {
        let mut last = None;
        for command in &pipeline.commands {
            last = Some(self.command(command, dot, last)?);
        }
        Ok(last.unwrap_or_default())
    }

    fn command(&mut self, command: &Command, dot: &Value, last: Option<Value>) -> Result<Value, String> {
        let Some((head, rest)) = command.operands.split_first() else { return Ok(Value::Null) };
        let What::Function(name) = &head.what else {
            if !rest.is_empty() || last.is_some() {
                return Err(self.failure(head, &format!("can't give argument to non-function {}", head.text)));
            }
            return self.operand(head, dot);
        };
        // These two look no further than they must.
        if name == "and" || name == "or" {
            let mut found = None;
            for operand in rest {
                let value = self.operand(operand, dot)?;
                let decides = is_true(&value) == (name == "or");
                found = Some(value);
                if decides {
                    return Ok(found.unwrap_or_default());
                }
            }
            let missing = || self.failure(head, &format!("wrong number of args for {name}: want at least 1 got 0"));
            return last.or(found).ok_or_else(missing);
        }
        let mut arguments = rest.iter().map(|operand| self.operand(operand, dot)).collect::<Result<Vec<_>, _>>()?;
        arguments.extend(last);
        functions::call(name, &arguments).map_err(|problem| {
            let text: Vec<&str> = command.operands.iter().map(|operand| operand.text.as_str()).collect();
            self.failure_at(head.at, &text.join(" "), &problem)
        })
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        let value = match &operand.what {
            What::Dot => return self.fields(dot, operand),
            What::Nil => Value::Null,
            What::Bool(is_true) => (*is_true).into(),
            What::Number(number) => Value::Number(number.clone()),
            What::Text(text) => text.as_str().into(),
            What::Variable(name) => {
                let known = self.variables.iter().rfind(|(known, _)| known == name);
                known.map(|(_, value)| value.clone()).unwrap_or_default()
            }
            What::Function(_) => {
                let alone = Command { operands: vec![Operand { fields: Vec::new(), ..operand.clone() }] };
                self.command(&alone, dot, None)?
            }
            What::Pipeline(pipeline) => {
                let known = self.variables.len();
                let value = self.pipeline(pipeline, dot)?;
                self.variables.truncate(known);
                value
            }
        };
        self.fields(&value, operand)
    }

    /// The fields behind an operand, one of the other.
    fn fields(&self, value: &Value, operand: &Operand) -> Result<Value, String> {
        let mut found = Some(value);
        for (place, field) in operand.fields.iter().enumerate() {
            found = match found {
                // A field of what is not there is not there.
                None => None,
                Some(Value::Object(fields)) => fields.get(field),
                Some(Value::Null) if place == 0 => None,
                Some(Value::Null) => {
                    return Err(self.failure(operand, &format!("nil pointer evaluating interface {{}}.{field}")));
                }
                Some(_) => {
                    return Err(self.failure(operand, &format!("can't evaluate field {field} in type interface {{}}")));
                }
            };
        }
        Ok(found.cloned().unwrap_or_default())
    }

    fn failure(&self, operand: &Operand, problem: &str) -> String {
        self.failure_at(operand.at, &operand.text, problem)
    }

    fn failure_at(&self, at: usize, text: &str, problem: &str) -> String {
        let before = self.template.source.get(..at).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let column = before.rfind('\n').map_or(at, |newline| at - newline - 1);
        format!("template: output:{line}:{column}: executing \"output\" at <{text}>: {problem}")
    }
}

fn first(pipeline: &Pipeline) -> &Operand {
    &pipeline.commands[0].operands[0]
}

/// A value as an action prints it.
fn shown(value: &Value) -> String {
    if value.is_null() { "<no value>".into() } else { go_text(value) }
}
