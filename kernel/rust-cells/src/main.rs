//! Compiles and runs the Rust cells of Kernetes with evcxr.
//!
//! A program of its own, because evcxr brings rust-analyzer with it and re-executes the program that it is part of: once
//! as the runtime, which loads and runs the compiled cells, and sometimes as a wrapper of rustc.

mod protocol;
mod runtime;

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;

use evcxr::{CommandContext, CompilationError, Error};
use protocol::{Candidate, CompileError, FOLDER_VARIABLE, Reply, Request};
use rustix::process::{Signal, getpid, kill_process_group};

fn main() {
    runtime::connect();
    evcxr::runtime_hook();
    let requests = listen();
    let mut context = match CommandContext::new() {
        Ok((context, _)) => context,
        Err(error) => return say(&Reply::Failed(error.to_string())),
    };
    say(&Reply::Ready);
    for request in requests {
        say(&answer(&mut context, request));
    }
}

/// The requests on stdin. Its end means that the kernel has gone: then this program and all that it started end, and
/// the folder it worked in is removed.
fn listen() -> mpsc::Receiver<Request> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(request) => _ = sender.send(request),
                Err(error) => say(&Reply::Failed(format!("not a request: {error}"))),
            }
        }
        end();
    });
    receiver
}

fn end() -> ! {
    // The folder can be removed for good only when all that write into it have ended, this program included.
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let mut remover = Command::new("sh");
        let _ = remover.args(["-c", "sleep 0.1; rm -rf \"$0\""]).arg(folder).process_group(0).spawn();
    }
    // The kernel started this program as the leader of a process group.
    let _ = kill_process_group(getpid(), Signal::KILL);
    std::process::exit(0)
}

fn say(reply: &Reply) {
    let Ok(line) = serde_json::to_string(reply) else { return };
    // A failure means that the kernel has gone, which stdin will tell.
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn answer(context: &mut CommandContext, request: Request) -> Reply {
    match request {
        Request::Evaluate(code) => match context.execute(&code) {
            Ok(outputs) => Reply::Evaluated(outputs.content_by_mime_type.into_iter().collect()),
            Err(Error::CompilationErrors(errors)) => Reply::CompileErrors(errors.iter().map(compile_error).collect()),
            Err(Error::SubprocessTerminated(how)) => Reply::Terminated(how),
            Err(error) => Reply::Failed(error.to_string()),
        },
        Request::Describe(name) => match context.execute(&format!(":doc {name}")) {
            Ok(outputs) => Reply::Evaluated(outputs.content_by_mime_type.into_iter().collect()),
            Err(error) => Reply::Failed(error.to_string()),
        },
        Request::Complete { code, offset } => match context.completions(&code, offset) {
            Ok(found) => Reply::Completions {
                start: found.start_offset,
                end: found.end_offset,
                matches: found
                    .completions
                    .into_iter()
                    .map(|one| Candidate { text: one.code, kind: one.kind.to_owned() })
                    .collect(),
            },
            Err(error) => Reply::Failed(error.to_string()),
        },
    }
}

fn compile_error(error: &CompilationError) -> CompileError {
    let cell_line = error.primary_spanned_message().and_then(|message| message.span).map(|span| span.start_line);
    let source_line = error.json["spans"].as_array().and_then(|spans| {
        let main = spans.iter().find(|span| span["is_primary"] == true)?;
        usize::try_from(main["line_start"].as_u64()?).ok()
    });
    CompileError {
        message: error.message(),
        code: error.code().map(str::to_owned),
        rendered: error.rendered(),
        line: source_line.zip(cell_line),
    }
}
