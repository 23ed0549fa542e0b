//! `kubectl set env`

use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::{Change, LOCAL, change_pods, containers, pod_spec, set_flags};

pub const VERB: Verb = Verb {
    name: "set env",
    aliases: &[],
    flags: set_flags![
        text("containers").short('c'),
        switch("list"),
        switch("overwrite"),
        text("env").short('e'),
        text("from"),
        text("prefix"),
        text("keys"),
    ],
    run,
};

const CHANGE: Change =
    Change { done: "env updated", failing: "failed to patch env update to pod template: ", tells_always: false };

/// What is to become of the variables.
struct Wanted {
    set: Vec<Value>,
    removed: Vec<String>,
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.dry_run()?;
    if call.parsed.switch("all") && call.parsed.has("selector") {
        return message("cannot set --all and --selector at the same time");
    }
    let is_change = |arg: &String| arg.find('=').is_some_and(|place| place > 0) || arg.ends_with('-');
    let args = std::mem::take(&mut call.parsed.args);
    let start = args.iter().position(is_change).unwrap_or(args.len());
    let (resources, changes) = args.split_at(start);
    if !changes.iter().all(is_change) {
        return message(format!("all resources must be specified before environment changes: {}", args.join(" ")));
    }
    call.parsed.args = resources.to_vec();
    call.format()?;
    let parsed = &call.parsed;
    if parsed.switch("local") && call.dry_run()? == super::DryRun::Server {
        return message("cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
    }
    if resources.is_empty() && !parsed.has("filename") {
        return message("one or more resources must be specified as <resource> <name> or <resource>/<name>");
    }
    if parsed.switch("list") && parsed.has("output") {
        return message("--list and --output may not be specified together");
    }
    if parsed.has("keys") && !parsed.has("from") {
        return message("when specifying --keys, a configmap or secret must be provided with --from");
    }
    let mut wanted = wanted(call, changes)?;
    if let Some(source) = call.parsed.text("from").filter(|source| !source.is_empty()).map(str::to_owned) {
        wanted.set.extend(from(call, &source)?);
    }
    if let Some(prefix) = call.parsed.text("prefix") {
        for variable in &mut wanted.set {
            variable["name"] = format!("{prefix}{}", variable["name"].as_str().unwrap_or_default()).into();
        }
    }
    let (items, failures) = call.objects(LOCAL)?;
    all_of(failures)?;
    let pattern = call.parsed.text("containers").unwrap_or("*").to_owned();
    if call.parsed.switch("list") {
        return list(call, items, &pattern, &wanted);
    }
    let overwrite = call.parsed.switch_or_on("overwrite");
    let mut unmatched = Vec::new();
    let outcome = change_pods(call, items, &CHANGE, |item, spec| {
        let mut known = false;
        for container in containers(spec, &pattern) {
            known = true;
            if !overwrite {
                check_kept(container, &wanted).map_err(|problem| {
                    vec![Failure::Message(format!("{}/{} {problem}", item.kind.resource, item.name))]
                })?;
            }
            update(container, &wanted);
        }
        if !known {
            unmatched
                .push(format!("{}/{} does not have any containers matching {pattern:?}", item.kind.kind, item.name));
        }
        Ok(())
    });
    unmatched.iter().for_each(|warning| call.warn(warning));
    outcome
}

/// What the arguments say: `MODE=fast`, `MODE-`, and `-` for what standard input says.
fn wanted(call: &Call<'_, '_>, changes: &[String]) -> Result<Wanted, Failure> {
    let mut wanted = Wanted { set: Vec::new(), removed: Vec::new() };
    let flagged: Vec<String> = call.parsed.all("env").map(str::to_owned).collect();
    for change in flagged.iter().chain(changes) {
        match (change.as_str(), change.split_once('='), change.strip_suffix('-')) {
            ("-", ..) => {
                let lines = call.context.stdin.lines().map(|line| line.split('#').next().unwrap_or_default());
                let pairs = lines.filter_map(|line| line.split_once('='));
                wanted.set.extend(pairs.map(|(name, value)| json!({"name": name, "value": value})));
            }
            (_, Some((name, value)), _) => {
                check_name(name)?;
                wanted.set.push(json!({"name": name, "value": value}));
            }
            (_, None, Some(name)) => wanted.removed.push(name.to_owned()),
            _ => return message(format!("unknown environment variable: {change}")),
        }
    }
    if wanted.removed.iter().any(|name| wanted.set.iter().any(|variable| variable["name"] == **name)) {
        return message("can not both modify and remove the same environment variable in the same command");
    }
    Ok(wanted)
}

/// A name as a shell could have it. (`IsEnvVarName` of apimachinery's validation.)
pub fn check_name(name: &str) -> Outcome {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    if !name.is_empty() && name.chars().all(inner) && !name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Ok(());
    }
    message(format!(
        "{name:?} is not a valid key name: a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')"
    ))
}

/// Variables that take their values from the keys of a config map or a secret.
fn from(call: &mut Call<'_, '_>, source: &str) -> Result<Vec<Value>, Failure> {
    let (items, failures) = call.items_of(&[source.to_owned()])?;
    all_of(failures)?;
    let keys: Vec<String> = call.parsed.list("keys").map(str::to_owned).collect();
    let mut variables = Vec::new();
    for item in items {
        let reference = match &*item.kind.kind {
            "ConfigMap" => "configMapKeyRef",
            "Secret" => "secretKeyRef",
            _ => return message("unsupported resource specified in --from"),
        };
        for key in item.value["data"].as_object().into_iter().flat_map(|data| data.keys()) {
            if !keys.is_empty() && !keys.contains(key) {
                continue;
            }
            let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
            let name: String = key.chars().map(plain).collect::<String>().to_uppercase();
            if name != *key {
                call.warn(format!("key {key} transferred to {name}"));
            }
            variables.push(json!({"name": name, "valueFrom": {reference: {"name": item.name, "key": key}}}));
        }
    }
    Ok(variables)
}

fn named<'a>(variables: &'a [Value], name: &Value) -> Option<&'a Value> {
    variables.iter().find(|variable| variable["name"] == *name)
}

/// Without --overwrite a variable keeps the value that it has.
fn check_kept(container: &Value, wanted: &Wanted) -> Result<(), String> {
    let existing = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    for variable in &wanted.set {
        let text = |variable: &Value| variable["value"].as_str().unwrap_or_default().to_owned();
        if let Some(known) = named(existing, &variable["name"])
            && text(known) != text(variable)
        {
            let name = known["name"].as_str().unwrap_or_default();
            return Err(format!("'{name}' already has a value ({}), and --overwrite is false", text(known)));
        }
    }
    Ok(())
}

/// A variable that is set takes the place of all of its name.
fn update(container: &mut Value, wanted: &Wanted) {
    let Wanted { set, removed } = wanted;
    let existing = container["env"].as_array().cloned().unwrap_or_default();
    let mut variables: Vec<Value> = Vec::new();
    for variable in existing.iter().chain(set) {
        let name = &variable["name"];
        let newer = named(set, name);
        if removed.iter().any(|removed| name == removed.as_str())
            || newer.is_some() && named(&variables, name).is_some()
        {
            continue;
        }
        variables.push(newer.unwrap_or(variable).clone());
    }
    match (variables.is_empty(), container.as_object_mut()) {
        (true, Some(fields)) => drop(fields.remove("env")),
        _ => container["env"] = variables.into(),
    }
}

fn list(call: &mut Call<'_, '_>, items: Vec<Item>, pattern: &str, wanted: &Wanted) -> Outcome {
    for mut item in items {
        let Some(spec) = pod_spec(&item.kind.kind).and_then(|path| item.value.pointer_mut(path)) else { continue };
        for container in containers(spec, pattern) {
            update(container, wanted);
            let name = container["name"].as_str().unwrap_or_default();
            call.line(format!("# {} {}, container {name}", item.kind.kind, item.name));
            for variable in container["env"].as_array().into_iter().flatten() {
                call.line(variable_line(variable));
            }
        }
    }
    Ok(())
}

/// `MODE=fast`, or where the value comes from.
fn variable_line(variable: &Value) -> String {
    let text = |path: &str| variable.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/name");
    let Some(source) = variable.get("valueFrom") else { return format!("{name}={}", text("/value")) };
    let key_of = |what: &str, field: &str| {
        format!(
            "{what} {}, key {}",
            text(&format!("/valueFrom/{field}/name")),
            text(&format!("/valueFrom/{field}/key"))
        )
    };
    let from = if source.get("configMapKeyRef").is_some() {
        key_of("configmap", "configMapKeyRef")
    } else if source.get("secretKeyRef").is_some() {
        key_of("secret", "secretKeyRef")
    } else if source.get("fieldRef").is_some() {
        format!("field path {}", text("/valueFrom/fieldRef/fieldPath"))
    } else if source.get("resourceFieldRef").is_some() {
        let container = text("/valueFrom/resourceFieldRef/containerName");
        let slash = if container.is_empty() { "" } else { "/" };
        format!("resource field {container}{slash}{}", text("/valueFrom/resourceFieldRef/resource"))
    } else {
        "invalid valueFrom".to_owned()
    };
    format!("# {name} from {from}")
}
