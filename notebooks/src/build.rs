//! A lesson in one language: made, run, written as JSON.

use std::path::Path;

use kernetes::commands::files::Memory;
use kernetes::exit::Failure;
use kernetes::notebook::{self, Language};
use nbformat::v4::{Cell, CellId, CellMetadata, Notebook};

use crate::index::Index;
use crate::numbers;
use crate::source::{Content, Lesson, Problem, Unit};

/// The bytes of the executed notebook, or what is wrong: a cell that fails although it is not tagged `raises-exception`, numbers
/// in the prose that no cell shows.
pub fn notebook(
    place: &Path,
    lesson: &Lesson,
    index: &Index,
    language: Language,
) -> Result<Result<String, Vec<Problem>>, Failure> {
    let mut notebook = unexecuted(lesson, index, language)?;
    let mut session = notebook::session(language, None);
    session.files = Box::new(Memory::default());
    let failed = notebook::execute(&mut notebook, &mut session);
    if let Some(failed) = failed {
        let line = lesson.units.iter().find(|unit| unit.id == failed.id.as_str()).map_or(1, |unit| unit.line);
        let text = format!("the cell fails: {}: {}", failed.error.ename, failed.error.evalue);
        return Ok(Err(vec![Problem { place: place.display().to_string(), line, text }]));
    }
    let unproved = numbers::unproved(place, lesson, &notebook, language);
    if unproved.is_empty() { notebook::to_json(&notebook).map(Ok) } else { Ok(Err(unproved)) }
}

fn unexecuted(lesson: &Lesson, index: &Index, language: Language) -> Result<Notebook, Failure> {
    let cells = lesson.units.iter().map(|unit| cell(unit, index, language)).collect::<Result<_, _>>()?;
    Ok(Notebook { cells, metadata: notebook::metadata(language), nbformat: 4, nbformat_minor: 5 })
}

fn cell(unit: &Unit, index: &Index, language: Language) -> Result<Cell, Failure> {
    let id = CellId::new(&unit.id).map_err(|error| Failure::Fault(format!("{}: {error}", unit.id)))?;
    let text = unit.content.text(language);
    let prose = matches!(unit.content, Content::Prose { .. });
    let source = vec![if prose { index.expand(text, language) } else { text.to_owned() }];
    Ok(match &unit.content {
        Content::Prose { .. } => Cell::Markdown { id, metadata: CellMetadata::default(), source, attachments: None },
        Content::Code { tags, .. } => {
            let tags = (!tags.is_empty()).then(|| tags.clone());
            let metadata = CellMetadata { tags, ..CellMetadata::default() };
            Cell::Code { id, metadata, execution_count: None, source, outputs: Vec::new() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parse;

    #[test]
    fn code_is_the_same_in_both_languages_and_prose_is_not() {
        let text = "<!-- ja -->\n文。\n<!-- en -->\nText.\n\n```cell tags=a\n# nothing\n```\n";
        let lesson = parse(Path::new("a.md"), text).unwrap();
        let index = Index::of(&[]).unwrap();
        let [japanese, english] =
            [Language::Ja, Language::En].map(|language| unexecuted(&lesson, &index, language).unwrap());
        assert_eq!(japanese.cells[0].source(), ["文。"]);
        assert_eq!(english.cells[0].source(), ["Text."]);
        assert_eq!(japanese.cells[1].source(), english.cells[1].source());
        assert_eq!(japanese.cells[0].id(), english.cells[0].id());
        assert_eq!(english.cells[1].metadata().tags.as_deref(), Some(&["a".to_owned()][..]));
    }
}
