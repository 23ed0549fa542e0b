//! `kubectl create`: from files, or one kind of object from flags, one file a kind.

pub mod configmap;
pub mod deployment;
pub mod ingress;
pub mod job;
pub mod namespace;
pub mod policy;
pub mod role;
pub mod secret;
pub mod service;
pub mod serviceaccount;
pub mod sources;
pub mod token;

use axum::http::Method;
use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::request::{FieldValidation, Options};
use cluster_core::api::schema::Schema;
use serde_json::Value;

use super::super::failure::{Failure, Outcome, all_of, message, usage};
use super::super::flags::{Flag, optional, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{
    DRY_RUN, DryRun, FIELD_MANAGER, Format, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE, without_managed_fields,
};
use super::super::raw;
use super::super::resources::Item;
use super::super::typed;
use super::super::verb::{Call, Verb};
use super::apply;

/// The flags that every `create KIND` takes, and behind them its own.
macro_rules! create_flags {
    ($($own:expr),* $(,)?) => {{
        use $crate::commands::kubectl::output::{DRY_RUN, FIELD_MANAGER, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
        use $crate::commands::kubectl::verbs::create::{SAVE_CONFIG, VALIDATE};
        &[OUTPUT, TEMPLATE, SHOW_MANAGED_FIELDS, DRY_RUN, FIELD_MANAGER, VALIDATE, SAVE_CONFIG, $($own),*]
    }};
}
use create_flags;

pub const VALIDATE: Flag = optional("validate", "strict");
pub const SAVE_CONFIG: Flag = switch("save-config");

pub const CREATE: Verb = Verb {
    name: "create",
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
        VALIDATE,
        SAVE_CONFIG,
        text("selector").short('l'),
        raw::RAW,
    ],
    run,
};

/// How strictly fields are checked that a kind does not have.
pub fn validation(call: &Call<'_, '_>) -> Result<FieldValidation, Failure> {
    match call.parsed.text("validate") {
        None | Some("strict" | "true") => Ok(FieldValidation::Strict),
        Some("warn") => Ok(FieldValidation::Warn),
        Some("ignore" | "false") => Ok(FieldValidation::Ignore),
        Some(other) => message(format!(
            "invalid - validate option {other:?}; must be one of: strict (or true), warn, ignore (or false)"
        )),
    }
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return usage(format!("Unexpected args: [{}]", call.parsed.args.join(" ")));
    }
    call.require_files()?;
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::POST, &uri);
    }
    let dry_run = call.dry_run()?;
    validation(call)?;
    call.format()?;
    let (items, mut failures) = call.manifests_so_far()?;
    if items.is_empty() && failures.is_empty() {
        return message("no objects passed to create");
    }
    for item in items {
        let told = send(call, &item, dry_run).and_then(|item| call.changed(&item, "created", dry_run));
        if let Err(failure) = told {
            let source = item.source.unwrap_or_default();
            failures.push(failure.prefixed(&format!("error when creating {source:?}: ")));
        }
    }
    all_of(failures)
}

/// Sends an object; returns what the server made of it.
fn send(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun) -> Result<Item, Failure> {
    let body = match call.parsed.switch("save-config") {
        true => apply::with_last_applied(&item.value),
        false => item.value.clone(),
    };
    if dry_run == DryRun::Client {
        return Ok(Item { value: body, ..item.clone() });
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-create").to_owned(),
        field_validation: validation(call)?,
        ..Options::default()
    };
    Ok(Item::new(&item.kind, call.create(&item.kind, &item.namespace, body, options)?))
}

/// The one name that the arguments must give. Flags that every `create KIND` takes are looked at then too.
pub fn name_of(call: &Call<'_, '_>) -> Result<String, Failure> {
    let before = call.parsed.before_dash.unwrap_or(call.parsed.args.len());
    let [name] = &call.parsed.args[..before] else {
        return usage(format!("exactly one NAME is required, got {before}"));
    };
    call.dry_run()?;
    call.format()?;
    validation(call)?;
    Ok(name.clone())
}

/// What stands behind `--`.
pub fn command_of(call: &Call<'_, '_>) -> Vec<String> {
    call.parsed.before_dash.map(|before| call.parsed.args[before..].to_vec()).unwrap_or_default()
}

/// Creates what flags describe. `failing` is how a failure begins: `failed to create deployment: `.
pub fn generated<K: Resource>(call: &mut Call<'_, '_>, value: Value, failing: &str) -> Outcome {
    generated_as::<K>(call, value, failing, "created")
}

/// As [`generated`], with another word for what was done.
pub fn generated_as<K: Resource>(call: &mut Call<'_, '_>, value: Value, failing: &str, what: &str) -> Outcome {
    let dry_run = call.dry_run()?;
    let created = sent::<K>(call, value, failing)?;
    tell(call, &created, what, dry_run)
}

/// As [`generated`], without a word about it.
pub fn sent<K: Resource>(call: &mut Call<'_, '_>, mut value: Value, failing: &str) -> Result<Item, Failure> {
    let dry_run = call.dry_run()?;
    let kind = KindRef::of::<K>();
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.to_string().into();
    if kind.namespaced && call.explicit_namespace {
        value["metadata"]["namespace"] = call.namespace.as_str().into();
    }
    let mut item = Item::new(kind, value);
    if kind.namespaced {
        item.namespace.clone_from(&call.namespace);
    }
    send(call, &item, dry_run).map_err(|failure| match failure {
        Failure::Server(status) if !failing.is_empty() => Failure::Message(format!("{failing}{}", status.message)),
        other => other,
    })
}

/// As [`Call::changed`], of an object that kubectl has as a type of Go, whose JSON has another order.
pub fn tell(call: &mut Call<'_, '_>, item: &Item, what: &str, dry_run: DryRun) -> Outcome {
    match call.format()? {
        Format::Json => {
            let value = without_managed_fields(item.value.clone());
            call.line(typed::json(&value, Schema::of(&item.kind)));
            Ok(())
        }
        _ => call.changed(item, what, dry_run),
    }
}

/// `80` as a number, `http` and `50%` as text.
pub fn integer_or_text(text: &str) -> Value {
    text.parse::<i32>().map_or_else(|_| text.into(), Value::from)
}
