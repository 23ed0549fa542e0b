//! What must hold of a CustomResourceDefinition beside its schemas, which stand in `structural.rs`.
//! <https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/>

use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionVersion, CustomResourceSubresources, CustomResourceValidation, SelectableField,
};
use serde_json::json;

use super::selectable::{schema_at, steps};
use super::structural;
use crate::api::object::Object;
use crate::apiserver::strategies::webhook;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const SELECTABLE_FIELDS_MAX: usize = 8;
const APPROVAL: &str = "api-approved.kubernetes.io";
const APPROVAL_NEEDED: &str = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
const APPROVAL_POLICY: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

pub fn validate(definition: &Object) -> Causes {
    let mut causes = Causes::new();
    let spec = definition.spec::<CustomResourceDefinition>();
    let path = Path::new("spec");
    let name = format!("{}.{}", spec.names.plural, spec.group);
    if *definition.key.name != *name && !definition.key.name.is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.invalid(&Path::new("metadata.name"), &*definition.key.name, detail);
    }
    let group = path.child("group");
    if spec.group.is_empty() {
        causes.required(&group, "");
    } else {
        joined(&mut causes, &group, &spec.group, names::dns_subdomain(&spec.group), "");
        if names::dns_subdomain(&spec.group).is_empty() && !spec.group.contains('.') {
            causes.invalid(&group, spec.group.as_str(), "should be a domain with at least one dot");
        }
    }
    causes.required_one_of(&path.child("scope"), Some(&spec.scope), &["Cluster", "Namespaced"]);
    versions(&mut causes, &spec.versions, &path);
    for (field, text) in [
        ("plural", &spec.names.plural),
        ("singular", spec.names.singular.as_ref().unwrap_or(&String::new())),
        ("kind", &spec.names.kind),
        ("listKind", spec.names.list_kind.as_ref().unwrap_or(&String::new())),
    ] {
        if text.is_empty() {
            causes.required(&path.child("names").child(field), "");
        }
    }
    check_names(&mut causes, &spec.names, &path.child("names"));
    shared(&mut causes, &spec.versions, &path);
    if let Some(conversion) = &spec.conversion {
        check_conversion(&mut causes, conversion, &path.child("conversion"));
    }
    if spec.preserve_unknown_fields == Some(true) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        causes.invalid(&path.child("preserveUnknownFields"), true, detail);
    }
    if let Some(("False", reason @ ("MissingAnnotation" | "InvalidAnnotation"), message)) =
        approval(definition).as_ref().map(|(status, reason, message)| (*status, *reason, message))
    {
        let annotation = Path::new("metadata.annotations").key(APPROVAL);
        match reason {
            "MissingAnnotation" => causes.required(&annotation, message),
            _ => causes.invalid(&annotation, definition.annotation(APPROVAL).unwrap_or_default(), message),
        }
    }
    causes
}

/// All problems of a name in one cause.
fn joined(causes: &mut Causes, path: &Path, value: &str, problems: Vec<String>, prefix: &str) {
    if !problems.is_empty() {
        causes.invalid(path, value, format!("{prefix}{}", problems.join(",")));
    }
}

/// Parts that all versions have alike count as the definition's own, and are told about there.
fn is_shared<T: PartialEq>(
    versions: &[CustomResourceDefinitionVersion],
    part: fn(&CustomResourceDefinitionVersion) -> T,
) -> bool {
    versions.windows(2).all(|pair| part(&pair[0]) == part(&pair[1]))
}

fn versions(causes: &mut Causes, versions: &[CustomResourceDefinitionVersion], path: &Path) {
    let at = |index: usize| path.child("versions").index(index);
    for (index, version) in versions.iter().enumerate() {
        if !has_schema(&version.schema) {
            causes.required(&at(index).child("schema.openAPIV3Schema"), "");
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let path = at(index);
        joined(causes, &path.child("name"), &version.name, names::dns_1035_label(&version.name), "");
        if let Some(warning) = &version.deprecation_warning {
            let path = path.child("deprecationWarning");
            if version.deprecated != Some(true) {
                causes.invalid(&path, warning.as_str(), "can only be set for deprecated versions");
            }
            if warning.is_empty() {
                causes.invalid(&path, warning.as_str(), "must not be empty");
            } else if warning.len() > 256 {
                causes.invalid(&path, warning.as_str(), "must be <= 256 characters long");
            }
        }
        if !is_shared(versions, |version| version.schema.clone()) {
            check_schema(causes, version, &path.child("schema"));
        }
        if !is_shared(versions, |version| version.subresources.clone()) {
            check_subresources(causes, &version.subresources, &path.child("subresources"));
        }
        if !is_shared(versions, |version| version.additional_printer_columns.clone()) {
            check_columns(causes, &version.additional_printer_columns, &path.child("additionalPrinterColumns"));
        }
        if !is_shared(versions, |version| version.selectable_fields.clone()) {
            check_selectable(causes, version, &path.child("selectableFields"));
        }
    }
    let path = path.child("versions");
    let mut names: Vec<&str> = versions.iter().map(|version| version.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        causes.invalid(&path, json!(versions), "must contain unique version names");
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        causes.invalid(&path, json!(versions), "must have exactly one version marked as storage version");
    }
}

fn has_schema(schema: &Option<CustomResourceValidation>) -> bool {
    schema.as_ref().is_some_and(|schema| schema.open_api_v3_schema.is_some())
}

/// What all versions share.
fn shared(causes: &mut Causes, versions: &[CustomResourceDefinitionVersion], path: &Path) {
    let Some(first) = versions.first() else { return };
    if is_shared(versions, |version| version.schema.clone()) {
        check_schema(causes, first, &path.child("validation"));
    }
    if is_shared(versions, |version| version.subresources.clone()) {
        check_subresources(causes, &first.subresources, &path.child("subresources"));
    }
    if is_shared(versions, |version| version.additional_printer_columns.clone()) {
        check_columns(causes, &first.additional_printer_columns, &path.child("additionalPrinterColumns"));
    }
    if is_shared(versions, |version| version.selectable_fields.clone()) {
        check_selectable(causes, first, &path.child("selectableFields"));
    }
}

fn check_schema(causes: &mut Causes, version: &CustomResourceDefinitionVersion, path: &Path) {
    if let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) {
        structural::validate(causes, schema, &path.child("openAPIV3Schema"));
    }
}

fn check_names(causes: &mut Causes, of: &CustomResourceDefinitionNames, path: &Path) {
    let mut label = |path: Path, name: &str| {
        if !name.is_empty() {
            joined(causes, &path, name, names::dns_1035_label(name), "");
        }
    };
    label(path.child("plural"), &of.plural);
    label(path.child("singular"), of.singular.as_deref().unwrap_or_default());
    let mut kind = |path: Path, name: &str| {
        if !name.is_empty() {
            let problems = names::dns_1035_label(&name.to_lowercase());
            joined(causes, &path, name, problems, "may have mixed case, but should otherwise match: ");
        }
    };
    let list_kind = of.list_kind.as_deref().unwrap_or_default();
    kind(path.child("kind"), &of.kind);
    kind(path.child("listKind"), list_kind);
    for (field, names) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
        if field == "categories" && !of.kind.is_empty() && of.kind == list_kind {
            causes.invalid(&path.child("listKind"), list_kind, "kind and listKind may not be the same");
        }
        for (index, name) in names.iter().flatten().enumerate() {
            joined(causes, &path.child(field).index(index), name, names::dns_1035_label(name), "");
        }
    }
}

fn check_conversion(causes: &mut Causes, conversion: &CustomResourceConversion, path: &Path) {
    causes.required_one_of(&path.child("strategy"), Some(&conversion.strategy), &["None", "Webhook"]);
    let (client_path, versions_path) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    let client = conversion.webhook.as_ref().and_then(|webhook| webhook.client_config.as_ref());
    let versions = conversion.webhook.as_ref().map(|webhook| webhook.conversion_review_versions.as_slice());
    let versions = versions.unwrap_or_default();
    if conversion.strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            causes.forbidden(&client_path, detail);
        }
        if !versions.is_empty() {
            causes.forbidden(&versions_path, detail);
        }
        return;
    }
    match client {
        None => causes.required(&client_path, "required when strategy is set to Webhook"),
        Some(client) => {
            // The same fields, in a type of another group.
            let service = client.service.as_ref().map(|service| ServiceReference {
                name: service.name.clone(),
                namespace: service.namespace.clone(),
                path: service.path.clone(),
                port: service.port,
            });
            let (ca_bundle, url) = (client.ca_bundle.clone(), client.url.clone());
            webhook::client_config(causes, &client_path, &WebhookClientConfig { ca_bundle, service, url });
        }
    }
    review_versions(causes, &versions_path, versions);
}

fn review_versions(causes: &mut Causes, path: &Path, versions: &[String]) {
    if versions.is_empty() {
        return causes.required(path, "");
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            causes.invalid(&path.index(index), version.as_str(), "duplicate version");
            continue;
        }
        causes.invalid_each(&path.index(index), version, names::dns_1035_label(version));
    }
    if !versions.iter().any(|version| matches!(version.as_str(), "v1" | "v1beta1")) {
        causes.invalid(path, json!(versions), "must include at least one of v1, v1beta1");
    }
}

fn check_subresources(causes: &mut Causes, subresources: &Option<CustomResourceSubresources>, path: &Path) {
    let Some(scale) = subresources.as_ref().and_then(|subresources| subresources.scale.as_ref()) else { return };
    let paths = [
        ("specReplicasPath", scale.spec_replicas_path.as_str(), &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &scale.status_replicas_path, &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            scale.label_selector_path.as_deref().unwrap_or_default(),
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ];
    for (field, text, roots, detail) in paths {
        let path = path.child("scale").child(field);
        if text.is_empty() {
            if field != "labelSelectorPath" {
                causes.required(&path, "");
            }
        } else if steps(text).is_none() {
            causes.invalid(&path, text, "must be a simple json path starting with .");
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            causes.invalid(&path, text, detail);
        }
    }
}

fn check_columns(causes: &mut Causes, columns: &Option<Vec<CustomResourceColumnDefinition>>, path: &Path) {
    const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
    const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let must_be = |known: &[&str]| format!("must be one of {}", known.join(","));
    for (index, column) in columns.iter().flatten().enumerate() {
        let path = path.index(index);
        if column.name.is_empty() {
            causes.required(&path.child("name"), "");
        }
        if column.type_.is_empty() {
            causes.required(&path.child("type"), &must_be(TYPES));
        } else if !TYPES.contains(&column.type_.as_str()) {
            causes.invalid(&path.child("type"), column.type_.as_str(), must_be(TYPES));
        }
        let format = column.format.as_deref().unwrap_or_default();
        if !format.is_empty() && !FORMATS.contains(&format) {
            causes.invalid(&path.child("format"), format, must_be(FORMATS));
        }
        let json_path = path.child("JSONPath");
        if column.json_path.is_empty() {
            causes.required(&json_path, "");
        } else if !column.json_path.starts_with('.') {
            causes.invalid(&json_path, column.json_path.as_str(), "must be a simple json path starting with .");
        }
    }
}

fn check_selectable(causes: &mut Causes, version: &CustomResourceDefinitionVersion, path: &Path) {
    let fields: &[SelectableField] = version.selectable_fields.as_deref().unwrap_or_default();
    if fields.len() > SELECTABLE_FIELDS_MAX {
        causes.too_many(path, fields.len(), SELECTABLE_FIELDS_MAX);
    }
    let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
        if !fields.is_empty() {
            let detail = "selectableFields may only be set when version.schema.openAPIV3Schema is set";
            causes.invalid(path, "", detail);
        }
        return;
    };
    for (index, field) in fields.iter().enumerate() {
        let (path, text) = (path.index(index).child("jsonPath"), field.json_path.as_str());
        if text.is_empty() {
            causes.required(&path, "");
            continue;
        }
        if fields[..index].iter().any(|other| other.json_path == text) {
            causes.duplicate(&path, text);
            continue;
        }
        match schema_at(schema, text) {
            _ if text == ".metadata" || text.starts_with(".metadata.") => {
                causes.invalid(&path, text, "must not point to fields in metadata");
            }
            None => causes.invalid(&path, text, "is an invalid path: does not refer to a valid field"),
            Some(found) if !matches!(found.type_.as_deref(), Some("string" | "boolean" | "integer")) => {
                let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                              with formats are allowed.";
                causes.invalid(&path, text, detail);
            }
            Some(_) => {}
        }
    }
}

/// Whether a definition in a group of Kubernetes' own is approved: status, reason and message of a condition; `None`
/// for all other groups. <https://github.com/kubernetes/enhancements/pull/1111>
pub fn approval(definition: &Object) -> Option<(&'static str, &'static str, String)> {
    let group = &definition.spec::<CustomResourceDefinition>().group;
    let protected = ["k8s.io", "kubernetes.io"];
    if !protected.iter().any(|root| group.strip_suffix(root).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    {
        return None;
    }
    let annotation = definition.annotation(APPROVAL).unwrap_or_default();
    let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    Some(if annotation.is_empty() {
        ("False", "MissingAnnotation", format!("{APPROVAL_NEEDED}, {APPROVAL_POLICY}"))
    } else if annotation.starts_with("unapproved") {
        ("False", "UnapprovedAnnotation", format!("not approved: {annotation:?}"))
    } else if !is_url {
        let message =
            format!("{APPROVAL_NEEDED} with either a URL or a reason starting with \"unapproved\", {APPROVAL_POLICY}");
        ("False", "InvalidAnnotation", message)
    } else {
        ("True", "ApprovedAnnotation", format!("approved in {annotation}"))
    })
}
