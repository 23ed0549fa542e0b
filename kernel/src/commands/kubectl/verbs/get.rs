//! `kubectl get`

use axum::http::Method;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::request::{Request, Verb as ApiVerb};
use cluster_core::apiserver::managed;
use cluster_core::apiserver::table::{Column, Row, Table};
use serde_json::Value;

use super::super::client;
use super::super::columns;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{integer, switch, text};
use super::super::jsonpath::{self, Template};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{self, Format, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::raw;
use super::super::resources::{Item, Target, targets};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "get",
    aliases: &[],
    about: "Display one or many resources",
    usage: "get [(-o|--output=)json|yaml|name|wide|jsonpath=…|custom-columns=…] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags] [options]",
    flags: &[
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        FILENAME,
        RECURSIVE,
        text("selector").short('l'),
        text("field-selector"),
        switch("all-namespaces").short('A'),
        switch("show-labels"),
        switch("no-headers"),
        switch("show-kind"),
        switch("ignore-not-found"),
        text("label-columns").short('L'),
        text("sort-by"),
        integer("chunk-size"),
        switch("server-print"),
        text("subresource"),
        raw::RAW,
    ],
    run,
};

const NOT_SPECIFIED: &str = "You must specify the type of resource to get. Use \"kubectl api-resources\" for a complete list of supported resources.\n";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::GET, &uri);
    }
    let format = call.table_format()?;
    let wanted = wanted(call)?;
    let selected = call.parsed.has("selector") || call.parsed.has("field-selector");
    if selected && wanted.iter().any(|target| target.name.is_some()) {
        return message("name cannot be provided when a selector is specified");
    }
    if call.parsed.switch("all-namespaces") && wanted.iter().any(|target| target.name.is_some()) {
        return message("a resource cannot be retrieved by name across all namespaces");
    }
    match format {
        Format::Human { wide } => tables(call, &wanted, wide),
        format => objects(call, &wanted, &format),
    }
}

fn wanted(call: &mut Call<'_, '_>) -> Result<Vec<Target>, Failure> {
    if call.parsed.has("filename") {
        let named = |item: Item| Target { kind: item.kind, name: Some(item.name) };
        return Ok(call.manifests()?.into_iter().map(named).collect());
    }
    if call.parsed.args.is_empty() {
        call.context.error_line(NOT_SPECIFIED);
        return Err(Failure::Usage(
            "Required resource not specified.\nUse \"kubectl explain <resource>\" for a detailed description of that resource (e.g. kubectl explain pods)."
                .into(),
        ));
    }
    let args = call.parsed.args.clone();
    targets(call, &args)
}

/// The request for a target.
fn request(call: &Call<'_, '_>, target: &Target) -> Result<Request, Failure> {
    let kind = &target.kind;
    let namespace = match (kind.namespaced, call.parsed.switch("all-namespaces")) {
        (true, false) => call.namespace.as_str(),
        _ => "",
    };
    Ok(match &target.name {
        Some(name) => client::request(ApiVerb::Get, kind, namespace, name),
        None => Request {
            options: call.list_options(kind)?,
            ..Request::new(&client::actor(), ApiVerb::List, kind, Key::new(namespace, ""))
        },
    })
}

/// A failure that counts: with --ignore-not-found, what is not there is none.
fn note(call: &Call<'_, '_>, failure: Failure, failures: &mut Vec<Failure>) {
    if !(call.parsed.switch("ignore-not-found") && failure.is_not_found()) {
        failures.push(failure);
    }
}

fn objects(call: &mut Call<'_, '_>, wanted: &[Target], format: &Format) -> Outcome {
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    let managers = call.parsed.switch("show-managed-fields");
    for target in wanted {
        let request = request(call, target)?;
        match call.send(request) {
            Ok(response) => {
                let json = |object: &Object| if managers { managed::to_json(object) } else { object.to_json() };
                items.extend(response.items().iter().map(|object| Item::new(&object.kind, json(object))));
            }
            Err(failure) => note(call, failure, &mut failures),
        }
    }
    sort_items(call, &mut items)?;
    let list = wanted.len() > 1 || wanted.iter().any(|target| target.name.is_none());
    if !items.is_empty() || list && failures.is_empty() {
        call.print_objects(format, &items, list)?;
    }
    all_of(failures)
}

fn sort_items(call: &Call<'_, '_>, items: &mut [Item]) -> Result<(), Failure> {
    if let Some(path) = sort_path(call)? {
        items.sort_by_cached_key(|item| SortKey::of(&path, &item.value));
    }
    Ok(())
}

fn sort_path(call: &Call<'_, '_>) -> Result<Option<Template>, Failure> {
    call.parsed.text("sort-by").filter(|path| !path.is_empty()).map(output::column_path).transpose()
}

/// Numbers and quantities by their size, times and text by their letters, what is missing first.
#[derive(PartialEq)]
struct SortKey(u8, f64, String);

impl Eq for SortKey {}

impl Ord for SortKey {
    fn cmp(&self, other: &SortKey) -> std::cmp::Ordering {
        self.0.cmp(&other.0).then_with(|| self.1.total_cmp(&other.1)).then_with(|| self.2.cmp(&other.2))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &SortKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl SortKey {
    fn of(path: &Template, object: &Value) -> SortKey {
        let found = path.values(object).unwrap_or_default();
        match found.first() {
            None | Some(Value::Null) => SortKey(0, 0.0, String::new()),
            Some(Value::Number(number)) => SortKey(1, number.as_f64().unwrap_or(0.0), String::new()),
            Some(Value::String(text)) => match cluster_core::api::quantity::parse(text) {
                Some(amount) => SortKey(1, amount as f64 / 1000.0, String::new()),
                None => SortKey(2, 0.0, text.clone()),
            },
            Some(other) => SortKey(3, 0.0, jsonpath::go_text(other)),
        }
    }
}

/// Rows of one kind, which stand under one header.
struct Block {
    kind: KindRef,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

fn tables(call: &mut Call<'_, '_>, wanted: &[Target], wide: bool) -> Outcome {
    let mut blocks: Vec<Block> = Vec::new();
    let mut failures = Vec::new();
    for target in wanted {
        let request = request(call, target)?;
        deprecated(call, &target.kind);
        let request = call.signed(request)?;
        let answer = call.context.api.table(request);
        match answer {
            Ok(Table { columns, rows, .. }) => match blocks.last_mut() {
                Some(block) if block.kind == target.kind => block.rows.extend(rows),
                _ => blocks.push(Block { kind: target.kind.clone(), columns, rows }),
            },
            Err(status) => note(call, status.into(), &mut failures),
        }
    }
    let several = blocks.iter().any(|block| block.kind != blocks[0].kind) || call.parsed.switch("show-kind");
    if let Some(path) = sort_path(call)? {
        for block in &mut blocks {
            block.rows.sort_by_cached_key(|row| SortKey::of(&path, &row.object.to_json()));
        }
    }
    let mut printed = 0;
    for block in blocks.iter().filter(|block| !block.rows.is_empty()) {
        if printed > 0 {
            call.line("");
        }
        printed += 1;
        let text = columns::align(&lines(call, block, several, wide));
        call.context.print(text);
    }
    if printed == 0 && failures.is_empty() && !call.parsed.switch("ignore-not-found") {
        let everywhere = call.parsed.switch("all-namespaces") || wanted.iter().any(|target| !target.kind.namespaced);
        let place = if everywhere { String::new() } else { format!(" in {} namespace.", call.namespace) };
        call.context.error_line(format!("No resources found{place}"));
    }
    all_of(failures)
}

/// Kinds that the server serves with a warning.
fn deprecated(call: &mut Call<'_, '_>, kind: &KindRef) {
    if (&*kind.group, &*kind.resource) == ("", "endpoints") {
        call.warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
    }
}

fn lines(call: &Call<'_, '_>, block: &Block, with_kind: bool, wide: bool) -> Vec<Vec<String>> {
    let shown: Vec<usize> =
        (0..block.columns.len()).filter(|&column| wide || block.columns[column].priority == 0).collect();
    let with_namespace = call.parsed.switch("all-namespaces") && block.kind.namespaced;
    let labels: Vec<&str> = call.parsed.list("label-columns").collect();
    let show_labels = call.parsed.switch("show-labels");
    let mut lines = Vec::new();
    if !call.parsed.switch("no-headers") {
        let mut header: Vec<String> = Vec::new();
        header.extend(with_namespace.then(|| "NAMESPACE".to_owned()));
        header.extend(shown.iter().map(|&column| block.columns[column].name.to_uppercase()));
        header.extend(labels.iter().map(|label| label.rsplit('/').next().unwrap_or(label).to_uppercase()));
        header.extend(show_labels.then(|| "LABELS".to_owned()));
        lines.push(header);
    }
    for row in &block.rows {
        let object = &row.object;
        let mut line: Vec<String> = Vec::new();
        line.extend(with_namespace.then(|| object.key.namespace.to_string()));
        for &column in &shown {
            let cell = row.cells.get(column).map(cell_text).unwrap_or_default();
            let is_name = with_kind && block.columns[column].format == "name" && block.columns[column].name == "Name";
            line.push(if is_name { block.kind.qualified_name(&cell) } else { cell });
        }
        line.extend(labels.iter().map(|label| object.label(label).unwrap_or_default().to_owned()));
        line.extend(show_labels.then(|| labels_text(object)));
        lines.push(line);
    }
    lines
}

fn labels_text(object: &cluster_core::api::object::Object) -> String {
    let labels = object.metadata().labels.iter().flatten();
    let pairs: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

/// A cell in one line.
fn cell_text(cell: &Value) -> String {
    let text = match cell {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => jsonpath::go_text(other),
    };
    match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => format!("{}...", &text[..end]),
        None => text,
    }
}
