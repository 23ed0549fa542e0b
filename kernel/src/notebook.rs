//! `kernetes run`: a notebook executed without Jupyter, its outputs written back.
//!
//! The result is what nbclient would write with the same kernel (no timing metadata): outputs in the order in which the
//! cell made them, displays with their later updates applied, keys sorted, one space of indent, a newline at the end
//! (<https://nbformat.readthedocs.io/en/latest/format_description.html>).

mod outputs;

use std::path::{Path, PathBuf};

use nbformat::v4::{Cell, CellId, KernelSpec, Metadata, Notebook};
use serde_json::Value;

use crate::exit::{Answer, Failure, Outcome};
use crate::jupyter::{Execute, install, kernel_info};
use crate::output::CellError;
use crate::session::Session;
pub use crate::settings::Language;
use crate::settings::Settings;
use outputs::Outputs;

/// Execute a notebook without Jupyter and write the outputs back
#[derive(clap::Args)]
pub struct Run {
    /// The notebook (.ipynb)
    notebook: PathBuf,
    /// Where to write the result [default: the notebook itself]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The language of what cells say [default: the notebook's, else Japanese]
    #[arg(long)]
    lang: Option<Language>,
    /// The seed of every draw in the cluster [default: the session's]
    #[arg(long)]
    seed: Option<u64>,
}

impl Run {
    /// Exit code 1 when a cell failed that is not tagged `raises-exception`; what was put out until then is written.
    pub fn start(self) -> Outcome {
        let mut notebook = read(&self.notebook)?;
        let language = self.lang.or_else(|| language(&notebook)).unwrap_or_default();
        let failed = execute(&mut notebook, &mut session(language, self.seed));
        let out = self.out.as_deref().unwrap_or(&self.notebook);
        std::fs::write(out, to_json(&notebook)?)
            .map_err(|error| Failure::Fault(format!("can't write {}: {error}", out.display())))?;
        match failed {
            None => Ok(Answer::Yes),
            Some(failed) => {
                eprintln!("{}: {failed}", self.notebook.display());
                Ok(Answer::No)
            }
        }
    }
}

/// The one place where a session is made for a notebook.
pub fn session(language: Language, seed: Option<u64>) -> Session {
    let settings = Settings { language, ..Settings::default() };
    Session::with(Settings { seed: seed.unwrap_or(settings.seed), ..settings })
}

/// The cell at which a run stopped.
#[derive(Debug)]
pub struct FailedCell {
    pub id: CellId,
    pub error: CellError,
}

impl std::fmt::Display for FailedCell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "cell {}: {}: {}", self.id, self.error.ename, self.error.evalue)
    }
}

/// Reads a notebook of nbformat 4; cells without an id (before 4.5) get one from their position.
pub fn read(path: &Path) -> Result<Notebook, Failure> {
    let usage = |what: &dyn std::fmt::Display| Failure::Usage(format!("{}: {what}", path.display()));
    let json = std::fs::read_to_string(path).map_err(|error| usage(&error))?;
    from_json(&json).map_err(|error| usage(&error))
}

fn from_json(json: &str) -> Result<Notebook, String> {
    let with_ids = |json: &str| -> serde_json::Result<String> {
        let mut value: Value = serde_json::from_str(json)?;
        for (index, cell) in value.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            if let Some(cell) = cell.as_object_mut() {
                cell.entry("id").or_insert_with(|| format!("cell-{}", index + 1).into());
            }
        }
        serde_json::to_string(&value)
    };
    let not_a_notebook = |error: &dyn std::fmt::Display| format!("not a notebook: {error}");
    let json = with_ids(json).map_err(|error| not_a_notebook(&error))?;
    match nbformat::parse_notebook(&json).map_err(|error| not_a_notebook(&error))? {
        nbformat::Notebook::V4(notebook) => Ok(notebook),
        nbformat::Notebook::V4QuirksMode(quirks) => Ok(quirks.repair()),
        nbformat::Notebook::Legacy(notebook) => {
            nbformat::upgrade_legacy_notebook(notebook).map_err(|error| not_a_notebook(&error))
        }
        _ => {
            Err("a notebook of format 3; expected format 4 (`jupyter nbconvert --to notebook` converts it)".to_owned())
        }
    }
}

/// The bytes that nbformat's `write` would give.
pub fn to_json(notebook: &Notebook) -> Result<String, Failure> {
    let mut notebook = notebook.clone();
    // The crate would write a missing language as null.
    if let Some(spec) = notebook.metadata.kernelspec.take_if(|spec| spec.language.is_none()) {
        let mut value = serde_json::json!({ "display_name": spec.display_name, "name": spec.name });
        for (key, other) in spec.additional {
            value[key] = other;
        }
        notebook.metadata.additional.insert("kernelspec".to_owned(), value);
    }
    for cell in &mut notebook.cells {
        let (Cell::Markdown { source, .. } | Cell::Code { source, .. } | Cell::Raw { source, .. }) = cell;
        *source = source.concat().split_inclusive('\n').map(str::to_owned).collect();
    }
    nbformat::serialize_notebook(&nbformat::Notebook::V4(notebook))
        .map_err(|error| Failure::Fault(format!("can't write the notebook as JSON: {error}")))
}

/// The language that the notebook is written in: `"kernetes": {"language": "en"}` in its metadata.
pub fn language(notebook: &Notebook) -> Option<Language> {
    let name = notebook.metadata.additional.get("kernetes")?.get("language")?.as_str()?;
    clap::ValueEnum::from_str(name, false).ok()
}

/// The notebook for which Jupyter's server has started this process, which it names in `JPY_SESSION_NAME`.
pub fn path_of_session() -> Option<PathBuf> {
    std::env::var_os("JPY_SESSION_NAME").map(PathBuf::from)
}

/// The language of that notebook.
pub fn language_of_session() -> Option<Language> {
    language(&read(&path_of_session()?).ok()?)
}

/// The metadata of a notebook for this kernel, written in a language.
pub fn metadata(language: Language) -> Metadata {
    let kernelspec = KernelSpec {
        display_name: install::DISPLAY_NAME.to_owned(),
        name: install::NAME.to_owned(),
        language: Some(install::LANGUAGE.to_owned()),
        additional: Default::default(),
    };
    let own = serde_json::json!({ "language": language.code() });
    Metadata { kernelspec: Some(kernelspec), additional: [("kernetes".to_owned(), own)].into(), ..Metadata::default() }
}

/// Runs the code cells in order and puts their outputs into the notebook. Empty cells and cells tagged `skip-execution`
/// stay as they are; an error in a cell that is not tagged `raises-exception` ends the run, and later cells are left empty.
pub fn execute(notebook: &mut Notebook, session: &mut impl Execute) -> Option<FailedCell> {
    let mut outputs = Outputs::default();
    let mut failed = None;
    let mut count = 0;
    notebook.metadata.language_info = serde_json::from_value(kernel_info::content()["language_info"].take()).ok();
    for (index, cell) in notebook.cells.iter_mut().enumerate() {
        let Cell::Code { id, metadata, execution_count, source, .. } = cell else {
            continue;
        };
        let tagged = |tag: &str| metadata.tags.iter().flatten().any(|own| own == tag);
        let code = source.concat();
        if code.trim().is_empty() || tagged("skip-execution") {
            continue;
        }
        outputs.open(index, id.as_str(), count + 1);
        if failed.is_some() {
            *execution_count = None;
            continue;
        }
        count += 1;
        *execution_count = Some(count);
        if let Err(error) = session.execute(&code, &mut outputs) {
            outputs.fail(&error);
            if !tagged("raises-exception") {
                failed = Some(FailedCell { id: id.clone(), error });
            }
        }
    }
    for (index, stored) in outputs.into_cells() {
        if let Cell::Code { outputs, .. } = &mut notebook.cells[index] {
            *outputs = stored;
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Completeness, Completion, MimeBundle, Output, Sink};
    use nbformat::v4::Output as Stored;

    fn notebook(cells: Value) -> Notebook {
        let json = serde_json::json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4 });
        from_json(&json.to_string()).unwrap()
    }

    /// A session in which each cell fails that says so.
    struct Obedient;

    impl Execute for Obedient {
        fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
            sink.put(Output::Stdout(code.to_owned()));
            if code == "fail" { Err(CellError::new("NotFound", "no such pod")) } else { Ok(()) }
        }

        fn complete(&mut self, _code: &str, _cursor: usize) -> Completion {
            Completion::default()
        }

        fn inspect(&mut self, _code: &str, _cursor: usize) -> Option<MimeBundle> {
            None
        }

        fn is_complete(&self, _code: &str) -> Completeness {
            Completeness::Unknown
        }
    }

    fn code(source: &str, tags: &[&str]) -> Value {
        let outputs = serde_json::json!([{ "output_type": "stream", "name": "stdout", "text": "of an earlier run" }]);
        let metadata = serde_json::json!({ "tags": tags });
        serde_json::json!({
            "cell_type": "code", "metadata": metadata, "execution_count": 7, "outputs": outputs, "source": source
        })
    }

    /// The execution count of each code cell, and its outputs, each as its text or its error's name.
    fn told(notebook: &Notebook) -> Vec<(Option<i32>, Vec<String>)> {
        let told = |output: &Stored| match output {
            Stored::Stream { text, .. } => text.0.clone(),
            Stored::Error(error) => error.ename.clone(),
            other => format!("{other:?}"),
        };
        let code = notebook.cells.iter().filter_map(|cell| match cell {
            Cell::Code { execution_count, outputs, .. } => Some((*execution_count, outputs.iter().map(told).collect())),
            _ => None,
        });
        code.collect()
    }

    #[test]
    fn empty_and_skipped_cells_are_left_alone_and_not_counted() {
        let mut notebook =
            notebook(serde_json::json!([code("\n", &[]), code("x", &["skip-execution"]), code("a", &[])]));
        assert!(execute(&mut notebook, &mut Obedient).is_none());
        let old = (Some(7), vec!["of an earlier run".to_owned()]);
        assert_eq!(told(&notebook), [old.clone(), old, (Some(1), vec!["a".to_owned()])]);
    }

    #[test]
    fn an_error_ends_the_run_and_later_cells_show_nothing_old() {
        let mut notebook =
            notebook(serde_json::json!([code("fail", &["raises-exception"]), code("fail", &[]), code("a", &[]),]));
        let failed = execute(&mut notebook, &mut Obedient).unwrap();
        assert_eq!(failed.to_string(), "cell cell-2: NotFound: no such pod");
        let error = vec!["fail".to_owned(), "NotFound".to_owned()];
        assert_eq!(told(&notebook), [(Some(1), error.clone()), (Some(2), error), (None, vec![])]);
    }

    #[test]
    fn the_bytes_are_those_of_nbformat() {
        let mut notebook = notebook(serde_json::json!([
            { "cell_type": "markdown", "metadata": {}, "source": "# 題\n\n文。" },
        ]));
        notebook.metadata = serde_json::from_value(serde_json::json!({
            "kernelspec": { "name": "kernetes", "display_name": "Kubernetes" }
        }))
        .unwrap();
        let expected = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "cell-1",
   "metadata": {},
   "source": [
    "# 題\n",
    "\n",
    "文。"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Kubernetes",
   "name": "kernetes"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;
        assert_eq!(to_json(&notebook).unwrap(), expected);
    }

    #[test]
    fn what_is_no_notebook_is_refused_with_its_place() {
        assert!(from_json("{}").unwrap_err().starts_with("not a notebook: "));
        assert!(from_json("[1]").unwrap_err().starts_with("not a notebook: "));
        assert!(from_json("{\"nbformat\": 4,").unwrap_err().contains("line 1 column"));
        let missing = read(Path::new("no/such.ipynb")).unwrap_err();
        assert!(missing.to_string().starts_with("no/such.ipynb: "));
    }
}
