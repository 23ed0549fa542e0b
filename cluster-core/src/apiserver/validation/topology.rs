//! How evenly pods spread, and the labels by which they are counted.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::field::{Causes, Path};
use super::{names, selectors};

pub fn spread_constraints(causes: &mut Causes, path: &Path, constraints: &[TopologySpreadConstraint]) {
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        positive(causes, &path.child("maxSkew"), constraint.max_skew);
        if constraint.topology_key.is_empty() {
            causes.required(&path.child("topologyKey"), "can not be empty");
        }
        let (key, action) = (&constraint.topology_key, &constraint.when_unsatisfiable);
        causes.one_of(&path.child("whenUnsatisfiable"), Some(action), &["DoNotSchedule", "ScheduleAnyway"]);
        let again =
            |later: &TopologySpreadConstraint| later.topology_key == *key && later.when_unsatisfiable == *action;
        if constraints[index + 1..].iter().any(again) {
            causes.duplicate(&path.child("{topologyKey, whenUnsatisfiable}"), format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = constraint.min_domains {
            let path = path.child("minDomains");
            positive(causes, &path, domains);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                causes.invalid(&path, domains, detail);
            }
        }
        let policies = [
            ("nodeAffinityPolicy", &constraint.node_affinity_policy),
            ("nodeTaintsPolicy", &constraint.node_taints_policy),
        ];
        for (field, policy) in policies {
            if let Some(policy) = policy {
                causes.one_of(&path.child(field), Some(policy), &["Honor", "Ignore"]);
            }
        }
        let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
        label_keys(causes, &path, keys, &[], constraint.label_selector.as_ref());
        selectors::label_selector(causes, &path.child("labelSelector"), constraint.label_selector.as_ref());
    }
}

fn positive(causes: &mut Causes, path: &Path, number: i32) {
    if number <= 0 {
        causes.invalid(path, number, "must be greater than zero");
    }
}

/// Keys of labels whose values a pod brings along, which become part of its selector.
pub fn label_keys(
    causes: &mut Causes,
    path: &Path,
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
) {
    for (field, keys) in [("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)] {
        if !keys.is_empty() && selector.is_none() {
            causes.forbidden(&path.child(field), "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            causes.invalid_each(&path.child(field).index(index), key, names::qualified_name(key));
        }
    }
    if let Some(selector) = selector {
        let mut selected: BTreeSet<&String> = selector.match_labels.iter().flatten().map(|(key, _)| key).collect();
        for expression in selector.match_expressions.iter().flatten() {
            let place = matching.iter().rposition(|key| *key == expression.key);
            if let Some(index) = place.filter(|_| selected.contains(&expression.key)) {
                let detail = "exists in both matchLabelKeys and labelSelector";
                causes.invalid(&path.index(index), expression.key.as_str(), detail);
            }
            selected.insert(&expression.key);
        }
    }
    for (index, key) in matching.iter().enumerate().filter(|(_, key)| mismatching.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        causes.invalid(&path.child("matchLabelKeys").index(index), key.as_str(), detail);
    }
}
