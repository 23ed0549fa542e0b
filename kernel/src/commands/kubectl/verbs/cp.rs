//! `kubectl cp`: a text file out of a container.

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Pod;

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{integer, switch, text};
use super::super::verb::{Call, Verb};
use super::exec::container_of;

pub const VERB: Verb = Verb {
    name: "cp",
    aliases: &[],
    flags: &[text("container").short('c'), switch("no-preserve"), integer("retries")],
    run,
};

/// `file`, `pod:file` or `namespace/pod:file`
struct Place<'a> {
    namespace: Option<&'a str>,
    pod: Option<&'a str>,
    file: &'a str,
}

fn place(text: &str) -> Result<Place<'_>, Failure> {
    let wrong = || Failure::Message("filespec must match the canonical format: [[namespace/]pod:]file/path".into());
    let Some((pod, file)) = text.split_once(':') else { return Ok(Place { namespace: None, pod: None, file: text }) };
    match pod.split('/').collect::<Vec<_>>()[..] {
        [""] => Err(wrong()),
        [pod] => Ok(Place { namespace: None, pod: Some(pod), file }),
        [namespace, pod] => Ok(Place { namespace: Some(namespace), pod: Some(pod), file }),
        _ => Err(wrong()),
    }
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let [from, to] = args.as_slice() else { return message("source and destination are required") };
    let (from, to) = (place(from)?, place(to)?);
    if from.pod.is_some() && to.pod.is_some() {
        return message("one of src or dest must be a local file specification");
    }
    if from.file.is_empty() || to.file.is_empty() {
        return message("filepath can not be empty");
    }
    let remote = if from.pod.is_some() { &from } else { &to };
    let Some(name) = remote.pod else { return message("one of src or dest must be a remote file specification") };
    if to.pod.is_some() && call.context.files.read(from.file).is_err() && call.context.files.list(from.file).is_none() {
        return message(format!("{} doesn't exist in local filesystem", from.file));
    }
    let namespace = remote.namespace.unwrap_or(&call.namespace).to_owned();
    let pod = call.get(KindRef::of::<Pod>(), &namespace, name)?;
    let container = container_of(call, &pod)?;
    if to.pod.is_some() {
        return message("files can be copied out of a container, but not into one");
    }
    let command = ["cat".to_owned(), from.file.to_owned()];
    let done = call.context.api.exec(&Key::new(namespace.as_str(), name), &container, &command, "");
    let done = done.map_err(|status| Failure::Message(status.message))?;
    if done.code != 0 {
        call.context.error_line(done.output.trim_end());
        return Err(Failure::Command(done.code));
    }
    let written = call.context.files.write(to.file, &done.output);
    written.map_err(|trouble| Failure::Message(format!("open {}: {trouble}", to.file)))
}
