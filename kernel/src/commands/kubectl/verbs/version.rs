//! `kubectl version`: which releases speak with each other.

use serde_json::{Map, Value};

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::switch;
use super::super::output::{OUTPUT, json_line};
use super::super::raw;
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const VERB: Verb = Verb { name: "version", aliases: &[], flags: &[OUTPUT, switch("client")], run };

/// The release that this kubectl speaks as, in the order in which kubectl tells of it.
const CLIENT: [(&str, &str); 9] = [
    ("major", "1"),
    ("minor", "36"),
    ("gitVersion", "v1.36.4"),
    ("gitCommit", "bb826b1d48562f110659e64e8ec444327433db95"),
    ("gitTreeState", "clean"),
    ("buildDate", "2026-08-12T17:33:34Z"),
    ("goVersion", "go1.26.5"),
    ("compiler", "gc"),
    ("platform", "linux/amd64"),
];
/// What a server says of itself, in that order.
const SERVER: [&str; 13] = [
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
];
const KUSTOMIZE_VERSION: &str = "v5.8.1";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return message(format!("extra arguments: [{}]", call.parsed.args.join(" ")));
    }
    let with_server = !call.parsed.switch("client");
    match call.parsed.text("output").unwrap_or_default() {
        "" => human(call, with_server),
        "json" => {
            let mut parts =
                vec![("clientVersion", document(&CLIENT)), ("kustomizeVersion", format!("\"{KUSTOMIZE_VERSION}\""))];
            if with_server {
                let server = raw::document(call, "/version")?;
                let server: Map<String, Value> =
                    serde_json::from_str(&server).map_err(|error| Failure::Message(error.to_string()))?;
                let text = |key| server.get(key).and_then(Value::as_str).unwrap_or_default();
                parts.push(("serverVersion", document(SERVER.map(|key| (key, text(key))).as_slice())));
            }
            let parts: Vec<String> =
                parts.iter().map(|(key, value)| format!("  \"{key}\": {}", value.replace('\n', "\n  "))).collect();
            call.line(format!("{{\n{}\n}}", parts.join(",\n")));
            Ok(())
        }
        "yaml" => {
            let client: Map<String, Value> =
                CLIENT.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
            let mut all = Map::new();
            all.insert("clientVersion".into(), client.into());
            all.insert("kustomizeVersion".into(), KUSTOMIZE_VERSION.into());
            if with_server {
                let server = raw::document(call, "/version")?;
                let server = serde_json::from_str(&server).map_err(|error| Failure::Message(error.to_string()))?;
                all.insert("serverVersion".into(), server);
            }
            // kubectl ends the document with a line of its own.
            call.line(yaml::print(&all.into()));
            Ok(())
        }
        _ => message("--output must be 'yaml' or 'json'"),
    }
}

/// JSON with the fields in this order.
fn document(fields: &[(&str, &str)]) -> String {
    let lines: Vec<String> =
        fields.iter().map(|(key, value)| format!("  \"{key}\": {}", json_line(&(*value).into()))).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

fn human(call: &mut Call<'_, '_>, with_server: bool) -> Outcome {
    let [_, _, (_, client), ..] = CLIENT;
    call.line(format!("Client Version: {client}"));
    call.line(format!("Kustomize Version: {KUSTOMIZE_VERSION}"));
    if with_server {
        let version = call.context.api.version()?;
        call.line(format!("Server Version: {version}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn versions_are_told_as_text_json_and_yaml() {
        let mut session = session();
        assert!(run(&mut session, "kubectl version").contains("\nServer Version: v1.36.2"));
        let json = run(&mut session, "kubectl version -o json");
        assert!(
            json.starts_with("{\n  \"clientVersion\": {\n    \"major\": \"1\",\n    \"minor\": \"36\",\n"),
            "{json}"
        );
        assert!(
            json.contains("\n  },\n  \"kustomizeVersion\": \"v5.8.1\",\n  \"serverVersion\": {\n    \"major\""),
            "{json}"
        );
        let yaml = run(&mut session, "kubectl version --client -o yaml");
        assert!(yaml.starts_with("clientVersion:\n  buildDate: \"") && !yaml.contains("serverVersion"), "{yaml}");
    }
}
