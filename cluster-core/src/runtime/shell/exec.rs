//! Commands that are run beside a container's own program: `kubectl exec`, exec probes, hooks.

use std::time::Duration;

use super::Script;
use super::input::{Output, Stream};

/// The longest that such a command is followed.
pub const EXEC_MAX: Duration = Duration::from_secs(600);

/// How such a command ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exec {
    pub code: i32,
    /// What it printed, errors among the rest as on a terminal.
    pub output: String,
    /// Its errors, where a server has sent them apart from the rest.
    pub errors: String,
    pub took: Duration,
}

/// A command on its way.
#[derive(Clone, Debug)]
pub struct Running {
    pub script: Script,
    /// What it has printed and nobody has taken yet.
    pub printed: Output,
}

/// What a command came to that may not wait for the network.
#[derive(Clone, Debug)]
pub enum Ran {
    Ended(Exec),
    /// It asks the network: it has to be run by somebody who knows that.
    Asks,
}

/// How a command goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    Ended(i32),
    /// After this time.
    Sleeps(Duration),
    /// When there is more to read, or never.
    Waits,
}

impl Output {
    /// What was printed for whoever looks, errors among the rest.
    pub fn take_shown(&mut self) -> Vec<(Stream, String)> {
        std::mem::take(&mut self.0)
    }

    /// The same as one text.
    pub fn take_text(&mut self) -> String {
        self.take_shown().into_iter().map(|(_, text)| text).collect()
    }
}
