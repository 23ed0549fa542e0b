//! Cells as a learner meets them, good ones and bad ones, without Jupyter around them.

mod bad;
mod cursor;
mod interrupt;
mod journey;
mod same;

use std::cell::Cell;

use kernetes::commands::files::Memory;
use kernetes::output::{CellError, Output, Sink};
use kernetes::session::Session;
use kernetes::settings::{Language, Settings};

fn session(language: Language) -> Session {
    let mut session = Session::with(Settings { language, ..Settings::default() });
    session.files = Box::new(Memory::default());
    session
}

/// Notes what a cell puts out, and presses interrupt when it has been asked so often.
#[derive(Default)]
struct Screen {
    outputs: Vec<Output>,
    asked: Cell<usize>,
    interrupt_after: Option<usize>,
}

impl Sink for Screen {
    fn put(&mut self, output: Output) {
        self.outputs.push(output);
    }

    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.interrupt_after.is_some_and(|after| self.asked.get() > after)
    }

    fn cell(&self) -> Option<&str> {
        Some("a cell")
    }
}

impl Screen {
    /// Everything that can be read.
    fn text(&self) -> String {
        let text = |output: &Output| match output {
            Output::Stdout(text) | Output::Stderr(text) => text.clone(),
            Output::Display { data, .. } | Output::Update { data, .. } | Output::Result(data) | Output::Page(data) => {
                let text = data.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default();
                if text.is_empty() { String::new() } else { format!("{text}\n") }
            }
            Output::Clear { .. } => String::new(),
        };
        self.outputs.iter().map(text).collect()
    }
}

/// Runs a cell: what it put out, and why it failed.
fn run(session: &mut Session, code: &str) -> (String, Option<CellError>) {
    let mut screen = Screen::default();
    let failed = session.execute(code, &mut screen).err();
    (screen.text(), failed)
}

/// Cells with what they put out, as a notebook shows them.
fn transcript(session: &mut Session, cells: &[&str]) -> String {
    let mut text = String::new();
    for code in cells {
        let (shown, failed) = run(session, code);
        let code: String = code.lines().map(|line| format!("> {line}\n")).collect();
        let error = failed.map(|error| error.traceback.join("\n") + "\n");
        text += &format!("{code}{}{}\n", shown, error.unwrap_or_default());
    }
    text
}
