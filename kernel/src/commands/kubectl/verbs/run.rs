//! `kubectl run`

use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Map, Value, json};

use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{integer, optional, switch, text};
use super::super::output::{DRY_RUN, FIELD_MANAGER, OUTPUT, TEMPLATE};
use super::super::verb::{Call, Verb};
use super::create::{VALIDATE, generated};

pub const VERB: Verb = Verb {
    name: "run",
    aliases: &[],
    about: "Run a particular image on the cluster",
    usage: "run NAME --image=image [--env=\"key=value\"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...] [options]",
    flags: &[
        OUTPUT,
        TEMPLATE,
        DRY_RUN,
        FIELD_MANAGER,
        VALIDATE,
        text("image"),
        text("image-pull-policy"),
        text("restart"),
        text("env"),
        text("labels").short('l'),
        text("annotations"),
        text("overrides"),
        text("override-type"),
        integer("port"),
        switch("command"),
        switch("expose"),
        switch("privileged"),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        switch("quiet").short('q'),
        switch("rm"),
        optional("attach", "true"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let Some((name, words)) = call.parsed.args.split_first().map(|(name, words)| (name.clone(), words.to_vec())) else {
        return usage("NAME is required for run");
    };
    let Some(image) = call.parsed.text("image").map(str::to_owned) else {
        return message("required flag(s) \"image\" not set");
    };
    let restart = call.parsed.text("restart").unwrap_or("Always").to_owned();
    if !matches!(restart.as_str(), "Always" | "OnFailure" | "Never") {
        return usage(format!("invalid restart policy: {restart}"));
    }
    if call.parsed.switch("stdin") || call.parsed.switch("tty") || call.parsed.switch("rm") {
        return message("an interactive container needs a terminal, which a cell does not have");
    }
    let labels = pairs(call.parsed.list("labels"))?
        .unwrap_or_else(|| Map::from_iter([("run".to_owned(), name.as_str().into())]));
    let mut container = json!({"name": name, "image": image, "resources": {}});
    if !words.is_empty() {
        container[if call.parsed.switch("command") { "command" } else { "args" }] = words.into();
    }
    if let Some(policy) = call.parsed.text("image-pull-policy") {
        container["imagePullPolicy"] = policy.into();
    }
    let mut variables = Vec::new();
    for pair in call.parsed.all("env") {
        let Some((name, value)) = pair.split_once('=') else {
            return message(format!("invalid env: {pair}"));
        };
        variables.push(json!({"name": name, "value": value}));
    }
    if !variables.is_empty() {
        container["env"] = variables.into();
    }
    let port = call.parsed.integer("port").filter(|port| *port > 0);
    if let Some(port) = port {
        container["ports"] = json!([{"containerPort": port}]);
    }
    let mut pod = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": restart},
        "status": {},
    });
    if let Some(annotations) = pairs(call.parsed.all("annotations"))? {
        pod["metadata"]["annotations"] = annotations.into();
    }
    if let Some(overrides) = call.parsed.text("overrides") {
        let overrides: Value = serde_json::from_str(overrides)
            .map_err(|error| Failure::Message(format!("Invalid JSON Patch: {error}")))?;
        merge(&mut pod, overrides);
    }
    if call.parsed.switch("expose") {
        let Some(port) = port else {
            return usage("--port must be set when exposing a service");
        };
        let service = json!({
            "metadata": {"name": name},
            "spec": {"ports": [{"port": port, "protocol": "TCP", "targetPort": port}], "selector": labels},
            "status": {"loadBalancer": {}},
        });
        generated::<Service>(call, service, "")?;
    }
    generated::<Pod>(call, pod, "")
}

/// `a=b,c=d` as a map; `None` if there are none.
fn pairs<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Option<Map<String, Value>>, Failure> {
    let mut map = Map::new();
    for text in texts.filter(|text| !text.is_empty()) {
        let Some((key, value)) = text.split_once('=') else {
            return message(format!("unexpected label spec: {text}"));
        };
        map.insert(key.to_owned(), value.into());
    }
    Ok((!map.is_empty()).then_some(map))
}

/// JSON merge patch, as `--overrides` does by default.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (field, value) in patch {
                match value {
                    Value::Null => drop(fields.remove(&field)),
                    value => merge(fields.entry(field).or_insert(Value::Null), value),
                }
            }
        }
        (target, patch) => *target = patch,
    }
}
