//! `kubectl get`: which objects are meant, and how they are read. `tables` prints what people read, `sorting` is
//! `--sort-by`, `watching` is `--watch`.

mod sorting;
mod tables;
mod watching;

use axum::http::Method;
use cluster_core::api::Key;
use cluster_core::api::object::Object;
use cluster_core::api::request::{Request, Verb as ApiVerb};
use cluster_core::apiserver::managed;

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{integer, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{Format, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::raw;
use super::super::resources::{FILES_OR_ARGUMENTS, Item, NOT_SPECIFIED, targets};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "get",
    aliases: &[],
    flags: &[
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        FILENAME,
        KUSTOMIZE,
        RECURSIVE,
        text("selector").short('l'),
        text("field-selector"),
        switch("all-namespaces").short('A'),
        switch("show-labels"),
        switch("no-headers"),
        switch("show-kind"),
        switch("ignore-not-found"),
        switch("allow-missing-template-keys"),
        text("label-columns").short('L'),
        text("sort-by"),
        integer("chunk-size"),
        switch("server-print"),
        text("subresource"),
        switch("watch").short('w'),
        switch("watch-only"),
        switch("output-watch-events"),
        raw::RAW,
    ],
    run,
};

const WHICH_KIND: &str = "You must specify the type of resource to get. Use \"kubectl api-resources\" for a complete list of supported resources.\n";

/// What is to be read: an object, or all of a kind.
#[derive(Clone, Debug)]
struct Wanted {
    kind: cluster_core::api::kind::KindRef,
    namespace: String,
    name: Option<String>,
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::GET, &uri);
    }
    let watches = call.parsed.switch("watch") || call.parsed.switch("watch-only");
    let names_nothing = call.parsed.args.is_empty() && !call.parsed.names_files();
    if names_nothing && !watches {
        call.context.error_line(WHICH_KIND);
        return Err(Failure::Usage(
            "Required resource not specified.\nUse \"kubectl explain <resource>\" for a detailed description of that resource (e.g. kubectl explain pods)."
                .into(),
        ));
    }
    let asked = call.parsed.text("output").unwrap_or_default().to_owned();
    let is_human = matches!(asked.as_str(), "" | "wide") && !call.parsed.has("template");
    if call.parsed.switch("show-labels") && !matches!(asked.as_str(), "" | "wide") {
        return message(format!("--show-labels option cannot be used with {asked} printer"));
    }
    if call.parsed.switch("output-watch-events") && !watches {
        return message("--output-watch-events option can only be used with --watch or --watch-only");
    }
    if names_nothing {
        return message(NOT_SPECIFIED);
    }
    let wanted = wanted(call)?;
    match (watches, is_human) {
        (true, _) => watching::watch(call, wanted),
        (false, true) => tables::print(call, &wanted, asked == "wide"),
        (false, false) => objects(call, &wanted),
    }
}

fn wanted(call: &mut Call<'_, '_>) -> Result<Vec<Wanted>, Failure> {
    let everywhere = call.parsed.switch("all-namespaces");
    if call.parsed.names_files() {
        if !call.parsed.args.is_empty() {
            return message(FILES_OR_ARGUMENTS);
        }
        let named = |item: Item| Wanted { kind: item.kind, namespace: item.namespace, name: Some(item.name) };
        // What cannot be read is one of several failures, of which none is called so.
        let bare = |failure: Failure| match failure {
            Failure::Message(text) if text.starts_with("error parsing") => Failure::Raw(text),
            other => other,
        };
        return Ok(call.manifests().map_err(bare)?.into_iter().map(named).collect());
    }
    let args = call.parsed.args.clone();
    let targets = targets(call, &args)?;
    let is_named = targets.iter().any(|target| target.name.is_some());
    if is_named && (call.parsed.has("selector") || call.parsed.has("field-selector")) {
        return message("name cannot be provided when a selector is specified");
    }
    if everywhere && targets.iter().any(|target| target.name.is_some() && target.kind.namespaced) {
        return message("a resource cannot be retrieved by name across all namespaces");
    }
    let namespace = if everywhere { "" } else { call.namespace.as_str() };
    let place = |namespaced: bool| if namespaced { namespace.to_owned() } else { String::new() };
    let wanted = targets.into_iter().map(|target| Wanted {
        namespace: place(target.kind.namespaced),
        kind: target.kind,
        name: target.name,
    });
    Ok(wanted.collect())
}

/// The request for what is wanted.
fn request(call: &mut Call<'_, '_>, wanted: &Wanted) -> Result<Request, Failure> {
    let Wanted { kind, namespace, name } = wanted;
    let mut request = match name {
        Some(name) if name.is_empty() => return message("resource name may not be empty"),
        Some(name) => client::request(ApiVerb::Get, kind, namespace, name),
        None => Request {
            options: call.list_options(kind)?,
            ..Request::new(&client::actor(), ApiVerb::List, kind, Key::new(namespace.as_str(), ""))
        },
    };
    if let Some(subresource) = call.parsed.text("subresource").filter(|subresource| !subresource.is_empty()) {
        request.subresource = known_subresource(subresource)?;
        if name.is_none() {
            return message("subresource cannot be used when bulk resources are specified");
        }
    }
    call.signed(request)
}

fn known_subresource(name: &str) -> Result<&'static str, Failure> {
    const KNOWN: [&str; 6] = ["status", "scale", "resize", "ephemeralcontainers", "approval", "log"];
    match KNOWN.iter().find(|known| **known == name) {
        Some(known) => Ok(known),
        None => {
            Err(Failure::Raw("Error from server (NotFound): the server could not find the requested resource".into()))
        }
    }
}

/// What a read has failed with, in kubectl's words; nothing if what is not there is to be ignored.
fn failed(call: &mut Call<'_, '_>, wanted: &Wanted, failure: Failure) -> Option<Failure> {
    let failure = match wanted.name {
        Some(_) => call.missing(&wanted.kind, &wanted.namespace, failure),
        None => call.list_failure(&wanted.kind, failure),
    };
    (!call.parsed.switch("ignore-not-found") || !failure.is_not_found()).then_some(failure)
}

fn objects(call: &mut Call<'_, '_>, wanted: &[Wanted]) -> Outcome {
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    let format = call.table_format();
    let managers = call.parsed.switch("show-managed-fields") || format.as_ref().is_ok_and(Format::shows_managers);
    let json = |object: &Object| if managers { managed::to_json(object) } else { object.to_json() };
    for wanted in wanted {
        let request = request(call, wanted)?;
        match call.context.api.request(request) {
            Ok(response) => {
                items.extend(response.items().iter().map(|object| Item::new(&object.kind, json(object))));
                call.deprecated(&wanted.kind);
            }
            Err(status) => failures.extend(failed(call, wanted, status.into())),
        }
    }
    let is_single = matches!(wanted, [Wanted { name: Some(_), .. }]) && call.parsed.text("filename") != Some("-");
    let nothing = items.is_empty() && (is_single || call.parsed.switch("ignore-not-found"));
    if !nothing || failures.is_empty() {
        let format = format?;
        if !nothing {
            sorting::sort_items(call, &mut items)?;
            call.print_objects(&format, &items, !is_single)?;
        }
    }
    all_of(failures)
}
