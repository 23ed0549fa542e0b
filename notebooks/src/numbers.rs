//! Every number that a lesson's prose states is one that a reader sees: in a cell or an output up to the end of the section
//! (`## …`) in which it is stated; an introduction may speak of what comes. What a lesson knows from elsewhere, its front matter
//! declares, with the reason.

use std::collections::BTreeSet;
use std::path::Path;

use kernetes::notebook::Language;
use nbformat::v4::Notebook;
use serde_json::Value;

use crate::source::{Content, Lesson, Problem};

/// A number in the prose, and the section and the source line of it.
struct Stated {
    number: String,
    section: usize,
    line: usize,
}

/// The numbers that no cell of the executed notebook shows; those that are declared in vain, too.
pub fn unproved(place: &Path, lesson: &Lesson, notebook: &Notebook, language: Language) -> Vec<Problem> {
    let Some(about) = &lesson.front_matter else { return Vec::new() };
    let mut stated = Vec::new();
    let mut shown = vec![BTreeSet::new()];
    for (unit, cell) in lesson.units.iter().zip(&notebook.cells) {
        match &unit.content {
            Content::Prose { english, .. } => {
                let first = if language == Language::En { english.line } else { unit.line };
                for (line, text) in (first + 1..).zip(prose(unit.content.text(language))) {
                    if text.starts_with("## ") {
                        shown.push(BTreeSet::new());
                    }
                    let section = shown.len() - 1;
                    stated.extend(statements(&without_counters(text)).map(|number| Stated { number, section, line }));
                }
            }
            Content::Code { code, .. } => {
                let section = shown.last_mut().expect("there is one from the beginning");
                let text = serde_json::to_value(cell).map(|cell| text_of(&cell["outputs"])).unwrap_or_default();
                for number in numbers(code).chain(numbers(&text)) {
                    // `10.244.1.2` shows 244, too.
                    section.extend(number.split(['.', ':']).map(str::to_owned));
                    section.insert(number);
                }
            }
        }
    }
    let minutes = about.minutes.to_string();
    let declared = |number: &str| about.known.values().flatten().any(|known| known == number);
    let is_shown = |one: &Stated| {
        let seen = if one.section == 0 { &shown[..] } else { &shown[..=one.section] };
        seen.iter().any(|section| section.contains(&one.number))
    };
    let problem = |line, text| Problem { place: place.display().to_string(), line, text };
    let unproved = stated.iter().filter(|one| one.number != minutes && !declared(&one.number) && !is_shown(one));
    let mut problems: Vec<Problem> = unproved
        .map(|Stated { number, line, .. }| {
            problem(*line, format!("no cell up to the end of this section shows {number}; if it is known from elsewhere, say so under `known` at the top"))
        })
        .collect();
    // English prose writes many numbers as words.
    let in_vain = about.known.values().flatten().filter(|_| language == Language::Ja);
    let in_vain = in_vain.filter(|known| !stated.iter().any(|one| one.number == **known && !is_shown(one)));
    problems.extend(in_vain.map(|known| problem(1, format!("{known} need not be `known`: a cell shows it"))));
    problems
}

/// Lines without what only counts them, or is not said: the numbers of headings and of lists, places of links, code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_fence = false;
    text.lines().map(move |line| {
        let is_fence = line.starts_with("```");
        in_fence ^= is_fence;
        if in_fence || is_fence { "" } else { line }
    })
}

/// The numbers that a line states: one within a name (`v1`, `node-3`, `nginx:1.27`) is none.
fn statements(line: &str) -> impl Iterator<Item = String> {
    let is_named =
        |before: &str| before.trim_end_matches(['-', ':']).ends_with(|char: char| char.is_ascii_alphabetic());
    found(line).filter(move |(before, _)| !is_named(before)).map(|(_, number)| number)
}

fn numbers(text: &str) -> impl Iterator<Item = String> {
    found(text).map(|(_, number)| number)
}

/// The numbers in a text, with the points and colons in them, and what stands before each.
fn found(text: &str) -> impl Iterator<Item = (&str, String)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let begin = done + text[done..].find(|char: char| char.is_ascii_digit())?;
        let end = text[begin..].find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | ':' | ',')));
        done = end.map_or(text.len(), |end| begin + end);
        Some((&text[..begin], plain(&text[begin..done])))
    })
}

/// `1,000.` and `1000.0` are 1000.
fn plain(digits: &str) -> String {
    let number = digits.trim_end_matches(['.', ':', ',']).replace(',', "");
    match number.split_once('.') {
        Some((whole, rest)) if !rest.contains(['.', ':']) && !whole.contains(':') => {
            let rest = rest.trim_end_matches('0');
            if rest.is_empty() { whole.to_owned() } else { format!("{whole}.{rest}") }
        }
        _ => number,
    }
}

/// `## 3. Title` and `1. item` without the number, `[text](place)` without the place.
fn without_counters(line: &str) -> String {
    let bare = line.trim_start_matches(['#', ' ']);
    let digits = bare.trim_start_matches(|char: char| char.is_ascii_digit());
    let mut rest = if digits.len() < bare.len() && digits.starts_with(". ") { digits } else { line };
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        text += before;
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    text + rest
}

/// What a reader sees of outputs: of a picture the words, not the coordinates.
fn text_of(outputs: &Value) -> String {
    match outputs {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let text = |(name, value): (&String, &Value)| match name.as_str() {
                "image/svg+xml" | "text/html" => without_tags(&text_of(value)),
                _ => text_of(value),
            };
            fields.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn without_tags(markup: &str) -> String {
    markup.split('<').map(|part| part.split_once('>').map_or("", |(_, text)| text)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parse;

    fn told(prose: &str, output: Value) -> Vec<String> {
        let text = format!(
            "---\nminutes: 20\nafter: {{ja: あ, en: a}}\nknown: {{the default: [300]}}\n---\n\
             <!-- ja -->\n## 1. 章\n{prose}\n<!-- en -->\n## 1. A\nIt takes 300 s.\n\n```cell\nkubectl get pods --chunk-size=7\n```\n"
        );
        let lesson = parse(Path::new("a.md"), &text).unwrap();
        let cells = serde_json::json!([
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": []},
            {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": 1, "source": [], "outputs": [output]},
        ]);
        let notebook = serde_json::json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
        let nbformat::Notebook::V4(notebook) = nbformat::parse_notebook(&notebook.to_string()).unwrap() else {
            panic!("v4")
        };
        unproved(Path::new("a.md"), &lesson, &notebook, Language::Ja).iter().map(Problem::to_string).collect()
    }

    fn stdout(text: &str) -> Value {
        serde_json::json!({"output_type": "stream", "name": "stdout", "text": [text]})
    }

    #[test]
    fn a_number_is_shown_by_a_cell_or_declared() {
        assert_eq!(told("300秒です。\n7つと40分です。", stdout("web 40m")), [""; 0]);
        let told = told("20分ほどです。\n300秒と41分です。", stdout("web 40m"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("a.md:9: no cell up to the end of this section shows 41;"), "{told:?}");
    }

    #[test]
    fn coordinates_are_not_seen() {
        let svg = "<svg width=\"64\"><text x=\"5\">8 Pods</text></svg>";
        let picture =
            serde_json::json!({"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": [svg]}});
        assert_eq!(told("300、8です。", picture.clone()), [""; 0]);
        assert!(told("300、64です。", picture)[0].contains("shows 64;"));
    }

    #[test]
    fn what_a_cell_shows_need_not_be_declared() {
        assert_eq!(told("300です。", stdout("300")), ["a.md:1: 300 need not be `known`: a cell shows it"]);
    }

    #[test]
    fn counters_places_and_names_are_no_statements() {
        let all = |text| statements(&without_counters(text)).collect::<Vec<_>>();
        assert_eq!(all("## 3. The 2 Pods"), ["2"]);
        assert_eq!(all("1. see [five](05-etcd.ipynb) of v1"), [""; 0]);
        assert_eq!(all("node-3 runs nginx:1.27"), [""; 0]);
        assert_eq!(all("10,000 at 10.244.1.2:80, 0.50000 of them."), ["10000", "10.244.1.2:80", "0.5"]);
    }
}
