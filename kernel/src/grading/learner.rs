//! The notebook that a learner is given: the task, an empty cell for the answer, the check.

use nbformat::v4::{Cell, CellId, CellMetadata, Notebook};
use serde_json::json;

use super::exercise::Exercise;
use crate::exit::Failure;
use crate::notebook;
use crate::settings::Language;

/// The bytes of an exercise's notebook in a language.
pub fn notebook(exercise: &Exercise, language: Language) -> Result<String, Failure> {
    let text = format!("# {}\n\n{}", exercise.title.say(language), exercise.task.say(language).trim_end());
    let hint = language
        .say("ヒントは `%hint`、答え合わせは `%check`。", "`%hint` gives a hint, `%check` looks at your answer.");
    let cells = [
        markdown("task", format!("{text}\n\n{hint}"))?,
        code("start", format!("%exercise {}", exercise.id))?,
        code("answer", String::new())?,
        code("check", "%check".to_owned())?,
    ];
    let mut metadata = notebook::metadata(language);
    metadata.additional.insert("kernetes".to_owned(), json!({"exercise": exercise.id, "language": language.code()}));
    notebook::to_json(&Notebook { cells: cells.into(), metadata, nbformat: 4, nbformat_minor: 5 })
}

fn markdown(id: &str, text: String) -> Result<Cell, Failure> {
    Ok(Cell::Markdown { id: cell_id(id)?, metadata: CellMetadata::default(), source: vec![text], attachments: None })
}

fn code(id: &str, text: String) -> Result<Cell, Failure> {
    let metadata = CellMetadata::default();
    Ok(Cell::Code { id: cell_id(id)?, metadata, execution_count: None, source: vec![text], outputs: Vec::new() })
}

fn cell_id(id: &str) -> Result<CellId, Failure> {
    CellId::new(id).map_err(|error| Failure::Fault(format!("{id}: {error}")))
}
