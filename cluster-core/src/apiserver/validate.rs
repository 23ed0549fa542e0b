//! Checks that hold for every kind: names, labels, owner references, finalizers.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>

use crate::api::object::Object;
use crate::api::status::Cause;

const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// All keys and values of an object's annotations together.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

pub fn metadata(object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = &*object.key.name;
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        let problem = match &*object.kind.kind {
            "Namespace" => dns_label(name),
            "Service" => dns_label(name),
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => path_segment(name),
            _ => dns_subdomain(name),
        };
        if let Some(detail) = problem {
            causes.push(Cause::invalid("metadata.name", name, detail));
        }
    }
    let metadata = object.metadata();
    if let Some(labels) = &metadata.labels {
        causes.extend(self::labels(labels, "metadata.labels"));
    }
    for key in metadata.annotations.iter().flatten().map(|(key, _)| key) {
        if let Some(detail) = qualified_name(key) {
            causes.push(Cause::invalid("metadata.annotations", key.as_str(), detail));
        }
    }
    let size = |(key, value): (&String, &String)| key.len() + value.len();
    if metadata.annotations.iter().flatten().map(size).sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX));
    }
    causes
}

pub fn metadata_update(old: &Object, new: &Object) -> Vec<Cause> {
    let mut causes = metadata(new);
    if old.is_terminating() {
        let known = old.metadata().finalizers.as_deref().unwrap_or_default();
        let added: Vec<_> = new.metadata().finalizers.iter().flatten().filter(|f| !known.contains(f)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
            );
            causes.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    causes
}

pub fn labels(labels: &crate::api::selector::Labels, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in labels {
        if let Some(detail) = qualified_name(key) {
            causes.push(Cause::invalid(path, key.as_str(), detail));
        }
        if let Some(detail) = label_value(value) {
            causes.push(Cause::invalid(path, value.as_str(), detail));
        }
    }
    causes
}

fn alphanumeric_ends(text: &str, lower: bool) -> bool {
    let good = |byte: Option<u8>| {
        byte.is_some_and(|byte| {
            byte.is_ascii_digit() || byte.is_ascii_lowercase() || !lower && byte.is_ascii_uppercase()
        })
    };
    good(text.bytes().next()) && good(text.bytes().last())
}

fn made_of(text: &str, lower: bool, also: &[u8]) -> bool {
    text.bytes().all(|byte| {
        byte.is_ascii_digit()
            || byte.is_ascii_lowercase()
            || !lower && byte.is_ascii_uppercase()
            || also.contains(&byte)
    })
}

/// What is wrong with a name that should be an RFC 1123 label; `None` if nothing.
pub fn dns_label(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 bytes".into());
    }
    let good = alphanumeric_ends(name, true) && made_of(name, true, b"-");
    (!good).then(|| DNS_LABEL.to_owned())
}

pub fn dns_subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 bytes".into());
    }
    let good = name.split('.').all(|part| alphanumeric_ends(part, true) && made_of(part, true, b"-"));
    (!good).then(|| DNS_SUBDOMAIN.to_owned())
}

pub fn path_segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        name if name.contains('/') => Some("may not contain '/'".into()),
        name if name.contains('%') => Some("may not contain '%'".into()),
        _ => None,
    }
}

pub fn label_value(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".into());
    }
    let good = value.is_empty() || alphanumeric_ends(value, false) && made_of(value, false, b"-_.");
    (!good).then(|| LABEL_VALUE.to_owned())
}

pub fn qualified_name(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".into()),
        Some(prefix) => {
            if let Some(detail) = dns_subdomain(prefix) {
                return Some(format!("prefix part {detail}"));
            }
        }
        None => {}
    }
    if name.is_empty() {
        return Some(format!("name part must be non-empty; {QUALIFIED_NAME}"));
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".into());
    }
    let good = alphanumeric_ends(name, false) && made_of(name, false, b"-_.");
    (!good).then(|| QUALIFIED_NAME.to_owned())
}
