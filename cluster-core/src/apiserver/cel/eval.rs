//! Computing an expression, step by step against a budget.
//! <https://kubernetes.io/docs/reference/using-api/cel/#runtime-cost-budget>

use std::cell::Cell;
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};
use cel::parser::Expression;

use super::check::{named_type, qualified_name};
use super::library;
use super::value::{Key, Map, Merge, Value};

/// What one expression may cost. <https://kubernetes.io/docs/reference/using-api/cel/#runtime-cost-budget>
const CALL_COST_MAX: u64 = 1_000_000;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The text is cel-go's.
    Failed(String),
    /// It would have cost more than one expression may.
    CostExceeded,
    /// All expressions together have cost what they may.
    OutOfBudget,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Failed(text) => f.write_str(text),
            Error::CostExceeded => f.write_str("operation cancelled: actual cost limit exceeded"),
            Error::OutOfBudget => f.write_str("validation failed due to running out of cost budget"),
        }
    }
}

/// What the expressions of one request may cost together.
pub struct Budget(Cell<u64>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Cell::new(10_000_000))
    }
}

/// Where variables get their values from.
pub trait Activation {
    /// The value of a variable; its name may be a qualified one, such as `variables.a`.
    fn variable(&self, name: &str, budget: &Budget) -> Option<Result<Value, Error>>;
}

impl<const N: usize> Activation for [(&str, Value); N] {
    fn variable(&self, name: &str, _: &Budget) -> Option<Result<Value, Error>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| Ok(value.clone()))
    }
}

pub(super) fn evaluate(expression: &Expression, activation: &dyn Activation, budget: &Budget) -> Result<Value, Error> {
    let evaluation = Evaluation { activation, budget, spent: Cell::new(0) };
    evaluation.value(expression, None)
}

struct Evaluation<'a> {
    activation: &'a dyn Activation,
    budget: &'a Budget,
    spent: Cell<u64>,
}

type Outcome = Result<Value, Error>;

/// Variables of the loops around the part that is computed.
#[derive(Clone, Copy)]
struct Scope<'s> {
    name: &'s str,
    value: &'s Outcome,
    outer: Option<&'s Scope<'s>>,
}

fn failed(text: impl Into<String>) -> Error {
    Error::Failed(text.into())
}

impl Evaluation<'_> {
    fn charge(&self, cost: u64) -> Result<(), Error> {
        let spent = self.spent.get().saturating_add(cost);
        self.spent.set(spent);
        if spent > CALL_COST_MAX {
            return Err(Error::CostExceeded);
        }
        let left = self.budget.0.get().checked_sub(cost).ok_or(Error::OutOfBudget)?;
        self.budget.0.set(left);
        Ok(())
    }

    fn value(&self, expression: &Expression, scope: Option<&Scope<'_>>) -> Outcome {
        match &expression.expr {
            Expr::Unspecified => Err(failed("unspecified expression")),
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => {
                self.charge(1)?;
                self.variable(name, scope).unwrap_or_else(|| Err(failed(format!("no such attribute(s): {name}"))))
            }
            Expr::Select(select) => self.select(expression, select, scope),
            Expr::Call(call) => self.call(call, scope),
            Expr::List(list) => {
                self.charge(10)?;
                let mut items = Vec::with_capacity(list.elements.len());
                for (index, element) in list.elements.iter().enumerate() {
                    match self.value(element, scope)? {
                        Value::Optional(item) if list.optional_indices.contains(&index) => {
                            items.extend(item.map(Arc::unwrap_or_clone));
                        }
                        item => items.push(item),
                    }
                }
                Ok(items.into())
            }
            Expr::Map(map) => {
                self.charge(30)?;
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let mut made = Map::new();
                for entry in entries {
                    let key = self.value(&entry.key, scope)?;
                    let key = Key::of(&key).ok_or_else(|| failed("unsupported key type"))?;
                    self.insert(&mut made, key, &entry.value, entry.optional, scope)?;
                }
                Ok(made.into())
            }
            Expr::Struct(message) => {
                self.charge(40)?;
                let mut made = Map::new();
                for entry in &message.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        let key = Key::String(field.field.as_str().into());
                        self.insert(&mut made, key, &field.value, field.optional, scope)?;
                    }
                }
                Ok(made.into())
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, scope),
        }
    }

    fn insert(
        &self,
        map: &mut Map,
        key: Key,
        value: &Expression,
        optional: bool,
        scope: Option<&Scope<'_>>,
    ) -> Result<(), Error> {
        match self.value(value, scope)? {
            Value::Optional(None) if optional => {}
            Value::Optional(Some(value)) if optional => {
                map.insert(key, Arc::unwrap_or_clone(value));
            }
            value => {
                if map.contains_key(&key) {
                    return Err(failed(format!("Failed with repeated key: {key}")));
                }
                map.insert(key, value);
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str, scope: Option<&Scope<'_>>) -> Option<Outcome> {
        let mut next = scope;
        while let Some(scope) = next {
            if scope.name == name {
                return Some(scope.value.clone());
            }
            next = scope.outer;
        }
        let known = self.activation.variable(name, self.budget);
        known.or_else(|| named_type(name).map(|name| Ok(Value::Type(name.into()))))
    }

    fn select(&self, expression: &Expression, select: &SelectExpr, scope: Option<&Scope<'_>>) -> Outcome {
        self.charge(1)?;
        if let Some(name) = qualified_name(&expression.expr)
            && let Some(value) = self.variable(&name, scope)
        {
            return value;
        }
        let operand = self.value(&select.operand, scope)?;
        let key = Key::String(select.field.as_str().into());
        match (&operand, select.test) {
            (Value::Map(map), true) => Ok(map.contains_key(&key).into()),
            (Value::Map(map), false) => {
                map.get(&key).cloned().ok_or_else(|| failed(format!("no such key: {}", select.field)))
            }
            (Value::Null | Value::Optional(None), true) => Ok(false.into()),
            (Value::Optional(Some(inner)), true) => match &**inner {
                Value::Map(map) => Ok(map.contains_key(&key).into()),
                _ => Err(failed("no such overload")),
            },
            (Value::Optional(_), false) => {
                library::optional_select(&[operand, select.field.as_str().into()]).map_err(Error::Failed)
            }
            _ => Err(failed("no such overload")),
        }
    }

    fn call(&self, call: &CallExpr, scope: Option<&Scope<'_>>) -> Outcome {
        self.charge(1)?;
        let value = |at: usize| match call.args.get(at) {
            Some(argument) => self.value(argument, scope),
            None => Err(failed("no such overload")),
        };
        match call.func_name.as_str() {
            operators::LOGICAL_AND => return either(value(0), || value(1), false),
            operators::LOGICAL_OR => return either(value(0), || value(1), true),
            operators::CONDITIONAL => {
                return match value(0)? {
                    Value::Bool(true) => value(1),
                    Value::Bool(false) => value(2),
                    _ => Err(failed("no such overload")),
                };
            }
            operators::NOT_STRICTLY_FALSE => {
                return match value(0) {
                    Ok(Value::Bool(bool)) => Ok(bool.into()),
                    Err(error @ (Error::CostExceeded | Error::OutOfBudget)) => Err(error),
                    _ => Ok(true.into()),
                };
            }
            _ => {}
        }
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        let mut name = call.func_name.as_str();
        let mut member = false;
        let qualified;
        if let Some(target) = &call.target {
            qualified = qualified_name(&target.expr).map(|target| format!("{target}.{name}")).unwrap_or_default();
            if library::overloads(&qualified).is_empty() {
                member = true;
                arguments.push(self.value(target, scope)?);
            } else {
                name = &qualified;
            }
        }
        for argument in &call.args {
            arguments.push(self.value(argument, scope)?);
        }
        self.charge(cost(name, &arguments))?;
        self.apply(name, member, &arguments)
    }

    fn apply(&self, name: &str, member: bool, arguments: &[Value]) -> Outcome {
        if name == operators::OPT_SELECT {
            return library::optional_select(arguments).map_err(Error::Failed);
        }
        let overload = library::overloads(name).iter().find(|overload| {
            overload.member == member
                && overload.arguments.len() == arguments.len()
                && overload.arguments.iter().zip(arguments).all(|(wanted, given)| wanted.takes(given))
        });
        match overload {
            Some(overload) => (overload.run)(arguments).map_err(Error::Failed),
            None => Err(failed("no such overload")),
        }
    }

    fn comprehension(&self, comprehension: &ComprehensionExpr, scope: Option<&Scope<'_>>) -> Outcome {
        let pairs: Vec<(Value, Value)> = match self.value(&comprehension.iter_range, scope)? {
            Value::List(list) => list.items.iter().cloned().enumerate().map(|(at, item)| (at.into(), item)).collect(),
            Value::Map(map) => map.iter().map(|(key, value)| (key.to_value(), value.clone())).collect(),
            _ => return Err(failed("no such overload")),
        };
        let mut accumulated = self.value(&comprehension.accu_init, scope);
        let list_of_one = comprehension.iter_var2.is_none();
        let over_list = matches!(pairs.first(), Some((Value::Int(0), _)));
        for (key, value) in pairs {
            self.charge(1)?;
            // A loop with one variable goes over the items of a list and the keys of a map.
            let (first, second) = match list_of_one {
                true if over_list => (Ok(value), Ok(Value::Null)),
                _ => (Ok(key), Ok(value)),
            };
            let outer = Scope { name: &comprehension.iter_var, value: &first, outer: scope };
            let second_name = comprehension.iter_var2.as_deref().unwrap_or("");
            let variables = Scope { name: second_name, value: &second, outer: Some(&outer) };
            let before = Scope { name: &comprehension.accu_var, value: &accumulated, outer: Some(&variables) };
            if self.value(&comprehension.loop_cond, Some(&before))? == Value::Bool(false) {
                break;
            }
            accumulated = self.step(&comprehension.loop_step, &comprehension.accu_var, accumulated, &variables);
            if let Err(error @ (Error::CostExceeded | Error::OutOfBudget)) = accumulated {
                return Err(error);
            }
        }
        let last = Scope { name: &comprehension.accu_var, value: &accumulated, outer: scope };
        self.value(&comprehension.result, Some(&last))
    }

    /// One round of a loop. What macros write, `result + [item]`, adds to the list instead of copying it.
    fn step(&self, step: &Expression, name: &str, accumulated: Outcome, variables: &Scope<'_>) -> Outcome {
        match &step.expr {
            Expr::Ident(ident) if ident == name => return accumulated,
            Expr::Call(call) if call.func_name == operators::CONDITIONAL && call.args.len() == 3 => {
                let scope = Scope { name, value: &accumulated, outer: Some(variables) };
                let branch = match self.value(&call.args[0], Some(&scope))? {
                    Value::Bool(true) => &call.args[1],
                    _ => &call.args[2],
                };
                return self.step(branch, name, accumulated, variables);
            }
            Expr::Call(call) if call.func_name == operators::ADD => {
                if let [Expression { expr: Expr::Ident(ident), .. }, item] = call.args.as_slice()
                    && ident == name
                    && let (Expr::List(_), Ok(Value::List(mut list))) = (&item.expr, accumulated.clone())
                {
                    drop(accumulated);
                    if let Value::List(more) = self.value(item, Some(variables))? {
                        Arc::make_mut(&mut list).items.extend(more.items.iter().cloned());
                    }
                    return Ok(Value::List(list));
                }
            }
            Expr::Call(call) if call.func_name == "cel.@mapInsert" => {
                let Value::Map(mut map) = accumulated? else { return Err(failed("no such overload")) };
                let key = self.value(&call.args[1], Some(variables))?;
                let value = self.value(&call.args[2], Some(variables))?;
                Arc::make_mut(&mut map).insert(Key::of(&key).ok_or_else(|| failed("unsupported key type"))?, value);
                return Ok(Value::Map(map));
            }
            _ => {}
        }
        let scope = Scope { name, value: &accumulated, outer: Some(variables) };
        self.value(step, Some(&scope))
    }
}

/// `&&` and `||`: one side can decide alone, even if the other fails.
fn either(first: Outcome, second: impl FnOnce() -> Outcome, decisive: bool) -> Outcome {
    let fatal = |outcome: &Outcome| matches!(outcome, Err(Error::CostExceeded | Error::OutOfBudget));
    if fatal(&first) || matches!(&first, Ok(Value::Bool(bool)) if *bool == decisive) {
        return first;
    }
    let second = second();
    if fatal(&second) || matches!(&second, Ok(Value::Bool(bool)) if *bool == decisive) {
        return second;
    }
    match (first, second) {
        (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok((!decisive).into()),
        (Err(error), _) | (_, Err(error)) => Err(error),
        _ => Err(failed("no such overload")),
    }
}

/// What a function costs beside its call: what it goes through.
fn cost(name: &str, arguments: &[Value]) -> u64 {
    let sizes = || arguments.iter().map(Value::size);
    match name {
        operators::EQUALS | operators::NOT_EQUALS | operators::IN => {
            arguments.iter().map(weight).fold(0, u64::saturating_add)
        }
        "matches" | "find" | "findAll" | "sets.contains" | "sets.equivalent" | "sets.intersects" => {
            sizes().map(|size| size + 1).fold(1, u64::saturating_mul)
        }
        "distinct" | "sort" | "@sortByAssociatedKeys" => sizes().next().unwrap_or(0).saturating_pow(2) / 4,
        operators::ADD => match arguments {
            [Value::List(list), other] if list.merge != Merge::Atomic => {
                (list.items.len() as u64).saturating_mul(other.size())
            }
            _ => sizes().sum(),
        },
        operators::INDEX => 0,
        "lists.range" => match arguments {
            [Value::Int(count)] => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        },
        _ => sizes().sum(),
    }
}

/// How many comparisons a value can need. Lists without an order are compared each with each.
fn weight(value: &Value) -> u64 {
    match value {
        Value::List(list) => {
            let items = list.items.iter().map(weight).fold(1, u64::saturating_add);
            if list.merge == Merge::Atomic { items } else { items.saturating_mul(list.items.len() as u64) }
        }
        Value::Map(map) => map.values().map(weight).fold(1, u64::saturating_add),
        other => 1 + other.size(),
    }
}

fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(bool) => Value::Bool(*bool.inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(bytes.inner().into()),
        LiteralValue::Double(double) => Value::Double(*double.inner()),
        LiteralValue::Int(int) => Value::Int(*int.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => text.inner().into(),
        LiteralValue::UInt(uint) => Value::Uint(*uint.inner()),
    }
}
