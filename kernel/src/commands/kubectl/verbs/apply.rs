//! `kubectl apply`

use cluster_core::api::request::{Options, PatchType, Verb as ApiVerb};
use serde_json::{Value, json};

use super::super::client;
use super::super::declare::{self, Difference};
use super::super::failure::{Failure, Outcome, all_of, message, usage};
use super::super::flags::{duration, integer, optional, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{
    DRY_RUN, DryRun, FIELD_MANAGER, Format, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE, json_line, json_text,
    without_managed_fields,
};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::delete::{PATIENCE, wait_until_gone};
use super::{create, prune};

pub const VERB: Verb = Verb {
    name: "apply",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        DRY_RUN,
        FIELD_MANAGER,
        create::VALIDATE,
        text("selector").short('l'),
        switch("server-side"),
        switch("force-conflicts"),
        switch("overwrite"),
        switch("force"),
        switch("all"),
        switch("prune"),
        text("prune-allowlist"),
        switch("wait"),
        switch("openapi-patch"),
        integer("grace-period"),
        duration("timeout"),
        optional("cascade", "background"),
    ],
    run,
};

/// Where apply keeps what was applied last.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return usage(format!("Unexpected args: [{}]", call.parsed.args.join(" ")));
    }
    call.require_files()?;
    let server_side = call.parsed.switch("server-side");
    let dry_run = call.dry_run()?;
    check_flags(call, server_side)?;
    if server_side && dry_run == DryRun::Client {
        return message("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)");
    }
    call.format()?;
    create::validation(call)?;
    let (items, mut failures) = call.manifests_so_far()?;
    if items.is_empty() && failures.is_empty() {
        return message("no objects passed to apply");
    }
    let unread = failures.len();
    let mut applied = Vec::new();
    for item in items {
        let outcome = if server_side { apply_on_server(call, &item, dry_run) } else { apply(call, &item, dry_run) };
        match outcome {
            Ok(item) => applied.push(item),
            Err(failure) => failures.push(failure),
        }
    }
    if unread > 1 && failures.len() > unread {
        // What could not be read counts as one failure beside the others.
        let words = failures
            .drain(..unread)
            .map(|failure| failure.text("").trim_end().trim_start_matches("error: ").to_owned());
        let words = words.collect::<Vec<_>>().join(", ");
        failures.insert(0, Failure::Raw(format!("[{words}]")));
    }
    if call.parsed.switch("prune") && failures.is_empty() {
        prune::prune(call, &applied, dry_run)?;
    }
    match call.format()? {
        Format::Human | Format::Name => {}
        Format::Json if applied.len() > 1 => call.line(list_json(&applied)),
        format if !applied.is_empty() => {
            let list = applied.len() > 1;
            call.print_objects(&format, &applied, list)?;
        }
        _ => {}
    }
    all_of(failures)
}

fn check_flags(call: &mut Call<'_, '_>, server_side: bool) -> Outcome {
    let parsed = &call.parsed;
    if server_side && parsed.switch("force") {
        return message("--force cannot be used with --server-side");
    }
    if !server_side && parsed.switch("force-conflicts") {
        return message("--force-conflicts only works with --server-side");
    }
    if parsed.switch("prune") { prune::check(call) } else { Ok(()) }
}

/// Tells at once, unless objects are printed at the end.
pub fn tell(call: &mut Call<'_, '_>, item: &Item, what: &str, dry_run: DryRun) -> Outcome {
    match call.format()? {
        Format::Human | Format::Name => call.changed(item, what, dry_run),
        _ => Ok(()),
    }
}

fn apply_on_server(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun) -> Result<Item, Failure> {
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl").to_owned(),
        force: call.parsed.switch("force-conflicts"),
        field_validation: create::validation(call)?,
        ..Options::default()
    };
    let patch = (PatchType::Apply, item.value.clone());
    match call.patch(&item.kind, &item.namespace, &item.name, patch, options) {
        Ok(value) => {
            let item = Item::new(&item.kind, value);
            tell(call, &item, "serverside-applied", dry_run)?;
            Ok(item)
        }
        Err(Failure::Server(status)) if status.is_conflict() => message(format!("{}{}", status.message, CONFLICT)),
        Err(failure) => Err(failure),
    }
}

const CONFLICT: &str = "
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts";

/// A manifest as it was written, with itself in the annotation.
pub fn with_last_applied(manifest: &Value) -> Value {
    let mut modified = without_last_applied(manifest);
    let text = json_line(&modified) + "\n";
    if let Some(annotations) = modified.pointer_mut("/metadata/annotations") {
        annotations[LAST_APPLIED] = text.into();
    }
    modified
}

/// A manifest as it was written, without the annotation, but with a place for it.
pub fn without_last_applied(manifest: &Value) -> Value {
    let mut modified = manifest.clone();
    let metadata = modified.as_object_mut().map(|fields| fields.entry("metadata").or_insert_with(|| json!({})));
    let Some(metadata) = metadata.filter(|metadata| metadata.is_object()) else { return modified };
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.remove(LAST_APPLIED);
    }
    modified
}

fn apply(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun) -> Result<Item, Failure> {
    let source = item.source.clone().unwrap_or_default();
    let Item { kind, namespace, name, .. } = item;
    let generated = item.value.pointer("/metadata/generateName").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() && !generated.is_empty() {
        return message(format!("from {generated}: cannot use generate name with apply"));
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-client-side-apply").to_owned(),
        field_validation: create::validation(call)?,
        ..Options::default()
    };
    let modified = with_last_applied(&item.value);
    let current = match call.get(kind, namespace, name) {
        Ok(current) => current,
        Err(failure) if failure.is_not_found() => {
            if dry_run == DryRun::Client {
                let item = Item { value: modified, ..item.clone() };
                tell(call, &item, "created", dry_run)?;
                return Ok(item);
            }
            let created = call.create(kind, namespace, modified, options);
            let created = created.map_err(|failure| failure.prefixed(&format!("error when creating {source:?}: ")))?;
            let item = Item::new(kind, created);
            tell(call, &item, "created", dry_run)?;
            return Ok(item);
        }
        Err(failure) => {
            let about = format!(
                "error when retrieving current configuration of:\n{}\nfrom server for: {source:?}: ",
                described(item)
            );
            return Err(failure.prefixed(&about));
        }
    };
    let Difference { patch, patch_type, tracked } = declare::difference(kind, &modified, &current);
    if !tracked {
        call.warn(format!(
            "resource {}/{name} is missing the {LAST_APPLIED} annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.",
            kind.resource
        ));
    }
    let unchanged = patch == json!({});
    if dry_run == DryRun::Client {
        tell(call, item, if unchanged { "unchanged" } else { "configured" }, dry_run)?;
        return Ok(item.clone());
    }
    let patched = if unchanged {
        current
    } else {
        let about = format!(
            "error when applying patch:\n{}\nto:\n{}\nfor: {source:?}: error when patching {source:?}: ",
            json_line(&patch),
            described(item)
        );
        let forced = call.parsed.switch("force");
        match call.patch(kind, namespace, name, (patch_type, patch), options.clone()) {
            Err(Failure::Server(status)) if forced && (status.is_conflict() || status.reason == "Invalid") => {
                make_anew(call, item, &current, modified, options)?
            }
            patched => patched.map_err(|failure| failure.prefixed(&about))?,
        }
    };
    let item = Item::new(kind, patched);
    tell(call, &item, if unchanged { "unchanged" } else { "configured" }, dry_run)?;
    Ok(item)
}

/// What --force does where a field cannot be changed: the object goes and comes again.
fn make_anew(
    call: &mut Call<'_, '_>,
    item: &Item,
    current: &Value,
    modified: Value,
    options: Options,
) -> Result<Value, Failure> {
    let Item { kind, namespace, name, .. } = item;
    call.send(client::request(ApiVerb::Delete, kind, namespace, name))?;
    let uid = current.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    wait_until_gone(call, item, uid, PATIENCE)?;
    call.create(kind, namespace, modified, options)
}

/// Several objects as one list, which kubectl holds as a type of Go.
fn list_json(items: &[Item]) -> String {
    let values: Vec<Value> = items.iter().map(|item| without_managed_fields(item.value.clone())).collect();
    let values = json_text(&json!(values), "    ").replace('\n', "\n    ");
    format!(
        "{{\n    \"kind\": \"List\",\n    \"apiVersion\": \"v1\",\n    \"metadata\": {{}},\n    \"items\": {values}\n}}"
    )
}

pub fn described(item: &Item) -> String {
    let Item { kind, namespace, name, .. } = item;
    format!(
        "Resource: \"{}/{}, Resource={}\", GroupVersionKind: \"{}/{}, Kind={}\"\nName: {name:?}, Namespace: {namespace:?}",
        kind.group, kind.version, kind.resource, kind.group, kind.version, kind.kind
    )
}
