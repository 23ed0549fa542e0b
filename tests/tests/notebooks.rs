//! The lessons on disk: the same code in both languages, translations up to date, outputs that the kernel produces again.

use std::path::Path;

use kernetes::notebook;
use lessons::{LANGUAGES, ROOT, Refusal, Source};
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

#[test]
fn committed_lessons_are_what_the_kernel_produces() {
    let root = Path::new(ROOT);
    let sources = sources();
    let built = lessons::build(root, &sources).unwrap_or_else(|refusal| panic!("{}", told(refusal)));
    let mut differences = lessons::compare(root, &built).unwrap();
    differences.extend(lessons::strays(root, &sources).unwrap());
    let told: String = differences.iter().map(|difference| format!("\n{difference}")).collect();
    assert!(told.is_empty(), "{told}");
}

#[test]
fn code_cells_are_the_same_in_both_languages() {
    for source in sources() {
        let [japanese, english] = LANGUAGES.map(|(_, folder)| {
            let path = Path::new(ROOT).join(folder).join(&source.name).with_extension("ipynb");
            notebook::read(&path).unwrap()
        });
        assert_eq!(code(&japanese), code(&english), "{}", source.name);
    }
}
