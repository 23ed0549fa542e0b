//! How a subcommand ends. Programs that call `kernetes` rely on these exit codes.

use std::fmt;
use std::process::ExitCode;

/// What a handler returns: an answer, or why there is none.
pub type Outcome = Result<Answer, Failure>;

/// The answer to what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Exit code 0.
    Yes,
    /// Exit code 1: a failed cell, a failed check, a failed grade.
    No,
    /// The exit code of a program that was run, neither of these.
    Code(u8),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Exit code 2: what was asked makes no sense, for example a notebook that isn't there.
    Usage(String),
    /// Exit code 3: what was asked makes sense and could not be done.
    Fault(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Fault(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// The exit code of an outcome; a failure is told on stderr.
pub fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Code(code)) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("kernetes: {failure}");
            ExitCode::from(match failure {
                Failure::Usage(_) => 2,
                Failure::Fault(_) => 3,
            })
        }
    }
}
