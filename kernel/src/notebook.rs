//! `kernetes run`: a notebook executed without Jupyter, its outputs written back.
//!
//! The result is what nbclient would write with the same kernel (no timing metadata): outputs in the order in which the
//! cell made them, displays with their later updates applied, keys sorted, one space of indent, a newline at the end
//! (<https://nbformat.readthedocs.io/en/latest/format_description.html>).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nbformat::v4::{
    Cell, CellId, DisplayData, ErrorOutput, ExecuteResult, KernelSpec, Metadata, MultilineString, Notebook,
    Output as Stored,
};
use serde_json::{Map, Value};

use crate::exit::{Answer, Failure, Outcome};
use crate::jupyter::{install, kernel_info};
use crate::output::{CellError, MimeBundle, Output, Sink};
use crate::session::Session;

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

/// The language of what cells say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    #[default]
    Ja,
    En,
}

impl Language {
    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        match self {
            Language::Ja => "ja",
            Language::En => "en",
        }
    }
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
pub fn session(_language: Language, _seed: Option<u64>) -> Session {
    Session::new()
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
pub fn execute(notebook: &mut Notebook, session: &mut Session) -> Option<FailedCell> {
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
        outputs.open(index, count + 1);
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
    for (index, shown) in outputs.cells {
        if let Cell::Code { outputs, .. } = &mut notebook.cells[index] {
            *outputs = shown.into_iter().map(|shown| shown.output).collect();
        }
    }
    failed
}

/// The outputs of the cells that have run so far: a later cell may still update a display of an earlier one.
#[derive(Default)]
struct Outputs {
    /// By the cell's index in the notebook.
    cells: BTreeMap<usize, Vec<Shown>>,
    index: usize,
    execution_count: i32,
    clear_before_next: bool,
}

struct Shown {
    output: Stored,
    display_id: Option<String>,
}

impl Outputs {
    fn open(&mut self, index: usize, execution_count: i32) {
        self.cells.insert(index, Vec::new());
        (self.index, self.execution_count, self.clear_before_next) = (index, execution_count, false);
    }

    /// The open cell's outputs, to be added to.
    fn current(&mut self) -> &mut Vec<Shown> {
        let current = self.cells.entry(self.index).or_default();
        if std::mem::take(&mut self.clear_before_next) {
            current.clear();
        }
        current
    }

    fn push(&mut self, output: Stored, display_id: Option<String>) {
        self.current().push(Shown { output, display_id });
    }

    fn stream(&mut self, stream: &str, more: &str) {
        match self.current().last_mut().map(|shown| &mut shown.output) {
            Some(Stored::Stream { name, text }) if name == stream => text.0.push_str(more),
            _ => {
                let (name, text) = (stream.to_owned(), MultilineString(more.to_owned()));
                self.push(Stored::Stream { name, text }, None);
            }
        }
    }

    /// Replaces what displays of that id show, in this cell and in earlier ones.
    fn update(&mut self, data: &MimeBundle, id: &str) {
        for shown in self.cells.values_mut().flatten().filter(|shown| shown.display_id.as_deref() == Some(id)) {
            if let Stored::DisplayData(display) = &mut shown.output {
                *display = display_data(data);
            }
        }
    }

    fn fail(&mut self, error: &CellError) {
        let CellError { ename, evalue, traceback } = error.clone();
        self.push(Stored::Error(ErrorOutput { ename, evalue, traceback }), None);
    }
}

impl Sink for Outputs {
    fn put(&mut self, output: Output) {
        match output {
            Output::Stdout(text) | Output::Stderr(text) if text.is_empty() => {}
            Output::Stdout(text) => self.stream("stdout", &text),
            Output::Stderr(text) => self.stream("stderr", &text),
            Output::Display { data, id } => {
                if let Some(id) = &id {
                    self.update(&data, id);
                }
                self.push(Stored::DisplayData(display_data(&data)), id);
            }
            Output::Update { data, id } => self.update(&data, &id),
            Output::Result(data) => {
                let DisplayData { data, metadata } = display_data(&data);
                let execution_count = jupyter_protocol::ExecutionCount(self.execution_count as usize);
                self.push(Stored::ExecuteResult(ExecuteResult { execution_count, data, metadata }), None);
            }
            // A pager's text is for the moment; notebooks don't keep it.
            Output::Page(_) => {}
            Output::Clear { wait: true } => self.clear_before_next = true,
            Output::Clear { wait: false } => self.current().clear(),
        }
    }
}

fn display_data(bundle: &MimeBundle) -> DisplayData {
    use jupyter_protocol::{Media, MediaType};
    let bundle = Value::Object(bundle.clone().into_iter().collect());
    let data = serde_json::from_value(bundle.clone()).unwrap_or_else(|_| {
        // The crate knows some types more closely than a notebook asks for: what it can't read is kept as it is.
        let entries = bundle.as_object().into_iter().flatten();
        Media::new(entries.map(|(mime, value)| MediaType::Other((mime.clone(), value.clone()))).collect())
    });
    DisplayData { data, metadata: Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::text;

    fn stored(put: impl FnOnce(&mut Outputs)) -> Value {
        let mut outputs = Outputs::default();
        outputs.open(0, 1);
        put(&mut outputs);
        let stored: Vec<Stored> = outputs.cells.into_values().flatten().map(|shown| shown.output).collect();
        serde_json::to_value(stored).unwrap()
    }

    fn notebook(cells: Value) -> Notebook {
        let json = serde_json::json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4 });
        from_json(&json.to_string()).unwrap()
    }

    #[test]
    fn stream_text_is_joined_until_something_else_comes() {
        let outputs = stored(|sink| {
            sink.put(Output::Stdout("a".into()));
            sink.put(Output::Stdout("b\nc".into()));
            sink.put(Output::Stderr("d".into()));
            sink.put(Output::Stdout(String::new()));
            sink.put(Output::Stderr("e".into()));
        });
        let expected = serde_json::json!([
            { "output_type": "stream", "name": "stdout", "text": ["ab\n", "c"] },
            { "output_type": "stream", "name": "stderr", "text": ["de"] },
        ]);
        assert_eq!(outputs, expected);
    }

    #[test]
    fn an_update_reaches_the_display_of_an_earlier_cell() {
        let mut outputs = Outputs::default();
        outputs.open(0, 1);
        outputs.put(Output::Display { data: text("before"), id: Some("plot".into()) });
        outputs.open(2, 2);
        outputs.put(Output::Update { data: text("after"), id: "plot".into() });
        let first = serde_json::to_value(&outputs.cells[&0][0].output).unwrap();
        assert_eq!(first["data"]["text/plain"], serde_json::json!(["after"]));
        assert!(outputs.cells[&2].is_empty());
    }

    #[test]
    fn clear_waits_for_the_next_output_when_asked_to() {
        let waiting = stored(|sink| {
            sink.put(Output::Stdout("old".into()));
            sink.put(Output::Clear { wait: true });
        });
        assert_eq!(waiting[0]["text"], serde_json::json!(["old"]));
        let cleared = stored(|sink| {
            sink.put(Output::Stdout("old".into()));
            sink.put(Output::Clear { wait: true });
            sink.put(Output::Stdout("new".into()));
        });
        assert_eq!(cleared, serde_json::json!([{ "output_type": "stream", "name": "stdout", "text": ["new"] }]));
    }

    #[test]
    fn pictures_are_kept_as_lines_and_json_as_it_is() {
        let outputs = stored(|sink| {
            let data = MimeBundle::from([
                ("image/svg+xml".to_owned(), "<svg>\n</svg>\n".into()),
                ("application/vnd.vegalite.v5+json".to_owned(), serde_json::json!({ "mark": "bar" })),
                ("application/vnd.dataresource+json".to_owned(), serde_json::json!({ "unusual": true })),
            ]);
            sink.put(Output::Display { data, id: None });
        });
        assert_eq!(outputs[0]["data"]["image/svg+xml"], serde_json::json!(["<svg>\n", "</svg>\n"]));
        assert_eq!(outputs[0]["data"]["application/vnd.vegalite.v5+json"], serde_json::json!({ "mark": "bar" }));
        assert_eq!(outputs[0]["data"]["application/vnd.dataresource+json"], serde_json::json!({ "unusual": true }));
    }

    #[test]
    fn empty_and_skipped_cells_are_not_counted() {
        let mut notebook = notebook(serde_json::json!([
            { "cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": "\n" },
            { "cell_type": "code", "metadata": { "tags": ["skip-execution"] }, "execution_count": 7, "outputs": [], "source": "x" },
            { "cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": ["# a\n", "# b"] },
        ]));
        execute(&mut notebook, &mut session(Language::En, None));
        let counts = notebook.cells.iter().map(|cell| match cell {
            Cell::Code { execution_count, .. } => *execution_count,
            _ => None,
        });
        assert_eq!(counts.collect::<Vec<_>>(), [None, Some(7), Some(1)]);
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
