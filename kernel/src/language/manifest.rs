//! Manifest cells: a wish, as YAML or JSON. The objects of a cell are its own set: run the cell again after an edit, and
//! what changed is changed, what left the cell is pruned.

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::request::{FieldValidation, Options, Propagation, Request, Verb};
use cluster_core::api::schema::Schema;
use cluster_core::api::status::{Cause, Status};
use serde_json::{Value, json};

use super::{Language, caller, first_line};
use crate::commands::Api;
use crate::commands::kubectl::declare;
use crate::output::{CellError, Completeness, Completion, MimeBundle, Output, Sink};
use crate::session::Session;
use crate::yaml::{self, Document};

pub struct Manifest;

impl Language for Manifest {
    fn name(&self) -> &'static str {
        "manifest"
    }

    fn claims(&self, code: &str) -> bool {
        let first = first_line(code);
        let key = |line: &str| {
            let word = line.split(':').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            line.contains(':') && !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric())
        };
        first.starts_with(['{', '[']) || first.starts_with("---") || first.starts_with("- ") || key(first)
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        let documents = yaml::read(code).map_err(|error| syntax_error(code, &error))?;
        for warning in documents.iter().flat_map(|document| &document.warnings) {
            let place = yaml::underline(code, warning.span);
            sink.put(Output::Stdout(format!("Warning: {}\n{place}\n", warning.message)));
        }
        let items: Vec<Item<'_>> = documents.iter().flat_map(Item::of).collect();
        if items.is_empty() {
            return Ok(());
        }
        // Tried first, on a fork or as a dry run: a cell with one wrong object changes nothing.
        let mut trial = session.cluster.clone();
        let mut problems = Vec::new();
        let namespace = session.namespace();
        let dry_run = session.away.is_some();
        for item in &items {
            if sink.interrupted() {
                return Err(session.interrupted());
            }
            if dry_run && item.needs_another(&items) {
                continue;
            }
            let mut api = caller::api(&mut trial, session.away.as_mut(), 0, &|| false);
            problems.extend(item.apply(api.as_mut(), &namespace, dry_run).err());
        }
        if !problems.is_empty() {
            return Err(refusal(code, &problems));
        }
        let mut set = Vec::new();
        let cause = session.cell_sequence();
        for item in &items {
            if sink.interrupted() {
                return Err(session.interrupted());
            }
            let applied = {
                let mut api = caller::api(&mut session.cluster, session.away.as_mut(), cause, &|| false);
                item.apply(api.as_mut(), &namespace, false).map_err(|problem| refusal(code, &[problem]))?
            };
            sink.put(Output::Stdout(format!("{} {}\n", applied.name, applied.verb)));
            set.push((applied.kind, applied.key));
        }
        prune(set, session, sink)?;
        session.settle(sink)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match yaml::completeness(code) {
            yaml::Completeness::Complete if code.ends_with('\n') || code.trim_end().ends_with('}') => {
                Completeness::Complete
            }
            yaml::Completeness::Complete => Completeness::Incomplete { indent: indent(code) },
            yaml::Completeness::Incomplete => Completeness::Incomplete { indent: indent(code) },
            yaml::Completeness::Invalid => Completeness::Invalid,
        }
    }

    fn complete(&self, code: &str, cursor: usize, session: &mut Session) -> Completion {
        super::fields::complete(code, cursor, session)
    }

    fn inspect(&self, code: &str, cursor: usize, session: &mut Session) -> Option<MimeBundle> {
        super::fields::inspect(code, cursor, session)
    }
}

/// The indentation of the last line, one step deeper behind a colon.
fn indent(code: &str) -> String {
    let last = code.lines().next_back().unwrap_or_default();
    let spaces = last.len() - last.trim_start().len();
    let deeper = if last.trim_end().ends_with(':') { 2 } else { 0 };
    " ".repeat(spaces + deeper)
}

pub(super) fn syntax_error(code: &str, error: &yaml::SyntaxError) -> CellError {
    let hint = error.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
    let mut shown = CellError::new("ManifestError", error.to_string());
    shown.traceback = vec![format!("{error}\n{}{hint}", yaml::underline(code, error.span))];
    shown
}

/// One object of a cell: a document, or an item of a `List`.
struct Item<'a> {
    document: &'a Document,
    value: &'a Value,
    /// Where the object stands in its document: empty, or `items[3]`.
    path: String,
}

/// It is no object but a file with which a component is started.
fn is_file(kind: &KindRef) -> bool {
    Cluster::file_kinds().contains(&kind)
}

/// What an apply did.
struct Applied {
    kind: KindRef,
    key: Key,
    name: String,
    verb: &'static str,
}

/// Why an object was not applied, with the fields to point at.
struct Problem<'a> {
    item: &'a Item<'a>,
    message: String,
    fields: Vec<(String, String)>,
}

impl<'a> Item<'a> {
    fn of(document: &'a Document) -> Vec<Item<'a>> {
        let is_list = document.value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match document.value.get("items").and_then(Value::as_array).filter(|_| is_list) {
            Some(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| Item { document, value, path: format!("items[{index}]") })
                .collect(),
            None => vec![Item { document, value: &document.value, path: String::new() }],
        }
    }

    fn problem(&'a self, message: impl Into<String>, fields: Vec<(String, String)>) -> Problem<'a> {
        Problem { item: self, message: message.into(), fields }
    }

    /// A namespace or a kind that the same cell makes: a dry run of this object alone would not find it.
    fn needs_another(&self, items: &[Item<'_>]) -> bool {
        let text = |item: &Item<'_>, path: &str| {
            item.value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (namespace, kind) = (text(self, "/metadata/namespace"), text(self, "/kind"));
        items.iter().any(|other| match text(other, "/kind").as_str() {
            "Namespace" => !namespace.is_empty() && text(other, "/metadata/name") == namespace,
            "CustomResourceDefinition" => text(other, "/spec/names/kind") == kind,
            _ => false,
        })
    }

    fn apply(&'a self, api: &mut dyn Api, namespace: &str, dry_run: bool) -> Result<Applied, Problem<'a>> {
        let mut kinds = api.kinds().map_err(|status| self.problem(status.message, Vec::new()))?;
        kinds.extend(Cluster::file_kinds().map(Clone::clone));
        let kind = self.kind(&kinds)?;
        // Types first, so that all of an object's wrong types are told by place.
        if let Err(error) = Object::from_json(&kind, self.value.clone()) {
            let path = known_part(&kind, &error.path);
            let found = self.value.pointer(&pointer(path)).map(|value| format!(", not {value}")).unwrap_or_default();
            let message = match expected(&kind, path) {
                Some(expected) => format!("{path}: expected {expected}{found}"),
                None => format!("{}: {}", error.path, error.message),
            };
            return Err(self.problem(message.clone(), vec![(path.to_owned(), message)]));
        }
        if is_file(&kind) {
            return self.configure(kind, api);
        }
        let metadata = |field: &str| self.value.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
        let namespace = if kind.namespaced { metadata("namespace").unwrap_or(namespace) } else { "" };
        let key = Key::new(namespace, metadata("name").unwrap_or_default());
        let options = Options {
            field_manager: "kubectl-client-side-apply".into(),
            field_validation: FieldValidation::Strict,
            dry_run,
            ..Options::default()
        };
        match declare::apply(api, &kind, &key, self.value, &options) {
            Ok((object, verb)) => {
                let name = kind.qualified_name(&object.key.name);
                Ok(Applied { key: object.key.clone(), name, verb, kind })
            }
            Err(status) => Err(self.refused(&kind, &status)),
        }
    }

    /// A file with which a component is started anew.
    fn configure(&'a self, kind: KindRef, api: &mut dyn Api) -> Result<Applied, Problem<'a>> {
        let Some(cluster) = api.cluster() else {
            return Err(self.problem("only components of the simulated cluster take a file", Vec::new()));
        };
        match cluster.configure(&kind, self.value) {
            Ok(name) => Ok(Applied { kind, key: Key::cluster(""), name: name.into(), verb: "configured" }),
            Err(status) => Err(self.refused(&kind, &status)),
        }
    }

    fn kind(&'a self, kinds: &[KindRef]) -> Result<KindRef, Problem<'a>> {
        if !self.value.is_object() {
            return Err(self.problem(
                "expected an object with apiVersion, kind and metadata",
                vec![(String::new(), String::new())],
            ));
        }
        let text = |field: &str| self.value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let other = |field: &str| self.value.get(field).filter(|value| !value.is_null() && !value.is_string());
        for field in ["apiVersion", "kind"] {
            if let Some(value) = other(field) {
                let message = format!("{field}: expected a string, not {value}");
                return Err(self.problem(message.clone(), vec![(field.into(), message)]));
            }
        }
        let (api_version, kind) = match (text("apiVersion"), text("kind")) {
            (Some(api_version), Some(kind)) => (api_version, kind),
            (None, _) => return Err(self.missing("apiVersion")),
            (_, None) => return Err(self.missing("kind")),
        };
        let is = |known: &&KindRef| *known.kind == *kind && known.api_version() == api_version;
        kinds.iter().find(is).cloned().ok_or_else(|| {
            let mut message = format!("no matches for kind \"{kind}\" in version \"{api_version}\"");
            let nearest = kinds.iter().filter(|known| known.allows("create")).min_by_key(|known| {
                let versions = strsim::levenshtein(&known.api_version(), api_version);
                strsim::levenshtein(&known.kind, kind) * 3 + versions
            });
            let near = |known: &&KindRef| strsim::levenshtein(&known.kind.to_lowercase(), &kind.to_lowercase()) <= 2;
            if let Some(known) = nearest.filter(near) {
                message += &format!("; did you mean {} in {}?", known.kind, known.api_version());
            }
            self.problem(message.clone(), vec![("kind".into(), message)])
        })
    }

    fn missing(&'a self, field: &str) -> Problem<'a> {
        self.problem(
            format!("{field} not set: an object begins with apiVersion and kind"),
            vec![(String::new(), String::new())],
        )
    }

    fn refused(&'a self, kind: &KindRef, status: &Status) -> Problem<'a> {
        let mut fields: Vec<(String, String)> = status
            .causes()
            .iter()
            .map(|cause: &Cause| (cause.field.clone(), format!("{}: {}", cause.field, cause.message)))
            .collect();
        for path in unknown_fields(&status.message) {
            let mut message = format!("unknown field \"{path}\"");
            if let Some(known) = nearest_field(kind, &path) {
                message += &format!("; did you mean \"{known}\"?");
            }
            fields.push((path, message));
        }
        let message = match fields.as_slice() {
            [] => status.message.clone(),
            [(_, one)] => one.clone(),
            more => format!("{} problems", more.len()),
        };
        let name = self.value.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.map(|name| format!(" \"{name}\"")).unwrap_or_default();
        self.problem(format!("{}{name}: {message}", kind.kind), fields)
    }

    /// The place of a field of this object.
    fn underline(&self, code: &str, field: &str) -> String {
        let path = match (self.path.as_str(), field) {
            ("", field) => field.to_owned(),
            (path, "") => path.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        let span =
            self.document.key_place(&path).filter(|_| field.is_empty()).unwrap_or_else(|| self.document.place(&path));
        yaml::underline(code, span)
    }
}

/// All that is wrong with a cell, each with its place.
fn refusal(code: &str, problems: &[Problem<'_>]) -> CellError {
    let first = problems.first().map(|problem| problem.message.clone()).unwrap_or_default();
    let mut error = CellError::new("Refused", first);
    error.traceback = Vec::new();
    for problem in problems {
        if problem.fields.is_empty() {
            error.traceback.push(format!("{}\n{}", problem.message, problem.item.underline(code, "")));
        }
        for (field, message) in &problem.fields {
            let message = if message.is_empty() { &problem.message } else { message };
            error.traceback.push(format!("{message}\n{}", problem.item.underline(code, field)));
        }
    }
    error
}

/// The paths that a strict decoding error names.
fn unknown_fields(message: &str) -> Vec<String> {
    message.split("unknown field \"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// `spec.containers[0].image` as a JSON pointer.
fn pointer(path: &str) -> String {
    let path = path.replace('[', ".").replace(']', "");
    path.split('.').filter(|step| !step.is_empty()).map(|step| format!("/{step}")).collect()
}

/// The schema of the place that a path names.
pub fn schema_at<'a>(kind: &'a KindRef, path: &str) -> Option<Schema<'a>> {
    let mut schema = Schema::of(kind).or_else(|| kind.schema.as_deref().map(Schema::new))?;
    for step in path.replace('[', ".").replace(']', "").split('.').filter(|step| !step.is_empty()) {
        schema = match step.parse::<usize>() {
            Ok(_) => schema.items()?,
            Err(_) => schema.property(step)?,
        };
    }
    Some(schema)
}

/// The part of a path that the schema knows: what lies inside of a value of a wrong type is not the mistake.
fn known_part<'a>(kind: &KindRef, path: &'a str) -> &'a str {
    let mut known = path;
    while schema_at(kind, known).is_none() {
        let Some(end) = known.rfind(['.', '[']) else { return path };
        known = &known[..end];
    }
    known
}

/// What a field should hold, in words.
fn expected(kind: &KindRef, path: &str) -> Option<String> {
    let schema = schema_at(kind, path)?;
    let resolved = schema.resolved();
    let text = |field: &str| resolved.get(field).and_then(Value::as_str);
    let named = schema.type_name().and_then(|name| name.rsplit('.').next());
    Some(match (named, text("type"), text("format")) {
        (Some("Quantity"), ..) => "a quantity, such as 500m or 1Gi".into(),
        (Some("IntOrString"), ..) => "an integer or a string".into(),
        (_, _, Some("date-time")) => "a time, such as 2026-01-01T00:00:00Z".into(),
        (_, _, Some("byte")) => "text in base64".into(),
        (_, Some("array"), _) => "a list".into(),
        (_, Some("object"), _) => "a mapping".into(),
        (_, Some("string"), _) => "a string".into(),
        (_, Some("integer"), Some("int32")) => format!("an integer up to {}", i32::MAX),
        (_, Some("integer"), _) => "an integer".into(),
        (_, Some("boolean"), _) => "true or false".into(),
        (_, other, _) => format!("a {}", other?),
    })
}

fn nearest_field(kind: &KindRef, path: &str) -> Option<String> {
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
    let schema = schema_at(kind, parent)?;
    let nearest = schema.properties().map(|(name, _)| name).min_by_key(|name| strsim::levenshtein(name, field))?;
    (strsim::levenshtein(nearest, field) <= 1 + field.len() / 3).then(|| nearest.to_owned())
}

/// Deletes what the cell applied before and no longer names.
fn prune(set: Vec<(KindRef, Key)>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let Some(cell) = sink.cell().map(str::to_owned) else { return Ok(()) };
    let before = session.applied.insert(cell, set.clone()).unwrap_or_default();
    for (kind, key) in before.into_iter().filter(|known| !set.contains(known)) {
        if is_file(&kind) {
            let configured = session.cluster.configure(&kind, &json!({}));
            let name = configured.map_err(|status| CellError::new(status.reason, status.message))?;
            sink.put(Output::Stdout(format!("{name} has its defaults again\n")));
            continue;
        }
        let mut request = Request::new(&"kubectl".into(), Verb::Delete, &kind, key.clone());
        request.options.propagation = Some(Propagation::Background);
        let request = request.because("no longer in the cell").caused_by(session.cell_sequence().into());
        let answered = match &mut session.away {
            Some(away) => away.remote.request(request),
            None => session.cluster.request(request),
        };
        match answered {
            Ok(_) => sink.put(Output::Stdout(format!("{} pruned\n", kind.qualified_name(&key.name)))),
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(CellError::new(status.reason, status.message)),
        }
    }
    Ok(())
}
