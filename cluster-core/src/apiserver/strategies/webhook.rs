//! Configurations of admission webhooks.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::policy;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, selectors};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const MATCH_CONDITIONS_MAX: usize = 64;
const TIMEOUT_SECONDS: i32 = 10;

/// What both kinds of webhooks say, borrowed from either.
struct Webhook<'a> {
    name: &'a str,
    rules: &'a [RuleWithOperations],
    failure_policy: Option<&'a str>,
    match_policy: Option<&'a str>,
    namespace_selector: Option<&'a LabelSelector>,
    object_selector: Option<&'a LabelSelector>,
    side_effects: &'a str,
    timeout_seconds: Option<i32>,
    reinvocation_policy: Option<&'a str>,
    client: &'a WebhookClientConfig,
    versions: &'a [String],
    conditions: &'a [MatchCondition],
}

/// Fills in what a webhook leaves out, and borrows it; both kinds have the fields, each in a type of its own.
macro_rules! webhook_of {
    (default $hook:expr) => {{
        let hook = $hook;
        hook.failure_policy.get_or_insert_with(|| "Fail".into());
        hook.match_policy.get_or_insert_with(|| "Equivalent".into());
        hook.namespace_selector.get_or_insert_default();
        hook.object_selector.get_or_insert_default();
        hook.timeout_seconds.get_or_insert(TIMEOUT_SECONDS);
        if let Some(service) = &mut hook.client_config.service {
            service.port.get_or_insert(443);
        }
        for rule in hook.rules.iter_mut().flatten() {
            rule.scope.get_or_insert_with(|| "*".into());
        }
    }};
    (borrow $hook:expr, $reinvocation:expr) => {{
        let hook = $hook;
        Webhook {
            name: &hook.name,
            rules: hook.rules.as_deref().unwrap_or_default(),
            failure_policy: hook.failure_policy.as_deref(),
            match_policy: hook.match_policy.as_deref(),
            namespace_selector: hook.namespace_selector.as_ref(),
            object_selector: hook.object_selector.as_ref(),
            side_effects: &hook.side_effects,
            timeout_seconds: hook.timeout_seconds,
            reinvocation_policy: $reinvocation,
            client: &hook.client_config,
            versions: &hook.admission_review_versions,
            conditions: hook.match_conditions.as_deref().unwrap_or_default(),
        }
    }};
}

pub struct Validating;

impl Strategy for Validating {
    fn default(&self, object: &mut Object) {
        for hook in object.spec_mut::<ValidatingWebhookConfiguration>().webhooks.iter_mut().flatten() {
            webhook_of!(default hook);
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let hooks = object.spec::<ValidatingWebhookConfiguration>().webhooks.iter().flatten();
        validate(hooks.map(|hook: &ValidatingWebhook| webhook_of!(borrow hook, None)))
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
        for hook in object.spec_mut::<MutatingWebhookConfiguration>().webhooks.iter_mut().flatten() {
            hook.reinvocation_policy.get_or_insert_with(|| "Never".into());
            webhook_of!(default hook);
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let hooks = object.spec::<MutatingWebhookConfiguration>().webhooks.iter().flatten();
        validate(hooks.map(|hook: &MutatingWebhook| webhook_of!(borrow hook, hook.reinvocation_policy.as_deref())))
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

fn validate<'a>(hooks: impl Iterator<Item = Webhook<'a>>) -> Vec<Cause> {
    let (mut causes, mut known) = (Causes::new(), BTreeSet::new());
    for (index, hook) in hooks.enumerate() {
        let path = Path::new("webhooks").index(index);
        webhook(&mut causes, &path, &hook);
        if !hook.name.is_empty() && !known.insert(hook.name) {
            causes.duplicate(&path.child("name"), hook.name);
        }
    }
    causes.into()
}

fn webhook(causes: &mut Causes, path: &Path, hook: &Webhook<'_>) {
    fully_qualified(causes, &path.child("name"), hook.name);
    let versions_path = path.child("admissionReviewVersions");
    if hook.versions.is_empty() {
        causes.required(&versions_path, "must specify one of v1, v1beta1");
    }
    for (index, version) in hook.versions.iter().enumerate() {
        causes.invalid_each(&versions_path.index(index), version, names::dns_1035_label(version));
        if hook.versions[..index].contains(version) {
            causes.duplicate(&versions_path.index(index), version.as_str());
        }
    }
    if !hook.versions.is_empty() && !hook.versions.iter().any(|version| REVIEW_VERSIONS.contains(&version.as_str())) {
        let detail = "must include at least one of v1, v1beta1";
        causes.invalid(&versions_path, json!(hook.versions), detail);
    }
    for (index, rule) in hook.rules.iter().enumerate() {
        let lists = [&rule.operations, &rule.api_groups, &rule.api_versions, &rule.resources];
        validate_rule(causes, &path.child("rules").index(index), lists, rule.scope.as_deref());
    }
    causes.one_of(&path.child("failurePolicy"), hook.failure_policy, &["Fail", "Ignore"]);
    causes.one_of(&path.child("matchPolicy"), hook.match_policy, &["Equivalent", "Exact"]);
    causes.required_one_of(&path.child("sideEffects"), Some(hook.side_effects), &["None", "NoneOnDryRun"]);
    if let Some(seconds) = hook.timeout_seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.invalid(&path.child("timeoutSeconds"), seconds, detail);
    }
    selectors::label_selector(causes, &path.child("namespaceSelector"), hook.namespace_selector);
    selectors::label_selector(causes, &path.child("objectSelector"), hook.object_selector);
    if let Some(policy) = hook.reinvocation_policy {
        causes.one_of(&path.child("reinvocationPolicy"), Some(policy), &["IfNeeded", "Never"]);
    }
    client_config(causes, &path.child("clientConfig"), hook.client);
    match_conditions(causes, &path.child("matchConditions"), hook.conditions);
    policy::check_conditions(causes, &path.child("matchConditions"), hook.conditions);
}

/// A domain name of at least three parts.
fn fully_qualified(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        return causes.required(path, "");
    }
    let wrong = names::dns_subdomain(name);
    if wrong.is_empty() && name.split('.').count() < 3 {
        causes.invalid(path, name, "should be a domain with at least three segments separated by dots");
    }
    causes.invalid_each(path, name, wrong);
}

/// Which requests a webhook or a policy is about: operations, groups, versions and resources.
pub(super) fn validate_rule(
    causes: &mut Causes,
    path: &Path,
    [operations, groups, versions, resources]: [&Option<Vec<String>>; 4],
    scope: Option<&str>,
) {
    let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (field, values) in
        [("operations", operations), ("apiGroups", groups), ("apiVersions", versions), ("resources", resources)]
    {
        let (path, values) = (path.child(field), values.as_deref().unwrap_or_default());
        if values.is_empty() {
            causes.required(&path, "");
        }
        if field == "resources" {
            rule_resources(causes, &path, values);
        } else {
            lonely_star(causes, &path, values);
        }
        for (index, value) in values.iter().enumerate() {
            match field {
                "operations" => causes.one_of(&path.index(index), Some(value), &known),
                "apiVersions" if value.is_empty() => causes.required(&path.index(index), ""),
                _ => {}
            }
        }
    }
    if let Some(scope) = scope {
        causes.one_of(&path.child("scope"), Some(scope), &["*", "Cluster", "Namespaced"]);
    }
}

fn lonely_star(causes: &mut Causes, path: &Path, values: &[String]) {
    if values.len() > 1 && values.iter().any(|value| value == "*") {
        causes.invalid(path, json!(values), "if '*' is present, must not specify other values");
    }
}

/// `pods`, `pods/status`, `*/scale`: nothing twice, and nothing that a wildcard covers.
fn rule_resources(causes: &mut Causes, path: &Path, resources: &[String]) {
    for (index, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            causes.required(&path.index(index), "");
        }
        let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let covered = |by: String| resources[..index].contains(&by);
        if !subresource.is_empty() && name != "*" && covered(format!("*/{subresource}")) {
            let detail = format!("if '*/{subresource}' is present, must not specify {resource}");
            causes.invalid(&path.index(index), resource.as_str(), detail);
        }
        if subresource != "*" && !subresource.is_empty() && covered(format!("{name}/*")) {
            let detail = format!("if '{name}/*' is present, must not specify {resource}");
            causes.invalid(&path.index(index), resource.as_str(), detail);
        }
    }
    let has = |name: &str| resources.iter().any(|resource| resource == name);
    if has("*/*") && resources.len() > 1 {
        let detail = "if '*/*' is present, must not specify other resources";
        causes.invalid(path, json!(resources), detail);
    }
    let plain = |resource: &&String| !resource.contains('/');
    if has("*") && resources.iter().filter(plain).count() > 1 {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.invalid(path, json!(resources), detail);
    }
}

/// Whom to call.
pub fn client_config(causes: &mut Causes, path: &Path, client: &WebhookClientConfig) {
    match (&client.url, &client.service) {
        (None, None) | (Some(_), Some(_)) => {
            causes.required(path, "exactly one of url or service is required");
        }
        (Some(url), None) => {
            let path = path.child("url");
            match url.split_once("://") {
                Some(("https", rest)) if !rest.is_empty() => {}
                Some((scheme, _)) if scheme != "https" => {
                    let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                    causes.invalid(&path, scheme, detail);
                }
                _ => causes.invalid(&path, "", "host must be specified; desired format: https://host[/path]"),
            }
        }
        (None, Some(service)) => {
            let path = path.child("service");
            for (field, detail, text) in [
                ("name", "service name is required", &service.name),
                ("namespace", "service namespace is required", &service.namespace),
            ] {
                if text.is_empty() {
                    causes.required(&path.child(field), detail);
                }
            }
            if let Some(port) = service.port.filter(|port| !(1..=65535).contains(port)) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                causes.invalid(&path.child("port"), port, detail);
            }
        }
    }
}

/// Names and expressions; what the expressions mean is another's to check.
pub(super) fn match_conditions(causes: &mut Causes, path: &Path, conditions: &[MatchCondition]) {
    if conditions.len() > MATCH_CONDITIONS_MAX {
        causes.too_many(path, conditions.len(), MATCH_CONDITIONS_MAX);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        if condition.expression.trim().is_empty() {
            causes.required(&path.child("expression"), "");
        }
        if condition.name.is_empty() {
            causes.required(&path.child("name"), "");
        } else {
            causes.invalid_each(&path.child("name"), &condition.name, names::qualified_name(&condition.name));
            if conditions[..index].iter().any(|known| known.name == condition.name) {
                causes.duplicate(&path.child("name"), condition.name.as_str());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_webhook_is_completed_and_checked() {
        let mut api = Api::new::<ValidatingWebhookConfiguration>();
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        let hook = json!({
            "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"namespace": "x", "name": "hook"}}, "rules": [rule],
        });
        let made = api.create(json!({"metadata": {"name": "v"}, "webhooks": [hook]})).unwrap();
        let shown = &made["webhooks"][0];
        assert_eq!((&shown["failurePolicy"], &shown["timeoutSeconds"]), (&json!("Fail"), &json!(10)));
        assert_eq!(
            (&shown["clientConfig"]["service"]["port"], &shown["rules"][0]["scope"]),
            (&json!(443), &json!("*"))
        );
        assert_eq!((&shown["objectSelector"], &made["metadata"]["generation"]), (&json!({}), &json!(1)));
        let wrong = json!({"name": "a.b", "sideEffects": "Some", "clientConfig": {}, "timeoutSeconds": 60});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "w"}, "webhooks": [wrong]})),
            [
                "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
                "webhooks[0].timeoutSeconds: Invalid value: 60: the timeout value must be between 1 and 30 seconds",
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ]
        );
    }
}
