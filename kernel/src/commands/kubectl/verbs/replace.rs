//! `kubectl replace`: puts whole objects in the place of those that are there.

use axum::http::Method;
use cluster_core::api::request::{Body, FieldValidation, Options, Request, Verb as ApiVerb};

use super::super::client;
use super::super::failure::{Outcome, all_of, message};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::raw;
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::create::{VALIDATE, validation};
use super::patch::{SUBRESOURCE, subresource};

pub const VERB: Verb = Verb {
    name: "replace",
    aliases: &[],
    about: "Replace a resource by file name or stdin",
    usage: "replace -f FILENAME [options]",
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        DRY_RUN,
        FIELD_MANAGER,
        VALIDATE,
        SUBRESOURCE,
        raw::RAW,
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.has("filename") {
        return message("must specify --filename to replace");
    }
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::PUT, &uri);
    }
    let dry_run = call.dry_run()?;
    let validation = validation(call)?;
    let (items, mut failures) = call.manifests_so_far()?;
    for item in items {
        if let Err(failure) = replace(call, &item, dry_run, validation) {
            let source = item.source.unwrap_or_default();
            failures.push(failure.prefixed(&format!("error when replacing {source:?}: ")));
        }
    }
    all_of(failures)
}

fn replace(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun, field_validation: FieldValidation) -> Outcome {
    if dry_run == DryRun::Client {
        return call.changed(item, "replaced", dry_run);
    }
    let subresource = subresource(call)?;
    let mut body = item.value.clone();
    // Without a revision the one that is there is meant, whichever it is.
    if body.pointer("/metadata/resourceVersion").is_none() {
        let current = call.get(&item.kind, &item.namespace, &item.name)?;
        body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-replace").to_owned(),
        field_validation,
        ..Options::default()
    };
    let request = Request {
        subresource,
        body: Body::Json(body),
        options,
        ..client::request(ApiVerb::Update, &item.kind, &item.namespace, &item.name)
    };
    let replaced = call.send_for_object(request)?;
    call.changed(&Item { value: replaced, ..item.clone() }, "replaced", dry_run)
}
