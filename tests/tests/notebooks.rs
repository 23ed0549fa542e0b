//! The lessons on disk: the same code in both languages, translations up to date, outputs that the kernel produces again.

use std::path::{Path, PathBuf};

use kernetes::notebook;
use lessons::source::{Content, Unit};
use lessons::{Difference, LANGUAGES, ROOT, Refusal, Source};
use nbformat::v4::{Cell, Notebook};

fn sources() -> Vec<Source> {
    match lessons::read(Path::new(ROOT), &[]) {
        Ok(sources) => sources,
        Err(refusal) => panic!("{}", told(refusal)),
    }
}

fn told(refusal: Refusal) -> String {
    match refusal {
        Refusal::Failure(failure) => failure.to_string(),
        Refusal::Problems(problems) => problems.iter().map(|problem| format!("\n{problem}")).collect(),
    }
}

/// Id, tags and text of each code cell.
fn code(notebook: &Notebook) -> Vec<(String, Option<Vec<String>>, String)> {
    let code = notebook.cells.iter().filter(|cell| matches!(cell, Cell::Code { .. }));
    code.map(|cell| (cell.id().to_string(), cell.metadata().tags.clone(), cell.source().concat())).collect()
}

fn assert_reproduced(rust_cells: bool) {
    let root = Path::new(ROOT);
    let (sources, _) = sources().into_iter().partition::<Vec<_>, _>(|one| one.lesson.has_rust_cells() == rust_cells);
    let built = lessons::build(root, &sources).unwrap_or_else(|refusal| panic!("{}", told(refusal)));
    assert_none(&lessons::compare(root, &built).unwrap());
}

fn assert_none(differences: &[Difference]) {
    let told: String = differences.iter().map(|difference| format!("\n{difference}")).collect();
    assert!(told.is_empty(), "{told}");
}

#[test]
fn committed_lessons_are_what_the_kernel_produces() {
    assert_reproduced(false);
}

#[test]
#[ignore = "compiles Rust cells"]
fn committed_lessons_with_rust_cells_are_what_the_kernel_produces() {
    assert_reproduced(true);
}

#[test]
fn every_notebook_has_a_source() {
    assert_none(&lessons::strays(Path::new(ROOT), &sources()).unwrap());
}

/// The number of minutes stands in the text too, where a learner reads it.
#[test]
fn lessons_say_the_same_of_themselves_as_the_index_does() {
    for Source { name, lesson, .. } in sources() {
        let Some(about) = &lesson.front_matter else { continue };
        let [japanese, english] = LANGUAGES.map(|(language, _)| lesson.units[0].content.text(language).to_owned());
        assert!(japanese.contains(&format!("所要時間は{}分ほどです。", about.minutes)), "{name}");
        assert!(english.contains(&format!("takes about {} minutes", about.minutes)), "{name}");
    }
}

/// A learner predicts before the cells that answer, sees a picture over time, is told who did it, and looks back.
#[test]
fn a_lesson_predicts_draws_tells_who_and_looks_back() {
    for Source { name, lesson, .. } in sources().iter().filter(|source| source.lesson.front_matter.is_some()) {
        let code = |unit: &Unit| match &unit.content {
            Content::Code { code, .. } => Some(code.clone()),
            Content::Prose { .. } => None,
        };
        let cells: Vec<String> = lesson.units.iter().filter_map(code).collect();
        let first = |begins: &[&str]| {
            let is_one = |line: &str| begins.iter().any(|begin| line.starts_with(begin));
            cells.iter().position(|cell| cell.lines().any(is_one))
        };
        assert!(first(&["%predict "]).is_some(), "{name}: nothing is predicted");
        assert!(first(&["%plot "]).is_some(), "{name}: there is no picture");
        assert!(first(&["%who ", "%why ", "%trace "]).is_some(), "{name}: nobody asks who did it");
        assert_eq!(cells.last().map(String::as_str), Some("%predict"), "{name}: it does not end with a look back");
    }
}

/// Also in the lessons with Rust cells, without running them.
#[test]
fn cells_show_each_number_that_prose_states() {
    let mut told = String::new();
    for source in sources() {
        for (language, folder) in LANGUAGES {
            let notebook = notebook::read(&committed(folder, &source.name)).unwrap();
            let place = Path::new("source").join(&source.name).with_extension("md");
            let unproved = lessons::numbers::unproved(&place, &source.lesson, &notebook, language);
            told.extend(unproved.iter().map(|problem| format!("\n{problem}")));
        }
    }
    assert!(told.is_empty(), "{told}");
}

fn committed(folder: &str, name: &str) -> PathBuf {
    Path::new(ROOT).join(folder).join(name).with_extension("ipynb")
}

#[test]
fn code_cells_are_the_same_in_both_languages() {
    for source in sources() {
        let [japanese, english] =
            LANGUAGES.map(|(_, folder)| notebook::read(&committed(folder, &source.name)).unwrap());
        assert_eq!(code(&japanese), code(&english), "{}", source.name);
    }
}
