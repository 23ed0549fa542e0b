//! How a workload replaces its pods: numbers and shares of pods.

use k8s_openapi::api::apps::v1::{
    DaemonSetUpdateStrategy, DeploymentStrategy, RollingUpdateDaemonSet, RollingUpdateDeployment,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::{names, text};

fn shown(amount: &IntOrString) -> Value {
    json!(amount)
}

/// A number of pods or a share of them.
fn number_or_percent(causes: &mut Causes, path: &Path, amount: &IntOrString) {
    match amount {
        IntOrString::Int(number) => causes.non_negative(path, Some(*number)),
        IntOrString::String(share) => causes.invalid_each(path, share, names::percent(share)),
    }
}

fn value(amount: &IntOrString) -> i64 {
    match amount {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(share) => share.trim_end_matches('%').parse().unwrap_or(0),
    }
}

fn at_most_all(causes: &mut Causes, path: &Path, amount: &IntOrString) {
    if let IntOrString::String(share) = amount
        && names::percent(share).is_empty()
        && value(amount) > 100
    {
        causes.invalid(path, share.as_str(), "must not be greater than 100%");
    }
}

pub fn deployment(causes: &mut Causes, path: &Path, strategy: &DeploymentStrategy) {
    let rolling_path = path.child("rollingUpdate");
    match (text(&strategy.type_), &strategy.rolling_update) {
        ("Recreate", Some(_)) => {
            causes.forbidden(&rolling_path, "may not be specified when strategy `type` is 'Recreate'");
        }
        ("Recreate", None) => {}
        ("RollingUpdate", None) => causes.required(&rolling_path, "this should be defaulted and never be nil"),
        ("RollingUpdate", Some(rolling)) => deployment_rolling(causes, &rolling_path, rolling),
        (other, rolling) => {
            let rolling = rolling
                .as_ref()
                .map(|rolling| json!({"MaxUnavailable": rolling.max_unavailable, "MaxSurge": rolling.max_surge}));
            // Shown by its internal names, in their order.
            let value = format!("{{\"Type\":{},\"RollingUpdate\":{}}}", json!(other), json!(rolling));
            not_supported_raw(causes, path, &value, "\"Recreate\", \"RollingUpdate\"");
        }
    }
}

fn not_supported_raw(causes: &mut Causes, path: &Path, value: &str, supported: &str) {
    let mut cause = crate::api::status::Cause::unsupported(path, Value::Null, &[]);
    cause.message = format!("Unsupported value: {value}: supported values: {supported}");
    causes.push(cause);
}

fn deployment_rolling(causes: &mut Causes, path: &Path, rolling: &RollingUpdateDeployment) {
    let zero = IntOrString::Int(0);
    let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
    let surge = rolling.max_surge.as_ref().unwrap_or(&zero);
    let unavailable_path = path.child("maxUnavailable");
    number_or_percent(causes, &unavailable_path, unavailable);
    number_or_percent(causes, &path.child("maxSurge"), surge);
    if value(unavailable) == 0 && value(surge) == 0 {
        causes.invalid(&unavailable_path, shown(unavailable), "may not be 0 when `maxSurge` is 0");
    }
    at_most_all(causes, &unavailable_path, unavailable);
}

pub fn daemon_set(causes: &mut Causes, path: &Path, strategy: &DaemonSetUpdateStrategy) {
    match (text(&strategy.type_), &strategy.rolling_update) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => causes.required(&path.child("rollingUpdate"), ""),
        ("RollingUpdate", Some(rolling)) => daemon_set_rolling(causes, &path.child("rollingUpdate"), rolling),
        (other, rolling) => {
            let rolling = rolling
                .as_ref()
                .map(|rolling| json!({"MaxUnavailable": rolling.max_unavailable, "MaxSurge": rolling.max_surge}));
            let value = format!("{{\"Type\":{},\"RollingUpdate\":{}}}", json!(other), json!(rolling));
            not_supported_raw(causes, path, &value, "\"RollingUpdate\", \"OnDelete\"");
        }
    }
}

fn daemon_set_rolling(causes: &mut Causes, path: &Path, rolling: &RollingUpdateDaemonSet) {
    let zero = IntOrString::Int(0);
    let unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
    let surge = rolling.max_surge.as_ref().unwrap_or(&zero);
    let (unavailable_path, surge_path) = (path.child("maxUnavailable"), path.child("maxSurge"));
    number_or_percent(causes, &unavailable_path, unavailable);
    number_or_percent(causes, &surge_path, surge);
    at_most_all(causes, &unavailable_path, unavailable);
    at_most_all(causes, &surge_path, surge);
    match (value(unavailable) != 0, value(surge) != 0) {
        (true, true) => causes.invalid(&surge_path, shown(surge), "may not be set when maxUnavailable is non-zero"),
        (false, false) => causes.required(&unavailable_path, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

pub fn stateful_set(causes: &mut Causes, path: &Path, strategy: &StatefulSetUpdateStrategy) {
    let rolling_path = path.child("rollingUpdate");
    match (text(&strategy.type_), &strategy.rolling_update) {
        ("", _) => causes.required(path, ""),
        ("OnDelete", Some(rolling)) => {
            let shown = json!({"Partition": rolling.partition.unwrap_or(0), "MaxUnavailable": rolling.max_unavailable});
            causes.invalid(&rolling_path, shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            causes.non_negative(&rolling_path.child("partition"), rolling.partition);
            if let Some(unavailable) = &rolling.max_unavailable {
                let path = rolling_path.child("maxUnavailable");
                number_or_percent(causes, &path, unavailable);
                if value(unavailable) == 0 {
                    causes.invalid(&path, shown(unavailable), "cannot be 0");
                }
                at_most_all(causes, &path, unavailable);
            }
        }
        (other, rolling) => {
            let rolling = rolling.as_ref().map(|rolling| {
                json!({"Partition": rolling.partition.unwrap_or(0), "MaxUnavailable": rolling.max_unavailable})
            });
            let mut cause = crate::api::status::Cause::invalid(path, Value::Null, "");
            cause.message = format!(
                "Invalid value: {{\"Type\":{},\"RollingUpdate\":{}}}: must be 'RollingUpdate' or 'OnDelete'",
                json!(other),
                json!(rolling)
            );
            causes.push(cause);
        }
    }
}
