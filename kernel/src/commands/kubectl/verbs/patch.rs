//! `kubectl patch`

use cluster_core::api::request::{Body, Options, PatchType, Request, Verb as ApiVerb};
use cluster_core::api::schema::Schema;
use serde_json::Value;

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{Flag, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT, TEMPLATE};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const SUBRESOURCE: Flag = text("subresource");

pub const VERB: Verb = Verb {
    name: "patch",
    aliases: &[],
    about: "Update fields of a resource",
    usage: "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE] [options]",
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
        SUBRESOURCE,
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
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
    let body = match yaml::read(&text) {
        Ok(documents) => documents.into_iter().next().map(|document| document.value).unwrap_or_default(),
        Err(_) => return Err(Failure::Raw("Error from server (BadRequest): unexpected end of JSON input".into())),
    };
    let dry_run = call.dry_run()?;
    let (items, mut failures) = call.items()?;
    for item in items {
        if let Err(failure) = patch(call, &item, (patch_type, body.clone()), dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// The part of the object that is meant; nothing for the object itself.
pub fn subresource(call: &Call<'_, '_>) -> Result<&'static str, Failure> {
    match call.parsed.text("subresource") {
        None => Ok(""),
        Some("status") => Ok("status"),
        Some("scale") => Ok("scale"),
        Some(other) => message(format!("invalid subresource value: {other:?}. Must be one of [status scale resize]")),
    }
}

fn patch(call: &mut Call<'_, '_>, item: &Item, patch: (PatchType, Value), dry_run: DryRun) -> Outcome {
    let (patch_type, body) = patch;
    if patch_type == PatchType::StrategicMerge && Schema::of(&item.kind).is_none() {
        return Err(Failure::Raw(
            "Error from server (UnsupportedMediaType): the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                .into(),
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
    let patched = call.send_for_object(request)?;
    let unchanged = patched == item.value;
    let what = if unchanged { "patched (no change)" } else { "patched" };
    call.changed(&Item { value: patched, ..item.clone() }, what, dry_run)
}
