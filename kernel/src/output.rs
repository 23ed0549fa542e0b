//! What a cell says: the one shape between the session, which runs cells, and whoever shows them
//! (Jupyter's iopub, a notebook file, a terminal).

use std::collections::BTreeMap;

use serde_json::Value;

/// Media type to data, as in Jupyter's `display_data`: text types hold a string, JSON types a JSON value.
pub type MimeBundle = BTreeMap<String, Value>;

/// One thing a cell puts out, in the order in which it did.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Stdout(String),
    Stderr(String),
    /// A `display_data`; with an id it can be replaced later by [`Output::Update`].
    Display {
        data: MimeBundle,
        id: Option<String>,
    },
    /// An `update_display_data` for the display of that id.
    Update {
        data: MimeBundle,
        id: String,
    },
    /// An `execute_result`. Kept for scores: ordinary output is a display (nbgrader reads results as points).
    Result(MimeBundle),
    /// A payload for the frontend's pager.
    Page(MimeBundle),
    /// A `clear_output`; with `wait`, only when the next output arrives.
    Clear {
        wait: bool,
    },
}

/// Takes the outputs of a cell as they come, and can ask it to stop.
pub trait Sink {
    fn put(&mut self, output: Output);

    /// True once the person has pressed interrupt; long work looks at it often and stops.
    fn interrupted(&self) -> bool {
        false
    }

    /// The cell's id in its notebook, if the frontend tells it: the same at each run of the cell.
    fn cell(&self) -> Option<&str> {
        None
    }
}

/// Why a cell failed: Jupyter's `error` message.
#[derive(Clone, Debug, PartialEq)]
pub struct CellError {
    pub ename: String,
    pub evalue: String,
    pub traceback: Vec<String>,
}

impl CellError {
    pub fn new(ename: impl Into<String>, evalue: impl Into<String>) -> Self {
        let (ename, evalue) = (ename.into(), evalue.into());
        let traceback = vec![format!("{ename}: {evalue}")];
        CellError { ename, evalue, traceback }
    }
}

pub fn text(text: impl Into<String>) -> MimeBundle {
    MimeBundle::from([("text/plain".to_owned(), Value::String(text.into()))])
}

/// What stands at a cursor: Jupyter's `complete_reply`. Offsets count code points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    pub start: usize,
    pub end: usize,
    pub matches: Vec<Match>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub text: String,
    /// What kind of thing it is, shown beside the word: `verb`, `flag`, `kind`, `field: integer` …
    pub kind: String,
}

/// Jupyter's `is_complete_reply`.
#[derive(Clone, Debug, PartialEq)]
pub enum Completeness {
    Complete,
    Incomplete { indent: String },
    Invalid,
    Unknown,
}
