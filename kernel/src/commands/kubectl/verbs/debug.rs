//! `kubectl debug`: a container more in a pod that runs, to look into it.
//! <https://kubernetes.io/docs/tasks/debug/debug-application/debug-running-pod/#ephemeral-container>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, PatchType, Request, Verb as ApiVerb};
use cluster_core::random::safe_encode;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Outcome, message};
use super::super::flags::{switch, text};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "debug",
    aliases: &[],
    flags: &[
        text("image"),
        text("container").short('c'),
        text("target"),
        text("image-pull-policy"),
        text("env"),
        text("profile"),
        switch("arguments-only"),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        switch("quiet").short('q'),
        switch("attach"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let before = call.parsed.before_dash.unwrap_or(args.len());
    let (targets, command) = args.split_at(before.min(args.len()));
    let [target] = targets else { return message("NAME or TYPE/NAME is required for debug") };
    let Some(image) = call.parsed.text("image").map(str::to_owned) else {
        return message("you must specify --image, --copy-to or --set-image.");
    };
    let name = target.strip_prefix("pod/").or_else(|| target.strip_prefix("pods/")).unwrap_or(target);
    if name.contains('/') {
        return message("here only containers that join a pod can be made: debug POD --image=IMAGE");
    }
    let namespace = call.namespace.clone();
    let pod = call.get(KindRef::of::<Pod>(), &namespace, name)?;
    if let Some(target) = call.parsed.text("target") {
        let note = "If you don't see processes from this container it may be because the container runtime doesn't support this feature.";
        call.context.error_line(format!("Targeting container \"{target}\". {note}"));
    }
    let container = container(call, &pod, image, command)?;
    let kind = KindRef::of::<Pod>();
    let body = json!({"spec": {"ephemeralContainers": [container]}});
    let request = client::request(ApiVerb::Patch(PatchType::StrategicMerge), kind, &namespace, name);
    let request = Request { subresource: "ephemeralcontainers", body: Body::Json(body), ..request };
    call.send_for_object(request)?;
    Ok(())
}

fn container(
    call: &mut Call<'_, '_>,
    pod: &Value,
    image: String,
    command: &[String],
) -> Result<Value, super::super::failure::Failure> {
    let name = match call.parsed.text("container") {
        Some(name) => name.to_owned(),
        None => {
            let name = format!("debugger-{}", suffix(pod));
            call.line(format!("Defaulting debug container name to {name}."));
            name
        }
    };
    let mut container = json!({"name": name, "image": image, "terminationMessagePolicy": "File"});
    let (stdin, tty) = (call.parsed.switch("stdin"), call.parsed.switch("tty"));
    for (field, given) in [("stdin", stdin), ("tty", tty)] {
        if given {
            container[field] = true.into();
        }
    }
    for (field, flag) in [("targetContainerName", "target"), ("imagePullPolicy", "image-pull-policy")] {
        if let Some(text) = call.parsed.text(flag) {
            container[field] = text.into();
        }
    }
    if !command.is_empty() {
        container[if call.parsed.switch("arguments-only") { "args" } else { "command" }] = json!(command);
    }
    let mut variables = Vec::new();
    for pair in call.parsed.all("env") {
        let Some((name, value)) = pair.split_once('=') else { return message(format!("invalid env: {pair}")) };
        variables.push(json!({"name": name, "value": value}));
    }
    if !variables.is_empty() {
        container["env"] = variables.into();
    }
    match call.parsed.text("profile").unwrap_or("general") {
        "general" => container["securityContext"] = json!({"capabilities": {"add": ["SYS_PTRACE"]}}),
        "restricted" => {
            container["securityContext"] = json!({
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            });
        }
        "netadmin" => container["securityContext"] = json!({"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}),
        "sysadmin" => container["securityContext"] = json!({"privileged": true}),
        "legacy" | "baseline" => {}
        other => return message(format!("unknown profile: {other}")),
    }
    Ok(container)
}

/// Five letters, the same in every run: of the pod's uid, and of how many such containers it has.
fn suffix(pod: &Value) -> String {
    let uid: String = pod["metadata"]["uid"].as_str().unwrap_or_default().chars().rev().take(4).collect();
    let known = pod["spec"]["ephemeralContainers"].as_array().map_or(0, Vec::len);
    safe_encode(&format!("{uid}{}", char::from(b'a' + (known % 26) as u8)))
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn a_container_joins_a_pod() {
        let mut session = session();
        run(&mut session, "kubectl run web --image=nginx");
        let told = run(&mut session, "kubectl debug web --image=busybox --target=web -- sh -c 'hostname; sleep 1'");
        let mut names = told.lines().filter_map(|line| line.strip_prefix("Defaulting debug container name to "));
        let name = names.next().unwrap_or_default().trim_end_matches('.');
        assert_eq!(run(&mut session, &format!("kubectl logs web -c {name}")), "web\n");
        assert_eq!(run(&mut session, "kubectl debug web"), "CommandFailed: exit code 1");
    }
}
