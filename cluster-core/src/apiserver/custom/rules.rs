//! `x-kubernetes-validations`: rules in CEL about a value, and about how it may change.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use serde_json::Value;

use super::schema::{Additional, Schema};
use super::values::old_item;
use crate::api::status::Cause;
use crate::apiserver::cel::types::Type;
use crate::apiserver::cel::value::Value as Computed;
use crate::apiserver::cel::{self, Budget, Environment, Error, Program};
use crate::apiserver::validation::field::{Causes, Path};

const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The rules of one place of a schema.
#[derive(Debug, Default)]
pub struct Rules {
    pub rules: Vec<Rule>,
    /// There are rules here or below.
    pub anywhere: bool,
}

#[derive(Debug)]
pub struct Rule {
    pub written: ValidationRule,
    /// The text is what is wrong with the expression.
    pub program: Result<Program, String>,
    pub message: Option<Result<Program, String>>,
    /// It speaks of a change: there must be an old value.
    pub is_transition: bool,
}

impl Rules {
    pub fn written(rules: Vec<ValidationRule>) -> Rules {
        let not_yet = || Err("not compiled".to_owned());
        let rule = |written| Rule { written, program: not_yet(), message: None, is_transition: false };
        Rules { rules: rules.into_iter().map(rule).collect(), anywhere: false }
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Compiles the rules for values of a type.
    pub fn compile(&mut self, of: Option<Type>) {
        for rule in &mut self.rules {
            rule.compile(of.clone());
        }
    }
}

impl Rule {
    fn compile(&mut self, of: Option<Type>) {
        let Some(of) = of else { return };
        let old = match self.written.optional_old_self {
            Some(_) => Type::optional(of.clone()),
            None => of.clone(),
        };
        let environment = Environment::new(vec![("self", of), ("oldSelf", old)]);
        let returns = |program: Program, wanted: Type, problem: &str| match program.result {
            ref found if *found == wanted => Ok(program),
            _ => Err(problem.to_owned()),
        };
        let compiled = |source: &str| {
            cel::compile(source.trim(), &environment).map_err(|error| format!("compilation failed: {error}"))
        };
        self.program = compiled(&self.written.rule)
            .and_then(|program| returns(program, Type::Bool, "cel expression must evaluate to a bool"));
        self.message = self.written.message_expression.as_ref().map(|source| {
            compiled(source)
                .and_then(|program| returns(program, Type::String, "messageExpression must evaluate to a string"))
        });
        self.is_transition = self.program.as_ref().is_ok_and(|program| program.names("oldSelf"));
    }

    fn text(&self) -> &str {
        match self.written.message.as_deref() {
            Some(message) if !message.is_empty() => message.trim(),
            _ => self.written.rule.trim(),
        }
    }

    /// What a broken rule says.
    fn told(&self, bindings: &[(&str, Computed); 2], budget: &Budget) -> String {
        if let Some(Ok(program)) = &self.message
            && let Ok(Computed::String(text)) = program.evaluate(bindings, budget)
        {
            let text = text.trim();
            if !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_BYTES_MAX {
                return text.to_owned();
            }
        }
        match self.written.message.as_deref() {
            Some(message) if !message.is_empty() => message.trim().to_owned(),
            _ => format!("failed rule: {}", self.written.rule.trim()),
        }
    }
}

/// Checks the rules of a resource and of all of its parts. `old` is what it was before, if it was there.
pub fn validate(value: &Value, old: Option<&Value>, schema: &Schema, causes: &mut Causes) {
    let mut checking = Checking { budget: Budget::default(), is_over: false };
    checking.check(value, old, old.is_some(), schema, &Path::default(), true, causes);
}

struct Checking {
    budget: Budget,
    /// The budget is spent: no more rules.
    is_over: bool,
}

impl Checking {
    /// `comparable`: the place is one that can be found in the old object, if it was there.
    #[allow(clippy::too_many_arguments)]
    fn check(
        &mut self,
        value: &Value,
        old: Option<&Value>,
        comparable: bool,
        schema: &Schema,
        path: &Path,
        whole: bool,
        causes: &mut Causes,
    ) {
        if !schema.rules.anywhere || self.is_over {
            return;
        }
        if !schema.rules.is_empty() && !value.is_null() {
            self.check_rules(value, old, schema, path, whole, causes);
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let old = old.filter(|_| comparable).and_then(|old| old.get(name));
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(schema), _) => {
                            self.check(field, old, comparable, schema, &path.child(name), false, causes)
                        }
                        (None, Additional::Of(schema)) => {
                            self.check(field, old, comparable, schema, &path.key(name), false, causes);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema_of_item) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        let old = old_item(old.filter(|_| comparable), item, &schema.merge);
                        self.check(item, old, comparable, schema_of_item, &path.index(index), false, causes);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_rules(
        &mut self,
        value: &Value,
        old: Option<&Value>,
        schema: &Schema,
        path: &Path,
        whole: bool,
        causes: &mut Causes,
    ) {
        let computed = schema.expression_value(value, whole);
        let computed_old = old.map(|old| schema.expression_value(old, whole));
        let shown = (!value.is_object() && !value.is_array()).then_some(value);
        for rule in &schema.rules.rules {
            let optional = rule.written.optional_old_self.is_some();
            if rule.is_transition && old.is_none() && !optional {
                continue;
            }
            // What has not changed may go on breaking rules that do not speak of changes.
            if !rule.is_transition && old == Some(value) {
                continue;
            }
            let program = match &rule.program {
                Ok(program) => program,
                Err(error) => {
                    causes.push(invalid(path, shown, &format!("rule compile error: {error}")));
                    continue;
                }
            };
            let old_self = match (&computed_old, optional) {
                (old, true) => old.clone().into(),
                (Some(old), false) => old.clone(),
                (None, false) => Computed::Null,
            };
            let bindings = [("self", computed.clone()), ("oldSelf", old_self)];
            match program.evaluate(&bindings, &self.budget) {
                Ok(Computed::Bool(true)) => {}
                Ok(_) => {
                    let detail = rule.told(&bindings, &self.budget);
                    causes.push(rule.cause(path, shown, &detail));
                }
                Err(error @ Error::OutOfBudget) => {
                    self.is_over = true;
                    let detail = format!("{error}, no further validation rules will be run");
                    causes.push(invalid(path, shown, &detail));
                    return;
                }
                Err(error @ Error::CostExceeded) => {
                    self.is_over = true;
                    let detail = format!(
                        "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.text()
                    );
                    causes.push(invalid(path, shown, &detail));
                    return;
                }
                Err(Error::Failed(error)) if error.starts_with("no such overload") => {
                    let detail = format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        rule.text()
                    );
                    causes.push(invalid(path, shown, &detail));
                }
                Err(Error::Failed(error)) => {
                    causes.push(invalid(path, shown, &format!("{error} evaluating rule: {}", rule.text())));
                }
            }
        }
    }
}

impl Rule {
    fn cause(&self, path: &Path, value: Option<&Value>, detail: &str) -> Cause {
        let path = &match self.written.field_path.as_deref().and_then(field_path) {
            Some(steps) => steps.iter().fold(path.clone(), |path, step| match step {
                Step::Field(name) => path.child(name),
                Step::Key(name) => path.key(name),
            }),
            None => path.clone(),
        };
        match self.written.reason.as_deref() {
            Some("FieldValueForbidden") => Cause::forbidden(path, detail),
            Some("FieldValueRequired") => Cause::required(path, detail),
            Some("FieldValueDuplicate") => match value {
                Some(value) => Cause::duplicate(path, value.clone()),
                None => Cause {
                    reason: "FieldValueDuplicate",
                    message: "Duplicate value".to_owned(),
                    field: path.to_string(),
                },
            },
            _ => invalid(path, value, detail),
        }
    }
}

/// Objects and lists are not shown.
fn invalid(path: &Path, value: Option<&Value>, detail: &str) -> Cause {
    match value {
        Some(value) => Cause::invalid(path, value.clone(), detail),
        None => {
            Cause { reason: "FieldValueInvalid", message: format!("Invalid value: {detail}"), field: path.to_string() }
        }
    }
}

#[derive(Debug, PartialEq)]
pub enum Step {
    Field(String),
    Key(String),
}

/// Reads where a rule puts its message: `.spec.max`, `.labels['a.b']`; `None` if it is no such path.
pub fn field_path(text: &str) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let (name, tail) = quoted.split_once("']")?;
            steps.push(if steps.is_empty() { Step::Field(name.to_owned()) } else { Step::Key(name.to_owned()) });
            rest = tail;
        } else {
            let name = rest.strip_prefix('.')?;
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Field(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn told(schema: Value, value: Value, old: Option<Value>) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let schema = Schema::of_resource(&from_value(schema).unwrap());
        let mut causes = Causes::new();
        let old = old.map(|old| json!({"spec": old}));
        validate(&json!({"spec": value}), old.as_ref(), &schema, &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn broken_rules_say_which_and_where() {
        let schema = json!({"type": "object", "x-kubernetes-validations": [
            {"rule": "self.min <= self.max", "message": "min must not be above max"},
            {"rule": "self.max < 100", "messageExpression": "'too much: ' + string(self.max)", "reason": "FieldValueForbidden", "fieldPath": ".max"},
            {"rule": "!has(self.port) || self.port != 1"},
        ], "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer"}, "port": {"x-kubernetes-int-or-string": true},
            "a-b": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() > 1"}]},
            "tags": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]}},
        }});
        assert_eq!(
            told(schema.clone(), json!({"min": 1, "max": 2, "port": "http", "a-b": "ok"}), None),
            Vec::<String>::new()
        );
        assert_eq!(
            told(schema, json!({"min": 600, "max": 500, "port": 1, "a-b": "x", "tags": ["a", "x"]}), None),
            [
                "spec: Invalid value: min must not be above max",
                "spec.max: Forbidden: too much: 500",
                "spec: Invalid value: failed rule: !has(self.port) || self.port != 1",
                "spec.a-b: Invalid value: \"x\": failed rule: self.size() > 1",
                "spec.tags[1]: Invalid value: \"x\": failed rule: self != 'x'",
            ]
        );
    }

    #[test]
    fn rules_about_changes_need_an_old_value() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "id is immutable"}]},
            "phase": {"type": "string", "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": true, "message": "must start as new"}]},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                "type": "object", "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n"}],
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
        }});
        let check = |new: Value, old: Option<Value>| told(schema.clone(), new, old);
        assert_eq!(check(json!({"phase": "old"}), None), ["spec.phase: Invalid value: \"old\": must start as new"]);
        assert_eq!(check(json!({"id": "a", "phase": "new"}), None), Vec::<String>::new());
        assert_eq!(
            check(json!({"id": "b"}), Some(json!({"id": "a"}))),
            ["spec.id: Invalid value: \"b\": id is immutable"]
        );
        assert_eq!(check(json!({"id": "b"}), Some(json!({}))), Vec::<String>::new());
        let ports = |a: i64, b: i64| json!({"ports": [{"name": "b", "n": b}, {"name": "a", "n": a}]});
        assert_eq!(
            check(ports(1, 5), Some(json!({"ports": [{"name": "a", "n": 2}, {"name": "b", "n": 5}]}))),
            ["spec.ports[1]: Invalid value: failed rule: self.n >= oldSelf.n"]
        );
    }

    #[test]
    fn paths_of_messages() {
        let field = |name: &str| Step::Field(name.to_owned());
        assert_eq!(field_path(".spec.max"), Some(vec![field("spec"), field("max")]));
        assert_eq!(field_path(".labels['a.b']"), Some(vec![field("labels"), Step::Key("a.b".to_owned())]));
        for wrong in ["", "spec", "..a", ".a[0]"] {
            assert_eq!(field_path(wrong), None, "{wrong}");
        }
    }
}
