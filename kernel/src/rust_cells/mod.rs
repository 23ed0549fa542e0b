//! Rust cells: evcxr in a process of its own, and the controllers that cells define.
//!
//! The way of a cell: [`RustCells::evaluate`] → `evaluation` (one request, its output as it comes) → `child` (the process
//! and its private folder) → the program in `rust-cells/`. A controller that a cell runs connects back and is then a
//! [`RemoteController`], which [`RemoteController::client`] makes a client of the cluster. When a cell has to be stopped, so must its process: then a new one starts in the background and
//! runs the earlier cells that succeeded again, without output, so that what they defined lives on.

mod child;
mod client;
mod errors;
mod evaluation;
#[path = "../../rust-cells/src/protocol.rs"]
mod protocol;
mod remote;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::output::{CellError, Completion, Match, MimeBundle, Output, Sink};
use child::{Child, Folder};
pub use client::native;
use evaluation::{Evaluator, Failure};
use protocol::{Reply, Request};
use remote::Connection;
pub use remote::{RemoteController, Stopper};

/// The name of the error of a cell that nothing here can compile, which is no fault of the cell.
pub const RUST_UNAVAILABLE: &str = "RustUnavailable";

/// The Rust cells of one notebook.
#[derive(Default)]
pub struct RustCells {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The notebook is being closed: nothing is started any more.
    closing: AtomicBool,
    /// A running reconcile shall stop.
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// The cells that succeeded, in order.
    cells: Vec<String>,
    /// Controllers that had to be stopped: they do not come back when cells run again.
    stopped: BTreeSet<String>,
    connections: BTreeMap<String, Connection>,
    /// A controller has run since what controllers print was last put out.
    printed: bool,
}

#[derive(Default)]
enum Phase {
    #[default]
    Idle,
    Starting,
    Running(Box<Evaluator>),
    Failed(CellError),
}

impl RustCells {
    pub fn new() -> RustCells {
        RustCells::default()
    }

    /// Starts the process in the background, so that the first cell need not wait for it. It takes some seconds.
    pub fn start(&self) {
        Shared::start(&self.shared, &mut self.shared.lock());
    }

    /// Runs one cell (without its `%%rust` line). Answers with the controllers that it started, in order; the caller adds
    /// them to the cluster, where one of the same name is replaced.
    pub fn evaluate(&mut self, code: &str, sink: &mut dyn Sink) -> Result<Vec<RemoteController>, CellError> {
        let mut state = self.shared.ready(sink)?;
        let Phase::Running(evaluator) = &mut state.phase else { return Err(unavailable("it has ended")) };
        match evaluator.evaluate(code, sink) {
            Ok(started) => {
                state.cells.push(code.to_owned());
                let mut controllers = Vec::new();
                for one in started {
                    state.stopped.remove(&one.name);
                    controllers.push(RemoteController::new(&one, self.shared.clone()));
                    state.connections.insert(one.name, Connection::new(one.dialog));
                }
                Ok(controllers)
            }
            Err(Failure::Cell(error)) => Err(error),
            Err(Failure::Child(error)) => {
                Shared::restart(&self.shared, &mut state);
                Err(error)
            }
        }
    }

    /// Puts out what controllers have printed since. To be called at the end of a cell during which the cluster ran.
    pub fn drain(&mut self, sink: &mut dyn Sink) {
        let mut state = self.shared.lock();
        if !std::mem::take(&mut state.printed) {
            return;
        }
        let Phase::Running(evaluator) = &mut state.phase else { return };
        if evaluator.drain(sink).is_err() {
            Shared::restart(&self.shared, &mut state);
        }
    }

    /// Completions at a cursor (in code points); none while no process is ready.
    pub fn complete(&mut self, code: &str, cursor: usize) -> Completion {
        let offset = code.char_indices().nth(cursor).map_or(code.len(), |(offset, _)| offset);
        let request = Request::Complete { code: code.to_owned(), offset };
        let Some(Reply::Completions { start, end, matches }) = self.ask(&request) else {
            return Completion { start: cursor, end: cursor, matches: Vec::new() };
        };
        let points = |offset: usize| code.get(..offset).map_or(cursor, |before| before.chars().count());
        let matches = matches.into_iter().map(|one| Match { text: one.text, kind: one.kind }).collect();
        Completion { start: points(start), end: points(end), matches }
    }

    /// The documentation of the name or path at a cursor (in code points); none while no process is ready.
    pub fn inspect(&mut self, code: &str, cursor: usize) -> Option<MimeBundle> {
        let name = name_at(code, cursor)?;
        let Some(Reply::Evaluated(said)) = self.ask(&Request::Describe(name)) else { return None };
        let text = said.get("text/plain").filter(|text| !text.contains("No documentation found"))?;
        let mut bundle = crate::output::text(text.trim());
        if let Some(markdown) = said.get("text/markdown") {
            bundle.insert("text/markdown".to_owned(), markdown.clone().into());
        }
        Some(bundle)
    }

    /// Forgets what cells have defined and ends their controllers, as if for another notebook. The process stays, and what it
    /// has compiled for every notebook alike, which is what takes time.
    pub fn clear(&mut self) {
        let mut state = self.shared.lock();
        while matches!(state.phase, Phase::Starting) {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.cells, state.stopped, state.connections) = Default::default();
        if let Phase::Running(evaluator) = &mut state.phase
            && evaluator.clear(&mut UntilClosing(&self.shared.closing)).is_err()
        {
            state.phase = Phase::Idle;
        }
    }

    /// Stops a reconcile that is running, from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper::new(self.shared.clone())
    }

    fn ask(&self, request: &Request) -> Option<Reply> {
        let mut state = self.shared.lock();
        match &mut state.phase {
            Phase::Running(evaluator) => evaluator.ask(request),
            Phase::Idle => {
                Shared::start(&self.shared, &mut state);
                None
            }
            Phase::Starting | Phase::Failed(_) => None,
        }
    }
}

/// Ends the process. Controllers that are still held answer that they are gone.
impl Drop for RustCells {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        let mut state = self.shared.lock();
        while matches!(state.phase, Phase::Starting) {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.phase = Phase::Failed(unavailable("the notebook is closed"));
        state.connections.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a process that is ready, and starts one if there is none.
    fn ready(self: &Arc<Shared>, sink: &dyn Sink) -> Result<MutexGuard<'_, State>, CellError> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Running(_)) {
            Shared::start(self, &mut state);
        }
        while matches!(state.phase, Phase::Starting) {
            if sink.interrupted() {
                return Err(CellError::new("Interrupted", "the cell did not run: Rust is still starting"));
            }
            let wait = self.changed.wait_timeout(state, Duration::from_millis(20));
            (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        }
        match &state.phase {
            Phase::Failed(error) => Err(error.clone()),
            _ => Ok(state),
        }
    }

    /// Starts a process if there is none.
    fn start(self: &Arc<Shared>, state: &mut State) {
        if matches!(state.phase, Phase::Idle | Phase::Failed(_)) {
            Shared::restart(self, state);
        }
    }

    /// Ends the process, if there is one, and starts another, both in the background.
    fn restart(self: &Arc<Shared>, state: &mut State) {
        if self.closing.load(Ordering::Acquire) {
            return;
        }
        state.connections.clear();
        let old = std::mem::replace(&mut state.phase, Phase::Starting);
        let (cells, stopped) = (state.cells.clone(), state.stopped.clone());
        let shared = self.clone();
        thread::spawn(move || {
            let mut sink = UntilClosing(&shared.closing);
            let result = match revive(old, &cells, &mut sink) {
                Ok(running) => Ok(running),
                Err(folder) => start(folder, &cells, &mut sink),
            };
            let mut state = shared.lock();
            match result {
                Ok((evaluator, connections)) => {
                    state.phase = Phase::Running(Box::new(evaluator));
                    state.connections = connections;
                    state.connections.retain(|name, _| !stopped.contains(name));
                }
                Err(StartError { error, cell }) => {
                    state.phase = Phase::Failed(error);
                    if let Some(cell) = cell {
                        state.cells.remove(cell);
                    }
                }
            }
            shared.changed.notify_all();
        });
    }
}

/// Why there is no process, and which cell, if one, must not run again.
struct StartError {
    error: CellError,
    cell: Option<usize>,
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> StartError {
        let (Failure::Cell(error) | Failure::Child(error)) = failure;
        StartError { error, cell: None }
    }
}

type Running = (Evaluator, BTreeMap<String, Connection>);

/// Ends what runs in the process, if there is one, and lets the cells run in it again. If that fails, the process is
/// ended too; its folder is left for the next one.
fn revive(phase: Phase, cells: &[String], sink: &mut dyn Sink) -> Result<Running, Option<Arc<Folder>>> {
    let Phase::Running(mut evaluator) = phase else { return Err(None) };
    let revived = evaluator.revive(sink).map_err(StartError::from).and_then(|()| replay(&mut evaluator, cells, sink));
    revived.map_err(|_| Some(evaluator.child.folder.clone())).map(|connections| (*evaluator, connections))
}

/// A new process in which the crate for controllers is at hand and the cells have run.
fn start(folder: Option<Arc<Folder>>, cells: &[String], sink: &mut dyn Sink) -> Result<Running, StartError> {
    let child = Child::start(folder).map_err(|why| StartError { error: unavailable(&why), cell: None })?;
    let mut evaluator = Evaluator::new(child);
    evaluator.wait_until_ready(sink)?;
    evaluator.prepare(sink)?;
    // rust-analyzer reads the standard library now rather than in the first cell.
    let code = "let plan = kernetes_controller::Plan::new();\nplan.".to_owned();
    evaluator.ask(&Request::Complete { offset: code.len(), code });
    let connections = replay(&mut evaluator, cells, sink)?;
    Ok((evaluator, connections))
}

/// Runs the cells again. What one of them has to say, and whether it fails this time, is of no interest.
fn replay(
    evaluator: &mut Evaluator,
    cells: &[String],
    sink: &mut dyn Sink,
) -> Result<BTreeMap<String, Connection>, StartError> {
    let mut connections = BTreeMap::new();
    for (index, code) in cells.iter().enumerate() {
        match evaluator.evaluate(code, sink) {
            Ok(started) => connections.extend(started.into_iter().map(|one| (one.name, Connection::new(one.dialog)))),
            Err(Failure::Cell(_)) => {}
            Err(Failure::Child(error)) => return Err(StartError { error, cell: Some(index) }),
        }
    }
    Ok(connections)
}

/// The sink of what runs in the background: shows nothing, and stops when the notebook is closed.
struct UntilClosing<'a>(&'a AtomicBool);

impl Sink for UntilClosing<'_> {
    fn put(&mut self, _: Output) {}

    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

fn unavailable(why: &str) -> CellError {
    CellError::new(RUST_UNAVAILABLE, why)
}

/// The name or path around a cursor (in code points): `Plan::new`.
fn name_at(code: &str, cursor: usize) -> Option<String> {
    let points: Vec<char> = code.chars().collect();
    let part = |point: &char| point.is_alphanumeric() || matches!(point, '_' | ':');
    let cursor = cursor.min(points.len());
    let before = points[..cursor].iter().rev().take_while(|point| part(point)).count();
    let after = points[cursor..].iter().take_while(|point| part(point)).count();
    let name: String = points[cursor - before..cursor + after].iter().collect();
    let name = name.trim_matches(':');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_at_a_cursor_is_the_whole_path() {
        assert_eq!(name_at("let p = Plan::new();", 12).as_deref(), Some("Plan::new"));
        assert_eq!(name_at("é + view", 4).as_deref(), Some("view"));
        assert_eq!(name_at("a + ", 3), None);
    }
}
