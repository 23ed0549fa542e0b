//! The expressions of policies: compiled once, and what is wrong with those that do not compile.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, MutatingAdmissionPolicySpec, ParamKind, ValidatingAdmissionPolicySpec, Variable,
};

use super::environment::{Scene, Shown, environment};
use super::{Attributes, mutating};
use crate::api::object::Object;
use crate::apiserver::ApiServer;
use crate::apiserver::cel::types::Type;
use crate::apiserver::cel::value::Value;
use crate::apiserver::cel::{self, Activation, Budget, Environment, Error, Program};
use crate::apiserver::validation::field::{Causes, Path};

/// An expression as it is written, and compiled.
#[derive(Debug)]
pub struct Expression {
    pub source: String,
    /// The text is what is wrong with it.
    pub program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression of one of the types; of any if there are none.
    pub fn compile(source: &str, environment: &Environment<'_>, results: &[Type]) -> Expression {
        let compiled = cel::compile(source, environment).map_err(|error| format!("compilation failed: {error}"));
        let program = compiled.and_then(|program| {
            let fits = |wanted: &Type| program.result == *wanted || matches!((wanted, &program.result), (Type::Dyn, _));
            if results.is_empty() || program.result == Type::Dyn || results.iter().any(fits) {
                return Ok(program);
            }
            let wanted: Vec<String> = results.iter().map(Type::to_string).collect();
            Err(match wanted.as_slice() {
                [one] => format!("must evaluate to {one}"),
                more => format!("must evaluate to one of [{}]", more.join(" ")),
            })
        });
        Expression { source: source.to_owned(), program }
    }

    pub fn evaluate(&self, activation: &dyn Activation, budget: &Budget) -> Result<Value, Error> {
        match &self.program {
            Ok(program) => program.evaluate(activation, budget),
            Err(problem) => Err(Error::Failed(problem.clone())),
        }
    }

    /// The text of an error as policies tell it.
    pub fn told(&self, error: &Error) -> String {
        match (&self.program, error) {
            (Err(problem), _) => problem.clone(),
            (Ok(_), Error::OutOfBudget) => "validation failed due to running out of cost budget, no further \
                                            validation rules will be run"
                .to_owned(),
            (Ok(_), error) => format!("expression '{}' resulted in error: {error}", self.source),
        }
    }

    fn check(&self, causes: &mut Causes, path: &Path) {
        if self.source.trim().is_empty() {
            return;
        }
        if let Err(problem) = &self.program {
            causes.invalid(path, self.source.as_str(), problem);
        }
    }
}

/// The `matchConditions` of policies and webhooks: all of them have to be true.
pub struct Conditions(Vec<Expression>);

impl Conditions {
    pub fn of(conditions: &[MatchCondition], environment: &Environment<'_>) -> Conditions {
        let compile =
            |condition: &MatchCondition| Expression::compile(&condition.expression, environment, &[Type::Bool]);
        Conditions(conditions.iter().map(compile).collect())
    }

    /// # Errors
    /// What went wrong, if none of them is false.
    pub fn are_met(&self, scene: &Scene<'_>, budget: &Budget) -> Result<bool, String> {
        let mut errors = Vec::new();
        for condition in &self.0 {
            match condition.evaluate(scene, budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(failed) => errors.push(condition.told(&failed)),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// `path` is that of the list.
    pub fn check(&self, causes: &mut Causes, path: &Path) {
        for (index, condition) in self.0.iter().enumerate() {
            condition.check(causes, &path.index(index).child("expression"));
        }
    }
}

/// What validating and mutating policies have in common.
pub struct Common {
    pub constraints: MatchResources,
    pub conditions: Conditions,
    pub variables: Vec<(String, Expression)>,
    pub param_kind: Option<ParamKind>,
    /// What goes wrong counts as nothing.
    pub ignores_failures: bool,
}

impl Common {
    pub fn of(
        constraints: &Option<MatchResources>,
        conditions: &Option<Vec<MatchCondition>>,
        variables: &Option<Vec<Variable>>,
        param_kind: &Option<ParamKind>,
        failure_policy: &Option<String>,
    ) -> Common {
        let has_params = param_kind.is_some();
        let plain = environment(has_params, None);
        let mut compiled: Vec<(String, Expression)> = Vec::new();
        for variable in variables.iter().flatten() {
            let known = environment(has_params, Some(types(&compiled)));
            compiled.push((variable.name.clone(), Expression::compile(&variable.expression, &known, &[])));
        }
        Common {
            constraints: constraints.clone().unwrap_or_default(),
            conditions: Conditions::of(conditions.as_deref().unwrap_or_default(), &plain),
            variables: compiled,
            param_kind: param_kind.clone(),
            ignores_failures: failure_policy.as_deref() == Some("Ignore"),
        }
    }

    /// What the policy's other expressions can name.
    pub fn environment(&self) -> Environment<'static> {
        environment(self.param_kind.is_some(), Some(types(&self.variables)))
    }

    pub fn meets_conditions(&self, scene: &Scene<'_>, budget: &Budget) -> Result<bool, String> {
        match self.conditions.are_met(scene, budget) {
            Err(_) if self.ignores_failures => Ok(false),
            met => met,
        }
    }

    fn check(&self, causes: &mut Causes, path: &Path) {
        for (index, (_, variable)) in self.variables.iter().enumerate() {
            variable.check(causes, &path.child("variables").index(index).child("expression"));
        }
        self.conditions.check(causes, &path.child("matchConditions"));
    }
}

fn types(variables: &[(String, Expression)]) -> BTreeMap<String, Type> {
    let type_of =
        |expression: &Expression| expression.program.as_ref().map_or(Type::Dyn, |program| program.result.clone());
    variables.iter().map(|(name, expression)| (name.clone(), type_of(expression))).collect()
}

/// The `matchConditions` of a webhook that do not compile.
pub fn check_conditions(causes: &mut Causes, path: &Path, conditions: &[MatchCondition]) {
    Conditions::of(conditions, &environment(false, None)).check(causes, path);
}

/// Whether a webhook is to be asked about a request; `object` is `None` for a deletion.
///
/// # Errors
/// What went wrong, if no condition is false.
pub fn meets_conditions(
    server: &ApiServer,
    attributes: &Attributes<'_>,
    object: Option<&Object>,
    conditions: &[MatchCondition],
) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let scene = Scene::new(Shown::of(server, attributes, object), None, &[]);
    Conditions::of(conditions, &environment(false, None)).are_met(&scene, &Budget::default())
}

/// The expressions of a validating policy that do not compile.
pub fn check_validating(causes: &mut Causes, spec: &ValidatingAdmissionPolicySpec) {
    let policy = super::validating::Policy::of(spec);
    let path = Path::new("spec");
    policy.common.check(causes, &path);
    for (index, validation) in policy.validations.iter().enumerate() {
        let path = path.child("validations").index(index);
        validation.expression.check(causes, &path.child("expression"));
        if let Some(message) = &validation.message_expression {
            message.check(causes, &path.child("messageExpression"));
        }
    }
    for (index, annotation) in policy.audit_annotations.iter().enumerate() {
        annotation.check(causes, &path.child("auditAnnotations").index(index).child("valueExpression"));
    }
}

/// The expressions of a mutating policy that do not compile.
pub fn check_mutating(causes: &mut Causes, spec: &MutatingAdmissionPolicySpec) {
    let policy = mutating::Policy::of(spec);
    let path = Path::new("spec");
    policy.common.check(causes, &path);
    for (index, (patch, expression)) in policy.mutations.iter().enumerate() {
        expression.check(causes, &path.child("mutations").index(index).child(patch.field()).child("expression"));
    }
}
