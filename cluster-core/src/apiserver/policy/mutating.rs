//! MutatingAdmissionPolicy: changes an object before it is checked and written.
//! <https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>

use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicyBinding, MutatingAdmissionPolicySpec};
use serde_json::Value as Json;

use super::environment::{Scene, Shown};
use super::expressions::{Common, Expression};
use super::validating::refusal;
use super::{Attributes, matching, params};
use crate::api::object::Object;
use crate::api::schema::Schema;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::apiserver::cel::Budget;
use crate::apiserver::cel::types::Type;
use crate::apiserver::cel::value::Value;
use crate::apiserver::patch::strategic;
use crate::apiserver::strategy::strategy;

pub struct Policy {
    pub common: Common,
    pub mutations: Vec<(Patch, Expression)>,
    /// It wants to see what policies after it have changed.
    reinvoked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Patch {
    ApplyConfiguration,
    JsonPatch,
}

impl Patch {
    /// The field of a mutation that holds the expression.
    pub fn field(self) -> &'static str {
        match self {
            Patch::ApplyConfiguration => "applyConfiguration",
            Patch::JsonPatch => "jsonPatch",
        }
    }
}

/// The messages that mutations make: `Object{spec: Object.spec{…}}`, whose fields are those of the object, and
/// `JSONPatch{op: …}`.
fn message(name: &str) -> Option<Type> {
    match name {
        "JSONPatch" => Some(Type::object(
            "JSONPatch",
            [("op", Type::String), ("path", Type::String), ("from", Type::String), ("value", Type::Dyn)],
        )),
        name if name == "Object" || name.starts_with("Object.") => Some(Type::Dyn),
        _ => None,
    }
}

impl Policy {
    pub fn of(spec: &MutatingAdmissionPolicySpec) -> Policy {
        let common = Common::of(
            &spec.match_constraints,
            &spec.match_conditions,
            &spec.variables,
            &spec.param_kind,
            &spec.failure_policy,
        );
        let mut environment = common.environment();
        environment.message = message;
        let mutation = |mutation: &k8s_openapi::api::admissionregistration::v1::Mutation| {
            let configuration = mutation.apply_configuration.as_ref().and_then(|of| of.expression.as_deref());
            let patch = mutation.json_patch.as_ref().and_then(|of| of.expression.as_deref());
            match mutation.patch_type.as_str() {
                "JSONPatch" => {
                    let wanted = message("JSONPatch").map(Type::list);
                    let expression = Expression::compile(patch.unwrap_or_default(), &environment, wanted.as_slice());
                    (Patch::JsonPatch, expression)
                }
                _ => {
                    let expression = Expression::compile(configuration.unwrap_or_default(), &environment, &[Type::Dyn]);
                    (Patch::ApplyConfiguration, expression)
                }
            }
        };
        Policy {
            mutations: spec.mutations.iter().flatten().map(mutation).collect(),
            reinvoked: spec.reinvocation_policy.as_deref() == Some("IfNeeded"),
            common,
        }
    }

    /// The object after all mutations.
    fn apply(&self, shown: Shown, params: Option<Value>, object: &Object) -> Result<Object, String> {
        let budget = Budget::default();
        let mut scene = Scene::new(shown, params, &self.common.variables);
        if !self.common.meets_conditions(&scene, &budget)? {
            return Ok(object.clone());
        }
        let mut json = object.to_json();
        for (patch, expression) in &self.mutations {
            let made = expression.evaluate(&scene, &budget).map_err(|error| expression.told(&error))?;
            apply(*patch, &made, &mut json, object)?;
            scene = Scene::new(scene.shown.with_object(&json), scene.params, &self.common.variables);
        }
        let mut mutated = Object::from_json(&object.kind, json).map_err(|error| {
            let place = if error.path.is_empty() { String::new() } else { format!("{}: ", error.path) };
            format!("error applying patch: {place}{}", error.message)
        })?;
        mutated.revision = object.revision;
        if mutated.metadata() == object.metadata() {
            mutated.set_metadata(object.metadata_arc().clone());
        }
        mutated.key = object.key.clone();
        mutated.managed = object.managed.clone();
        Ok(mutated)
    }
}

fn apply(patch: Patch, made: &Value, json: &mut Json, object: &Object) -> Result<(), String> {
    let made = made.to_json().ok_or("the result of the expression has no JSON form")?;
    match patch {
        Patch::ApplyConfiguration => {
            if ["apiVersion", "kind"].iter().any(|field| made.get(field).is_some()) {
                return Err("error applying patch: invalid ApplyConfiguration: may not set apiVersion or kind".into());
            }
            if let Some(name) = ["name", "namespace", "uid"].iter().find(|name| {
                let changed = |path: &str| made.pointer(path).is_some_and(|value| json.pointer(path) != Some(value));
                changed(&format!("/metadata/{name}"))
            }) {
                return Err(format!("error applying patch: may not change metadata.{name}"));
            }
            match Schema::of(&object.kind) {
                Some(schema) => strategic::merge(json, &made, Some(schema))
                    .map_err(|error| format!("error applying patch: {error}"))?,
                None => json_patch::merge(json, &made),
            }
        }
        Patch::JsonPatch => {
            let patch: json_patch::Patch =
                serde_json::from_value(made).map_err(|error| format!("error applying patch: {error}"))?;
            json_patch::patch(json, &patch).map_err(|error| format!("error applying patch: {error}"))?;
        }
    }
    Ok(())
}

/// Lets all policies change an object that is created or updated.
pub fn admit(server: &ApiServer, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
    if server.policies.mutating.is_empty() || matching::is_exempt(attributes) {
        return Ok(());
    }
    let before = object.clone();
    run(server, attributes, object, |_| true)?;
    if !object.same(&before) {
        run(server, attributes, object, |policy| policy.reinvoked)?;
        strategy(&object.kind).default(object);
    }
    Ok(())
}

fn run(
    server: &ApiServer,
    attributes: &Attributes<'_>,
    object: &mut Object,
    wanted: fn(&Policy) -> bool,
) -> Result<(), Status> {
    for (name, policy, binding) in server.policies.mutating().filter(|(_, policy, _)| wanted(policy)) {
        let spec = binding.spec::<MutatingAdmissionPolicyBinding>();
        let about = Some(&*object);
        let is_meant = matching::matches(server, attributes, about, &policy.common.constraints)
            && spec.match_resources.as_ref().is_none_or(|wanted| matching::matches(server, attributes, about, wanted));
        if !is_meant {
            continue;
        }
        let mutated = params::collect(server, &policy.common.param_kind, &spec.param_ref, &object.key.namespace)
            .and_then(|all| {
                all.into_iter().try_fold(object.clone(), |object, params| {
                    let shown = Shown::of(server, attributes, Some(&object));
                    policy.apply(shown, params, &object)
                })
            });
        match mutated {
            Ok(mutated) => *object = mutated,
            Err(_) if policy.common.ignores_failures => {}
            Err(text) => {
                let message = format!("policy '{name}' with binding '{}' denied request: {text}", binding.key.name);
                return Err(refusal(attributes, Some(object), &message, ""));
            }
        }
    }
    Ok(())
}
