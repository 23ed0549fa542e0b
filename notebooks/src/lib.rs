//! Builds the lessons' notebooks: `source/NN-name.md` → `ja/NN-name.ipynb` and `en/NN-name.ipynb`.
//!
//! `source.rs` reads a lesson (`front_matter.rs`: what it says of itself) and refuses translations that have drifted; `build.rs` makes its notebooks and runs them
//! through the kernel's own session, so that the committed outputs are what the kernel produces. `numbers.rs` asks that
//! cells show what prose says. `index.rs` makes the learning path of all of them.

pub mod answers;
pub mod build;
pub mod exercises;
pub mod front_matter;
pub mod index;
pub mod numbers;
pub mod source;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use index::Index;
use kernetes::exit::Failure;
use kernetes::notebook::Language;
use source::{Lesson, Problem};

/// The folder of the lessons: that of this crate.
pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The languages and the folders of their notebooks.
pub const LANGUAGES: [(Language, &str); 2] = [(Language::Ja, "ja"), (Language::En, "en")];

/// Why notebooks were not made.
#[derive(Debug)]
pub enum Refusal {
    /// The sources say something that can't be; the answer is no.
    Problems(Vec<Problem>),
    Failure(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Failure(failure)
    }
}

/// A lesson's source file, read.
pub struct Source {
    /// `NN-name`
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    pub lesson: Lesson,
}

/// A notebook as the kernel produces it now.
pub struct Built {
    pub path: PathBuf,
    pub json: String,
}

/// Reads the lessons below `root`, in their order: those named, or all.
pub fn read(root: &Path, names: &[String]) -> Result<Vec<Source>, Refusal> {
    let all = files(&root.join("source"), "md")?;
    let unknown = names.iter().find(|name| !all.iter().any(|path| stem(path) == **name));
    if let Some(unknown) = unknown {
        let known: Vec<String> = all.iter().map(|path| stem(path)).collect();
        return Err(Failure::Usage(format!("no lesson `{unknown}`; there are: {}", known.join(", "))).into());
    }
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for path in all {
        let name = stem(&path);
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| told(&path, error))?;
        match source::parse(&shown(root, &path), &text) {
            Ok(lesson) => sources.push(Source { name, path, text, lesson }),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(sources) } else { Err(Refusal::Problems(problems)) }
}

/// Makes and runs the notebooks of lessons whose translations are up to date.
pub fn build(root: &Path, sources: &[Source]) -> Result<Vec<Built>, Refusal> {
    let index = Index::of(&read(root, &[])?)?;
    let mut built = Vec::new();
    let mut problems = Vec::new();
    for source in sources {
        let place = shown(root, &source.path);
        let drifted = source::drift(&place, &source.lesson);
        if !drifted.is_empty() {
            problems.extend(drifted);
            continue;
        }
        for (language, folder) in LANGUAGES {
            match build::notebook(&place, &source.lesson, &index, language)? {
                Ok(json) => {
                    let path = root.join(folder).join(&source.name).with_extension("ipynb");
                    built.push(Built { path, json });
                }
                Err(found) => problems.extend(found),
            }
        }
    }
    problems.dedup();
    if problems.is_empty() { Ok(built) } else { Err(Refusal::Problems(problems)) }
}

/// Writes notebooks; those that are right already are left alone.
pub fn write(built: &[Built]) -> Result<(), Failure> {
    for Built { path, json } in built {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| told(folder, error))?;
        }
        if !fs::read_to_string(path).is_ok_and(|committed| committed == *json) {
            fs::write(path, json).map_err(|error| told(path, error))?;
        }
    }
    Ok(())
}

/// Notes in the sources that their English texts translate the Japanese ones that stand there now.
pub fn accept(sources: &[Source]) -> Result<(), Failure> {
    for Source { path, text, lesson, .. } in sources {
        fs::write(path, source::accept(text, lesson)).map_err(|error| told(path, error))?;
    }
    Ok(())
}

/// How a notebook on disk differs from what the kernel produces.
pub struct Difference {
    pub path: PathBuf,
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.text)
    }
}

/// Compares notebooks with what is on disk; the text of a difference is a unified diff.
pub fn compare(root: &Path, built: &[Built]) -> Result<Vec<Difference>, Failure> {
    let mut differences = Vec::new();
    for Built { path, json } in built {
        let text = match fs::read_to_string(path) {
            Ok(committed) if committed == *json => continue,
            Ok(committed) => {
                let diff = similar::TextDiff::from_lines(&committed, json);
                format!("the kernel now produces\n{}", diff.unified_diff().header("committed", "produced"))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => "not made yet".to_owned(),
            Err(error) => return Err(told(path, error)),
        };
        differences.push(Difference { path: shown(root, path), text });
    }
    Ok(differences)
}

/// The notebooks on disk that no source makes.
pub fn strays(root: &Path, sources: &[Source]) -> Result<Vec<Difference>, Failure> {
    let mut strays = Vec::new();
    for (_, folder) in LANGUAGES {
        for path in files(&root.join(folder), "ipynb")? {
            if !sources.iter().any(|source| source.name == stem(&path)) {
                strays.push(Difference { path: shown(root, &path), text: "has no source".to_owned() });
            }
        }
    }
    Ok(strays)
}

/// The files of a folder with an extension, sorted; a folder that isn't there is empty.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(told(folder, error)),
    };
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .map_err(|error| told(folder, error))?;
    files.retain(|path| path.extension().is_some_and(|own| own == extension));
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A path as messages show it: below the lessons' folder.
fn shown(root: &Path, path: &Path) -> PathBuf {
    let below = path.strip_prefix(root).unwrap_or(path);
    Path::new("notebooks").join(below)
}

fn told(path: &Path, error: io::Error) -> Failure {
    Failure::Fault(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "<!-- ja -->\n# 題\n<!-- en -->\n# Title\n\n```cell\n# nothing\n```\n";

    fn lessons() -> (tempfile::TempDir, Vec<Source>) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("source")).unwrap();
        fs::write(root.path().join("source/01-sample.md"), SOURCE).unwrap();
        let sources = read(root.path(), &[]).ok().unwrap();
        (root, sources)
    }

    #[test]
    fn a_lesson_becomes_two_notebooks_once_its_translation_is_accepted() {
        let (root, sources) = lessons();
        let Err(Refusal::Problems(problems)) = build(root.path(), &sources) else { panic!("refused") };
        assert!(problems[0].to_string().starts_with("notebooks/source/01-sample.md:3: the Japanese text above"));

        accept(&sources).unwrap();
        let sources = read(root.path(), &["01-sample".to_owned()]).ok().unwrap();
        let built = build(root.path(), &sources).ok().unwrap();
        let missing = compare(root.path(), &built).unwrap();
        let told: Vec<String> = missing.iter().map(Difference::to_string).collect();
        assert_eq!(told, ["notebooks/ja/01-sample.ipynb: not made yet", "notebooks/en/01-sample.ipynb: not made yet"]);

        write(&built).unwrap();
        assert!(compare(root.path(), &built).unwrap().is_empty());
        assert!(strays(root.path(), &sources).unwrap().is_empty());
    }

    #[test]
    fn an_edited_notebook_is_shown_as_a_diff() {
        let (root, sources) = lessons();
        accept(&sources).unwrap();
        let sources = read(root.path(), &[]).ok().unwrap();
        let built = build(root.path(), &sources).ok().unwrap();
        write(&built).unwrap();
        let path = root.path().join("en/01-sample.ipynb");
        let edited = fs::read_to_string(&path).unwrap().replace("# Title", "# Another");
        fs::write(&path, edited).unwrap();
        let differences = compare(root.path(), &built).unwrap();
        assert_eq!(differences.len(), 1);
        assert!(differences[0].text.contains("-    \"# Another\""), "{}", differences[0].text);
        assert!(differences[0].text.contains("+    \"# Title\""), "{}", differences[0].text);
    }

    #[test]
    fn a_notebook_without_a_source_is_a_stray() {
        let (root, sources) = lessons();
        fs::create_dir(root.path().join("ja")).unwrap();
        fs::write(root.path().join("ja/99-old.ipynb"), "{}").unwrap();
        let strays = strays(root.path(), &sources).unwrap();
        assert_eq!(strays.len(), 1);
        assert_eq!(strays[0].to_string(), "notebooks/ja/99-old.ipynb: has no source");
    }

    #[test]
    fn an_unknown_lesson_is_refused_with_the_known_ones() {
        let (root, _) = lessons();
        let Err(Refusal::Failure(failure)) = read(root.path(), &["02".to_owned()]) else { panic!("refused") };
        assert_eq!(failure, Failure::Usage("no lesson `02`; there are: 01-sample".into()));
    }
}
