//! `kubectl patch`

use cluster_core::api::request::{Body, Options, PatchType, Request, Verb as ApiVerb};
use cluster_core::api::schema::Schema;
use cluster_core::api::status::Status;
use cluster_core::apiserver::decode::text as json_text;
use cluster_core::apiserver::patch;
use serde_json::Value;

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{Flag, switch, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT, TEMPLATE};
use super::super::resources::{Item, NOT_SPECIFIED};
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const SUBRESOURCE: Flag = text("subresource");

pub const VERB: Verb = Verb {
    name: "patch",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        OUTPUT,
        TEMPLATE,
        DRY_RUN,
        FIELD_MANAGER,
        text("patch").short('p'),
        text("patch-file"),
        text("type"),
        switch("local"),
        SUBRESOURCE,
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    let patch_type = match call.parsed.text("type").unwrap_or("strategic") {
        "json" => PatchType::Json,
        "merge" => PatchType::Merge,
        "strategic" => PatchType::StrategicMerge,
        other => return message(format!("--type must be one of [json merge strategic], not {other:?}")),
    };
    let text = match (call.parsed.text("patch"), call.parsed.text("patch-file")) {
        (Some(_), Some(_)) => return message("cannot specify --patch and --patch-file together"),
        (Some(text), None) => text.to_owned(),
        (None, Some(file)) => call
            .context
            .files
            .read(file)
            .map_err(|trouble| Failure::Message(format!("unable to read patch file: open {file}: {trouble}")))?,
        (None, None) => return message("must specify --patch or --patch-file containing the contents of the patch"),
    };
    let body = body(&text, patch_type)?;
    if call.parsed.switch("local") {
        if !call.parsed.args.is_empty() {
            return message("cannot specify --local and server resources");
        }
        if dry_run == DryRun::Server {
            return message("cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
        }
    }
    let (items, mut failures) = call.objects(NOT_SPECIFIED)?;
    for item in items {
        let patched = body.clone().and_then(|body| patch_item(call, &item, (patch_type, body), dry_run));
        if let Err(failure) = patched {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// The patch that a text says, or what the server says to JSON that it can't read. What is no JSON is read as YAML here.
fn body(text: &str, patch_type: PatchType) -> Result<Result<Value, Failure>, Failure> {
    if !text.trim_start().starts_with('{') {
        let read = yaml::first(text)
            .map_err(|error| Failure::Message(format!("unable to parse {text:?}: {}", error.in_go_words())))?;
        return Ok(Ok(read.map(|document| document.value).unwrap_or_default()));
    }
    let refused = |problem: String| {
        let before = if patch_type == PatchType::StrategicMerge { "" } else { "error decoding patch: " };
        Failure::Server(Box::new(Status::bad_request(format!("{before}{problem}"))))
    };
    Ok(json_text::parse(text.as_bytes()).map(|parsed| parsed.value).map_err(refused))
}

/// The part of the object that is meant; nothing for the object itself.
pub fn subresource(call: &Call<'_, '_>) -> Result<&'static str, Failure> {
    match call.parsed.text("subresource") {
        None => Ok(""),
        Some("status") => Ok("status"),
        Some("scale") => Ok("scale"),
        Some("resize") => Ok("resize"),
        // The server has no other, and kubectl asks it.
        Some(_) => {
            Err(Failure::Raw("Error from server (NotFound): the server could not find the requested resource".into()))
        }
    }
}

fn patch_item(call: &mut Call<'_, '_>, item: &Item, sent: (PatchType, Value), dry_run: DryRun) -> Outcome {
    let (patch_type, body) = sent;
    if patch_type == PatchType::StrategicMerge && Schema::of(&item.kind).is_none() {
        return message(format!(
            "application/strategic-merge-patch+json is not supported by {}, Kind={}: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            item.kind.api_version(),
            item.kind.kind
        ));
    }
    let subresource = subresource(call)?;
    let options = Options {
        // A client-side dry run shows what the server would make of it, without asking it to keep that.
        dry_run: dry_run != DryRun::None,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-patch").to_owned(),
        ..Options::default()
    };
    let request = Request {
        subresource,
        body: Body::Json(body),
        options,
        ..client::request(ApiVerb::Patch(patch_type), &item.kind, &item.namespace, &item.name)
    };
    let patched = if call.parsed.switch("local") {
        let mut patched = item.value.clone();
        patch::change(&mut patched, &request, Schema::of(&item.kind))
            .map_err(|status| Failure::Message(status.message))?;
        patched
    } else {
        call.send_for_object(request)?
    };
    let unchanged = patched == item.value;
    let what = if unchanged { "patched (no change)" } else { "patched" };
    // Of a dry run kubectl says no other word here.
    call.changed(&Item { value: patched, ..item.clone() }, what, DryRun::None)
}
