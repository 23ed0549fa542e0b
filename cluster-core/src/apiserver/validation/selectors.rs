//! Selectors of labels and of nodes, as specs hold them.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#resources-that-support-set-based-requirements>

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::field::{Causes, Path};
use super::{metadata, names};

const VALUES_REQUIRED: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const VALUES_FORBIDDEN: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
const UNKNOWN_OPERATOR: &str = "not a valid selector operator";

pub fn label_selector(causes: &mut Causes, path: &Path, selector: Option<&LabelSelector>) {
    let Some(selector) = selector else { return };
    if let Some(labels) = &selector.match_labels {
        metadata::labels(causes, labels, &path.child("matchLabels"));
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        label_requirement(causes, &path.child("matchExpressions").index(index), expression);
    }
}

fn label_requirement(causes: &mut Causes, path: &Path, requirement: &LabelSelectorRequirement) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => causes.required(&path.child("values"), VALUES_REQUIRED),
        "Exists" | "DoesNotExist" if !values.is_empty() => causes.forbidden(&path.child("values"), VALUES_FORBIDDEN),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => causes.invalid(&path.child("operator"), other, UNKNOWN_OPERATOR),
    }
    causes.invalid_each(&path.child("key"), &requirement.key, names::qualified_name(&requirement.key));
    label_values(causes, &path.child("values"), values);
}

fn label_values(causes: &mut Causes, path: &Path, values: &[String]) {
    for (index, value) in values.iter().enumerate() {
        causes.invalid_each(&path.index(index), value, names::label_value(value));
    }
}

/// The terms of a node selector, one of which must match.
pub fn node_selector(causes: &mut Causes, path: &Path, selector: &NodeSelector) {
    let terms = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        causes.required(&terms, "must have at least one node selector term");
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        node_selector_term(causes, &terms.index(index), term, true);
    }
}

/// One term of a node selector. The values of preferred terms are not checked.
pub fn node_selector_term(causes: &mut Causes, path: &Path, term: &NodeSelectorTerm, check_values: bool) {
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        let path = path.child("matchExpressions").index(index);
        node_requirement(causes, &path, requirement);
        if check_values {
            label_values(causes, &path.child("values"), requirement.values.as_deref().unwrap_or_default());
        }
    }
    for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
        node_field_requirement(causes, &path.child("matchFields").index(index), requirement);
    }
}

fn node_requirement(causes: &mut Causes, path: &Path, requirement: &NodeSelectorRequirement) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => causes.required(&path.child("values"), VALUES_REQUIRED),
        "Exists" | "DoesNotExist" if !values.is_empty() => causes.forbidden(&path.child("values"), VALUES_FORBIDDEN),
        "Gt" | "Lt" if values.len() != 1 => {
            causes.required(&path.child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => causes.invalid(&path.child("operator"), other, UNKNOWN_OPERATOR),
    }
    causes.invalid_each(&path.child("key"), &requirement.key, names::qualified_name(&requirement.key));
}

fn node_field_requirement(causes: &mut Causes, path: &Path, requirement: &NodeSelectorRequirement) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(&path.child("values"), detail);
        }
        "In" | "NotIn" => {}
        other => causes.invalid(&path.child("operator"), other, UNKNOWN_OPERATOR),
    }
    if requirement.key != "metadata.name" {
        causes.invalid(&path.child("key"), requirement.key.as_str(), "not a valid field selector key");
        return;
    }
    for (index, value) in values.iter().enumerate() {
        causes.invalid_each(&path.child("values").index(index), value, names::dns_subdomain(value));
    }
}
