//! Jobs and the templates of Jobs: how many pods, how many failures, which failures count.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/>

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
    SuccessPolicyRule,
};
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::{names, pod_template, text};
use crate::api::status::Cause;

const INDEXED_PARALLELISM_MAX: i32 = 100_000;
const FAILED_INDEXES_MAX: i32 = 100_000;
/// More completions than these bound the other numbers more tightly.
const COMPLETIONS_HIGH: i32 = 100_000;
const HIGH_COMPLETIONS_LIMIT: i32 = 10_000;
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const MANAGED_BY_LENGTH_MAX: usize = 63;
const INDEXES_LENGTH_MAX: usize = 64 << 10;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// All but the selector, which the template of a Job has none of.
pub fn spec(causes: &mut Causes, path: &Path, spec: &JobSpec) {
    causes.non_negative(&path.child("parallelism"), spec.parallelism);
    causes.non_negative(&path.child("completions"), spec.completions);
    causes.non_negative(&path.child("activeDeadlineSeconds"), spec.active_deadline_seconds);
    causes.non_negative(&path.child("backoffLimit"), spec.backoff_limit);
    causes.non_negative(&path.child("ttlSecondsAfterFinished"), spec.ttl_seconds_after_finished);
    causes.non_negative(&path.child("backoffLimitPerIndex"), spec.backoff_limit_per_index);
    causes.non_negative(&path.child("maxFailedIndexes"), spec.max_failed_indexes);
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        causes.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = &spec.managed_by {
        managed_by(causes, &path.child("managedBy"), manager);
    }
    if let Some(mode) = &spec.completion_mode {
        causes.one_of(&path.child("completionMode"), Some(mode), &["NonIndexed", "Indexed"]);
    }
    let mode = spec.completion_mode.as_deref().unwrap_or("NonIndexed");
    if mode == "Indexed" {
        indexed(causes, path, spec);
    }
    if mode == "NonIndexed" {
        let per_index =
            [("backoffLimitPerIndex", spec.backoff_limit_per_index), ("maxFailedIndexes", spec.max_failed_indexes)];
        for (field, number) in per_index {
            if let Some(number) = number {
                causes.invalid(&path.child(field), number, "requires indexed completion mode");
            }
        }
    }
    failure_policy(causes, &path.child("podFailurePolicy.rules"), spec);
    success_policy(causes, &path.child("successPolicy"), spec, mode);
    if let Some(policy) = &spec.pod_replacement_policy {
        let policies: &[&str] =
            if spec.pod_failure_policy.is_some() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        causes.one_of(&path.child("podReplacementPolicy"), Some(policy), policies);
    }
    pod_template::validate(causes, &path.child("template"), &spec.template);
    restart_policy(causes, &path.child("template.spec.restartPolicy"), spec);
}

fn restart_policy(causes: &mut Causes, path: &Path, spec: &JobSpec) {
    match text(&pod_template::spec_of(&spec.template).restart_policy) {
        "Always" | "" => causes.required(path, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.pod_failure_policy.is_some() => {
            causes.invalid(path, "OnFailure", "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        other => causes.not_supported(path, other, &["OnFailure", "Never"]),
    }
}

fn managed_by(causes: &mut Causes, path: &Path, manager: &str) {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    match manager.split_once('/') {
        _ if manager.is_empty() => causes.required(path, ""),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            causes.invalid_each(path, host, names::dns_subdomain(host));
            if !rest.bytes().all(letters) {
                let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                causes.invalid(path, rest, detail);
            }
        }
        _ => causes.invalid(path, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if manager.len() > MANAGED_BY_LENGTH_MAX {
        causes.too_long(path, MANAGED_BY_LENGTH_MAX);
    }
}

fn indexed(causes: &mut Causes, path: &Path, spec: &JobSpec) {
    let (completions, parallelism) = (spec.completions, spec.parallelism.unwrap_or(0));
    let (failed, failed_path) = (spec.max_failed_indexes, path.child("maxFailedIndexes"));
    if completions.is_none() {
        causes.required(&path.child("completions"), "when completion mode is Indexed");
    }
    if parallelism > INDEXED_PARALLELISM_MAX {
        let detail = format!("must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed");
        causes.invalid(&path.child("parallelism"), parallelism, detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        causes.invalid(&failed_path, failed, "must be less than or equal to completions");
    }
    if let Some(failed) = failed.filter(|failed| *failed > FAILED_INDEXES_MAX) {
        causes.invalid(&failed_path, failed, format!("must be less than or equal to {FAILED_INDEXES_MAX}"));
    }
    if completions.is_none_or(|completions| completions <= COMPLETIONS_HIGH) || spec.backoff_limit_per_index.is_none() {
        return;
    }
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {COMPLETIONS_HIGH}");
        causes.required(&failed_path, &detail);
    }
    for (field, number) in [("parallelism", parallelism), ("maxFailedIndexes", failed.unwrap_or(0))] {
        if number > HIGH_COMPLETIONS_LIMIT {
            let detail = format!(
                "must be less than or equal to {HIGH_COMPLETIONS_LIMIT} when completions are above {COMPLETIONS_HIGH} \
                 and used with backoff limit per index"
            );
            causes.invalid(&path.child(field), number, detail);
        }
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy>
fn failure_policy(causes: &mut Causes, path: &Path, spec: &JobSpec) {
    let Some(policy) = &spec.pod_failure_policy else { return };
    if policy.rules.len() > RULES_MAX {
        causes.too_many(path, policy.rules.len(), RULES_MAX);
    }
    let pod = pod_template::spec_of(&spec.template);
    let containers = pod.containers.iter().chain(pod.init_containers.iter().flatten());
    let containers: BTreeSet<&str> = containers.map(|container| container.name.as_str()).collect();
    for (index, rule) in policy.rules.iter().enumerate() {
        failure_rule(causes, &path.index(index), rule, spec, &containers);
    }
}

fn failure_rule(
    causes: &mut Causes,
    path: &Path,
    rule: &PodFailurePolicyRule,
    spec: &JobSpec,
    containers: &BTreeSet<&str>,
) {
    one_of_required(causes, &path.child("action"), &rule.action, &ACTIONS);
    if rule.action == "FailIndex" && spec.backoff_limit_per_index.is_none() {
        causes.invalid(&path.child("action"), "FailIndex", "requires the backoffLimitPerIndex to be set");
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    if let Some(codes) = &rule.on_exit_codes {
        exit_codes(causes, &path.child("onExitCodes"), codes, containers);
    }
    if !conditions.is_empty() {
        pod_conditions(causes, &path.child("onPodConditions"), conditions);
    }
    let detail = match (rule.on_exit_codes.is_some(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    without_value(causes, path, detail);
}

/// The API shows no value here.
pub fn without_value(causes: &mut Causes, path: &Path, detail: &str) {
    let mut cause = Cause::invalid(path, Value::Null, detail);
    cause.message = format!("Invalid value: {detail}");
    causes.push(cause);
}

fn one_of_required(causes: &mut Causes, path: &Path, value: &str, values: &[&str]) {
    if value.is_empty() {
        let list: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        causes.required(path, &format!("valid values: [{}]", list.join(" ")));
    } else {
        causes.one_of(path, Some(value), values);
    }
}

fn exit_codes(
    causes: &mut Causes,
    path: &Path,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    containers: &BTreeSet<&str>,
) {
    one_of_required(causes, &path.child("operator"), &codes.operator, &OPERATORS);
    if let Some(name) = codes.container_name.as_deref().filter(|name| !containers.contains(name)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        causes.invalid(&path.child("containerName"), name, detail);
    }
    let values_path = path.child("values");
    if codes.values.is_empty() {
        causes.invalid(&values_path, json!(codes.values), "at least one value is required");
    } else if codes.values.len() > EXIT_CODES_MAX {
        causes.too_many(&values_path, codes.values.len(), EXIT_CODES_MAX);
    }
    let mut seen = BTreeSet::new();
    for (index, code) in codes.values.iter().enumerate() {
        let path = values_path.index(index);
        if codes.operator == "In" && *code == 0 {
            causes.invalid(&path, *code, "must not be 0 for the In operator");
        }
        if !seen.insert(*code) {
            causes.duplicate(&path, *code);
        }
    }
    if !codes.values.is_sorted() {
        causes.invalid(&values_path, json!(codes.values), "must be ordered");
    }
}

fn pod_conditions(causes: &mut Causes, path: &Path, patterns: &[PodFailurePolicyOnPodConditionsPattern]) {
    if patterns.len() > CONDITIONS_MAX {
        causes.too_many(path, patterns.len(), CONDITIONS_MAX);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        causes.invalid_each(&path.child("type"), &pattern.type_, names::qualified_name(&pattern.type_));
        one_of_required(causes, &path.child("status"), text(&pattern.status), &STATUSES);
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy>
fn success_policy(causes: &mut Causes, path: &Path, spec: &JobSpec, mode: &str) {
    let Some(policy) = &spec.success_policy else { return };
    if mode != "Indexed" {
        // Shown by its internal names.
        let rule = |rule: &SuccessPolicyRule| json!({"SucceededIndexes": rule.succeeded_indexes, "SucceededCount": rule.succeeded_count});
        let rules: Vec<Value> = policy.rules.iter().map(rule).collect();
        return causes.invalid(path, json!({"Rules": rules}), "requires indexed completion mode");
    }
    let path = path.child("rules");
    if policy.rules.is_empty() {
        causes.required(&path, "at least one rules must be specified when the successPolicy is specified");
    }
    if policy.rules.len() > RULES_MAX {
        causes.too_many(&path, policy.rules.len(), RULES_MAX);
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        success_rule(causes, &path.index(index), rule, spec.completions.unwrap_or(0));
    }
}

fn success_rule(causes: &mut Causes, path: &Path, rule: &SuccessPolicyRule, completions: i32) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        causes.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(indexes) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > INDEXES_LENGTH_MAX {
            causes.too_long(&path, INDEXES_LENGTH_MAX);
        }
        match count_indexes(indexes, completions) {
            Ok(count) => total = count,
            Err(problem) => {
                causes.invalid(&path, indexes.as_str(), format!("error parsing succeededIndexes: {problem}"));
            }
        }
    }
    let Some(count) = rule.succeeded_count else { return };
    let path = path.child("succeededCount");
    causes.non_negative(&path, Some(count));
    if count > completions {
        let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
        causes.invalid(&path, count, detail);
    }
    if rule.succeeded_indexes.is_some() && count > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        causes.invalid(&path, count, detail);
    }
}

/// How many indexes `1,3-5` are.
pub fn count_indexes(text: &str, completions: i32) -> Result<i32, String> {
    let (mut total, mut last) = (0, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let number = |text: &str| {
            text.parse::<i32>().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))
        };
        let (first, end) = match interval.split('-').collect::<Vec<_>>()[..] {
            [one] => (number(one)?, number(one)?),
            [first, end] => (number(first)?, number(end)?),
            _ => {
                return Err(format!(
                    "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        };
        for index in [first, end] {
            if index >= completions {
                return Err(format!("too large index: {index:?}").replace(&index.to_string(), &format!("\"{index}\"")));
            }
        }
        if first >= end && interval.contains('-') {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}
