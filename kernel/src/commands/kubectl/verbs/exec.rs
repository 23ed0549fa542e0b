//! `kubectl exec`

use std::io::IsTerminal;

use cluster_core::api::Key;
use cluster_core::network::connect::Origin;
use serde_json::Value;

use super::super::super::{curl, nc};
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::verb::{Call, Verb};
use super::pods::{self, phase, pod_of};

pub const VERB: Verb = Verb {
    name: "exec",
    aliases: &[],
    flags: &[
        text("container").short('c'),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        switch("quiet").short('q'),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let before = call.parsed.before_dash.unwrap_or(args.len());
    let dashed = call.parsed.before_dash.is_some();
    let named = args.first().filter(|_| before >= 1 && (dashed || before == 1));
    let Some((target, command)) = named.map(|target| (target, &args[if dashed { before } else { 1 }..])) else {
        return message(match before {
            0 => "pod, type/name or --filename must be specified",
            _ => {
                "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'kubectl exec -h' for help and examples"
            }
        });
    };
    if command.is_empty() {
        return message("you must specify at least one command for the container");
    }
    let item = pods::named(call, target)?;
    let pod = pod_of(call, item)?;
    if let phase @ ("Succeeded" | "Failed") = phase(&pod.value) {
        return message(format!("cannot exec into a container in a completed pod; current phase is {phase}"));
    }
    let container = container_of(call, &pod.value)?;
    let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
    if command[0] == "curl" && call.context.api.cluster().is_some() {
        return ended(curl::request(&command[1..], &Origin::Pod(key), call.context));
    }
    // In a cell nobody has a terminal and nobody is told so.
    if call.parsed.switch("tty") && call.context.sink.is_some() && !std::io::stdin().is_terminal() {
        call.context.error_line("Unable to use a TTY - input is not a terminal or the right kind of file");
    }
    let stdin = match call.parsed.switch("stdin") {
        true => std::mem::take(&mut call.context.stdin),
        false => String::new(),
    };
    if command[0] == "nc" && call.context.api.cluster().is_some() {
        return ended(nc::send(&command[1..], &Origin::Pod(key), stdin, call.context));
    }
    match call.context.api.exec(&key, &container, command, &stdin) {
        Ok(exec) => {
            call.context.print(exec.output);
            call.context.error(exec.errors);
            ended(exec.code)
        }
        Err(status) => message(status.message),
    }
}

/// The container that is named, or the pod's default one, or its first. (`podcmd` of k8s.io/kubectl.)
pub fn container_of(call: &mut Call<'_, '_>, pod: &Value) -> Result<String, Failure> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        containers.into_iter().flatten().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
    };
    let (main, init, ephemeral) = (names("containers"), names("initContainers"), names("ephemeralContainers"));
    let all: Vec<&String> = main.iter().chain(&ephemeral).chain(&init).collect();
    let known = |name: &str| all.iter().any(|known| *known == name);
    if let Some(name) = call.parsed.text("container") {
        return match known(name) {
            true => Ok(name.to_owned()),
            false => message(not_valid(name, pod)),
        };
    }
    let annotation = pod.pointer("/metadata/annotations/kubectl.kubernetes.io~1default-container");
    if let Some(name) = annotation.and_then(Value::as_str).filter(|name| known(name)) {
        return Ok(name.to_owned());
    }
    let first = main.first().cloned().unwrap_or_default();
    if all.len() > 1 && !call.parsed.switch("quiet") {
        call.context.error_line(format!("Defaulted container {first:?} out of: {}", container_list(pod)));
    }
    Ok(first)
}

/// That a pod has no container of that name, and which it has.
pub fn not_valid(name: &str, pod: &Value) -> String {
    let pod_name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("container {name} is not valid for pod {pod_name} out of: {}", container_list(pod))
}

/// `main, debugger-x (ephem), setup (init)`
fn container_list(pod: &Value) -> String {
    let lists = [("containers", ""), ("ephemeralContainers", " (ephem)"), ("initContainers", " (init)")];
    let names = lists.iter().flat_map(|(list, mark)| {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(move |one| Some(format!("{}{mark}", one["name"].as_str()?)))
    });
    names.collect::<Vec<_>>().join(", ")
}

/// kubectl ends with the command's own exit code.
fn ended(code: i32) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failure::Command(code)) }
}
