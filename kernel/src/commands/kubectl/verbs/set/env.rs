//! `kubectl set env`

use serde_json::{Value, json};

use super::super::super::failure::{Outcome, all_of, message};
use super::super::super::flags::{Flag, switch, text};
use super::super::super::verb::{Call, Verb};
use super::{SHARED, change_containers, is_meant, pod_spec, split_changes};

const FLAGS: [Flag; 12] = {
    let [a, b, c, d, e, f, g, h, i] = SHARED;
    [a, b, c, d, e, f, g, h, i, switch("list"), switch("overwrite"), text("env").short('e')]
};

pub const VERB: Verb = Verb {
    name: "set env",
    aliases: &[],
    about: "Update environment variables on a pod template",
    usage: "set env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N [options]",
    flags: &FLAGS,
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let mut changes = split_changes(call);
    changes.extend(call.parsed.all("env").map(str::to_owned));
    if call.parsed.switch("list") {
        return list(call);
    }
    let pattern = call.parsed.text("containers").map(str::to_owned);
    change_containers(call, "env updated", |containers| {
        for container in containers.iter_mut().filter(|container| is_meant(container, pattern.as_deref())) {
            let mut variables = container["env"].as_array().cloned().unwrap_or_default();
            for change in &changes {
                match change.split_once('=') {
                    Some((name, value)) => match variables.iter_mut().find(|variable| variable["name"] == name) {
                        Some(known) => *known = json!({"name": name, "value": value}),
                        None => variables.push(json!({"name": name, "value": value})),
                    },
                    None => {
                        let name = change.strip_suffix('-').unwrap_or(change);
                        variables.retain(|variable| variable["name"] != name);
                    }
                }
            }
            match (variables.is_empty(), container.as_object_mut()) {
                (true, Some(fields)) => drop(fields.remove("env")),
                _ => container["env"] = variables.into(),
            }
        }
        Ok(())
    })
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    let (items, failures) = call.items()?;
    for item in items {
        let Some(path) = pod_spec(&item.kind.kind) else {
            return message(format!("the object is not a pod or does not have a pod template: {}", item.kind.kind));
        };
        let containers = item.value.pointer(&format!("{path}/containers")).and_then(Value::as_array).cloned();
        for container in containers.unwrap_or_default() {
            let name = container["name"].as_str().unwrap_or_default();
            call.line(format!("# {} {}, container {name}", item.kind.kind, item.name));
            for variable in container["env"].as_array().into_iter().flatten() {
                call.line(variable_line(variable));
            }
        }
    }
    all_of(failures)
}

/// `MODE=fast`, or where the value comes from.
fn variable_line(variable: &Value) -> String {
    let text = |path: &str| variable.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/name");
    match variable.get("valueFrom") {
        None => format!("{name}={}", text("/value")),
        Some(source) if source.get("configMapKeyRef").is_some() => format!(
            "# {name} from configmap {}, key {}",
            text("/valueFrom/configMapKeyRef/name"),
            text("/valueFrom/configMapKeyRef/key")
        ),
        Some(source) if source.get("secretKeyRef").is_some() => format!(
            "# {name} from secret {}, key {}",
            text("/valueFrom/secretKeyRef/name"),
            text("/valueFrom/secretKeyRef/key")
        ),
        Some(_) => format!("# {name} from field path {}", text("/valueFrom/fieldRef/fieldPath")),
    }
}
