//! The types of an expression's parts, and what does not fit. The texts are cel-go's.
//! <https://github.com/google/cel-spec/blob/master/doc/langdef.md#gradual-type-checking>

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};
use cel::parser::Expression;

use super::Environment;
use super::library;
use super::types::{Overload, Type};

/// What is wrong, and with which part.
pub(super) struct Problem {
    pub expression: u64,
    pub message: String,
}

/// The type of the whole, and everything that is wrong.
pub(super) fn check(expression: &Expression, environment: &Environment<'_>) -> (Type, Vec<Problem>) {
    let mut checker = Checker { environment, scopes: Vec::new(), variables: Vec::new(), problems: Vec::new() };
    let found = checker.check(expression);
    let found = checker.applied(&found);
    (found, checker.problems)
}

struct Checker<'a> {
    environment: &'a Environment<'a>,
    /// Variables of the loops around the part that is looked at.
    scopes: Vec<(&'a str, Type)>,
    /// What type variables have turned out to be.
    variables: Vec<Option<Type>>,
    problems: Vec<Problem>,
}

/// Types that expressions can name.
const TYPE_NAMES: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("list", Type::Dyn),
    ("map", Type::Dyn),
    ("null_type", Type::Null),
    ("type", Type::Dyn),
    ("optional_type", Type::Dyn),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("google.protobuf.Duration", Type::Duration),
    ("kubernetes.Quantity", Type::Opaque("kubernetes.Quantity")),
    ("kubernetes.URL", Type::Opaque("kubernetes.URL")),
    ("kubernetes.Semver", Type::Opaque("kubernetes.Semver")),
    ("net.IP", Type::Opaque("net.IP")),
    ("net.CIDR", Type::Opaque("net.CIDR")),
];

/// The type that a name stands for.
pub(super) fn named_type(name: &str) -> Option<&'static str> {
    TYPE_NAMES.iter().find(|(known, _)| *known == name).map(|(known, _)| *known)
}

/// `a.b.c`, if that is all that the expression is.
pub(super) fn qualified_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified_name(&select.operand.expr)?, select.field))
        }
        _ => None,
    }
}

impl<'a> Checker<'a> {
    fn problem(&mut self, expression: u64, message: String) -> Type {
        self.problems.push(Problem { expression, message });
        Type::Dyn
    }

    fn check(&mut self, expression: &'a Expression) -> Type {
        match &expression.expr {
            Expr::Unspecified => Type::Dyn,
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => match self.named(name) {
                Some(found) => found,
                None => self.undeclared(expression.id, name),
            },
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut items = Vec::new();
                for (index, element) in list.elements.iter().enumerate() {
                    let found = self.check(element);
                    let found = match self.applied(&found) {
                        Type::Optional(of) if list.optional_indices.contains(&index) => (*of).clone(),
                        found => found,
                    };
                    items.push((element.id, found));
                }
                Type::list(self.one_type(items))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push((entry.key.id, self.check(&entry.key)));
                        let value = self.check(&entry.value);
                        values.push((entry.value.id, value));
                    }
                }
                Type::Map(Arc::new(self.one_type(keys)), Arc::new(self.one_type(values)))
            }
            Expr::Struct(made) => {
                let name = made.type_name.as_str();
                let Some(found) = (self.environment.message)(name) else {
                    return self.undeclared(expression.id, name);
                };
                for entry in &made.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        let given = self.check(&field.value);
                        match self.field(&found, &field.field) {
                            None => {
                                self.problem(entry.id, format!("undefined field '{}'", field.field));
                            }
                            Some(wanted) if !self.unify(&wanted, &given) => {
                                let given = self.applied(&given);
                                let message = format!(
                                    "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                                    field.field
                                );
                                self.problem(entry.id, message);
                            }
                            Some(_) => {}
                        }
                    }
                }
                found
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn undeclared(&mut self, expression: u64, name: &str) -> Type {
        self.problem(expression, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn named(&self, name: &str) -> Option<Type> {
        let scoped = self.scopes.iter().rev().find(|(known, _)| *known == name).map(|(_, of)| of.clone());
        let of_type =
            || TYPE_NAMES.iter().find(|(known, _)| *known == name).map(|(_, of)| Type::Kind(Arc::new(of.clone())));
        scoped.or_else(|| self.environment.variable(name).cloned()).or_else(of_type)
    }

    /// All items have one type, or any does.
    fn one_type(&mut self, items: Vec<(u64, Type)>) -> Type {
        let mut items = items.into_iter();
        let Some((_, first)) = items.next() else { return self.fresh() };
        for (id, other) in items {
            if !self.unify(&first, &other) {
                let (first, other) = (self.applied(&first), self.applied(&other));
                self.problem(id, format!("expected type '{first}' but found '{other}'"));
            }
        }
        self.applied(&first)
    }

    fn field(&self, of: &Type, name: &str) -> Option<Type> {
        match of {
            Type::Object(object) => object.fields.get(name).cloned(),
            _ => Some(Type::Dyn),
        }
    }

    fn select(&mut self, expression: &'a Expression, select: &'a SelectExpr) -> Type {
        if let Some(found) = qualified_name(&expression.expr).and_then(|name| self.named(&name)) {
            return found;
        }
        let operand = self.check(&select.operand);
        let found = self.selected(expression.id, &operand, &select.field);
        if select.test { Type::Bool } else { found }
    }

    fn selected(&mut self, id: u64, operand: &Type, field: &str) -> Type {
        match self.applied(operand) {
            Type::Optional(of) => match self.selected(id, &of, field) {
                found @ Type::Optional(_) => found,
                found => Type::optional(found),
            },
            Type::Map(_, value) => (*value).clone(),
            Type::Dyn | Type::Variable(_) => Type::Dyn,
            Type::Object(object) => match object.fields.get(field) {
                Some(found) => found.clone(),
                None => self.problem(id, format!("undefined field '{field}'")),
            },
            other => self.problem(id, format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, expression: &'a Expression, call: &'a CallExpr) -> Type {
        if call.func_name == operators::OPT_SELECT
            && let [operand, field] = call.args.as_slice()
        {
            let operand = self.check(operand);
            let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                return self.problem(field.id, "unsupported optional field selection".to_owned());
            };
            return match self.selected(expression.id, &operand, field.inner()) {
                found @ Type::Optional(_) => found,
                found => Type::optional(found),
            };
        }
        let mut name = call.func_name.clone();
        let mut member = false;
        let mut arguments = Vec::new();
        if let Some(target) = &call.target {
            let qualified = qualified_name(&target.expr).map(|target| format!("{target}.{name}"));
            match qualified.filter(|qualified| !library::overloads(qualified).is_empty()) {
                Some(qualified) => name = qualified,
                None => {
                    member = true;
                    arguments.push(self.check(target));
                }
            }
        }
        for argument in &call.args {
            let found = self.check(argument);
            arguments.push(found);
        }
        let overloads = library::overloads(&name);
        if overloads.is_empty() {
            return self.undeclared(expression.id, &name);
        }
        match self.result_of(overloads, member, &arguments) {
            Some(found) => found,
            None => {
                let shown: Vec<String> = arguments.iter().map(|argument| self.applied(argument).to_string()).collect();
                let shown = match shown.split_first() {
                    Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
                    _ => format!("({})", shown.join(", ")),
                };
                self.problem(expression.id, format!("found no matching overload for '{name}' applied to '{shown}'"))
            }
        }
    }

    /// The result of the overloads that fit; any type if they differ.
    fn result_of(&mut self, overloads: &'static [Overload], member: bool, arguments: &[Type]) -> Option<Type> {
        let mut found: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            if overload.arguments.len() != arguments.len() {
                continue;
            }
            let before = self.variables.clone();
            let base = self.variables.len();
            self.variables.extend([None, None]);
            let mut wanted = overload.arguments.iter().map(|argument| instance(argument, base));
            if !arguments.iter().all(|argument| wanted.next().is_some_and(|wanted| self.unify(&wanted, argument))) {
                self.variables = before;
                continue;
            }
            let result = self.applied(&instance(&overload.result, base));
            found = match found {
                Some(known) if known != result => Some(Type::Dyn),
                _ => Some(result),
            };
        }
        found
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Type {
        let range = self.check(&comprehension.iter_range);
        let (key, value) = match self.applied(&range) {
            Type::List(item) => (Type::Int, (*item).clone()),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            Type::Dyn | Type::Variable(_) => (Type::Dyn, Type::Dyn),
            other => {
                let id = comprehension.iter_range.id;
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.problem(id, message);
                (Type::Dyn, Type::Dyn)
            }
        };
        let accumulated = self.check(&comprehension.accu_init);
        let depth = self.scopes.len();
        self.scopes.push((&comprehension.accu_var, accumulated.clone()));
        match (&comprehension.iter_var2, self.applied(&range)) {
            (Some(second), _) => {
                self.scopes.push((&comprehension.iter_var, key));
                self.scopes.push((second, value));
            }
            (None, Type::Map(key, _)) => self.scopes.push((&comprehension.iter_var, (*key).clone())),
            (None, _) => self.scopes.push((&comprehension.iter_var, value)),
        }
        for (part, wanted) in [(&comprehension.loop_cond, Type::Bool), (&comprehension.loop_step, accumulated)] {
            let found = self.check(part);
            if !self.unify(&wanted, &found) {
                let (wanted, found) = (self.applied(&wanted), self.applied(&found));
                self.problem(part.id, format!("expected type '{wanted}' but found '{found}'"));
            }
        }
        self.scopes.truncate(depth + 1);
        let result = self.check(&comprehension.result);
        self.scopes.truncate(depth);
        self.applied(&result)
    }

    fn fresh(&mut self) -> Type {
        self.variables.push(None);
        Type::Variable(self.variables.len() - 1)
    }

    /// The type with everything filled in that is known of its variables.
    fn applied(&self, of: &Type) -> Type {
        match of {
            Type::Variable(number) => match self.variables.get(*number) {
                Some(Some(known)) => self.applied(known),
                _ => of.clone(),
            },
            Type::List(item) => Type::list(self.applied(item)),
            Type::Map(key, value) => Type::Map(Arc::new(self.applied(key)), Arc::new(self.applied(value))),
            Type::Optional(of) => Type::optional(self.applied(of)),
            Type::Kind(of) => Type::Kind(Arc::new(self.applied(of))),
            other => other.clone(),
        }
    }

    /// A value of the type `given` is one of the type `wanted`.
    fn unify(&mut self, wanted: &Type, given: &Type) -> bool {
        match (self.applied(wanted), self.applied(given)) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (Type::Variable(number), other) | (other, Type::Variable(number)) => {
                let free = !mentions(&other, number);
                if free {
                    self.variables[number] = Some(other);
                }
                free
            }
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.unify(&a, &b),
            // Two types compare, whichever they are.
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::Map(key_a, a), Type::Map(key_b, b)) => self.unify(&key_a, &key_b) && self.unify(&a, &b),
            (Type::Null, Type::Object(_) | Type::Opaque(_) | Type::Timestamp | Type::Duration) => true,
            (Type::Object(_) | Type::Opaque(_) | Type::Timestamp | Type::Duration, Type::Null) => true,
            (a, b) => a == b,
        }
    }
}

/// A type of a signature with variables of its own.
fn instance(of: &Type, base: usize) -> Type {
    match of {
        Type::Variable(number) => Type::Variable(base + number),
        Type::List(item) => Type::list(instance(item, base)),
        Type::Map(key, value) => Type::Map(Arc::new(instance(key, base)), Arc::new(instance(value, base))),
        Type::Optional(of) => Type::optional(instance(of, base)),
        Type::Kind(of) => Type::Kind(Arc::new(instance(of, base))),
        other => other.clone(),
    }
}

fn mentions(of: &Type, variable: usize) -> bool {
    match of {
        Type::Variable(number) => *number == variable,
        Type::List(of) | Type::Optional(of) | Type::Kind(of) => mentions(of, variable),
        Type::Map(key, value) => mentions(key, variable) || mentions(value, variable),
        _ => false,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
