//! What a learner has done: predictions that were locked in, lessons that were finished, exercises that were passed. It is
//! kept in a file beside the notebooks, so that the next session and the next notebook know of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nbformat::v4::{Cell, Notebook};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook;

/// The file, in the folder that holds the lessons of both languages and the exercises.
const FILE: &str = "progress.json";
/// Names another file; if it is empty, nothing is kept.
const FILE_VARIABLE: &str = "KERNETES_PROGRESS";

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// By the lesson's name without its number, so that lessons can move.
    pub lessons: BTreeMap<String, LessonRecord>,
    /// The ids of those passed.
    pub exercises: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LessonRecord {
    /// Question and first answer.
    pub predictions: BTreeMap<String, String>,
    /// The learner has come to the end and looked back at the predictions.
    pub finished: bool,
}

/// A lesson as its notebook tells of it.
#[derive(Debug, PartialEq)]
pub struct LessonNotebook {
    pub name: String,
    pub title: String,
    /// How many predictions it asks for.
    pub predictions: usize,
}

/// What has been done, for the notebook of a session. Without a notebook nothing is kept beyond the session.
#[derive(Debug, Default)]
pub struct Progress {
    notebook: Option<PathBuf>,
    file: Option<PathBuf>,
    record: Record,
}

impl Progress {
    /// For the notebook that Jupyter's server has started this process for.
    pub fn of_session() -> Progress {
        let Some(notebook) = notebook::path_of_session() else { return Progress::default() };
        let file = match std::env::var_os(FILE_VARIABLE) {
            Some(file) if file.is_empty() => None,
            Some(file) => Some(PathBuf::from(file)),
            None => Some(folder(&notebook).join(FILE)),
        };
        Progress { notebook: Some(notebook), file, record: Record::default() }
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub fn predicted(&mut self, question: &str, answer: &str) -> io::Result<()> {
        let (question, answer) = (question.to_owned(), answer.to_owned());
        self.in_lesson(|lesson| _ = lesson.predictions.entry(question).or_insert(answer))
    }

    /// Lessons end with a look back at the predictions.
    pub fn looked_back(&mut self) -> io::Result<()> {
        self.in_lesson(|lesson| lesson.finished = true)
    }

    pub fn passed(&mut self, exercise: &str) -> io::Result<()> {
        self.change(|record| _ = record.exercises.insert(exercise.to_owned()))
    }

    /// What has been done in this session and, if it is kept, in others.
    pub fn record(&mut self) -> io::Result<&Record> {
        if let Some(file) = &self.file {
            self.record = read(file)?;
        }
        Ok(&self.record)
    }

    /// The lessons in the folder of the session's notebook, in their order.
    pub fn lessons(&self) -> Vec<LessonNotebook> {
        let folder = self.notebook.as_deref().and_then(Path::parent);
        let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let lesson = |path: PathBuf| lesson(&path, &notebook::read(&path).ok()?);
        paths.into_iter().filter_map(lesson).collect()
    }

    /// A change of what is known of the session's lesson; none if its notebook is not a lesson's.
    fn in_lesson(&mut self, change: impl FnOnce(&mut LessonRecord)) -> io::Result<()> {
        let Some(lesson) = self.notebook.as_deref().and_then(lesson_name) else { return Ok(()) };
        self.change(|record| change(record.lessons.entry(lesson).or_default()))
    }

    /// Others may have written since: the file is read anew before each change.
    fn change(&mut self, change: impl FnOnce(&mut Record)) -> io::Result<()> {
        self.record()?;
        let before = self.record.clone();
        change(&mut self.record);
        match &self.file {
            Some(file) if self.record != before => write(file, &self.record),
            _ => Ok(()),
        }
    }
}

/// The folder above a notebook that holds both languages; its own if there is none.
fn folder(notebook: &Path) -> PathBuf {
    let own = notebook.parent().unwrap_or(Path::new("."));
    let both = |folder: &&Path| folder.join("ja").is_dir() && folder.join("en").is_dir();
    own.ancestors().find(both).unwrap_or(own).to_owned()
}

/// `07-kube-proxy.ipynb` is the lesson `kube-proxy`.
fn lesson_name(notebook: &Path) -> Option<String> {
    let stem = notebook.file_stem()?.to_string_lossy();
    let (number, name) = stem.split_once('-')?;
    number.parse::<u32>().is_ok().then(|| name.to_owned())
}

/// Nothing for what is no lesson: without a number, or without predictions to make.
fn lesson(path: &Path, notebook: &Notebook) -> Option<LessonNotebook> {
    let name = lesson_name(path)?;
    let heading = |cell: &Cell| match cell {
        Cell::Markdown { source, .. } => {
            source.concat().lines().find_map(|line| line.strip_prefix("# ").map(str::to_owned))
        }
        _ => None,
    };
    let predictions = |cell: &Cell| match cell {
        Cell::Code { source, .. } => source.concat().lines().filter(|line| line.starts_with("%predict ")).count(),
        _ => 0,
    };
    let predictions = notebook.cells.iter().map(predictions).sum();
    let title = notebook.cells.iter().find_map(heading)?;
    (predictions > 0).then_some(LessonNotebook { name, title, predictions })
}

fn read(file: &Path) -> io::Result<Record> {
    match fs::read_to_string(file) {
        // A list would pass for a record that lacks everything.
        Ok(text) => serde_json::from_str(&text)
            .and_then(|fields: Map<String, Value>| serde_json::from_value(fields.into()))
            .map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("not a record of progress: {error}; move it away"))
            }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(error),
    }
}

/// Whole or not at all.
fn write(file: &Path, record: &Record) -> io::Result<()> {
    let unfinished = file.with_extension(format!("json.{}", std::process::id()));
    fs::write(&unfinished, serde_json::to_string_pretty(record)? + "\n")?;
    fs::rename(&unfinished, file)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The progress of a notebook in a folder of its own.
    pub fn kept(root: &Path, notebook: &str) -> Progress {
        let notebook = root.join(notebook);
        let file = Some(folder(&notebook).join(FILE));
        Progress { notebook: Some(notebook), file, record: Record::default() }
    }

    #[test]
    fn sessions_and_notebooks_of_both_languages_share_one_record() {
        let root = tempfile::tempdir().expect("a folder");
        for folder in ["ja", "en", "exercises/01-keep-three"] {
            fs::create_dir_all(root.path().join(folder)).expect("a folder");
        }
        kept(root.path(), "ja/03-etcd.ipynb").predicted("revision", "7").expect("kept");
        kept(root.path(), "en/04-etcd.ipynb").predicted("revision", "8").expect("kept");
        kept(root.path(), "en/04-etcd.ipynb").looked_back().expect("kept");
        kept(root.path(), "exercises/01-keep-three/ja.ipynb").passed("01-keep-three").expect("kept");
        let mut progress = kept(root.path(), "ja/01-other.ipynb");
        assert_eq!(progress.file(), Some(&*root.path().join("progress.json")));
        let record = progress.record().expect("a record");
        let etcd = LessonRecord { predictions: [("revision".into(), "7".into())].into(), finished: true };
        assert_eq!(record.lessons, [("etcd".to_owned(), etcd)].into(), "the first answer stays");
        assert_eq!(record.exercises, ["01-keep-three".to_owned()].into());
    }

    #[test]
    fn a_file_that_is_no_record_is_left_alone() {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join(FILE), "[]").expect("written");
        let error = kept(root.path(), "a.ipynb").passed("01-keep-three").expect_err("refused");
        assert!(error.to_string().starts_with("not a record of progress: "), "{error}");
        assert_eq!(fs::read_to_string(root.path().join(FILE)).expect("there"), "[]");
    }

    #[test]
    fn without_a_notebook_it_lasts_as_long_as_the_session() {
        let mut progress = Progress::default();
        progress.passed("01-keep-three").expect("kept");
        assert_eq!(progress.record().expect("a record").exercises.len(), 1);
        assert_eq!((progress.file(), progress.lessons()), (None, vec![]));
    }
}
