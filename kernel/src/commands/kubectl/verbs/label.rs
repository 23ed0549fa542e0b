//! `kubectl label` and `kubectl annotate`

use cluster_core::api::request::{Options, PatchType};
use cluster_core::apiserver::validation::names;
use serde_json::{Map, Value, json};

use super::super::failure::{Outcome, all_of, message};
use super::super::flags::{Flag, switch, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::resources::{Item, split_pairs};
use super::super::verb::{Call, Verb};

const FLAGS: &[Flag] = &[
    FILENAME,
    RECURSIVE,
    OUTPUT,
    DRY_RUN,
    FIELD_MANAGER,
    switch("overwrite"),
    switch("all"),
    switch("all-namespaces").short('A'),
    switch("list"),
    switch("local"),
    text("selector").short('l'),
    text("field-selector"),
    text("resource-version"),
];

pub const LABEL: Verb = Verb { name: "label", aliases: &[], flags: FLAGS, run: |call| run(call, &LABELS) };

pub const ANNOTATE: Verb = Verb { name: "annotate", aliases: &[], flags: FLAGS, run: |call| run(call, &ANNOTATIONS) };

/// What tells the two apart.
struct Sort {
    field: &'static str,
    word: &'static str,
    manager: &'static str,
}

/// --local knows no objects but those of files.
const LOCAL: &str = "can only use local files by -f pod.yaml or --filename=pod.json when --local=true is set";

const LABELS: Sort = Sort { field: "labels", word: "label", manager: "kubectl-label" };
const ANNOTATIONS: Sort = Sort { field: "annotations", word: "annotation", manager: "kubectl-annotate" };

fn run(call: &mut Call<'_, '_>, sort: &Sort) -> Outcome {
    let dry_run = call.dry_run()?;
    let (resources, changes) = split_pairs(&call.parsed.args, sort.word)?;
    call.parsed.args = resources;
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for change in &changes {
        if sort.word == "label" && change.matches('=').count() > 1 {
            return message(format!("invalid label spec: {change}"));
        }
        match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) => set.push((key.to_owned(), value.to_owned())),
            (None, Some(key)) => removed.push(key.to_owned()),
            (None, None) => return message(format!("unknown parameter {change}")),
        }
    }
    if let Some((key, _)) = set.iter().find(|(key, _)| removed.contains(key)) {
        return message(match sort.word {
            "label" => "can not both modify and remove a label in the same command".to_owned(),
            _ => format!("can not both modify and remove the following annotation(s) in the same command: {key}"),
        });
    }
    if sort.word == "label" {
        for (key, value) in &set {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                let pair = format!("{key}={value}");
                return message(format!("invalid label value: {pair:?}: {}", problems.join(";")));
            }
        }
    }
    if call.parsed.args.is_empty() && !call.parsed.has("filename") {
        return message("one or more resources must be specified as <resource> <name> or <resource>/<name>");
    }
    for selector in ["selector", "field-selector"] {
        if call.parsed.switch("all") && call.parsed.has(selector) {
            return message(format!("cannot set --all and --{selector} at the same time"));
        }
    }
    let list = call.parsed.switch("list");
    if set.is_empty() && removed.is_empty() && !list {
        return message(format!("at least one {} update is required", sort.word));
    }
    let names_one = call.parsed.args.len() == 2 || matches!(&call.parsed.args[..], [arg] if arg.contains('/'));
    let (items, mut failures) = call.objects(LOCAL)?;
    for item in items {
        if let Err(failure) = change(call, sort, &item, (&set, &removed), dry_run) {
            failures.push(failure);
        }
        if list {
            let indent = if names_one { "" } else { " " };
            if !names_one {
                call.line(format!("Listing {} for {}.{}/{}:", sort.field, item.kind.kind, item.kind.group, item.name));
            }
            let fields = item.value.pointer(&format!("/metadata/{}", sort.field)).and_then(Value::as_object).cloned();
            for (key, value) in fields.unwrap_or_default() {
                call.line(format!("{indent}{key}={}", value.as_str().unwrap_or_default()));
            }
        }
    }
    all_of(failures)
}

type Changes<'a> = (&'a [(String, String)], &'a [String]);

fn change(call: &mut Call<'_, '_>, sort: &Sort, item: &Item, changes: Changes<'_>, dry_run: DryRun) -> Outcome {
    let (set, removed) = changes;
    if set.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let old = item
        .value
        .pointer(&format!("/metadata/{}", sort.field))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if !call.parsed.switch("overwrite") {
        let kept = set.iter().filter_map(|(key, value)| {
            let old = old.get(key)?.as_str()?;
            (old != value).then(|| format!("'{key}' already has a value ({old})"))
        });
        let kept: Vec<String> = kept.collect();
        match (kept.is_empty(), sort.word) {
            (true, _) => {}
            (false, "annotation") => {
                return message(format!(
                    "--overwrite is false but found the following declared annotation(s): {}",
                    kept.join("; ")
                ));
            }
            (false, _) => return message(format!("{}, and --overwrite is false", kept.join("; "))),
        }
    }
    let mut patch: Map<String, Value> = set.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    for key in removed {
        if sort.word == "label" && !old.contains_key(key) {
            call.line(format!("label {key:?} not found."));
        }
        patch.insert(key.clone(), Value::Null);
    }
    let changed = patch.iter().any(|(key, value)| old.get(key).unwrap_or(&Value::Null) != value);
    let mut value = item.value.clone();
    for (key, wanted) in patch.clone() {
        let fields = &mut value["metadata"][sort.field];
        match (wanted, fields.as_object_mut()) {
            (Value::Null, Some(fields)) => drop(fields.remove(&key)),
            (Value::Null, None) => {}
            (wanted, _) => fields[key] = wanted,
        }
    }
    if changed && dry_run != DryRun::Client && !call.parsed.switch("local") {
        let options = Options {
            dry_run: dry_run == DryRun::Server,
            field_manager: call.parsed.text("field-manager").unwrap_or(sort.manager).to_owned(),
            ..Options::default()
        };
        let mut body = json!({"metadata": {sort.field: patch}});
        if let Some(version) = call.parsed.text("resource-version").filter(|version| !version.is_empty()) {
            body["metadata"]["resourceVersion"] = version.into();
        }
        value = call.patch(&item.kind, &item.namespace, &item.name, (PatchType::Merge, body), options)?;
    }
    let what = match (sort.word, changed, set.is_empty()) {
        ("annotation", ..) => "annotated",
        (_, false, _) => "not labeled",
        (_, true, true) => "unlabeled",
        (_, true, false) => "labeled",
    };
    if call.parsed.switch("list") {
        return Ok(());
    }
    call.changed(&Item { value, ..item.clone() }, what, dry_run)
}
