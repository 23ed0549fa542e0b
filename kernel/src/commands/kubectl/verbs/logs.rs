//! `kubectl logs`

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::super::super::api::LogOptions;
use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{duration, integer, switch, text};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::exec::{container_of, not_valid};
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

/// So many are followed at once unless --max-log-requests says otherwise.
const STREAMS_MAX: i64 = 5;

fn run(call: &mut Call<'_, '_>) -> Outcome {
    check(call)?;
    let args = call.parsed.args.clone();
    let selected = call.parsed.has("selector");
    let pods = match (args.as_slice(), selected) {
        ([], true) => select(call, call.list_options(KindRef::of::<Pod>())?)?,
        ([target], false) => pods(call, target)?,
        ([pod, container], false) if !call.parsed.has("container") => {
            let pods = pods(call, pod)?;
            return print(call, &pods, Some(container));
        }
        ([_, _], false) => return message("only one of -c or an inline [CONTAINER] arg is allowed"),
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

/// That the flags make sense together. (`LogsOptions.Validate` of k8s.io/kubectl/pkg/cmd/logs)
fn check(call: &Call<'_, '_>) -> Outcome {
    let parsed = &call.parsed;
    if let Some(text) = parsed.text("since-time")
        && serde_json::from_value::<Time>(text.into()).is_err()
    {
        return message(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        ));
    }
    if parsed.has("since-time") && parsed.has("since") {
        return message("at most one of `sinceTime` or `sinceSeconds` may be specified");
    }
    if parsed.integer("tail").is_some_and(|lines| lines < -1) {
        return message("--tail must be greater than or equal to -1");
    }
    if parsed.integer("limit-bytes").is_some_and(|bytes| bytes < 0) {
        return message("--limit-bytes must be greater than 0");
    }
    Ok(())
}

/// The pod of that name, or one of a workload, or with --all-pods all of them.
fn pods(call: &mut Call<'_, '_>, target: &str) -> Result<Vec<Item>, Failure> {
    let namespace = call.namespace.clone();
    let item = named(call, target).map_err(|failure| match failure {
        Failure::Server(status) if status.is_not_found() => {
            Failure::Message(format!("error from server (NotFound): {} in namespace {namespace:?}", status.message))
        }
        other => other,
    })?;
    let mut pods = pods_of(call, item)?;
    if pods.len() > 1 && !call.parsed.switch("all-pods") {
        call.context.error_line(format!("Found {} pods, using pod/{}", pods.len(), pods[0].name));
        pods.truncate(1);
    }
    Ok(pods)
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
    let mut streams: Vec<(Key, String)> = Vec::new();
    for pod in pods {
        let names: Vec<&str> = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .iter()
            .filter_map(|path| pod.value.pointer(path).and_then(Value::as_array))
            .flatten()
            .filter_map(|container| container["name"].as_str())
            .collect();
        let wanted: Vec<String> = match container {
            _ if call.parsed.switch("all-containers") => names.into_iter().map(str::to_owned).collect(),
            Some(name) if !names.contains(&name) => return message(not_valid(name, &pod.value)),
            Some(name) => vec![name.to_owned()],
            None => vec![container_of(call, &pod.value)?],
        };
        let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
        streams.extend(wanted.into_iter().map(|name| (key.clone(), name)));
    }
    let streams_max = call.parsed.integer("max-log-requests").unwrap_or(STREAMS_MAX);
    if options.follow && i64::try_from(streams.len()).is_ok_and(|count| count > streams_max) {
        return message(format!(
            "you are attempting to follow {} log streams, but maximum allowed concurrency is {streams_max}, use --max-log-requests to increase the limit",
            streams.len()
        ));
    }
    let prefixed = call.parsed.switch("prefix") || call.parsed.switch("all-pods");
    for (key, name) in streams {
        let prefix = if prefixed { format!("[pod/{}/{name}] ", key.name) } else { String::new() };
        call.context.with_output(|api, write| {
            let mut written = |text: &str| match prefix.as_str() {
                "" => write(text),
                prefix => text.lines().for_each(|line| write(&format!("{prefix}{line}\n"))),
            };
            api.logs(&key, &name, &options, &mut written)
        })?;
    }
    Ok(())
}
