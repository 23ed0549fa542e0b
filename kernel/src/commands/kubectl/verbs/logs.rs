//! `kubectl logs`

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::super::api::LogOptions;
use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{duration, integer, switch, text};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::exec::container_of;
use super::pods::{named, pods_of, select};

pub const VERB: Verb = Verb {
    name: "logs",
    aliases: &[],
    flags: &[
        switch("follow").short('f'),
        switch("previous").short('p'),
        switch("timestamps"),
        switch("all-containers"),
        switch("all-pods"),
        switch("prefix"),
        switch("ignore-errors"),
        integer("tail"),
        integer("limit-bytes"),
        integer("max-log-requests"),
        duration("since"),
        text("since-time"),
        text("container").short('c'),
        text("selector").short('l'),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let selected = call.parsed.has("selector");
    let pods = match (args.as_slice(), selected) {
        ([], true) => select(call, call.list_options(KindRef::of::<Pod>())?)?,
        ([target], false) => vec![pod(call, target)?],
        ([pod, container], false) if !call.parsed.has("container") => {
            let pod = vec![self::pod(call, pod)?];
            return print(call, &pod, Some(container));
        }
        (_, true) => return usage("only a selector (-l) or a POD name is allowed"),
        _ => {
            return usage(
                "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command",
            );
        }
    };
    if pods.is_empty() {
        call.context.error_line(format!("No resources found in {} namespace.", call.namespace));
        return Ok(());
    }
    let container = call.parsed.text("container").map(str::to_owned);
    print(call, &pods, container.as_deref())
}

/// The pod of that name, or the first of a workload.
fn pod(call: &mut Call<'_, '_>, target: &str) -> Result<Item, Failure> {
    let namespace = call.namespace.clone();
    let item = named(call, target).map_err(|failure| match failure {
        Failure::Server(status) if status.is_not_found() => {
            Failure::Message(format!("error from server (NotFound): {} in namespace {namespace:?}", status.message))
        }
        other => other,
    })?;
    let mut pods = pods_of(call, item)?;
    if pods.len() > 1 {
        call.context.error_line(format!("Found {} pods, using pod/{}", pods.len(), pods[0].name));
    }
    Ok(pods.remove(0))
}

fn print(call: &mut Call<'_, '_>, pods: &[Item], container: Option<&str>) -> Outcome {
    let options = LogOptions {
        follow: call.parsed.switch("follow"),
        previous: call.parsed.switch("previous"),
        timestamps: call.parsed.switch("timestamps"),
        tail_lines: call.parsed.integer("tail").and_then(|lines| usize::try_from(lines).ok()),
        since: call.parsed.duration("since"),
        limit_bytes: call.parsed.integer("limit-bytes").and_then(|bytes| usize::try_from(bytes).ok()),
    };
    for pod in pods {
        let names: Vec<&str> = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .iter()
            .filter_map(|path| pod.value.pointer(path).and_then(Value::as_array))
            .flatten()
            .filter_map(|container| container["name"].as_str())
            .collect();
        let wanted: Vec<String> = match container {
            _ if call.parsed.switch("all-containers") => names.into_iter().map(str::to_owned).collect(),
            Some(name) if !names.contains(&name) => {
                return message(format!("container {name} is not valid for pod {}", pod.name));
            }
            Some(name) => vec![name.to_owned()],
            None => vec![container_of(call, &pod.value)?],
        };
        for name in wanted {
            let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
            let prefix = match call.parsed.switch("prefix") {
                true => format!("[pod/{}/{name}] ", pod.name),
                false => String::new(),
            };
            call.context.with_output(|api, write| {
                let mut written = |text: &str| match prefix.as_str() {
                    "" => write(text),
                    prefix => text.lines().for_each(|line| write(&format!("{prefix}{line}\n"))),
                };
                api.logs(&key, &name, &options, &mut written)
            })?;
        }
    }
    Ok(())
}
