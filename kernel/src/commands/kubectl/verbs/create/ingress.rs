//! `kubectl create ingress`

use std::sync::LazyLock;

use k8s_openapi::api::networking::v1::Ingress;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::text;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, integer_or_text, name_of};

pub const VERB: Verb = Verb {
    name: "create ingress",
    aliases: &["ing"],
    flags: create_flags![text("class"), text("rule"), text("annotation"), text("default-backend")],
    run,
};

/// `host/path=service:port,tls=secret`; host and what begins with the comma may be missing.
static RULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?<host>[A-Za-z0-9_*.-]*)(?<path>/[^,]*)=(?<service>[A-Za-z0-9_-]+):(?<port>[A-Za-z0-9_-]+)(?:,tls=?(?<secret>[A-Za-z0-9_-]+)?)?",
    )
    .ok()
});

struct Rule<'a> {
    host: &'a str,
    path: &'a str,
    service: &'a str,
    port: &'a str,
    /// The secret that is named, perhaps by an empty name.
    tls: Option<&'a str>,
}

fn rule(text: &str) -> Result<Rule<'_>, Failure> {
    let Some(found) = RULE.as_ref().and_then(|rule| rule.captures(text)) else {
        return message(format!(
            "rule {text} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]"
        ));
    };
    let part = |name: &str| found.name(name).map_or("", |part| part.as_str());
    let tls = text.contains(",tls").then(|| part("secret"));
    Ok(Rule { host: part("host"), path: part("path"), service: part("service"), port: part("port"), tls })
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let backend_text = call.parsed.text("default-backend").filter(|text| !text.is_empty());
    let texts: Vec<&str> = call.parsed.all("rule").collect();
    if backend_text.is_none() && texts.is_empty() {
        return message(
            "not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)",
        );
    }
    let parsed: Vec<Rule<'_>> = texts.into_iter().map(rule).collect::<Result<_, _>>()?;
    let mut annotations = Map::new();
    for text in call.parsed.all("annotation") {
        let Some((key, value)) = text.split_once('=') else {
            return message(format!("annotation {text} is invalid and should be in format key=[value]"));
        };
        annotations.insert(key.to_owned(), value.into());
    }
    let mut spec = Map::new();
    if let Some(class) = call.parsed.text("class").filter(|class| !class.is_empty()) {
        spec.insert("ingressClassName".into(), class.into());
    }
    if let Some(text) = backend_text {
        let [service, port] = text.split(':').collect::<Vec<_>>()[..] else {
            return message("default-backend should be in format servicename:serviceport");
        };
        spec.insert("defaultBackend".into(), backend(service, port));
    }
    for (field, list) in [("tls", tls(&parsed)), ("rules", rules(&parsed))] {
        if !list.is_empty() {
            spec.insert(field.into(), list.into());
        }
    }
    let mut metadata = json!({"name": name});
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    let ingress = json!({"metadata": metadata, "spec": spec, "status": {"loadBalancer": {}}});
    generated::<Ingress>(call, ingress, "failed to create ingress: ")
}

fn backend(service: &str, port: &str) -> Value {
    let port = integer_or_text(port);
    let field = if port.is_string() { "name" } else { "number" };
    json!({"service": {"name": service, "port": {field: port}}})
}

/// A rule a host; a path that ends in `*` is a prefix.
fn rules(parsed: &[Rule<'_>]) -> Vec<Value> {
    let mut rules: Vec<(&str, Vec<Value>)> = Vec::new();
    for Rule { host, path, service, port, .. } in parsed {
        let (path, path_type) = path.strip_suffix('*').map_or((*path, "Exact"), |path| (path, "Prefix"));
        let entry = json!({"path": path, "pathType": path_type, "backend": backend(service, port)});
        match rules.iter_mut().find(|(known, _)| known == host) {
            Some((_, paths)) => paths.push(entry),
            None => rules.push((host, vec![entry])),
        }
    }
    let rule = |(host, paths): (&str, Vec<Value>)| match host {
        "" => json!({"http": {"paths": paths}}),
        host => json!({"host": host, "http": {"paths": paths}}),
    };
    rules.into_iter().map(rule).collect()
}

/// An entry a secret, with the hosts that it is for.
fn tls(parsed: &[Rule<'_>]) -> Vec<Value> {
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    for (host, secret) in parsed.iter().filter_map(|rule| Some((rule.host, rule.tls?))) {
        if entries.iter().any(|(_, hosts)| hosts.contains(&host)) {
            continue;
        }
        match entries.iter_mut().find(|(known, _)| *known == secret) {
            Some((_, hosts)) => hosts.push(host),
            None => entries.push((secret, vec![host])),
        }
    }
    let entry = |(secret, hosts): (&str, Vec<&str>)| {
        let hosts: Vec<&str> = hosts.into_iter().filter(|host| !host.is_empty()).collect();
        let mut entry = Map::new();
        if !hosts.is_empty() {
            entry.insert("hosts".into(), json!(hosts));
        }
        if !secret.is_empty() {
            entry.insert("secretName".into(), secret.into());
        }
        (!entry.is_empty()).then_some(Value::Object(entry))
    };
    entries.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_one_host_stand_together() {
        let parsed: Vec<Rule<'_>> = ["a.example/=web:80,tls=cert", "a.example/api*=api:http", "/=web:80"]
            .map(|text| rule(text).unwrap())
            .into();
        let found = rules(&parsed);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["http"]["paths"][1]["pathType"], "Prefix");
        assert_eq!(found[0]["http"]["paths"][1]["backend"]["service"]["port"], json!({"name": "http"}));
        assert_eq!(tls(&parsed), [json!({"hosts": ["a.example"], "secretName": "cert"})]);
        assert!(rule("nothing").is_err());
    }
}
