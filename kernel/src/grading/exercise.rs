//! An exercise is data: `notebooks/exercises/NN-name/exercise.yaml`, one line in [`SOURCES`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::check::Check;
use super::words::Words;
use crate::exit::Failure;
use crate::yaml;

macro_rules! source {
    ($id:literal) => {
        ($id, include_str!(concat!("../../../notebooks/exercises/", $id, "/exercise.yaml")))
    };
}

/// All exercises: the folder's name, which is the id, and the file in it.
pub const SOURCES: &[(&str, &str)] = &[
    source!("01-keep-three"),
    source!("02-the-same-as-json"),
    source!("03-without-a-verb"),
    source!("04-a-key-in-etcd"),
    source!("05-four-boxes"),
    source!("06-service-selector"),
    source!("07-honest-readiness"),
    source!("08-two-in-one-pod"),
    source!("09-who-healed-it"),
    source!("10-bind-by-hand"),
    source!("11-no-room"),
    source!("12-safe-rollouts"),
    source!("13-a-quiet-end"),
    source!("14-back-to-the-first"),
    source!("15-names-and-disks"),
    source!("16-one-on-each-node"),
    source!("17-emptying-a-node"),
    source!("18-an-ingress-that-stands-still"),
    source!("19-uneven-load"),
    source!("20-one-node-differs"),
    source!("21-one-dead-part"),
    source!("22-two-writers"),
    source!("23-whose-field"),
    source!("24-cut-off"),
    source!("25-own-replica-set"),
    source!("26-certificates-that-last"),
    source!("27-secrets-from-a-vault"),
    source!("28-after-you-left"),
    source!("29-quiet-loop"),
    source!("30-two-small-loops"),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exercise {
    /// The name of its folder: `01-keep-three`.
    #[serde(skip)]
    pub id: String,
    /// Says what it is about without giving the answer away.
    pub title: Words,
    /// The seed decides which of these `$[drawn]` stands for in `start` and `answers`, and `$[drawn 1]` for its first word.
    /// What a learner finds out holds at that seed alone, so that such an exercise is graded at one.
    #[serde(default)]
    pub drawn: Vec<String>,
    /// Cells that are run on a fresh cluster before the learner begins.
    #[serde(default)]
    pub start: Vec<String>,
    pub task: Words,
    /// A nudge, then where to look, then the concept.
    pub hints: [Words; 3],
    /// In this order; the first that fails is what the learner is told about.
    pub checks: Vec<Check>,
    pub answers: Answers,
}

/// The exercise's own proof. Where a cell holds `$(command)`, a learner would read something off that command's output and
/// type it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// By name, the cells of an answer that passes.
    pub right: BTreeMap<String, Vec<String>>,
    pub wrong: BTreeMap<String, WrongAnswer>,
}

/// An answer that a naive check would accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongAnswer {
    pub cells: Vec<String>,
    /// The id of the check that it fails.
    pub fails: String,
}

/// Reads an exercise; the error names the place in the file and what was expected there.
pub fn read(id: &str, text: &str) -> Result<Exercise, String> {
    let place = |span: yaml::Span, message: &str| {
        let (line, column) = (span.line, span.column);
        format!("{id}/exercise.yaml:{line}:{column}: {message}{}", did_you_mean(message))
    };
    let documents = yaml::read(text).map_err(|error| place(error.span, &error.message))?;
    let [document] = documents.as_slice() else {
        return Err(format!("{id}/exercise.yaml: {} documents; expected one", documents.len()));
    };
    let exercise: Exercise = serde_path_to_error::deserialize(&document.value)
        .map_err(|error| place(document.place(&error.path().to_string()), &error.to_string()))?;
    let unknown = exercise.answers.wrong.iter().find(|(_, answer)| exercise.check(&answer.fails).is_none());
    if let Some((name, answer)) = unknown {
        let span = document.place(&format!("answers.wrong.{name}.fails"));
        let known: Vec<String> = exercise.checks.iter().map(|check| format!("`{}`", check.id)).collect();
        return Err(place(
            span,
            &format!("`{}` is the id of no check, expected one of {}", answer.fails, known.join(", ")),
        ));
    }
    Ok(Exercise { id: id.to_owned(), ..exercise })
}

/// Of the words in backticks, the first is the one that is not known; what comes nearest to it of the others.
fn did_you_mean(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(unknown) = words.next() else { return String::new() };
    let nearest = words.map(|known| (strsim::levenshtein(known, unknown), known)).min();
    match nearest.filter(|(distance, _)| *distance <= 2.max(unknown.len() / 3)) {
        Some((_, known)) => format!("; did you mean `{known}`?"),
        None => String::new(),
    }
}

/// All exercises in their order.
pub fn all() -> Result<&'static [Exercise], Failure> {
    static ALL: LazyLock<Result<Vec<Exercise>, String>> =
        LazyLock::new(|| SOURCES.iter().map(|(id, text)| read(id, text)).collect());
    ALL.as_deref().map_err(|error| Failure::Fault(error.clone()))
}

/// The exercise of an id, or of its number alone (`6` for `06-service-selector`).
pub fn find(name: &str) -> Result<&'static Exercise, Failure> {
    let all = all()?;
    let number = name.parse::<u32>().ok();
    let is = |exercise: &&Exercise| exercise.id == name || number.is_some() && exercise.number() == number;
    all.iter().find(is).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|exercise| exercise.id.as_str()).collect();
        Failure::Usage(format!("no exercise `{name}`; there are: {}", known.join(", ")))
    })
}

impl Exercise {
    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    /// A cell of the start or of an answer, at a seed.
    pub fn cell(&self, text: &str, seed: u64) -> String {
        let index = seed.checked_rem(self.drawn.len() as u64).unwrap_or(0) as usize;
        let drawn = self.drawn.get(index).map_or("", String::as_str);
        let cell = text.replace("$[drawn]", drawn);
        let words = (1..).zip(drawn.split_whitespace());
        words.fold(cell, |cell, (number, word)| cell.replace(&format!("$[drawn {number}]"), word))
    }

    /// The number that its id begins with.
    fn number(&self) -> Option<u32> {
        self.id.split('-').next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exercise_can_be_read() {
        let all = all().unwrap();
        assert_eq!(all.len(), SOURCES.len());
        assert_eq!(find("6").unwrap().id, "06-service-selector");
        assert_eq!(find("01-keep-three").unwrap().id, "01-keep-three");
        let told = find("99").unwrap_err().to_string();
        assert!(told.starts_with("no exercise `99`; there are: 01-keep-three, "), "{told}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let (id, text) = SOURCES[0];
        let misspelt = text.replacen("expect: {pods: {labels:", "expect: {pods: {label:", 1);
        let told = read(id, &misspelt).unwrap_err();
        assert!(told.starts_with("01-keep-three/exercise.yaml:"), "{told}");
        assert!(told.contains("pods: label: unknown field `label`"), "{told}");
        assert!(told.ends_with("did you mean `labels`?"), "{told}");
        let told = |from: &str, to: &str| read(id, &text.replacen(from, to, 1)).unwrap_err();
        let unknown = told("expect: {pods:", "expect: {podz:");
        assert!(unknown.contains("`podz` is not known, expected one of `all`, "), "{unknown}");
        assert!(unknown.ends_with("; did you mean `pods`?"), "{unknown}");
        let unknown = told("fails: one-owner", "fails: one-owners");
        assert!(
            unknown.ends_with("expected one of `three-ready`, `one-owner`, `comes-back`; did you mean `one-owner`?"),
            "{unknown}"
        );
        let untranslated = told("  en: Keep three\n", "");
        assert!(untranslated.ends_with("title: missing field `en`"), "{untranslated}");
        let unended = told("expect: {pods: {labels: app=web, ready: 3}}", "expect: {pods: {labels: app=web, ready: 3}");
        assert!(unended.starts_with("01-keep-three/exercise.yaml:"), "{unended}");
    }
}
