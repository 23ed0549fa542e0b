//! `kubectl attach`: what a container prints from now on.

use cluster_core::api::Key;

use super::super::super::api::LogOptions;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{duration, switch, text};
use super::super::verb::{Call, Verb};
use super::exec::container_of;
use super::pods::{named, phase, pod_of};

pub const VERB: Verb = Verb {
    name: "attach",
    aliases: &[],
    flags: &[
        text("container").short('c'),
        switch("quiet").short('q'),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        duration("pod-running-timeout"),
    ],
    run,
};

/// What kubectl says before it shows what a container prints.
pub const NOTICE: &str = "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.\nIf you don't see a command prompt, try pressing enter.";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let target = match call.parsed.args.as_slice() {
        [] => return message("at least 1 argument is required for attach"),
        [target] => target.clone(),
        [type_, name] => format!("{type_}/{name}"),
        more => {
            return message(format!(
                "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw {}: [{}]",
                more.len(),
                more.join(" ")
            ));
        }
    };
    let item = named(call, &target)?;
    let pod = pod_of(call, item)?;
    if let phase @ ("Succeeded" | "Failed") = phase(&pod.value) {
        return message(format!("cannot attach a container in a completed pod; current phase is {phase}"));
    }
    let container =
        container_of(call, &pod.value).map_err(|failure| failure.prefixed("cannot attach to the container: "))?;
    if pod.value.pointer("/spec/nodeName").is_none() {
        if !call.parsed.switch("quiet") {
            call.context.error_line(NOTICE);
        }
        return message("pod does not have a host assigned");
    }
    if call.parsed.switch("stdin") {
        return message("nothing can be typed into a container from here");
    }
    if !call.parsed.switch("quiet") {
        call.context.error_line(NOTICE);
    }
    let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
    let options = LogOptions { follow: true, tail_lines: Some(0), ..LogOptions::default() };
    call.context.with_output(|api, write| api.logs(&key, &container, &options, write)).map_err(Failure::from)
}
