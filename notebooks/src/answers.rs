//! The answers of exercises, typed as learners type them and handed in as notebooks.

use std::fs;
use std::path::Path;

use kernetes::exit::Failure;
use kernetes::grading::exercise::{self, Exercise};
use kernetes::grading::replay::begin;
use kernetes::notebook::{self, Language};
use kernetes::output::{Output, Sink};
use kernetes::session::Session;
use kernetes::settings::Settings;
use nbformat::v4::{Cell, CellId, CellMetadata, Notebook};

use crate::{Built, told};

/// A notebook in `folder` for each exercise, with its first right answer.
pub fn build(root: &Path, folder: &Path) -> Result<Vec<Built>, Failure> {
    exercise::all()?.iter().map(|exercise| submission(root, folder, exercise)).collect()
}

fn submission(root: &Path, folder: &Path, exercise: &Exercise) -> Result<Built, Failure> {
    let mut session = begin(exercise, Settings::default()).map_err(Failure::Fault)?;
    let cells = exercise.answers.right.values().next().map_or(&[][..], Vec::as_slice);
    let cells = cells.iter().map(|cell| with_files(root, exercise, cell)).collect::<Result<Vec<String>, Failure>>()?;
    let mut typed = vec![("start".to_owned(), format!("%exercise {}", exercise.id))];
    typed.extend(type_in(&mut session, exercise, &cells).map_err(Failure::Fault)?);
    let cells = typed.into_iter().map(|(id, text)| code(&id, text)).collect::<Result<_, _>>()?;
    let notebook = Notebook { cells, metadata: notebook::metadata(Language::En), nbformat: 4, nbformat_minor: 5 };
    let path = folder.join(&exercise.id).with_extension("ipynb");
    Ok(Built { path, json: notebook::to_json(&notebook)? })
}

fn code(id: &str, text: String) -> Result<Cell, Failure> {
    let id = CellId::new(id).map_err(|error| Failure::Fault(format!("{id}: {error}")))?;
    let metadata = CellMetadata::default();
    Ok(Cell::Code { id, metadata, execution_count: None, source: vec![text], outputs: Vec::new() })
}

/// A cell with the text of each file of the exercise's answers that it names: `$[by-name.rs]`.
fn with_files(root: &Path, exercise: &Exercise, cell: &str) -> Result<String, Failure> {
    let folder = root.join("exercises").join(&exercise.id).join("answers");
    let named = |line: &str| line.strip_prefix("$[").and_then(|rest| rest.strip_suffix(".rs]")).map(str::to_owned);
    let lines = cell.lines().map(|line| match named(line) {
        Some(name) => {
            let path = folder.join(name).with_extension("rs");
            fs::read_to_string(&path).map_err(|error| told(&path, error))
        }
        None => Ok(format!("{line}\n")),
    });
    lines.collect()
}

/// Types the cells of an answer into a session in which the exercise has begun: what was typed, with the ids of its cells.
/// Where a cell holds `$(command)`, that is what the command puts out. Cells in Rust are typed, but not run.
pub fn type_in(session: &mut Session, exercise: &Exercise, cells: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut typed = Vec::new();
    for (number, cell) in (1..).zip(cells) {
        let id = format!("answer-{number}");
        let cell = exercise.cell(cell, session.settings.seed);
        let text = if is_rust(&cell) { cell } else { read_off(session, &cell)? };
        if !is_rust(&text) {
            run(session, &id, &text).map_err(|error| format!("{}: {error}", exercise.id))?;
        }
        typed.push((id, text));
    }
    Ok(typed)
}

/// Cells that take long to compile.
pub fn is_rust(cell: &str) -> bool {
    cell.starts_with("%%rust")
}

/// A cell with each `$(command)` in it replaced by what the command puts out.
fn read_off(session: &Session, cell: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once("$(") {
        let (command, behind) = after.split_once(')').ok_or_else(|| format!("{cell}\n`$(` without its `)`"))?;
        text += before;
        text += run(&mut copy(session), "look", command)?.trim_end();
        rest = behind;
    }
    Ok(text + rest)
}

/// A session on a copy of the cluster: looking changes nothing.
fn copy(session: &Session) -> Session {
    let mut copy = Session::with(session.settings.clone());
    copy.cluster = session.cluster.clone();
    copy
}

/// What a cell puts out, or the cell with its error.
fn run(session: &mut Session, id: &str, text: &str) -> Result<String, String> {
    let mut seen = Seen { id, text: String::new() };
    match session.execute(text, &mut seen) {
        Ok(()) => Ok(seen.text),
        Err(error) => Err(format!("{text}\n{}{}: {}", seen.text, error.ename, error.evalue)),
    }
}

/// What a learner reads below a cell.
struct Seen<'a> {
    id: &'a str,
    text: String,
}

impl Sink for Seen<'_> {
    fn put(&mut self, output: Output) {
        if let Output::Stdout(text) = output {
            self.text += &text;
        }
    }

    fn cell(&self) -> Option<&str> {
        Some(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exercise_has_a_notebook_with_its_answer() {
        let built = build(Path::new(crate::ROOT), Path::new("answers")).unwrap();
        assert_eq!(built.len(), exercise::SOURCES.len());
        let rust = built.iter().find(|built| built.path.ends_with("25-own-replica-set.ipynb")).unwrap();
        assert!(rust.json.contains("impl Controller for Answer"), "{}", rust.json);
        for Built { path, json } in &built {
            assert!(!json.contains("$(") && !json.contains("$["), "{}: {json}", path.display());
        }
    }
}
