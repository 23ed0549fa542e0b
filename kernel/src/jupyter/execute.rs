//! One cell: an `execute_request`, what it puts out, and its reply.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Execute;
use super::control::Kernel;
use super::guard::Guarded;
use super::message::{Request, error_content};
use crate::output::{CellError, MimeBundle, Output, Sink, text};

/// An `execute_request` with all that clients leave out.
#[derive(Deserialize)]
pub struct Cell {
    pub code: String,
    /// Nothing is shown, counted or remembered.
    #[serde(default)]
    pub silent: bool,
    store_history: Option<bool>,
    user_expressions: Option<BTreeMap<String, String>>,
    stop_on_error: Option<bool>,
}

impl Cell {
    pub fn stores_history(&self) -> bool {
        !self.silent && self.store_history.unwrap_or(true)
    }

    /// Whether the cells that wait behind this one are aborted when it fails.
    pub fn stops_on_error(&self) -> bool {
        self.stop_on_error.unwrap_or(true)
    }
}

/// How a cell ended.
pub struct Outcome {
    /// The content of the `execute_reply`.
    pub reply: Value,
    pub failed: bool,
    /// The text of its result, for the history.
    pub result: Option<String>,
}

/// Runs a cell: its outputs are published as they come, an error is both published and in the reply.
pub fn run<E: Execute>(
    kernel: &Kernel,
    request: &Request,
    session: &mut Guarded<E>,
    cell: &Cell,
    count: usize,
) -> Outcome {
    let mut shown = Shown { kernel, request, silent: cell.silent, count, pages: Vec::new(), result: None };
    shown.publish("execute_input", json!({"code": cell.code, "execution_count": count}));
    let outcome = session.call(|session| session.execute(&cell.code, &mut shown)).flatten().map(|()| {
        let expressions = cell.user_expressions.iter().flatten();
        expressions.map(|(name, code)| (name.clone(), evaluate(kernel, session, code))).collect()
    });
    let failed = outcome.is_err();
    let (mut reply, expressions) = match outcome {
        Ok(expressions) => (json!({"status": "ok"}), expressions),
        Err(error) => {
            let CellError { ename, evalue, traceback } = &error;
            shown.publish("error", json!({"ename": ename, "evalue": evalue, "traceback": traceback}));
            (error_content(&error), Map::new())
        }
    };
    reply["execution_count"] = json!(count);
    reply["user_expressions"] = Value::Object(expressions);
    reply["payload"] = json!(shown.pages);
    Outcome { reply, failed, result: shown.result }
}

/// Everyone who listens sees what the cell puts out.
struct Shown<'a> {
    kernel: &'a Kernel,
    request: &'a Request,
    silent: bool,
    count: usize,
    pages: Vec<Value>,
    result: Option<String>,
}

impl Shown<'_> {
    fn publish(&self, kind: &str, content: Value) {
        if !self.silent {
            self.kernel.publisher.publish(self.request, kind, content);
        }
    }
}

impl Sink for Shown<'_> {
    fn put(&mut self, output: Output) {
        let (kind, content) = match output {
            Output::Stdout(text) => ("stream", json!({"name": "stdout", "text": text})),
            Output::Stderr(text) => ("stream", json!({"name": "stderr", "text": text})),
            Output::Display { data, id: None } => {
                ("display_data", json!({"data": data, "metadata": {}, "transient": {}}))
            }
            Output::Display { data, id: Some(id) } => {
                ("display_data", json!({"data": data, "metadata": {}, "transient": {"display_id": id}}))
            }
            Output::Update { data, id } => {
                ("update_display_data", json!({"data": data, "metadata": {}, "transient": {"display_id": id}}))
            }
            Output::Result(data) => {
                self.result = data.get("text/plain").and_then(Value::as_str).map(str::to_owned);
                ("execute_result", json!({"data": data, "metadata": {}, "execution_count": self.count}))
            }
            Output::Clear { wait } => ("clear_output", json!({"wait": wait})),
            Output::Page(data) => {
                self.pages.push(json!({"source": "page", "data": data, "start": 0}));
                return;
            }
        };
        self.publish(kind, content);
    }

    fn interrupted(&self) -> bool {
        self.kernel.interrupted()
    }

    fn cell(&self) -> Option<&str> {
        self.request.metadata().get("cellId").and_then(Value::as_str)
    }
}

/// A user expression is a cell of which only the last display is kept or, without one, what it printed.
fn evaluate(kernel: &Kernel, session: &mut Guarded<impl Execute>, code: &str) -> Value {
    let mut kept = Kept { kernel, display: None, printed: String::new() };
    match session.call(|session| session.execute(code, &mut kept)).flatten() {
        Ok(()) => json!({
            "status": "ok",
            "data": kept.display.unwrap_or_else(|| text(kept.printed)),
            "metadata": {},
        }),
        Err(error) => error_content(&error),
    }
}

struct Kept<'a> {
    kernel: &'a Kernel,
    display: Option<MimeBundle>,
    printed: String,
}

impl Sink for Kept<'_> {
    fn put(&mut self, output: Output) {
        match output {
            Output::Stdout(text) => self.printed.push_str(&text),
            Output::Display { data, .. } | Output::Update { data, .. } | Output::Result(data) => {
                self.display = Some(data);
            }
            Output::Clear { .. } => (self.display, self.printed) = (None, String::new()),
            Output::Stderr(_) | Output::Page(_) => {}
        }
    }

    fn interrupted(&self) -> bool {
        self.kernel.interrupted()
    }
}
