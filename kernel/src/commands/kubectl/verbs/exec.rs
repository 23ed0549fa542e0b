//! `kubectl exec`

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::network::connect::Origin;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::super::curl;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "exec",
    aliases: &[],
    about: "Execute a command in a container",
    usage: "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
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
    let Some((target, command)) = args.split_first().filter(|_| before == 1) else {
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
    let name = target.strip_prefix("pod/").or_else(|| target.strip_prefix("pods/")).unwrap_or(target);
    let namespace = call.namespace.clone();
    let pod = call.get(KindRef::of::<Pod>(), &namespace, name)?;
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed") {
        return message(format!("cannot exec into a container in a completed pod; current phase is {phase}"));
    }
    let first = pod.pointer("/spec/containers/0/name").and_then(Value::as_str).unwrap_or_default();
    let container = call.parsed.text("container").unwrap_or(first).to_owned();
    let key = Key::new(namespace.as_str(), name);
    if command[0] == "curl" {
        return ended(curl::request(&command[1..], &Origin::Pod(key), call.context));
    }
    let Some(cluster) = call.context.api.cluster() else {
        return message("exec needs the simulated cluster: this API server is reached over the network");
    };
    let Some(outcome) = cluster.exec(&key, &container, command) else {
        return message(format!("unable to upgrade connection: container not found (\"{container}\")"));
    };
    match outcome {
        Some(exec) => {
            call.context.print(exec.output);
            ended(exec.code)
        }
        None => message(format!(
            "Internal error occurred: error executing command in container: failed to exec in container: exec: \"{}\": executable file not found in $PATH",
            command[0]
        )),
    }
}

/// kubectl ends with the command's own exit code.
fn ended(code: i32) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failure::Command(code)) }
}
