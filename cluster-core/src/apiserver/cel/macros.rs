//! The macros that Kubernetes has beside CEL's standard ones: `cel.bind`, the comprehensions with two variables, and
//! `sortBy`. <https://pkg.go.dev/github.com/google/cel-go/ext#TwoVarComprehensions>

use cel::Env;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, operators};
use cel::parser::{Expression, Macro, MacroExprHelper, ParseError};

const RESULT: &str = "@result";

/// The parser's macros; of the crate's functions none is ever called.
pub(super) fn environment() -> Env {
    let mut environment = Env::stdlib();
    let macros = [
        Macro::receiver("bind", 3, bind),
        Macro::receiver("all", 3, |helper, target, args| quantifier(helper, target, args, true)),
        Macro::receiver("exists", 3, |helper, target, args| quantifier(helper, target, args, false)),
        Macro::receiver("exists_one", 3, exists_one),
        Macro::receiver("existsOne", 3, exists_one),
        Macro::receiver("transformList", 3, transform_list),
        Macro::receiver("transformList", 4, transform_list),
        Macro::receiver("transformMap", 3, transform_map),
        Macro::receiver("transformMap", 4, transform_map),
        Macro::receiver("sortBy", 2, sort_by),
    ];
    for one in macros {
        // The names are new ones: nothing to refuse.
        let _ = environment.add_macro(one);
    }
    environment
}

type Expansion = Result<Option<Expression>, ParseError>;

fn name(helper: &MacroExprHelper<'_>, expression: &Expression) -> Result<String, ParseError> {
    match &expression.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(helper.new_error(expression.id, "argument must be a simple name")),
    }
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> Expression {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn literal(helper: &mut MacroExprHelper<'_>, value: LiteralValue) -> Expression {
    helper.next_expr(Expr::Literal(value))
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: Vec<Expression>) -> Expression {
    helper.next_expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

/// `cel.bind(x, value, expression)`: a loop over nothing, whose accumulator is `x`.
fn bind(helper: &mut MacroExprHelper<'_>, target: &mut Option<Expression>, args: &mut Vec<Expression>) -> Expansion {
    if !target.as_ref().is_some_and(|target| target.expr == Expr::Ident("cel".to_owned())) {
        return Ok(None);
    }
    let variable = name(helper, &args[0])?;
    let (Some(result), Some(accu_init)) = (args.pop(), args.pop()) else { return Ok(None) };
    let iter_range = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    let loop_cond = literal(helper, LiteralValue::Boolean(false.into()));
    let loop_step = ident(helper, &variable);
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable,
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))))
}

/// The parts of `range.macro(a, b, …)`: the range and the two names, taken out; what is left are the other arguments.
fn two_variables(
    helper: &MacroExprHelper<'_>,
    target: &mut Option<Expression>,
    args: &mut Vec<Expression>,
) -> Result<Option<(Expression, String, String)>, ParseError> {
    let (first, second) = (name(helper, &args[0])?, name(helper, &args[1])?);
    if first == second {
        return Err(helper.new_error(args[1].id, "duplicate variable name"));
    }
    let Some(range) = target.take() else { return Ok(None) };
    args.drain(..2);
    Ok(Some((range, first, second)))
}

fn loop_over(
    helper: &mut MacroExprHelper<'_>,
    (iter_range, iter_var, second): (Expression, String, String),
    accu_init: Expression,
    loop_cond: Expression,
    loop_step: Expression,
    result: Expression,
) -> Expansion {
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var,
        iter_var2: Some(second),
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))))
}

fn quantifier(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<Expression>,
    args: &mut Vec<Expression>,
    all: bool,
) -> Expansion {
    let Some(over) = two_variables(helper, target, args)? else { return Ok(None) };
    let Some(predicate) = args.pop() else { return Ok(None) };
    let init = literal(helper, LiteralValue::Boolean(all.into()));
    let mut so_far = ident(helper, RESULT);
    if !all {
        so_far = call(helper, operators::LOGICAL_NOT, vec![so_far]);
    }
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = ident(helper, RESULT);
    let operator = if all { operators::LOGICAL_AND } else { operators::LOGICAL_OR };
    let step = call(helper, operator, vec![so_far, predicate]);
    let result = ident(helper, RESULT);
    loop_over(helper, over, init, condition, step, result)
}

/// `condition ? step : result so far`.
fn when(helper: &mut MacroExprHelper<'_>, condition: Option<Expression>, step: Expression) -> Expression {
    match condition {
        None => step,
        Some(condition) => {
            let unchanged = ident(helper, RESULT);
            call(helper, operators::CONDITIONAL, vec![condition, step, unchanged])
        }
    }
}

fn exists_one(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<Expression>,
    args: &mut Vec<Expression>,
) -> Expansion {
    let Some(over) = two_variables(helper, target, args)? else { return Ok(None) };
    let predicate = args.pop();
    let init = literal(helper, LiteralValue::Int(0.into()));
    let condition = literal(helper, LiteralValue::Boolean(true.into()));
    let (so_far, one) = (ident(helper, RESULT), literal(helper, LiteralValue::Int(1.into())));
    let more = call(helper, operators::ADD, vec![so_far, one]);
    let step = when(helper, predicate, more);
    let (found, one) = (ident(helper, RESULT), literal(helper, LiteralValue::Int(1.into())));
    let result = call(helper, operators::EQUALS, vec![found, one]);
    loop_over(helper, over, init, condition, step, result)
}

fn transform_list(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<Expression>,
    args: &mut Vec<Expression>,
) -> Expansion {
    let Some(over) = two_variables(helper, target, args)? else { return Ok(None) };
    let Some(transform) = args.pop() else { return Ok(None) };
    let filter = args.pop();
    let init = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    let condition = literal(helper, LiteralValue::Boolean(true.into()));
    let (so_far, item) = (ident(helper, RESULT), helper.next_expr(Expr::List(ListExpr::new(vec![transform]))));
    let more = call(helper, operators::ADD, vec![so_far, item]);
    let step = when(helper, filter, more);
    let result = ident(helper, RESULT);
    loop_over(helper, over, init, condition, step, result)
}

fn transform_map(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<Expression>,
    args: &mut Vec<Expression>,
) -> Expansion {
    let Some(over) = two_variables(helper, target, args)? else { return Ok(None) };
    let Some(transform) = args.pop() else { return Ok(None) };
    let filter = args.pop();
    let init = helper.next_expr(Expr::Map(MapExpr::default()));
    let condition = literal(helper, LiteralValue::Boolean(true.into()));
    let (so_far, key) = (ident(helper, RESULT), ident(helper, &over.1));
    let more = call(helper, "cel.@mapInsert", vec![so_far, key, transform]);
    let step = when(helper, filter, more);
    let result = ident(helper, RESULT);
    loop_over(helper, over, init, condition, step, result)
}

/// `list.sortBy(x, key)`: the list beside the list of its keys.
fn sort_by(helper: &mut MacroExprHelper<'_>, target: &mut Option<Expression>, args: &mut Vec<Expression>) -> Expansion {
    let variable = name(helper, &args[0])?;
    let (Some(key), Some(list)) = (args.pop(), target.take()) else { return Ok(None) };
    let accu_init = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    let loop_cond = literal(helper, LiteralValue::Boolean(true.into()));
    let (so_far, item) = (ident(helper, RESULT), helper.next_expr(Expr::List(ListExpr::new(vec![key]))));
    let loop_step = call(helper, operators::ADD, vec![so_far, item]);
    let result = ident(helper, RESULT);
    let keys = helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list.clone(),
        iter_var: variable,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })));
    Ok(Some(helper.next_expr(Expr::Call(CallExpr {
        func_name: "@sortByAssociatedKeys".to_owned(),
        target: Some(Box::new(list)),
        args: vec![keys],
    }))))
}
