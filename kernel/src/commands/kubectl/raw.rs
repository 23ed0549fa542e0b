//! `--raw URI`: a request by its path, the body from `-f`, and the server's answer as it stands.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_get/>

use std::time::Duration;

use axum::http::Method;
use cluster_core::api::request::Verb;
use cluster_core::api::status::Status;
use cluster_core::apiserver::watching::Batch;

use super::client;
use super::failure::{Failure, Outcome, message};
use super::flags::{Flag, text};
use super::verb::Call;
use crate::gateway::raw::{self, Asked};

pub const RAW: Flag = text("raw");

/// A watch that names no end would never give the cell back.
const WATCH: Duration = Duration::from_secs(30);
/// How often a watch is looked into.
const GLANCE: Duration = Duration::from_millis(10);
const EVENTS_MAX: usize = 1000;

/// The path that was given, if one was.
pub fn uri(call: &Call<'_, '_>) -> Result<Option<String>, Failure> {
    let Some(uri) = call.parsed.text("raw").filter(|uri| !uri.is_empty()) else { return Ok(None) };
    if !call.parsed.args.is_empty() {
        return message("arguments may not be passed when --raw is specified");
    }
    let is_set = |flag: &str| call.parsed.text(flag).is_some_and(|text| !text.is_empty());
    if call.parsed.switch("watch") || call.parsed.switch("watch-only") || is_set("selector") {
        return message(
            "--raw may not be specified with other flags that filter the server request or alter the output",
        );
    }
    if is_set("output") {
        return message("--raw and --output are mutually exclusive");
    }
    if !uri.starts_with('/') {
        return message(format!("--raw must be a valid URL path: parse {uri:?}: invalid URI for request"));
    }
    Ok(Some(uri.to_owned()))
}

/// A document that stands at a path.
pub fn document(call: &mut Call<'_, '_>, uri: &str) -> Result<String, Failure> {
    let address = call.context.api.address();
    let mut text = String::new();
    match call.context.api.cluster() {
        Some(cluster) => match raw::document(cluster, &address, uri) {
            Some(document) => text = document?,
            None => return Err(Status::unknown_path().into()),
        },
        None => call.context.api.raw(&Method::GET, uri, String::new(), &mut |part| text.push_str(part))?,
    }
    Ok(text)
}

pub fn send(call: &mut Call<'_, '_>, method: &Method, uri: &str) -> Outcome {
    let text = call.text_of_file()?;
    call.command = format!("{} --raw {uri}", call.command);
    let address = call.context.api.address();
    let Some(cluster) = call.context.api.cluster() else {
        return Ok(call.context.with_output(|api, write| api.raw(method, uri, text, write))?);
    };
    let address = address.split_once("://").map_or(address.as_str(), |(_, host)| host);
    if let Some(document) = raw::document(cluster, address, uri).filter(|_| method == Method::GET) {
        call.context.print(document?);
        return Ok(());
    }
    let asked = Asked::new(cluster, method, uri, &text, client::actor())?;
    if asked.is_watch {
        return watch(call, &asked);
    }
    let response = call.send(asked.request.clone())?;
    if matches!(asked.request.verb, Verb::Get | Verb::List) {
        note(call, &asked)?;
    }
    call.line(asked.answer(response));
    Ok(())
}

/// Enters a read into the record: whoever spells out its path wants to see it there.
fn note(call: &mut Call<'_, '_>, asked: &Asked) -> Outcome {
    let request = call.signed(asked.request.clone())?;
    if let Some(cluster) = call.context.api.cluster() {
        cluster.record_read(&request);
    }
    Ok(())
}

/// Prints what a watch tells until it ends.
fn watch(call: &mut Call<'_, '_>, asked: &Asked) -> Outcome {
    let request = call.signed(asked.request.clone())?;
    let Some(cluster) = call.context.api.cluster() else { return Ok(()) };
    let mut open = cluster.open_watch(&request)?;
    let end = cluster.now() + asked.timeout.unwrap_or(WATCH);
    loop {
        let Some(cluster) = call.context.api.cluster() else { return Ok(()) };
        let is_over = cluster.now() >= end;
        let text: String = match open.next_batch(cluster.apiserver(), EVENTS_MAX) {
            Batch::Events(events) => events.iter().map(|told| raw::event(&open, told)).collect(),
            Batch::End(status) => return Err(status.into()),
        };
        call.context.print(text);
        if is_over || !call.context.api.wait(GLANCE) {
            return note(call, asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn a_cell_asks_for_paths_that_are_no_resources() {
        let mut session = session();
        assert_eq!(run(&mut session, "kubectl get --raw /healthz"), "ok");
        assert!(run(&mut session, "kubectl get --raw /version").contains("\n  \"gitVersion\": \"v1.36.2\""));
        let ready = run(&mut session, "kubectl get --raw '/readyz?verbose'");
        assert!(ready.starts_with("[+]ping ok\n") && ready.ends_with("readyz check passed\n"), "{ready}");
        assert!(run(&mut session, "kubectl get --raw /apis/apps/v1").contains("\"name\":\"deployments/scale\""));
        assert!(run(&mut session, "kubectl get --raw /nothing").contains("exit code 1"));
    }
}
