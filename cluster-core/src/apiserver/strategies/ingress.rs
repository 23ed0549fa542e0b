//! Ingresses and IngressClasses. <https://kubernetes.io/docs/concepts/services-networking/ingress/>

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressClass, IngressClassParametersReference, IngressSpec,
};
use serde_json::Value;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{addresses, names};

/// How the class was named before there was a field.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_BYTES_MAX: usize = 250;

pub struct Ingresses;

impl Strategy for Ingresses {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        ingress(&mut causes, &Path::new("spec"), object.spec::<Ingress>());
        causes.into()
    }

    /// Some were made before the class had a field.
    fn validate_create(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        causes.extend(self.validate(object));
        let class = object.spec::<Ingress>().ingress_class_name.as_deref();
        if let (Some(annotated), Some(class)) = (object.annotation(CLASS_ANNOTATION), class)
            && annotated != class
        {
            let detail = "must match `ingressClassName` when both are specified";
            causes.invalid(&Path::new("annotations").child(CLASS_ANNOTATION), annotated, detail);
        }
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let balancer = new.status::<Ingress>().load_balancer.as_ref();
        for (index, point) in balancer.iter().flat_map(|balancer| &balancer.ingress).flatten().enumerate() {
            let path = Path::new("status.loadBalancer.ingress").index(index);
            if let Some(ip) = point.ip.as_deref().filter(|ip| !ip.is_empty()) {
                addresses::ip(&mut causes, &path.child("ip"), ip);
            }
            if let Some(host) = point.hostname.as_deref().filter(|host| !host.is_empty()) {
                causes.invalid_each(&path.child("hostname"), host, names::dns_subdomain(host));
                not_an_address(&mut causes, &path.child("hostname"), host);
            }
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn ingress(causes: &mut Causes, path: &Path, spec: &IngressSpec) {
    let rules = spec.rules.as_deref().unwrap_or_default();
    if rules.is_empty() && spec.default_backend.is_none() {
        causes.invalid(path, Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(default) = &spec.default_backend {
        backend(causes, &path.child("defaultBackend"), default);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(index);
        if let Some(host) = rule.host.as_deref().filter(|host| !host.is_empty()) {
            not_an_address(causes, &path.child("host"), host);
            causes.invalid_each(&path.child("host"), host, host_name(host));
        }
        if let Some(http) = &rule.http {
            if http.paths.is_empty() {
                causes.required(&path.child("http.paths"), "");
            }
            for (index, one) in http.paths.iter().enumerate() {
                http_path(causes, &path.child("http.paths").index(index), one);
            }
        }
    }
    for (index, tls) in spec.tls.iter().flatten().enumerate() {
        let path = path.child("tls").index(index);
        for (index, host) in tls.hosts.iter().flatten().enumerate() {
            causes.invalid_each(&path.child("hosts").index(index), host, host_name(host));
        }
        if let Some(secret) = tls.secret_name.as_deref().filter(|secret| !secret.is_empty()) {
            causes.invalid_each(&path.child("secretName"), secret, names::dns_subdomain(secret));
        }
    }
    if let Some(class) = &spec.ingress_class_name {
        causes.invalid_each(&path.child("ingressClassName"), class, names::dns_subdomain(class));
    }
}

fn not_an_address(causes: &mut Causes, path: &Path, host: &str) {
    if host.parse::<std::net::IpAddr>().is_ok() {
        causes.invalid(path, host, "must be a DNS name, not an IP address");
    }
}

/// A subdomain, perhaps with `*` as its first part.
fn host_name(host: &str) -> Vec<String> {
    const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
         must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
         '*.example.com', regex used for validation is \
         '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if !host.contains('*') {
        return names::dns_subdomain(host);
    }
    let good = host.strip_prefix("*.").is_some_and(|rest| names::dns_subdomain(rest).is_empty());
    if good { Vec::new() } else { vec![WILDCARD.into()] }
}

fn http_path(causes: &mut Causes, path: &Path, rule: &HTTPIngressPath) {
    let (place, text) = (path.child("path"), rule.path.as_deref().unwrap_or_default());
    match rule.path_type.as_str() {
        "" => return causes.required(&path.child("pathType"), "pathType must be specified"),
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                causes.invalid(&place, text, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| text.contains(**part)) {
                causes.invalid(&place, text, format!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                causes.invalid(&place, text, format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                causes.invalid(&place, text, "must be an absolute path");
            }
        }
        other => {
            causes.not_supported(&path.child("pathType"), other, &["Exact", "ImplementationSpecific", "Prefix"]);
        }
    }
    backend(causes, &path.child("backend"), &rule.backend);
}

fn backend(causes: &mut Causes, path: &Path, backend: &IngressBackend) {
    match (&backend.resource, &backend.service) {
        (Some(_), Some(_)) => causes.invalid(path, "", "cannot set both resource and service backends"),
        (Some(resource), None) => typed_reference(causes, &path.child("resource"), resource),
        (None, Some(service)) => {
            let name_path = path.child("service.name");
            if service.name.is_empty() {
                causes.required(&name_path, "");
            } else {
                causes.invalid_each(&name_path, &service.name, names::dns_label(&service.name));
            }
            let port = service.port.clone().unwrap_or_default();
            let (name, number) = (port.name.unwrap_or_default(), port.number.unwrap_or(0));
            match (name.is_empty(), number) {
                (true, 0) => causes.required(path, "port name or number is required"),
                (true, number) => causes.in_range(&path.child("service.port.number"), number, 1, 65535),
                (false, 0) => causes.invalid_each(&path.child("service.port.name"), &name, names::port_name(&name)),
                (false, _) => causes.invalid(path, "", "cannot set both port name & port number"),
            }
        }
        (None, None) => causes.invalid(path, "", "resource or service backend is required"),
    }
}

fn typed_reference(causes: &mut Causes, path: &Path, reference: &TypedLocalObjectReference) {
    if let Some(group) = &reference.api_group {
        causes.invalid_each(&path.child("apiGroup"), group, names::dns_subdomain(group));
    }
    for (field, text) in [("kind", &reference.kind), ("name", &reference.name)] {
        if text.is_empty() {
            causes.required(&path.child(field), &format!("{field} is required"));
        } else {
            causes.invalid_each(&path.child(field), text, names::path_segment(text));
        }
    }
}

pub struct Classes;

impl Strategy for Classes {
    fn default(&self, object: &mut Object) {
        if let Some(parameters) = &mut object.spec_mut::<IngressClass>().parameters {
            parameters.scope.get_or_insert_with(|| "Cluster".into());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<IngressClass>(), Path::new("spec"), Causes::new());
        let controller = spec.controller.as_deref().unwrap_or_default();
        if controller.len() > CONTROLLER_BYTES_MAX {
            causes.too_long(&path.child("controller"), CONTROLLER_BYTES_MAX);
        }
        domain_prefixed_path(&mut causes, &path.child("controller"), controller);
        if let Some(parameters) = &spec.parameters {
            class_parameters(&mut causes, &path.child("parameters"), parameters);
        }
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let controller = |class: &Object| class.spec::<IngressClass>().controller.clone();
        causes.immutable(&Path::new("spec.controller"), &controller(old), &controller(new));
        causes.extend(self.validate(new));
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn domain_prefixed_path(causes: &mut Causes, path: &Path, text: &str) {
    if text.is_empty() {
        return causes.required(path, "");
    }
    match text.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            causes.invalid_each(path, host, names::dns_subdomain(host));
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
            if !rest.bytes().all(fits) {
                let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                causes.invalid(path, rest, detail);
            }
        }
        _ => causes.invalid(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
}

fn class_parameters(causes: &mut Causes, path: &Path, parameters: &IngressClassParametersReference) {
    let IngressClassParametersReference { api_group, kind, name, namespace, scope } = parameters;
    let reference = TypedLocalObjectReference { api_group: api_group.clone(), kind: kind.clone(), name: name.clone() };
    typed_reference(causes, path, &reference);
    let (scope_path, namespace_path) = (path.child("scope"), path.child("namespace"));
    match (scope.as_deref(), namespace) {
        (None, _) => causes.required(&scope_path, ""),
        (Some("Namespace"), None) => {
            causes.required(&namespace_path, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(namespace)) => {
            causes.invalid_each(&namespace_path, namespace, names::dns_label(namespace));
        }
        (Some("Cluster"), Some(_)) => {
            causes.forbidden(&namespace_path, "`parameters.scope` is set to 'Cluster'");
        }
        (Some(scope), _) => causes.one_of(&scope_path, Some(scope), &["Cluster", "Namespace"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    fn one_path(path: Value) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"rules": [{"http": {"paths": [path]}}]}})
    }

    #[test]
    fn paths_and_backends_are_checked() {
        let mut api = Api::new::<Ingress>();
        let service = json!({"service": {"name": "s", "port": {"number": 80}}});
        assert_eq!(
            api.refusal(one_path(json!({"path": "/", "backend": service}))),
            ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]
        );
        assert_eq!(
            api.refusal(one_path(json!({"path": "x/..", "pathType": "Exact", "backend": {}}))),
            [
                "spec.rules[0].http.paths[0].path: Invalid value: \"x/..\": must be an absolute path",
                "spec.rules[0].http.paths[0].path: Invalid value: \"x/..\": cannot end with '/..'",
                "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is required",
            ]
        );
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": {}})),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
        );
    }

    #[test]
    fn an_ingress_without_class_gets_the_default_one() {
        let mut api = Api::new::<IngressClass>();
        let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
        let class =
            json!({"metadata": {"name": "nginx", "annotations": annotations}, "spec": {"controller": "x.io/c"}});
        api.create(class).unwrap();
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "bad"}, "spec": {"controller": "c"}})),
            ["spec.controller: Invalid value: \"c\": must be a domain-prefixed path (such as \"acme.io/foo\")"]
        );
        let mut api = api.of::<Ingress>();
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": {"rules": [{"host": "x.io"}]}})).unwrap();
        assert_eq!(made["spec"]["ingressClassName"], "nginx");
        assert_eq!(made["status"], json!({"loadBalancer": {}}));
    }
}
