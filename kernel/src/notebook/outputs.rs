//! What cells put out, gathered as a notebook file keeps it.

use std::collections::BTreeMap;

use jupyter_protocol::{ExecutionCount, Media, MediaType};
use nbformat::v4::{DisplayData, ErrorOutput, ExecuteResult, MultilineString, Output as Stored};
use serde_json::{Map, Value};

use crate::output::{CellError, MimeBundle, Output, Sink};

/// The outputs of the cells that have run so far: a later cell may still update a display of an earlier one.
#[derive(Default)]
pub struct Outputs {
    /// By the cell's index in the notebook.
    cells: BTreeMap<usize, Vec<Shown>>,
    index: usize,
    id: String,
    execution_count: i32,
    clear_before_next: bool,
}

struct Shown {
    output: Stored,
    display_id: Option<String>,
}

impl Outputs {
    /// Begins a cell; what it puts out replaces what the notebook has for it.
    pub fn open(&mut self, index: usize, id: &str, execution_count: i32) {
        self.cells.insert(index, Vec::new());
        (self.index, self.id, self.execution_count) = (index, id.to_owned(), execution_count);
        self.clear_before_next = false;
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

    pub fn fail(&mut self, error: &CellError) {
        let CellError { ename, evalue, traceback } = error.clone();
        self.push(Stored::Error(ErrorOutput { ename, evalue, traceback }), None);
    }

    /// The outputs of each cell that was begun, by the cell's index in the notebook.
    pub fn into_cells(self) -> impl Iterator<Item = (usize, Vec<Stored>)> {
        let stored = |shown: Vec<Shown>| shown.into_iter().map(|shown| shown.output).collect();
        self.cells.into_iter().map(move |(index, shown)| (index, stored(shown)))
    }
}

impl Sink for Outputs {
    fn cell(&self) -> Option<&str> {
        Some(&self.id)
    }

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
                let execution_count = ExecutionCount(self.execution_count as usize);
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
        outputs.open(0, "a", 1);
        put(&mut outputs);
        let stored: Vec<Stored> = outputs.cells.into_values().flatten().map(|shown| shown.output).collect();
        serde_json::to_value(stored).unwrap()
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
        outputs.open(0, "a", 1);
        outputs.put(Output::Display { data: text("before"), id: Some("plot".into()) });
        outputs.open(2, "c", 2);
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
}
