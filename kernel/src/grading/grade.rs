//! `kernetes grade`: answers replayed on fresh clusters, at several seeds.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;

use super::exercise::{self, Exercise};
use super::replay::Replayer;
use super::reports::{json, junit, table};
use super::submission::{Submission, submissions};
use super::verdict::{self, Verdict};
use crate::exit::{Answer, Failure, Outcome};
use crate::notebook;
use crate::settings::Language;

const SEEDS: u64 = 3;

/// As much as the main thread of a program has.
const STACK_BYTES: usize = 8 << 20;

/// Grade the exercises that notebooks answer
///
/// Exit code 0 if every answer passes, 1 if one does not, 3 if the grader itself failed.
#[derive(Args)]
pub struct Grade {
    /// A notebook (.ipynb), or a folder with notebooks
    #[arg(value_name = "NOTEBOOK|DIR")]
    path: PathBuf,
    /// The exercise that the notebooks answer [default: the one that each names]
    #[arg(long, value_name = "ID")]
    exercise: Option<String>,
    /// Write the grades as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the grades as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// At how many seeds each answer must pass
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
}

impl Grade {
    pub fn start(self) -> Outcome {
        let asked = self.exercise.as_deref().map(exercise::find).transpose()?;
        let mut answers = Vec::new();
        for path in notebooks(&self.path)? {
            answers.extend(self.answers(path, asked)?);
        }
        if answers.is_empty() {
            let path = self.path.display();
            return Err(Failure::Usage(format!(
                "{path}: no notebook names an exercise; expected a line `%exercise ID` in one, or the option --exercise"
            )));
        }
        let grades = self.grade(&answers)?;
        println!("{}", table::table(&grades));
        if let Some(path) = &self.junit {
            write(path, &junit::junit(&grades)?)?;
        }
        if let Some(path) = &self.json {
            write(path, &format!("{:#}\n", json::json(&grades)))?;
        }
        let broken = grades.iter().filter(|grade| matches!(grade.verdict, Verdict::Broken(_))).count();
        match grades.iter().all(|grade| grade.verdict == Verdict::Passed) {
            _ if broken > 0 => Err(Failure::Fault(format!("{broken} answers could not be graded"))),
            true => Ok(Answer::Yes),
            false => Ok(Answer::No),
        }
    }

    /// The answers in one notebook: none if it names no exercise.
    fn answers(&self, path: PathBuf, asked: Option<&'static Exercise>) -> Result<Vec<Answered>, Failure> {
        let unreadable = |exercise: &str, why: String| {
            Answered::Unreadable(verdict::Grade {
                notebook: path.clone(),
                exercise: exercise.to_owned(),
                verdict: Verdict::Unreadable(why),
                seed: None,
                checks: Vec::new(),
                errors: Vec::new(),
                language: Language::default(),
            })
        };
        let notebook = match notebook::read(&path) {
            Ok(notebook) => notebook,
            // Of many answers one that is no notebook must not hide the others.
            Err(failure) if self.path.is_dir() => {
                let asked = asked.map_or("", |exercise| exercise.id.as_str());
                return Ok(vec![unreadable(asked, failure.to_string())]);
            }
            Err(failure) => return Err(failure),
        };
        let language = notebook::language(&notebook).unwrap_or_default();
        let found = submissions(&notebook, asked.map(|exercise| exercise.id.as_str()));
        if found.is_empty() && self.path.is_dir() {
            eprintln!("{}: names no exercise, so it is not graded", path.display());
        }
        Ok(found
            .into_iter()
            .map(|submission| match exercise::find(&submission.exercise) {
                Ok(exercise) => Answered::Readable { path: path.clone(), exercise, submission, language },
                Err(failure) => unreadable(&submission.exercise, failure.to_string()),
            })
            .collect())
    }

    /// The grades in the order of the answers. There is a thread for each core, and each takes the next answer.
    fn grade(&self, answers: &[Answered]) -> Result<Vec<verdict::Grade>, Failure> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut replayer = Replayer::default();
            let mut graded = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                match answers.get(index) {
                    None => return graded,
                    Some(Answered::Unreadable(grade)) => graded.push((index, grade.clone())),
                    Some(Answered::Readable { path, exercise, submission, language }) => {
                        graded.push((index, self.judge(&mut replayer, path, exercise, submission, *language)));
                    }
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut graded = thread::scope(|scope| {
            let start = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            let threads = (0..cores.min(answers.len())).map(start).collect::<Result<Vec<_>, _>>();
            let threads = threads.map_err(|error| Failure::Fault(format!("can't start a thread: {error}")))?;
            let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            Ok(ends.flatten().collect::<Vec<_>>())
        })?;
        graded.sort_by_key(|(index, _)| *index);
        Ok(graded.into_iter().map(|(_, grade)| grade).collect())
    }

    /// The verdict at the first seed at which the answer does not pass.
    fn judge(
        &self,
        replayer: &mut Replayer,
        path: &Path,
        exercise: &Exercise,
        answer: &Submission,
        language: Language,
    ) -> verdict::Grade {
        let mut errors = Vec::new();
        let seeds = if exercise.drawn.is_empty() { self.seeds } else { 1 };
        let failed = (1..=seeds).find_map(|seed| {
            let replay = replayer.replay(exercise, &answer.cells, seed, language);
            errors = replay.errors;
            (replay.verdict != Verdict::Passed).then_some((seed, replay.verdict))
        });
        let (seed, verdict) = failed.map_or((None, Verdict::Passed), |(seed, verdict)| (Some(seed), verdict));
        let checks = verdict.outcomes(exercise);
        verdict::Grade {
            notebook: path.to_owned(),
            exercise: exercise.id.clone(),
            verdict,
            seed,
            checks,
            errors,
            language,
        }
    }
}

/// What a notebook answers an exercise with.
enum Answered {
    Readable {
        path: PathBuf,
        exercise: &'static Exercise,
        submission: Submission,
        language: Language,
    },
    /// Its grade already.
    Unreadable(verdict::Grade),
}

/// The notebook itself, or all in a folder and the folders in it, sorted; hidden ones, as checkpoints are, left out.
fn notebooks(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = fs::read_dir(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link to a folder is not followed: it may lead back here.
        if entry.file_type().is_ok_and(|file| file.is_dir()) {
            found.extend(notebooks(&entry.path())?);
        } else if entry.path().extension().is_some_and(|extension| extension == "ipynb") {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::Fault(format!("can't write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RIGHT: &str = "kubectl create deployment web --image=nginx --replicas=3";

    fn grade(path: &Path) -> Grade {
        Grade { path: path.to_owned(), exercise: None, junit: None, json: None, seeds: 1 }
    }

    fn put(folder: &Path, name: &str, cells: &[&str]) {
        let cells: Vec<Value> = cells
            .iter()
            .map(|source| json!({"cell_type": "code", "metadata": {}, "execution_count": null, "source": source, "outputs": []}))
            .collect();
        let notebook = json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells});
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), notebook.to_string()).unwrap();
    }

    #[test]
    fn a_folder_passes_only_if_every_answer_does() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "ami.ipynb", &["%exercise 01-keep-three", RIGHT, "%check"]);
        put(&folder.path().join(".ipynb_checkpoints"), "ami.ipynb", &["%exercise 01-keep-three"]);
        put(folder.path(), "notes.ipynb", &["kubectl get pods"]);
        assert_eq!(grade(folder.path()).start(), Ok(Answer::Yes));

        put(&folder.path().join("b"), "ben.ipynb", &["%exercise 01-keep-three", "kubectl get pods"]);
        fs::write(folder.path().join("cho.ipynb"), "no notebook").unwrap();
        let json = folder.path().join("grades.json");
        assert_eq!(Grade { json: Some(json.clone()), ..grade(folder.path()) }.start(), Ok(Answer::No));
        let told: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
        let verdicts: Vec<&str> =
            told["grades"].as_array().unwrap().iter().map(|g| g["verdict"].as_str().unwrap()).collect();
        assert_eq!(verdicts, ["passed", "not-started", "unreadable"]);
    }

    #[test]
    fn what_cannot_be_graded_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "notes.ipynb", &[RIGHT]);
        let notes = folder.path().join("notes.ipynb");
        assert!(
            matches!(grade(&notes).start(), Err(Failure::Usage(why)) if why.contains("no notebook names an exercise"))
        );
        assert!(matches!(grade(Path::new("nowhere.ipynb")).start(), Err(Failure::Usage(_))));
        let asked = |id: &str| Grade { exercise: Some(id.to_owned()), ..grade(&notes) };
        assert_eq!(asked("01-keep-three").start(), Ok(Answer::Yes));
        assert!(matches!(asked("99").start(), Err(Failure::Usage(why)) if why.starts_with("no exercise `99`")));
    }
}
