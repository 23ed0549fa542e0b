//! A session owns the cluster and runs cells on it.

use crate::output::{CellError, Completeness, Completion, MimeBundle, Output, Sink};

/// One learner's lab: the cluster, the settings, what the cells so far have defined.
pub struct Session {}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

impl Session {
    pub fn new() -> Self {
        Session {}
    }

    /// Runs one cell; its outputs go to `sink` as they come.
    pub fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        sink.put(Output::Stdout(code.to_owned()));
        Ok(())
    }

    /// Completions at a cursor (in code points).
    pub fn complete(&mut self, _code: &str, cursor: usize) -> Completion {
        Completion { start: cursor, end: cursor, matches: Vec::new() }
    }

    /// Help for what stands at a cursor (in code points); `None` if there is nothing to say.
    pub fn inspect(&mut self, _code: &str, _cursor: usize) -> Option<MimeBundle> {
        None
    }

    pub fn is_complete(&self, _code: &str) -> Completeness {
        Completeness::Complete
    }
}
