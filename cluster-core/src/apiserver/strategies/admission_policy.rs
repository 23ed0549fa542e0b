//! Admission policies and their bindings: what is in them. Whether their expressions compile is checked in `policy/`.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, NamedRuleWithOperations, ParamKind,
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, Validation, Variable,
};
use serde_json::json;

use super::webhook::{match_conditions, validate_rule};
use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::policy::{check_mutating, check_validating};
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, selectors};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

pub struct Validating;

impl Strategy for Validating {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<ValidatingAdmissionPolicy>();
        spec.failure_policy.get_or_insert_with(|| FAILURE_POLICIES[0].into());
        spec.match_constraints.iter_mut().for_each(default_match);
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<ValidatingAdmissionPolicy>(), Path::new("spec"));
        let mut causes = Causes::new();
        causes.required_one_of(&path.child("failurePolicy"), spec.failure_policy.as_deref(), &FAILURE_POLICIES);
        policy(
            &mut causes,
            &path,
            spec.param_kind.as_ref(),
            spec.match_constraints.as_ref(),
            spec.variables.as_deref(),
        );
        match_conditions(
            &mut causes,
            &path.child("matchConditions"),
            spec.match_conditions.as_deref().unwrap_or_default(),
        );
        let validations = spec.validations.as_deref().unwrap_or_default();
        let annotations = spec.audit_annotations.as_deref().unwrap_or_default();
        if validations.is_empty() && annotations.is_empty() {
            let detail = "validations or auditAnnotations must be non-empty; at least one is required";
            causes.required(&path.child("validations"), detail);
            causes.required(&path.child("auditAnnotations"), detail);
        }
        for (index, one) in validations.iter().enumerate() {
            validation(&mut causes, &path.child("validations").index(index), one);
        }
        for (index, annotation) in annotations.iter().enumerate() {
            let path = path.child("auditAnnotations").index(index);
            causes.invalid_each(&path.child("key"), &annotation.key, names::qualified_name(&annotation.key));
            if annotation.value_expression.trim().is_empty() {
                causes.required(&path.child("valueExpression"), "valueExpression is not specified");
            }
            if annotations[..index].iter().any(|known| known.key == annotation.key) {
                causes.duplicate(&path.child("key"), annotation.key.as_str());
            }
        }
        check_validating(&mut causes, spec);
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

pub struct ValidatingBindings;

impl Strategy for ValidatingBindings {
    fn default(&self, object: &mut Object) {
        object.spec_mut::<ValidatingAdmissionPolicyBinding>().match_resources.iter_mut().for_each(default_match);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<ValidatingAdmissionPolicyBinding>(), Path::new("spec"));
        let mut causes = Causes::new();
        binding(&mut causes, &path, &spec.policy_name, spec.param_ref.as_ref(), spec.match_resources.as_ref());
        let (actions, path) = (&spec.validation_actions, path.child("validationActions"));
        for (index, action) in actions.iter().enumerate() {
            causes.one_of(&path.index(index), Some(action), &["Audit", "Deny", "Warn"]);
            if actions[..index].contains(action) {
                causes.duplicate(&path.index(index), action.as_str());
            }
        }
        if ["Deny", "Warn"].iter().all(|action| actions.iter().any(|known| known == action)) {
            let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                          response and headers serves no purpose)";
            causes.invalid(&path, json!(actions), detail);
        }
        if actions.is_empty() {
            causes.required(&path, "at least one validation action is required");
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

pub struct Mutating;

impl Strategy for Mutating {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<MutatingAdmissionPolicy>();
        spec.failure_policy.get_or_insert_with(|| FAILURE_POLICIES[0].into());
        spec.match_constraints.iter_mut().for_each(default_match);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<MutatingAdmissionPolicy>(), Path::new("spec"));
        let mut causes = Causes::new();
        causes.required_one_of(&path.child("failurePolicy"), spec.failure_policy.as_deref(), &FAILURE_POLICIES);
        policy(
            &mut causes,
            &path,
            spec.param_kind.as_ref(),
            spec.match_constraints.as_ref(),
            spec.variables.as_deref(),
        );
        match_conditions(
            &mut causes,
            &path.child("matchConditions"),
            spec.match_conditions.as_deref().unwrap_or_default(),
        );
        let mutations = spec.mutations.as_deref().unwrap_or_default();
        if mutations.is_empty() {
            causes.required(&path.child("mutations"), "mutations must contain at least one item");
        }
        for (index, mutation) in mutations.iter().enumerate() {
            let path = path.child("mutations").index(index);
            let kinds = ["ApplyConfiguration", "JSONPatch"];
            causes.required_one_of(&path.child("patchType"), Some(&mutation.patch_type), &kinds);
            let given = [
                (
                    "ApplyConfiguration",
                    "applyConfiguration",
                    mutation.apply_configuration.as_ref().map(|m| &m.expression),
                ),
                ("JSONPatch", "jsonPatch", mutation.json_patch.as_ref().map(|patch| &patch.expression)),
            ];
            for (kind, field, expression) in given {
                let path = path.child(field);
                match (mutation.patch_type == kind, expression) {
                    (true, None) => causes.required(&path, &format!("must be specified when patchType is {kind}")),
                    (false, Some(_)) => {
                        causes.invalid(&path, "", format!("must not be set when patchType is {}", mutation.patch_type));
                    }
                    (true, Some(expression)) if expression.as_deref().unwrap_or_default().trim().is_empty() => {
                        causes.required(&path.child("expression"), "expression is not specified");
                    }
                    _ => {}
                }
            }
        }
        let policies = ["IfNeeded", "Never"];
        causes.required_one_of(&path.child("reinvocationPolicy"), spec.reinvocation_policy.as_deref(), &policies);
        check_mutating(&mut causes, spec);
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

pub struct MutatingBindings;

impl Strategy for MutatingBindings {
    fn default(&self, object: &mut Object) {
        object.spec_mut::<MutatingAdmissionPolicyBinding>().match_resources.iter_mut().for_each(default_match);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<MutatingAdmissionPolicyBinding>(), Path::new("spec"));
        let mut causes = Causes::new();
        let name = spec.policy_name.as_deref().unwrap_or_default();
        binding(&mut causes, &path, name, spec.param_ref.as_ref(), spec.match_resources.as_ref());
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

fn default_match(resources: &mut MatchResources) {
    resources.match_policy.get_or_insert_with(|| "Equivalent".into());
    resources.namespace_selector.get_or_insert_default();
    resources.object_selector.get_or_insert_default();
    for rules in [&mut resources.resource_rules, &mut resources.exclude_resource_rules] {
        for rule in rules.iter_mut().flatten() {
            rule.scope.get_or_insert_with(|| "*".into());
        }
    }
}

/// What both kinds of policies have.
fn policy(
    causes: &mut Causes,
    path: &Path,
    params: Option<&ParamKind>,
    constraints: Option<&MatchResources>,
    variables: Option<&[Variable]>,
) {
    if let Some(params) = params {
        param_kind(causes, &path.child("paramKind"), params);
    }
    let constraints_path = path.child("matchConstraints");
    match constraints {
        None => causes.required(&constraints_path, ""),
        Some(constraints) => {
            match_resources(causes, &constraints_path, constraints);
            if constraints.resource_rules.as_ref().is_none_or(Vec::is_empty) {
                causes.required(&constraints_path.child("resourceRules"), "");
            }
        }
    }
    for (index, variable) in variables.unwrap_or_default().iter().enumerate() {
        let path = path.child("variables").index(index);
        let mut letters = variable.name.chars();
        let starts = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if variable.name.is_empty() {
            causes.required(&path.child("name"), "name is not specified");
        } else if !starts || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            causes.invalid(&path.child("name"), variable.name.as_str(), "name is not a valid CEL identifier");
        }
        if variable.expression.trim().is_empty() {
            causes.required(&path.child("expression"), "expression is not specified");
        }
    }
}

fn param_kind(causes: &mut Causes, path: &Path, params: &ParamKind) {
    let (version, kind) =
        (params.api_version.as_deref().unwrap_or_default(), params.kind.as_deref().unwrap_or_default());
    if version.is_empty() {
        causes.required(&path.child("apiVersion"), "");
    } else if version.matches('/').count() > 1 {
        causes.invalid(&path.child("apiVersion"), version, format!("unexpected GroupVersion string: {version}"));
    }
    if kind.is_empty() {
        causes.required(&path.child("kind"), "");
    } else {
        let wrong = names::dns_1035_label(&kind.to_lowercase());
        if !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            causes.invalid(&path.child("kind"), kind, detail);
        }
    }
}

fn match_resources(causes: &mut Causes, path: &Path, resources: &MatchResources) {
    let policies = ["Equivalent", "Exact"];
    causes.required_one_of(&path.child("matchPolicy"), resources.match_policy.as_deref(), &policies);
    for (field, selector) in
        [("namespaceSelector", &resources.namespace_selector), ("objectSelector", &resources.object_selector)]
    {
        selectors::label_selector(causes, &path.child(field), selector.as_ref());
    }
    for (field, rules) in
        [("resourceRules", &resources.resource_rules), ("excludeResourceRules", &resources.exclude_resource_rules)]
    {
        for (index, rule) in rules.iter().flatten().enumerate() {
            named_rule(causes, &path.child(field).index(index), rule);
        }
    }
}

fn named_rule(causes: &mut Causes, path: &Path, rule: &NamedRuleWithOperations) {
    let lists = [&rule.operations, &rule.api_groups, &rule.api_versions, &rule.resources];
    validate_rule(causes, path, lists, rule.scope.as_deref());
    let known = rule.resource_names.as_deref().unwrap_or_default();
    for (index, name) in known.iter().enumerate() {
        let path = path.child("resourceNames").index(index);
        causes.invalid_each(&path, name, names::path_segment(name));
        if known[..index].contains(name) {
            causes.duplicate(&path, name.as_str());
        }
    }
}

fn validation(causes: &mut Causes, path: &Path, validation: &Validation) {
    if validation.expression.trim().is_empty() {
        causes.required(&path.child("expression"), "expression is not specified");
    }
    if let Some(message) = validation.message.as_deref().filter(|message| !message.is_empty()) {
        let path = path.child("message");
        if message.trim().is_empty() {
            causes.invalid(&path, message, "message must be non-empty if specified");
        } else if message.contains(['\n', '\r']) {
            causes.invalid(&path, message, "message must not contain line breaks");
        }
    }
    if let Some(reason) = &validation.reason {
        let known = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
        causes.one_of(&path.child("reason"), Some(reason), &known);
    }
}

/// What both kinds of bindings have.
fn binding(
    causes: &mut Causes,
    path: &Path,
    policy: &str,
    params: Option<&ParamRef>,
    resources: Option<&MatchResources>,
) {
    if policy.is_empty() {
        causes.required(&path.child("policyName"), "");
    } else {
        causes.invalid_each(&path.child("policyName"), policy, names::dns_subdomain(policy));
    }
    if let Some(params) = params {
        param_ref(causes, &path.child("paramRef"), params);
    }
    if let Some(resources) = resources {
        match_resources(causes, &path.child("matchResources"), resources);
    }
}

fn param_ref(causes: &mut Causes, path: &Path, params: &ParamRef) {
    let (name, both) = (params.name.as_deref().unwrap_or_default(), "name and selector are mutually exclusive");
    if !name.is_empty() {
        causes.invalid_each(&path.child("name"), name, names::path_segment(name));
        if params.selector.is_some() {
            causes.forbidden(&path.child("name"), both);
        }
    }
    selectors::label_selector(causes, &path.child("selector"), params.selector.as_ref());
    match (name.is_empty(), &params.selector) {
        (false, Some(_)) => causes.forbidden(&path.child("selector"), both),
        (true, None) => causes.required(path, "one of name or selector must be specified"),
        _ => {}
    }
    let action_path = path.child("parameterNotFoundAction");
    causes.required_one_of(&action_path, params.parameter_not_found_action.as_deref(), &["Allow", "Deny"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_policy_is_completed_and_says_what_it_validates() {
        let mut api = Api::new::<ValidatingAdmissionPolicy>();
        let rule =
            json!({"apiGroups": ["x.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]});
        let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]});
        let made = api.create(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
        let constraints = &made["spec"]["matchConstraints"];
        assert_eq!((&constraints["matchPolicy"], &constraints["objectSelector"]), (&json!("Equivalent"), &json!({})));
        assert_eq!((&constraints["resourceRules"][0]["scope"], &made["status"]), (&json!("*"), &json!({})));
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "q"}, "spec": {}})),
            [
                "spec.matchConstraints: Required value",
                "spec.validations: Required value: validations or auditAnnotations must be non-empty; at least one is \
                 required",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must be non-empty; at least one is \
                 required",
            ]
        );
        let mut api = api.of::<ValidatingAdmissionPolicyBinding>();
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}})),
            ["spec.validationActions: Required value: at least one validation action is required"]
        );
    }
}
