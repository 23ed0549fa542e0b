//! What the kernel and `kernetes-rust-cells` say to each other. The kernel compiles this file too.
//!
//! Requests go to the program's stdin and replies come from its stdout, one JSON value a line; each request gets one
//! reply, in order. The program runs cells in a process of its own, the runtime, which connects to the kernel's socket
//! once for each [`Stream`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names the kernel's socket, for the runtime.
pub const RUNTIME_SOCKET_VARIABLE: &str = "KERNETES_RUNTIME";
/// Names the folder that is removed when the kernel is gone.
pub const FOLDER_VARIABLE: &str = "KERNETES_RUST_FOLDER";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Evaluate(String),
    /// Completions in a code at a byte offset.
    Complete {
        code: String,
        offset: usize,
    },
    /// What there is to say about a name or path.
    Describe(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Sent once, unasked, at the start.
    Ready,
    /// The cell ran. Media type to data, for what evcxr itself had to say (its `:commands`).
    Evaluated(BTreeMap<String, String>),
    Completions {
        start: usize,
        end: usize,
        matches: Vec<Candidate>,
    },
    /// The cell did not compile.
    CompileErrors(Vec<CompileError>),
    /// The runtime ended in the midst of the cell: how.
    Terminated(String),
    /// It went wrong in another way.
    Failed(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub text: String,
    pub kind: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct CompileError {
    pub message: String,
    /// Such as `E0308`.
    pub code: Option<String>,
    /// As rustc prints it; its line numbers are those of the source that evcxr generated.
    pub rendered: String,
    /// Line of the generated source, line of the cell (both from 1) where the error's main span begins.
    pub line: Option<(usize, usize)>,
}

/// A connection of the runtime. It begins with one line: the word and the runtime's process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// What the runtime writes to its stdout, evcxr's lines included.
    Stdout,
    Stderr,
    /// From the kernel: each byte asks for a flush of stdout.
    Flush,
    /// From the kernel: the lines of its stdout that evcxr shall see.
    Evcxr,
}

impl Stream {
    pub const ALL: [(Stream, &'static str); 4] =
        [(Stream::Stdout, "stdout"), (Stream::Stderr, "stderr"), (Stream::Flush, "flush"), (Stream::Evcxr, "evcxr")];
}
