//! The Common Expression Language, as Kubernetes uses it in schemas and policies. The crate `cel` parses; types are
//! checked and expressions are computed here, because Kubernetes promises three things that the crate does not have:
//! an expression is refused when it is written down, not when it is used; its errors have cel-go's texts; and no
//! expression computes for longer than its budget.
//! <https://kubernetes.io/docs/reference/using-api/cel/>

mod check;
mod eval;
pub mod library;
mod macros;
pub mod types;
pub mod value;

use std::sync::LazyLock;

use ::cel::common::ast::{Expr, SourceInfo};
use ::cel::parser::Expression;

pub use eval::{Activation, Budget, Error};
use types::Type;
use value::Value;

/// What an expression may name.
pub struct Environment<'a> {
    pub variables: Vec<(&'a str, Type)>,
    /// The type of a message that the expression may make: `Object{…}`.
    pub message: fn(&str) -> Option<Type>,
}

impl<'a> Environment<'a> {
    pub fn new(variables: Vec<(&'a str, Type)>) -> Environment<'a> {
        Environment { variables, message: |_| None }
    }

    fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.iter().rev().find(|(known, _)| *known == name).map(|(_, of)| of)
    }
}

/// An expression that has been parsed and whose types fit.
#[derive(Debug)]
pub struct Program {
    expression: Expression,
    pub result: Type,
}

static PARSING: LazyLock<::cel::Env> = LazyLock::new(macros::environment);

/// Parses and checks an expression. The text of an error has a line for what is wrong, and shows where.
pub fn compile(source: &str, environment: &Environment<'_>) -> Result<Program, String> {
    let (expression, info) = PARSING.parser().parse_with_source_info(source).map_err(|errors| {
        let place = |(line, column): (isize, isize)| (line.max(1) as usize, column.max(1) as usize);
        let told = errors.errors.iter().map(|error| pointed_at(source, place(error.pos), &error.msg));
        told.collect::<Vec<_>>().join("\n")
    })?;
    let (result, problems) = check::check(&expression, environment);
    if problems.is_empty() {
        return Ok(Program { expression, result });
    }
    let mut told: Vec<((usize, usize), String)> = problems
        .into_iter()
        .map(|problem| {
            let place = place_of(source, &info, problem.expression);
            (place, pointed_at(source, place, &problem.message))
        })
        .collect();
    told.sort();
    told.dedup();
    Err(told.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"))
}

impl Program {
    /// Computes the expression, and what that costs of the budget.
    pub fn evaluate(&self, activation: &dyn Activation, budget: &Budget) -> Result<Value, Error> {
        eval::evaluate(&self.expression, activation, budget)
    }

    /// The expression names this variable.
    pub fn names(&self, variable: &str) -> bool {
        self.expression.references().has_variable(variable)
    }

    /// What the expression is made of.
    pub fn root(&self) -> &Expr {
        &self.expression.expr
    }
}

/// Line and column of a part of the source, from 1.
fn place_of(source: &str, info: &SourceInfo, expression: u64) -> (usize, usize) {
    let start = info.offset_for(expression).map_or(0, |(start, _)| start as usize);
    let before: String = source.chars().take(start).collect();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// An error as cel-go shows it: the message, the line, and a mark below the column.
fn pointed_at(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let text = source.lines().nth(line - 1).unwrap_or_default();
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {}^", ".".repeat(column - 1))
}

#[cfg(test)]
mod tests;
