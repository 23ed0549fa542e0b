//! `kubectl edit`: an object in the person's editor, and back as a patch. A cell has no editor, and is one.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_edit/>

use std::path::Path;
use std::process::Command;

use cluster_core::api::request::{FieldValidation, Options, PatchType};
use cluster_core::api::schema::Schema;
use cluster_core::api::status::Status;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::switch;
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DryRun, FIELD_MANAGER, OUTPUT, json_line, without_managed_fields};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::three_way;
use crate::yaml;

pub const VERB: Verb = Verb {
    name: "edit",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, FIELD_MANAGER, switch("output-patch")],
    run,
};

const HEAD: &str = "# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
";
const OTHER_OBJECT: &str = "At least one of apiVersion, kind and name was changed";
const EDITORS: [&str; 2] = ["KUBE_EDITOR", "EDITOR"];

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if let Some(format) = call.parsed.text("output").filter(|format| !matches!(*format, "" | "yaml")) {
        return message(match format {
            "json" | "kyaml" => format!("an object is edited as YAML, not as {format}, here"),
            _ => format!(
                "unable to match a printer suitable for the output format {format:?}, allowed formats are: json,kyaml,yaml"
            ),
        });
    }
    let (items, failures) = call.items()?;
    super::super::failure::all_of(failures)?;
    if call.context.sink.is_none() {
        let title = items.first().map(|item| item.title()).unwrap_or_default();
        return message(format!(
            "a cell has no editor: kubectl get {title} -o yaml shows a manifest to change and run as a cell; kubectl patch, set and scale change single fields"
        ));
    }
    for item in &items {
        edit(call, item)?;
    }
    Ok(())
}

fn edit(call: &mut Call<'_, '_>, item: &Item) -> Outcome {
    let before = without_managed_fields(item.value.clone());
    let shown = yaml::print(&before);
    let file = tempfile::Builder::new().prefix("kubectl-edit-").suffix(".yaml").tempfile();
    let file = file.map_err(|error| Failure::Message(error.to_string()))?.into_temp_path();
    // What stands in the file above the object: why it was opened again.
    let mut reasons = String::new();
    let mut body = shown.clone();
    loop {
        let written = format!("{HEAD}{reasons}{body}");
        std::fs::write(&file, &written).map_err(|error| Failure::Message(error.to_string()))?;
        open(&file)?;
        let edited = std::fs::read_to_string(&file).map_err(|error| Failure::Message(error.to_string()))?;
        let content = without_comments(&edited);
        if content == without_comments(&written) {
            if !reasons.is_empty() {
                return keep(call, file, "Edit cancelled, no valid changes were saved.");
            }
            call.context.error_line("Edit cancelled, no changes made.");
            return Ok(());
        }
        match save(call, item, &before, &content) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                call.context.error_line("Edit cancelled, no changes made.");
                return Ok(());
            }
            Err(Failure::Message(problem)) if problem == OTHER_OBJECT => return keep(call, file, OTHER_OBJECT),
            Err(failure) => {
                let problem = failure.text("kubectl edit");
                let (resource, name) = (item.kind.qualified_resource(), &item.name);
                let refused = |status: &Status| !matches!(status.reason, "Invalid" | "BadRequest");
                call.context.error_line(match &failure {
                    Failure::Server(status) if refused(status) => format!(
                        "error: {resource} {name:?} could not be patched: {}",
                        problem.trim_start_matches("error: ").trim_end()
                    ),
                    _ => format!("error: {resource} {name:?} is invalid"),
                });
                let lines = problem.trim_end().lines().map(|line| format!("# {line}\n"));
                reasons = format!("{}#\n", lines.collect::<String>());
                body = content;
            }
        }
    }
}

fn without_comments(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect()
}

/// Gives up, but not what was typed.
fn keep(call: &mut Call<'_, '_>, file: tempfile::TempPath, why: &str) -> Outcome {
    let kept = file.keep().map_err(|error| Failure::Message(error.to_string()))?;
    call.context.error_line(format!("A copy of your changes has been stored to {:?}", kept.display().to_string()));
    message(why)
}

/// The editor's work is done when it ends.
fn open(file: &Path) -> Outcome {
    let set = EDITORS.iter().filter_map(|name| std::env::var(name).ok()).find(|editor| !editor.trim().is_empty());
    let editor = set.unwrap_or_else(|| "vi".to_owned());
    // As a shell would: the variable may hold arguments.
    let ended = Command::new("sh").arg("-c").arg(format!("{editor} \"$0\"")).arg(file).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        // What a shell ends with if there is no such program.
        Ok(status) if status.code() == Some(127) => message(format!("unable to launch the editor {editor:?}")),
        Ok(_) => message(format!("there was a problem with the editor {editor:?}")),
        Err(error) => message(format!("unable to launch the editor {editor:?}: {error}")),
    }
}

/// Sends what was changed; false if that is nothing.
fn save(call: &mut Call<'_, '_>, item: &Item, before: &Value, content: &str) -> Result<bool, Failure> {
    let documents = yaml::read(content)
        .map_err(|error| Failure::Message(format!("The edited file had a syntax error: {}", error.in_go_words())))?;
    let [document] = documents.as_slice() else {
        return message("The edited file had a syntax error: expected one object");
    };
    let after = &document.value;
    if !after.is_object() {
        return message("The edited file had a syntax error: expected an object");
    }
    let is = |pointer: &&str| after.pointer(pointer) == before.pointer(pointer);
    if !["/apiVersion", "/kind", "/metadata/name"].iter().all(is) {
        return message(OTHER_OBJECT);
    }
    let schema = Schema::of(&item.kind);
    let patch = three_way::patch(before, after, before, schema);
    if patch == json!({}) {
        return Ok(false);
    }
    let patch_type = if schema.is_some() { PatchType::StrategicMerge } else { PatchType::Merge };
    let manager = call.parsed.text("field-manager").unwrap_or("kubectl-edit").to_owned();
    if call.parsed.switch("output-patch") {
        call.line(format!("Patch: {}", json_line(&patch)));
    }
    let options = Options { field_manager: manager, field_validation: FieldValidation::Strict, ..Options::default() };
    let value = call.patch(&item.kind, &item.namespace, &item.name, (patch_type, patch), options)?;
    call.changed(&Item { value, ..item.clone() }, "edited", DryRun::None)?;
    Ok(true)
}
