//! One cell at a time in the child: what it says on the way, and how it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use kernetes_controller::Watches;
use kernetes_controller::wire::{Dialog, ToCell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::child::{Child, Event};
use super::errors;
use super::protocol::{Reply, Request, Stream};
use super::stream::Piece;
use crate::output::{CellError, MimeBundle, Output, Sink};

/// How often an interrupt is looked for.
const POLL: Duration = Duration::from_millis(20);
/// How often text without an end of line is fetched.
const FLUSH: Duration = Duration::from_millis(100);
/// How long a flush may take; a thread of the learner's may hold stdout for ever.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// How long evcxr may need until it has another runtime; it may be in the midst of compiling.
const REVIVE_MAX: Duration = Duration::from_secs(20);
/// What a new runtime runs first.
const START: &str = "kernetes_controller::cell::start();";

/// A controller that a cell has started.
pub struct Started {
    pub name: String,
    pub watches: Watches,
    pub dialog: Dialog,
}

/// Why a cell did not succeed, and whether the child can go on.
pub enum Failure {
    /// The child lives; what earlier cells defined is untouched.
    Cell(CellError),
    /// The child has to be replaced.
    Child(CellError),
}

/// A child that is ready, and what is under way in its runtime.
pub struct Evaluator {
    pub child: Child,
    /// A request has no reply yet.
    pending: bool,
    runtime: Option<Pid>,
    evcxr: Option<UnixStream>,
    flush: Option<UnixStream>,
    /// The number of the last flush that ended a cell.
    flushes: u8,
    /// The runtime answers requests to flush.
    can_flush: bool,
    /// Text of stderr that is held until the text of stdout before it has come through.
    stderr: String,
    /// The last line of stderr that has been put out: a failing `?` tells its error there, perhaps before the cell's end
    /// has come through.
    last_line: String,
    bundle: MimeBundle,
}

/// What is known of a request that is under way.
#[derive(Default)]
struct Run {
    panic: Option<CellError>,
    returned_early: bool,
    started: Vec<Started>,
    /// evcxr still has to hear that the cell has come to its end.
    complete: bool,
    /// The flushes of stdout and stderr that are still awaited, and since when.
    flushing: Option<(u8, [bool; 2], Instant)>,
}

impl Evaluator {
    pub fn new(child: Child) -> Evaluator {
        Evaluator {
            child,
            pending: true,
            runtime: None,
            evcxr: None,
            flush: None,
            flushes: 0,
            can_flush: false,
            stderr: String::new(),
            last_line: String::new(),
            bundle: MimeBundle::new(),
        }
    }

    /// Waits until the program has started.
    pub fn wait_until_ready(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        match self.wait("", &mut Run::default(), sink)? {
            Reply::Ready => Ok(()),
            reply => Err(Failure::Child(unexpected(reply))),
        }
    }

    /// Puts the crate for controllers at hand.
    pub fn prepare(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let path = self.child.folder.controller();
        let dependency = format!("kernetes-controller = {{ path = {:?} }}", path.display().to_string());
        let prelude = |offline| format!(":offline {offline}\n:opt 0\n:dep {dependency}\n{START}");
        // serde_json lies in cargo's cache on a machine that has built this kernel; else it has to be fetched once.
        self.evaluate(&prelude(1), sink).or_else(|_| self.evaluate(&prelude(0), sink)).map(|_| ())
    }

    /// Makes all as it was when it had been prepared, with another runtime.
    pub fn clear(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        (self.evcxr, self.flush, self.can_flush) = (None, None, false);
        self.evaluate(":clear", sink)?;
        self.prepare(sink)
    }

    pub fn evaluate(&mut self, code: &str, sink: &mut dyn Sink) -> Result<Vec<Started>, Failure> {
        let mut run = Run::default();
        let reply = self.request(&Request::Evaluate(code.to_owned()), code, &mut run, sink);
        let last_error = run.returned_early.then(|| match take_last_line(&mut self.stderr) {
            held if held.is_empty() => std::mem::take(&mut self.last_line),
            held => held,
        });
        self.put_stderr(sink);
        match reply? {
            Reply::Evaluated(said) => put_said(said, sink),
            Reply::CompileErrors(errors) => return Err(Failure::Cell(errors::compile_errors(code, &errors))),
            Reply::Terminated(how) => return Err(Failure::Child(errors::terminated(&how))),
            Reply::Failed(why) => return Err(Failure::Cell(CellError::new("RustError", self.without_paths(&why)))),
            reply => return Err(Failure::Child(unexpected(reply))),
        }
        match (run.panic, last_error) {
            (Some(panic), _) => Err(Failure::Cell(panic)),
            (None, Some(message)) => Err(Failure::Cell(CellError::new("Error", message))),
            (None, None) => Ok(run.started),
        }
    }

    /// Ends the runtime, and with it a cell that runs and all controllers, and waits until evcxr has another one. What
    /// evcxr has compiled and understood so far stays.
    pub fn revive(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        if let Some(runtime) = self.runtime.take() {
            let _ = kill_process(runtime, Signal::KILL);
        }
        (self.evcxr, self.flush, self.can_flush) = (None, None, false);
        let start = Instant::now();
        while self.pending {
            self.step("", &mut Run::default(), sink)?;
            if sink.interrupted() || start.elapsed() > REVIVE_MAX {
                return Err(Failure::Child(errors::interrupted()));
            }
        }
        // evcxr may notice only now, as it sends the next cell.
        match self.evaluate(START, sink) {
            Err(Failure::Child(_)) => self.evaluate(START, sink).map(|_| ()),
            result => result.map(|_| ()),
        }
    }

    /// A question that runs no cell.
    pub fn ask(&mut self, request: &Request) -> Option<Reply> {
        self.request(request, "", &mut Run::default(), &mut Quiet).ok()
    }

    /// Puts what the threads of cells have printed by now.
    pub fn drain(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut run = Run::default();
        self.start_flush(&mut run);
        while run.flushing.is_some() {
            self.step("", &mut run, sink)?;
        }
        self.put_stderr(sink);
        Ok(())
    }

    /// `text` without the private folder, whose name is new each time.
    fn without_paths(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.child.folder.path.display()), "")
    }

    fn request(&mut self, request: &Request, code: &str, run: &mut Run, sink: &mut dyn Sink) -> Result<Reply, Failure> {
        self.child.send(request).map_err(|_| gone())?;
        self.pending = true;
        self.wait(code, run, sink)
    }

    fn wait(&mut self, code: &str, run: &mut Run, sink: &mut dyn Sink) -> Result<Reply, Failure> {
        let mut flushed = Instant::now();
        loop {
            if let Some(reply) = self.step(code, run, sink)? {
                self.put_bundle(sink);
                return Ok(reply);
            }
            if sink.interrupted() {
                self.put_stderr(sink);
                return Err(Failure::Child(errors::interrupted()));
            }
            if run.flushing.is_none() && flushed.elapsed() > FLUSH {
                flushed = Instant::now();
                self.ask_flush(0);
            }
        }
    }

    /// Handles one event, or none if nothing happens for a moment.
    fn step(&mut self, code: &str, run: &mut Run, sink: &mut dyn Sink) -> Result<Option<Reply>, Failure> {
        if run.flushing.is_some_and(|(_, _, since)| since.elapsed() > FLUSH_MAX) {
            self.end_flush(run);
        }
        let event = match self.child.events.recv_timeout(POLL) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
        };
        match event {
            Event::Reply(reply) => {
                self.pending = false;
                return Ok(Some(reply));
            }
            Event::Gone => return Err(gone()),
            Event::Connected(Stream::Evcxr, _, connection) => self.evcxr = Some(connection),
            Event::Connected(_, runtime, connection) => {
                self.runtime = Pid::from_raw(runtime);
                // A runtime that does not read must not hold up the kernel.
                let _ = connection.set_nonblocking(true);
                self.flush = Some(connection);
                self.can_flush = false;
            }
            Event::Controller(name, watches, dialog) => {
                let _ = dialog.say(&ToCell::Welcome);
                run.started.push(Started { name, watches, dialog });
            }
            Event::Stdout(piece) => self.stdout(piece, code, run, sink),
            Event::Stderr(Piece::Text(text)) => self.stderr.push_str(&text),
            Event::Stderr(Piece::Mark(mark)) => self.flushed(&mark, 1, run, sink),
            Event::Stderr(_) => {}
        }
        Ok(None)
    }

    fn stdout(&mut self, piece: Piece, code: &str, run: &mut Run, sink: &mut dyn Sink) {
        if let Some(line) = piece.for_evcxr() {
            run.returned_early |= piece == Piece::ReturnedEarly;
            if piece == Piece::Panicked && run.panic.is_none() {
                run.panic = Some(CellError::new("Panic", "the cell panicked"));
            }
            if piece != Piece::Complete {
                self.tell_evcxr(line);
                return;
            }
            // evcxr hears of the end of the cell only when all that the cell has said is here.
            run.complete = true;
            if !self.start_flush(run) {
                self.end_flush(run);
            }
            return;
        }
        match piece {
            Piece::Text(text) => {
                self.put_bundle(sink);
                sink.put(Output::Stdout(text));
            }
            Piece::Content { media_type, data } => {
                // The representations of one value come one after the other.
                if self.bundle.contains_key(&media_type) {
                    self.put_bundle(sink);
                }
                let json = media_type.ends_with("json").then(|| serde_json::from_str(&data).ok()).flatten();
                self.bundle.insert(media_type, json.unwrap_or(Value::String(data)));
            }
            Piece::Mark(mark) if mark.get("flushes").is_some() => self.can_flush = true,
            Piece::Mark(mark) => match mark.get("panic") {
                Some(panic) => run.panic = Some(self.panic(code, panic)),
                None => self.flushed(&mark, 0, run, sink),
            },
            _ => {}
        }
    }

    fn panic(&self, code: &str, panic: &Value) -> CellError {
        let line = panic["line"].as_u64().and_then(|line| usize::try_from(line).ok());
        let text = line.and_then(|line| self.child.folder.source_line(line));
        errors::panic(code, panic["message"].as_str().unwrap_or_default(), text.as_deref())
    }

    /// Asks for all that stdout and stderr hold; false if that is not possible.
    fn start_flush(&mut self, run: &mut Run) -> bool {
        self.flushes = self.flushes.checked_add(1).unwrap_or(1);
        let asked = self.ask_flush(self.flushes);
        if asked {
            run.flushing = Some((self.flushes, [false; 2], Instant::now()));
        }
        asked
    }

    fn ask_flush(&mut self, number: u8) -> bool {
        let flush = self.flush.as_mut().filter(|_| self.can_flush);
        flush.is_some_and(|flush| flush.write_all(&[number]).is_ok())
    }

    /// One of the two streams (0 stdout, 1 stderr) has come as far as a flush asked for.
    fn flushed(&mut self, mark: &Value, stream: usize, run: &mut Run, sink: &mut dyn Sink) {
        if mark["flushed"] == 0 && stream == 1 {
            self.put_stderr(sink);
        }
        let Some((number, seen, _)) = &mut run.flushing else { return };
        if mark["flushed"] == *number {
            seen[stream] = true;
            if *seen == [true, true] {
                self.end_flush(run);
            }
        }
    }

    fn end_flush(&mut self, run: &mut Run) {
        run.flushing = None;
        if let Some(line) = Piece::Complete.for_evcxr().filter(|_| std::mem::take(&mut run.complete)) {
            self.tell_evcxr(line);
        }
    }

    fn tell_evcxr(&mut self, line: &str) {
        if let Some(evcxr) = &mut self.evcxr {
            // A runtime that has gone is told by evcxr's reply.
            let _ = evcxr.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn put_bundle(&mut self, sink: &mut dyn Sink) {
        if !self.bundle.is_empty() {
            sink.put(Output::Display { data: std::mem::take(&mut self.bundle), id: None });
        }
    }

    fn put_stderr(&mut self, sink: &mut dyn Sink) {
        if !self.stderr.is_empty() {
            self.put_bundle(sink);
            let text = std::mem::take(&mut self.stderr);
            text.lines().next_back().unwrap_or_default().clone_into(&mut self.last_line);
            sink.put(Output::Stderr(text));
        }
    }
}

/// Takes no output, and lets a run come to its end.
struct Quiet;

impl Sink for Quiet {
    fn put(&mut self, _: Output) {}
}

fn put_said(said: BTreeMap<String, String>, sink: &mut dyn Sink) {
    if !said.is_empty() {
        let data = said.into_iter().map(|(media_type, data)| (media_type, Value::String(data))).collect();
        sink.put(Output::Display { data, id: None });
    }
}

fn take_last_line(text: &mut String) -> String {
    let start = text.trim_end().rfind('\n').map_or(0, |end| end + 1);
    text.split_off(start).trim_end().to_owned()
}

fn gone() -> Failure {
    Failure::Child(errors::terminated("kernetes-rust-cells has ended"))
}

fn unexpected(reply: Reply) -> CellError {
    match reply {
        Reply::Failed(why) => CellError::new("RustError", why),
        _ => CellError::new("RustError", "kernetes-rust-cells answered something else than was asked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_stderr_is_what_a_question_mark_met() {
        let mut text = "warming up\ninvalid digit\n".to_owned();
        assert_eq!((take_last_line(&mut text), text.as_str()), ("invalid digit".to_owned(), "warming up\n"));
        let mut one = "oh".to_owned();
        assert_eq!((take_last_line(&mut one), one.as_str()), ("oh".to_owned(), ""));
    }
}
