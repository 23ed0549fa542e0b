//! `kubectl run`

use std::sync::LazyLock;
use std::time::Duration;

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Propagation;
use k8s_openapi::api::core::v1::{Pod, Service};
use regex::Regex;
use serde_json::{Map, Value, json};

use super::super::super::api::LogOptions;
use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{duration, switch, text};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, Format, OUTPUT, TEMPLATE};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::attach::NOTICE;
use super::create::{generated, sent};
use super::delete::{Manner, delete, told};
use super::overrides::{OVERRIDE_TYPE, OVERRIDES, overridden};
use super::pods::phase;

pub const VERB: Verb = Verb {
    name: "run",
    aliases: &[],
    flags: &[
        OUTPUT,
        TEMPLATE,
        DRY_RUN,
        FIELD_MANAGER,
        text("image"),
        text("image-pull-policy"),
        text("restart"),
        text("env"),
        text("labels").short('l'),
        text("annotations"),
        OVERRIDES,
        OVERRIDE_TYPE,
        text("port"),
        switch("command"),
        switch("expose"),
        switch("privileged"),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        switch("quiet").short('q'),
        switch("rm"),
        switch("attach"),
        switch("leave-stdin-open"),
        duration("pod-running-timeout"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.require(&["image"])?;
    let dry_run = call.dry_run()?;
    let Some((name, words)) = call.parsed.args.split_first().filter(|_| call.parsed.before_dash != Some(0)) else {
        return usage("NAME is required for run");
    };
    let (name, words) = (name.clone(), words.to_vec());
    let parsed = &call.parsed;
    let image = parsed.text("image").unwrap_or_default().to_owned();
    if image.is_empty() {
        return message("--image is required");
    }
    if !is_reference(&image) {
        return message(format!("Invalid image name {image:?}: invalid reference format"));
    }
    let (stdin, tty) = (parsed.switch("stdin"), parsed.switch("tty"));
    if tty && !stdin {
        return usage("-i/--stdin is required for containers with -t/--tty=true");
    }
    if parsed.switch("expose") && parsed.integer("port").is_none() {
        return usage("--port must be set when exposing a service");
    }
    let restart = match parsed.text("restart").unwrap_or_default() {
        "" if stdin => "OnFailure",
        "" => "Always",
        "Always" => "Always",
        "OnFailure" => "OnFailure",
        "Never" => "Never",
        other => return usage(format!("invalid restart policy: {other}")),
    };
    let attach = if parsed.has("attach") { parsed.switch("attach") } else { stdin || tty };
    if parsed.switch("rm") && !attach {
        return usage("--rm should only be used for attached containers");
    }
    if attach && dry_run != DryRun::None {
        return usage(
            "--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)",
        );
    }
    let policy = parsed.text("image-pull-policy").unwrap_or_default();
    if !matches!(policy, "" | "Always" | "IfNotPresent" | "Never") {
        return usage(format!("invalid image pull policy: {policy}"));
    }
    if attach && is_shell(&words) {
        return message("an interactive container needs a terminal; name a command that ends by itself");
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
    if stdin {
        container["stdin"] = true.into();
        container["stdinOnce"] = (!call.parsed.switch("leave-stdin-open")).into();
    }
    if tty {
        container["tty"] = true.into();
    }
    if call.parsed.switch("privileged") {
        container["securityContext"] = json!({"privileged": true});
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
    let pod = overridden(call, KindRef::of::<Pod>(), pod)?;
    let service = json!({
        "metadata": {"name": name},
        "spec": {"ports": [{"port": port, "protocol": "TCP", "targetPort": port}], "selector": labels},
        "status": {"loadBalancer": {}},
    });
    if call.parsed.switch("expose") {
        generated::<Service>(call, service, "")?;
        if matches!(call.format()?, Format::Yaml) {
            call.line("---\n---");
        }
    }
    if attach {
        let pod = sent::<Pod>(call, pod, "")?;
        let outcome = follow(call, &pod, restart);
        if call.parsed.switch("rm") {
            let manner = Manner {
                grace_period_seconds: None,
                propagation: Propagation::Background,
                force: false,
                dry_run: DryRun::None,
            };
            delete(call, &pod, manner)?;
            told(call, &pod, manner);
        }
        return outcome;
    }
    generated::<Pod>(call, pod, "")
}

/// Whether these words leave a person at a prompt: nothing, or a shell that is told nothing.
fn is_shell(words: &[String]) -> bool {
    match words {
        [] => true,
        [shell] => matches!(shell.rsplit('/').next(), Some("sh" | "bash" | "ash")),
        _ => false,
    }
}

/// How long a pod may take to run: `--pod-running-timeout`.
const RUNNING_PATIENCE: Duration = Duration::from_secs(60);

/// Shows what the pod's container prints until it ends, and ends as it does, unless it is started anew and anew.
fn follow(call: &mut Call<'_, '_>, pod: &Item, restart: &str) -> Outcome {
    let patience = call.parsed.duration("pod-running-timeout").unwrap_or(RUNNING_PATIENCE);
    let value = until(call, pod, patience, |phase| matches!(phase, "Running" | "Succeeded" | "Failed"))?;
    if phase(&value) == "Running" && !call.parsed.switch("quiet") {
        call.context.error_line(NOTICE);
    }
    let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
    let options = LogOptions { follow: true, ..LogOptions::default() };
    call.context.with_output(|api, write| api.logs(&key, &pod.name, &options, write))?;
    if restart == "Always" {
        return Ok(());
    }
    let value = until(call, pod, patience, |phase| phase == "Succeeded" || phase == "Failed" && restart == "Never")?;
    if phase(&value) == "Succeeded" {
        return Ok(());
    }
    let place = format!("pod {}/{}", pod.namespace, pod.name);
    let ended = value.pointer("/status/containerStatuses/0/state/terminated").cloned().unwrap_or_default();
    let text = |field: &str| ended[field].as_str().unwrap_or_default();
    match ended["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()).filter(|code| *code != 0) {
        Some(code) => {
            let told = format!("{place} terminated ({})\n{}", text("reason"), text("message"));
            Err(Failure::Coded(code, Box::new(Failure::Raw(told.trim_end().to_owned()))))
        }
        None => message(format!("{place} failed with unknown exit code")),
    }
}

/// The pod once it is in a phase.
fn until(
    call: &mut Call<'_, '_>,
    pod: &Item,
    patience: Duration,
    wanted: impl Fn(&str) -> bool,
) -> Result<Value, Failure> {
    let started = call.context.api.now();
    loop {
        let value = call.get(&pod.kind, &pod.namespace, &pod.name)?;
        if wanted(phase(&value)) {
            return Ok(value);
        }
        if call.context.api.now().since(started) >= patience {
            return message("timed out waiting for the condition");
        }
        if !call.context.api.wait(Duration::from_millis(50)) {
            return Err(Failure::Quiet);
        }
    }
}

/// Whether a text can name an image: <https://pkg.go.dev/github.com/distribution/reference>.
pub(super) fn is_reference(image: &str) -> bool {
    static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let component = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
        let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
        let domain = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
        let digest = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
        let name = format!("(?:{domain}/)?{component}(?:/{component})*");
        Regex::new(&format!(r"(?-u)^{name}(?::[\w][\w.-]{{0,127}})?(?:@{digest})?$")).ok()
    });
    REFERENCE.as_ref().is_some_and(|reference| reference.is_match(image))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_names() {
        for image in [
            "nginx",
            "nginx:1.27",
            "localhost:5000/a/b_c:x",
            "registry.k8s.io/pause@sha256:0123456789abcdef0123456789abcdef",
        ] {
            assert!(is_reference(image), "{image}");
        }
        for image in ["", "a b", "A:b:c", "Nginx", "a/", "nginx:"] {
            assert!(!is_reference(image), "{image}");
        }
    }
}
