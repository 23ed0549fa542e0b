//! The shell channel: requests wait in one queue for the thread that owns the session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use jupyter_zmq_client::KernelShellConnection;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Execute;
use super::channel::{self, Replies};
use super::control::Kernel;
use super::execute::{self, Cell};
use super::guard::Guarded;
use super::history::History;
use super::message::Request;
use crate::output::{CellError, Completeness};

/// After a failed cell: how long its reply waits for cells that were sent together with it, to abort them too.
const ABORT_WAIT_MS: u64 = 10;
/// Manifests nest; virtual memory is cheap.
const STACK_BYTES: usize = 32 << 20;

/// The thread that owns the session.
pub struct ShellThread {
    queue: Sender<Option<Waiting>>,
    ended: oneshot::Receiver<()>,
}

struct Waiting {
    request: Request,
    replies: Replies,
    aborted: bool,
}

impl ShellThread {
    /// Returns when the thread has dropped its session. [`Kernel::end`] comes first.
    pub async fn join(self) {
        let _ = self.queue.send(None);
        let _ = self.ended.await;
    }
}

/// Serves the shell channel with the session that `open` makes when it is first needed.
pub fn start<E: Execute + Send + 'static>(
    connection: KernelShellConnection,
    kernel: Arc<Kernel>,
    open: impl FnOnce() -> E + Send + 'static,
) -> std::io::Result<ShellThread> {
    let (queue, incoming) = channel();
    let (end, ended) = oneshot::channel();
    let shell = Shell {
        kernel,
        incoming,
        waiting: VecDeque::new(),
        session: Guarded::new(open),
        history: History::default(),
        execution_count: 0,
    };
    thread::Builder::new().name("session".into()).stack_size(STACK_BYTES).spawn(move || {
        shell.run();
        let _ = end.send(());
    })?;
    let sender = queue.clone();
    channel::open(connection, move |request, replies| {
        // Fails only when the program is ending.
        let _ = sender.send(Some(Waiting { request, replies: replies.clone(), aborted: false }));
    });
    Ok(ShellThread { queue, ended })
}

struct Shell<E> {
    kernel: Arc<Kernel>,
    incoming: Receiver<Option<Waiting>>,
    /// Taken off `incoming` already, while aborting.
    waiting: VecDeque<Waiting>,
    session: Guarded<E>,
    history: History,
    execution_count: usize,
}

impl<E: Execute> Shell<E> {
    fn run(mut self) {
        while let Some(Waiting { request, replies, aborted }) = self.next() {
            let kernel = Arc::clone(&self.kernel);
            channel::serve(&kernel, &replies, request, |request| match aborted {
                true => Some(Ok(self.aborted())),
                false => self.answer(request),
            });
        }
    }

    fn next(&mut self) -> Option<Waiting> {
        if self.waiting.is_empty() && !self.kernel.ending() {
            self.waiting.extend(self.incoming.recv().ok().flatten());
        }
        self.waiting.pop_front().filter(|_| !self.kernel.ending())
    }

    fn answer(&mut self, request: &Request) -> Option<Result<Value, CellError>> {
        Some(match request.kind() {
            "execute_request" => self.execute(request),
            "complete_request" => self.complete(request),
            "inspect_request" => self.inspect(request),
            "is_complete_request" => self.is_complete(request),
            "history_request" => request.parse().map(|query| self.history.answer(&query)),
            _ => return self.kernel.answer(request),
        })
    }

    fn execute(&mut self, request: &Request) -> Result<Value, CellError> {
        let cell: Cell = request.parse()?;
        if cell.stores_history() {
            self.execution_count += 1;
        }
        self.kernel.forget_interrupt();
        let outcome = execute::run(&self.kernel, request, &mut self.session, &cell, self.execution_count);
        if cell.stores_history() {
            self.history.record(self.execution_count, &cell.code, outcome.result);
        }
        if outcome.failed && cell.stops_on_error() {
            self.abort_waiting();
        }
        Ok(outcome.reply)
    }

    /// Marks the cells that were sent before the frontend could know of the failure.
    fn abort_waiting(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(ABORT_WAIT_MS);
        while let Ok(Some(next)) = self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.waiting.push_back(next);
        }
        for waiting in &mut self.waiting {
            waiting.aborted = waiting.request.kind() == "execute_request";
        }
    }

    fn aborted(&self) -> Value {
        json!({
            "status": "aborted",
            "execution_count": self.execution_count,
            "user_expressions": {},
            "payload": [],
        })
    }

    fn complete(&mut self, request: &Request) -> Result<Value, CellError> {
        let at: Cursor = request.parse()?;
        let found = self.session.call(|session| session.complete(&at.code, at.position()))?;
        let (start, end) = (found.start, found.end);
        let typed =
            |found: &crate::output::Match| json!({"text": found.text, "type": found.kind, "start": start, "end": end});
        Ok(json!({
            "status": "ok",
            "matches": found.matches.iter().map(|found| &found.text).collect::<Vec<_>>(),
            "cursor_start": start,
            "cursor_end": end,
            "metadata": {"_jupyter_types_experimental": found.matches.iter().map(typed).collect::<Vec<_>>()},
        }))
    }

    fn inspect(&mut self, request: &Request) -> Result<Value, CellError> {
        let at: Cursor = request.parse()?;
        let found = self.session.call(|session| session.inspect(&at.code, at.position()))?;
        Ok(json!({
            "status": "ok",
            "found": found.is_some(),
            "data": found.unwrap_or_default(),
            "metadata": {},
        }))
    }

    fn is_complete(&mut self, request: &Request) -> Result<Value, CellError> {
        #[derive(Deserialize)]
        struct Code {
            code: String,
        }
        let Code { code } = request.parse()?;
        Ok(match self.session.call(|session| session.is_complete(&code))? {
            Completeness::Complete => json!({"status": "complete"}),
            Completeness::Incomplete { indent } => {
                json!({"status": "incomplete", "indent": indent})
            }
            Completeness::Invalid => json!({"status": "invalid"}),
            Completeness::Unknown => json!({"status": "unknown"}),
        })
    }
}

/// A place in a cell, in code points; without one, or beyond the end, the end.
#[derive(Deserialize)]
struct Cursor {
    code: String,
    cursor_pos: Option<usize>,
}

impl Cursor {
    fn position(&self) -> usize {
        let end = self.code.chars().count();
        self.cursor_pos.map_or(end, |position| position.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::tests::kernel;
    use super::super::message::tests::request;
    use super::*;
    use crate::output::{Completion, Match, MimeBundle, Output, Sink, text};

    /// A session of a few words: each line of a cell is one.
    struct Words;

    impl Execute for Words {
        fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
            for line in code.lines() {
                match line.split_once(' ').unwrap_or((line, "")) {
                    ("print", word) => sink.put(Output::Stdout(word.to_owned())),
                    ("result", word) => sink.put(Output::Result(text(word))),
                    ("show", word) => sink.put(Output::Display { data: text(word), id: Some("d".into()) }),
                    ("page", word) => sink.put(Output::Page(text(word))),
                    ("fail", word) => return Err(CellError::new("Failed", word)),
                    ("panic", word) => panic!("{word}"),
                    _ => {}
                }
            }
            Ok(())
        }

        fn complete(&mut self, _: &str, cursor: usize) -> Completion {
            let matches = vec![Match { text: "print".into(), kind: "verb".into() }];
            Completion { start: 0, end: cursor, matches }
        }

        fn inspect(&mut self, _: &str, _: usize) -> Option<MimeBundle> {
            None
        }

        fn is_complete(&self, _: &str) -> Completeness {
            Completeness::Incomplete { indent: "  ".into() }
        }
    }

    struct Frontend<P> {
        shell: Shell<Words>,
        published: P,
    }

    fn frontend() -> Frontend<impl FnMut() -> Vec<(String, Value)>> {
        let (kernel, published) = kernel();
        let shell = Shell {
            kernel: Arc::new(kernel),
            incoming: channel().1,
            waiting: VecDeque::new(),
            session: Guarded::new(|| Words),
            history: History::default(),
            execution_count: 0,
        };
        Frontend { shell, published }
    }

    impl<P: FnMut() -> Vec<(String, Value)>> Frontend<P> {
        /// The reply to a cell and the kinds of messages it caused.
        fn run(&mut self, content: Value) -> (Value, Vec<String>) {
            let reply = self.shell.answer(&request("execute_request", &content.to_string())).unwrap().unwrap();
            (reply, (self.published)().into_iter().map(|(kind, _)| kind).collect())
        }
    }

    #[test]
    fn a_cell_shows_its_input_then_its_outputs_in_order() {
        let (reply, kinds) = frontend().run(json!({"code": "print a\nresult 1\nshow b\npage c"}));
        assert_eq!(kinds, ["execute_input", "stream", "execute_result", "display_data"]);
        let pages = json!([{"source": "page", "data": {"text/plain": "c"}, "start": 0}]);
        let expected = json!({"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": pages});
        assert_eq!(reply, expected);
    }

    #[test]
    fn a_silent_cell_is_neither_shown_nor_counted() {
        let mut frontend = frontend();
        let (reply, kinds) = frontend.run(json!({"code": "print a\nfail b", "silent": true}));
        assert_eq!((reply["status"].as_str(), kinds.len()), (Some("error"), 0));
        assert_eq!(frontend.run(json!({"code": ""})).0["execution_count"], 1);
    }

    #[test]
    fn an_error_is_published_and_replied() {
        let (reply, kinds) = frontend().run(json!({"code": "fail why"}));
        assert_eq!(kinds, ["execute_input", "error"]);
        assert_eq!((reply["ename"].as_str(), reply["evalue"].as_str()), (Some("Failed"), Some("why")));
    }

    #[test]
    fn a_panic_is_an_error_and_the_next_cell_runs() {
        let mut frontend = frontend();
        let (reply, _) = frontend.run(json!({"code": "panic lost"}));
        assert_eq!(reply["ename"], "InternalError");
        assert!(reply["evalue"].as_str().unwrap().starts_with("lost "));
        assert_eq!(frontend.run(json!({"code": "print a"})).0["status"], "ok");
    }

    #[test]
    fn a_session_that_cannot_be_made_is_an_error_of_each_cell() {
        let mut frontend = frontend();
        frontend.shell.session = Guarded::new(|| panic!("no room"));
        let (reply, kinds) = frontend.run(json!({"code": "print a"}));
        assert_eq!(reply["ename"], "InternalError");
        assert_eq!(kinds, ["execute_input", "error"]);
    }

    #[test]
    fn user_expressions_are_evaluated_each_for_itself() {
        let expressions = json!({"a": "print x", "b": "result 2", "c": "fail no"});
        let (reply, kinds) = frontend().run(json!({"code": "", "user_expressions": expressions}));
        let values = &reply["user_expressions"];
        assert_eq!(values["a"]["data"]["text/plain"], "x");
        assert_eq!(values["b"]["data"]["text/plain"], "2");
        assert_eq!(values["c"]["ename"], "Failed");
        assert_eq!(kinds, ["execute_input"]);
    }

    #[test]
    fn completions_say_what_they_are_and_a_cursor_beyond_the_end_is_the_end() {
        let mut frontend = frontend();
        let reply = frontend.shell.answer(&request("complete_request", r#"{"code": "箱", "cursor_pos": 99}"#));
        let reply = reply.unwrap().unwrap();
        assert_eq!((&reply["matches"], &reply["cursor_end"]), (&json!(["print"]), &json!(1)));
        assert_eq!(reply["metadata"]["_jupyter_types_experimental"][0]["type"], "verb");
    }

    #[test]
    fn a_request_without_code_is_answered_with_the_reason() {
        let error = frontend().shell.answer(&request("execute_request", "{}")).unwrap().unwrap_err();
        assert_eq!(error.evalue, "execute_request: missing field `code`");
    }
}
