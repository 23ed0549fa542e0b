//! A learner's answers in a notebook: which exercises, and which cells.

use nbformat::v4::{Cell, Notebook};

use super::exercise;

/// Controls that talk about an exercise and are no part of an answer. They stay in it as comments: what is named by its
/// number in the record, or gone back by so many cells, keeps its place.
const ABOUT: [&str; 2] = ["hint", "check"];

/// The control whose first word counts.
const PREDICT: &str = "%predict ";

/// The answer to one exercise: code cells with their ids, in order.
#[derive(Debug, Default, PartialEq)]
pub struct Submission {
    /// Its id, or the name by which the notebook calls for one that is not there.
    pub exercise: String,
    pub cells: Vec<(String, String)>,
}

/// The answers in a notebook, in the order in which their exercises first appear. An exercise begins at a line
/// `%exercise ID`, where the lab makes a new cluster, and so at the last such line if it was begun again; a notebook
/// without such lines names its exercise in its metadata (`"kernetes": {"exercise": ID}`). What was predicted before an
/// exercise was begun again stays predicted.
/// With `asked` there is one answer: that exercise's cells, or all if no line begins it.
pub fn submissions(notebook: &Notebook, asked: Option<&str>) -> Vec<Submission> {
    let mut found = Vec::new();
    let mut current = named(notebook).map(|id| begin(&mut found, id));
    let mut all = Submission::default();
    for (id, code) in cells(notebook) {
        let mut text = String::new();
        for line in code.split_inclusive('\n') {
            match control(&code, line) {
                Some(("exercise", exercise)) => {
                    text.clear();
                    current = Some(begin(&mut found, exercise.trim()));
                }
                Some((name, _)) if ABOUT.contains(&name) => text.push_str(&format!("# {line}")),
                _ => text.push_str(line),
            }
        }
        if text.trim().is_empty() {
            continue;
        }
        all.cells.push((id.clone(), text.clone()));
        if let Some(index) = current {
            found[index].cells.push((id, text));
        }
    }
    match asked {
        None => found,
        Some(asked) => {
            let own = found.into_iter().find(|submission| submission.exercise == asked);
            vec![own.unwrap_or(Submission { exercise: asked.to_owned(), ..all })]
        }
    }
}

/// The exercise that the metadata name.
fn named(notebook: &Notebook) -> Option<&str> {
    notebook.metadata.additional.get("kernetes")?.get("exercise")?.as_str()
}

/// Begins an exercise, again if it was begun before.
fn begin(found: &mut Vec<Submission>, name: &str) -> usize {
    let exercise = exercise::find(name).map_or(name, |exercise| exercise.id.as_str());
    match found.iter().position(|submission| submission.exercise == exercise) {
        Some(index) => {
            for (_, text) in &mut found[index].cells {
                *text = text.split_inclusive('\n').filter(|line| line.starts_with(PREDICT)).collect();
            }
            found[index].cells.retain(|(_, text)| !text.is_empty());
            index
        }
        None => {
            found.push(Submission { exercise: exercise.to_owned(), cells: Vec::new() });
            found.len() - 1
        }
    }
}

/// The code cells that would run.
fn cells(notebook: &Notebook) -> impl Iterator<Item = (String, String)> {
    notebook.cells.iter().filter_map(|cell| match cell {
        Cell::Code { id, metadata, source, .. }
            if !metadata.tags.iter().flatten().any(|tag| tag == "skip-execution") =>
        {
            Some((id.to_string(), source.concat()))
        }
        _ => None,
    })
}

/// The control on a line and what stands behind its name.
fn control<'a>(code: &str, line: &'a str) -> Option<(&'a str, &'a str)> {
    let body = line.strip_prefix('%').filter(|_| !code.trim_start().starts_with("%%"))?;
    Some(body.split_once(char::is_whitespace).unwrap_or((body, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notebook(metadata: serde_json::Value, cells: &[&str]) -> Notebook {
        let cells: Vec<serde_json::Value> = (1..)
            .zip(cells)
            .map(|(number, source)| {
                let id = format!("c{number}");
                serde_json::json!({"cell_type": "code", "id": id, "metadata": {}, "execution_count": null,
                    "source": [source], "outputs": []})
            })
            .collect();
        let json = serde_json::json!({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells});
        match nbformat::parse_notebook(&json.to_string()).unwrap() {
            nbformat::Notebook::V4(notebook) => notebook,
            other => panic!("{other:?}"),
        }
    }

    fn found(notebook: &Notebook, asked: Option<&str>) -> Vec<(String, Vec<String>)> {
        let texts = |submission: Submission| {
            (submission.exercise, submission.cells.into_iter().map(|(_, text)| text).collect())
        };
        submissions(notebook, asked).into_iter().map(texts).collect()
    }

    fn answer(exercise: &str, cells: &[&str]) -> (String, Vec<String>) {
        (exercise.to_owned(), cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn an_exercise_begins_at_its_line_and_again_at_the_next_one() {
        let cells = [
            "# before",
            "%exercise a\nkubectl run x",
            "%hint",
            "%exercise b\n",
            "one",
            "%exercise a",
            "two\n%check\n",
            "%hint",
        ];
        let notebook = notebook(serde_json::json!({}), &cells);
        let again = ["two\n# %check\n", "# %hint"];
        assert_eq!(found(&notebook, None), [answer("a", &again), answer("b", &["one"])]);
        assert_eq!(found(&notebook, Some("b")), [answer("b", &["one"])]);
        let all = ["# before", "kubectl run x", "# %hint", "one", "two\n# %check\n", "# %hint"];
        assert_eq!(found(&notebook, Some("c")), [answer("c", &all)]);
    }

    #[test]
    fn who_begins_again_has_predicted_already() {
        let cells = ["%exercise a", "%predict x: gone\nkubectl run x", "%exercise a", "%predict x: back", "two"];
        let notebook = notebook(serde_json::json!({}), &cells);
        assert_eq!(found(&notebook, None), [answer("a", &["%predict x: gone\n", "%predict x: back", "two"])]);
    }

    #[test]
    fn an_exercise_may_be_named_by_its_number() {
        let notebook = notebook(serde_json::json!({}), &["%exercise 1", "one", "%exercise 6", "six"]);
        assert_eq!(found(&notebook, Some("01-keep-three")), [answer("01-keep-three", &["one"])]);
    }

    #[test]
    fn the_metadata_name_an_exercise_that_has_no_line() {
        let notebook = notebook(serde_json::json!({"kernetes": {"exercise": "a"}}), &["one", "%%rust\n%check\n"]);
        assert_eq!(found(&notebook, None), [answer("a", &["one", "%%rust\n%check\n"])]);
    }
}
