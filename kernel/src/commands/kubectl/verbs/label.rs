//! `kubectl label` and `kubectl annotate`

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Map, Value, json};

use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{Flag, switch, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::resources::Item;
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
    text("selector").short('l'),
    text("field-selector"),
    text("resource-version"),
];

pub const LABEL: Verb = Verb {
    name: "label",
    aliases: &[],
    about: "Update the labels on a resource",
    usage: "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
    flags: FLAGS,
    run: |call| run(call, &LABELS),
};

pub const ANNOTATE: Verb = Verb {
    name: "annotate",
    aliases: &[],
    about: "Update the annotations on a resource",
    usage: "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
    flags: FLAGS,
    run: |call| run(call, &ANNOTATIONS),
};

/// What tells the two apart.
struct Sort {
    field: &'static str,
    word: &'static str,
    manager: &'static str,
}

const LABELS: Sort = Sort { field: "labels", word: "label", manager: "kubectl-label" };
const ANNOTATIONS: Sort = Sort { field: "annotations", word: "annotation", manager: "kubectl-annotate" };

fn run(call: &mut Call<'_, '_>, sort: &Sort) -> Outcome {
    let is_change = |arg: &String| arg.contains('=') || (arg.ends_with('-') && arg.len() > 1);
    let start = call.parsed.args.iter().position(is_change).unwrap_or(call.parsed.args.len());
    let changes = call.parsed.args.split_off(start);
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for change in &changes {
        match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) => set.push((key.to_owned(), value.to_owned())),
            (None, Some(key)) => removed.push(key.to_owned()),
            (None, None) => return message(format!("unknown parameter {change}")),
        }
    }
    let list = call.parsed.switch("list");
    if set.is_empty() && removed.is_empty() && !list {
        return message(format!("at least one {} update is required", sort.word));
    }
    if set.iter().any(|(key, _)| removed.contains(key)) {
        return message(format!(
            "can not both modify and remove {} {} in the same command",
            if sort.word == "label" { "a" } else { "an" },
            sort.word
        ));
    }
    if sort.word == "label" {
        for (key, value) in &set {
            check_value(key, value)?;
        }
    }
    let dry_run = call.dry_run()?;
    let (items, mut failures) = call.items()?;
    for item in items {
        if let Err(failure) = change(call, sort, &item, (&set, &removed), dry_run) {
            failures.push(failure);
        }
        if list {
            let fields = item.value.pointer(&format!("/metadata/{}", sort.field)).and_then(Value::as_object).cloned();
            for (key, value) in fields.unwrap_or_default() {
                call.line(format!("{key}={}", value.as_str().unwrap_or_default()));
            }
        }
    }
    all_of(failures)
}

/// A label's value, as kubectl checks it before it asks the server.
fn check_value(key: &str, value: &str) -> Outcome {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let ends = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    let mut letters = value.chars();
    if value.len() <= 63 && value.chars().all(inner) && ends(letters.next()) && ends(letters.next_back()) {
        return Ok(());
    }
    let problem = match value.len() > 63 {
        true => "must be no more than 63 characters".to_owned(),
        false => "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned(),
    };
    message(format!("invalid label value: {:?}: {problem}", format!("{key}={value}")))
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
            (old != value || sort.word == "annotation").then(|| format!("'{key}' already has a value ({old})"))
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
    if changed && dry_run != DryRun::Client {
        let options = Options {
            dry_run: dry_run == DryRun::Server,
            field_manager: call.parsed.text("field-manager").unwrap_or(sort.manager).to_owned(),
            ..Options::default()
        };
        let body = json!({"metadata": {sort.field: patch}});
        call.patch(&item.kind, &item.namespace, &item.name, (PatchType::Merge, body), options)?;
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
    call.changed(item, what, dry_run).map_err(|failure: Failure| failure)
}
