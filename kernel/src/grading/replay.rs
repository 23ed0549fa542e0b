//! Grading is replaying: a fresh cluster, the exercise's start, the learner's cells, then the checks, each on a copy.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cluster_core::Cluster;
use cluster_core::trace::{Sequence, What};

use super::check::Finding;
use super::exercise::Exercise;
use super::verdict::{Failed, Verdict};
use super::words::Words;
use crate::commands::files::Memory;
use crate::output::{CellError, Output, Sink};
use crate::rust_cells::{RUST_UNAVAILABLE, RustCells};
use crate::session::Session;
use crate::settings::{Language, Settings};

/// A cell that is still running when it was asked so often whether to stop (every 256 steps of the cluster) is stopped.
const TURNS_MAX: u32 = 8_000;

/// What came of one answer at one seed.
#[derive(Debug)]
pub struct Replay {
    pub verdict: Verdict,
    /// Cells that ended with an error.
    pub errors: Vec<String>,
}

/// Replays answers one after another. What compiles Rust cells takes ten seconds to start, so it is kept from one to the next.
#[derive(Default)]
pub struct Replayer {
    rust: RustCells,
}

impl Replayer {
    /// Runs an answer on a fresh cluster and judges it. A panic on the way is the grader's fault and becomes
    /// [`Verdict::Broken`].
    pub fn replay(&mut self, exercise: &Exercise, cells: &[(String, String)], seed: u64, language: Language) -> Replay {
        let run = || {
            let mut session = match begin(exercise, Settings { seed, language, ..Settings::default() }) {
                Ok(session) => session,
                Err(error) => return Replay { verdict: Verdict::Broken(error), errors: Vec::new() },
            };
            self.rust.clear();
            session.rust = std::mem::take(&mut self.rust);
            let start = session.cluster.clone();
            let mut errors = Vec::new();
            let mut broken = None;
            for (id, code) in cells {
                let Err(error) = run(&mut session, id, code) else { continue };
                if error.ename == RUST_UNAVAILABLE {
                    broken = Some(Verdict::Broken(error.evalue.clone()));
                }
                errors.push(format!("{id}: {}", error.evalue));
            }
            let verdict = broken.unwrap_or_else(|| judge(exercise, &start, &session.cluster));
            self.rust = session.rust;
            Replay { verdict, errors }
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Replay { verdict: Verdict::Broken(text.unwrap_or("it panicked").to_owned()), errors: Vec::new() }
        })
    }
}

/// [`Replayer::replay`] of one answer alone.
pub fn replay(exercise: &Exercise, cells: &[(String, String)], seed: u64, language: Language) -> Replay {
    Replayer::default().replay(exercise, cells, seed, language)
}

/// A session in which the exercise's start has been run. The error is a fault of the exercise.
pub fn begin(exercise: &Exercise, settings: Settings) -> Result<Session, String> {
    let mut session = Session::with(settings);
    // Cells of a notebook that came from somebody else touch no file of this machine.
    session.files = Box::new(Memory::default());
    let seed = session.settings.seed;
    for (number, code) in (1..).zip(&exercise.start) {
        let told = |error: CellError| format!("the start of {}: {}: {}", exercise.id, error.ename, error.evalue);
        // No cell of a notebook can have such an id.
        let cell = exercise.cell(code, seed);
        run(&mut session, &format!("{}/{number}", exercise.id), &cell).map_err(told)?;
    }
    Ok(session)
}

fn run(session: &mut Session, id: &str, code: &str) -> Result<(), CellError> {
    session.execute(code, &mut Silent::new(id))
}

/// Tries the checks in their order, each on a copy of the cluster; the first that does not hold decides. That a cluster never
/// comes to rest counts only where nothing else is wrong, for that would say more.
pub fn judge(exercise: &Exercise, start: &Cluster, answer: &Cluster) -> Verdict {
    if !is_started(start, answer) {
        return Verdict::NotStarted;
    }
    let mut restless = None;
    for check in &exercise.checks {
        let failed = |found| Failed { check: check.id.clone(), message: check.message.clone(), found };
        match check.run(start, answer) {
            Finding::Holds => {}
            Finding::Fails(found) => return Verdict::Wrong(failed(found)),
            Finding::Late(found) => return Verdict::NotConverged(failed(found)),
            Finding::Restless(found) => {
                let message = Words::new("クラスタがいつまでも落ち着きません。", "The cluster never comes to rest.");
                restless = restless.or(Some(Failed { check: check.id.clone(), message, found }));
            }
        }
    }
    restless.map_or(Verdict::Passed, Verdict::Wrong)
}

/// True if somebody has changed something since the start: a write that a cell caused, a fault, a controller that joined,
/// another cluster; or a command that ran in a container, of which the record has nothing but the cell.
fn is_started(start: &Cluster, answer: &Cluster) -> bool {
    let begun = start.trace().next_sequence();
    let is_same_cluster = same_entry(start, answer, begun - 1);
    let is_cell =
        |sequence: &Sequence| answer.trace().get(*sequence).is_some_and(|entry| matches!(entry.what, What::Cell(_)));
    !is_same_cluster
        || start.controllers().count() != answer.controllers().count()
        || answer.trace().since(begun).any(|entry| match &entry.what {
            What::Request(request) => request.is_write() && entry.causes.as_slice().iter().any(is_cell),
            What::Fault(_) => true,
            What::Cell(text) => ["kubectl exec ", "kubectl cp "].iter().any(|command| text.contains(command)),
            _ => false,
        })
}

fn same_entry(one: &Cluster, other: &Cluster, sequence: Sequence) -> bool {
    match (one.trace().get(sequence), other.trace().get(sequence)) {
        (Some(one), Some(other)) => one.at == other.at && one.actor == other.actor,
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Takes a cell's output and drops it; stops a cell that would run for ever.
struct Silent<'a> {
    cell: &'a str,
    turns: Cell<u32>,
}

impl<'a> Silent<'a> {
    fn new(cell: &'a str) -> Silent<'a> {
        Silent { cell, turns: Cell::new(0) }
    }
}

impl Sink for Silent<'_> {
    fn put(&mut self, _: Output) {}

    fn interrupted(&self) -> bool {
        self.turns.set(self.turns.get() + 1);
        self.turns.get() > TURNS_MAX
    }

    fn cell(&self) -> Option<&str> {
        Some(self.cell)
    }
}
