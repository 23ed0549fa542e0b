//! The kernel as Jupyter sees it: five sockets, signed messages, one cell at a time.
//!
//! A request's way: [`message`] reads and checks its frames, [`channel`] hands it on and wraps every answer in busy and
//! idle, [`shell`] queues it for the thread that owns the session ([`execute`] runs cells, [`guard`] catches panics,
//! [`history`] knows what was run), [`control`] answers at once even while a cell runs, and [`iopub`] tells everyone
//! what happens.
//! Protocol: <https://jupyter-client.readthedocs.io/en/stable/messaging.html>, version 5.4.

mod channel;
mod control;
mod execute;
mod guard;
mod history;
pub mod install;
mod iopub;
pub mod kernel_info;
mod message;
mod shell;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jupyter_protocol::ConnectionInfo;
use jupyter_protocol::connection_info::Transport;
use jupyter_zmq_client as zmq;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use zeromq::{SocketRecv, SocketSend};

use crate::exit::{Answer, Failure, Outcome};
use crate::output::{CellError, Completeness, Completion, MimeBundle, Sink};
use crate::session::Session;
use control::Kernel;

/// How long a session gets to stop its cell and clean up after a shutdown request.
const CLEANUP_MS_MAX: u64 = 2_000;
/// How long the last messages get to leave the sockets, which flush in the background.
const LINGER_MS: u64 = 50;
const PARENT_CHECK_MS: u64 = 1_000;

/// What Jupyter asks of a session.
pub trait Execute {
    fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError>;
    fn complete(&mut self, code: &str, cursor: usize) -> Completion;
    fn inspect(&mut self, code: &str, cursor: usize) -> Option<MimeBundle>;
    fn is_complete(&self, code: &str) -> Completeness;
}

impl Execute for Session {
    fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        Session::execute(self, code, sink)
    }

    fn complete(&mut self, code: &str, cursor: usize) -> Completion {
        Session::complete(self, code, cursor)
    }

    fn inspect(&mut self, code: &str, cursor: usize) -> Option<MimeBundle> {
        Session::inspect(self, code, cursor)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        Session::is_complete(self, code)
    }
}

/// Serve notebooks (Jupyter runs this)
#[derive(clap::Args)]
pub struct Launch {
    /// The JSON file in which Jupyter names the ports and the key
    connection_file: PathBuf,
}

impl Launch {
    pub fn start(self) -> Outcome {
        run(&self.connection_file, Session::new)
    }
}

/// Serves the session that `open` makes to the frontends of a connection file, until one of them (or the parent's
/// death) ends it.
///
/// `open` runs when the first cell does, or something is first asked of the session: a hello needs no cluster.
///
/// # Errors
/// The connection file can't be used, or a socket can't be bound.
pub fn run<E: Execute + Send + 'static>(connection_file: &Path, open: impl FnOnce() -> E + Send + 'static) -> Outcome {
    let connection = read_connection_file(connection_file).map_err(Failure::Usage)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Fault(format!("cannot start the event loop: {error}")))?
        .block_on(serve(connection, open))
        .map_err(Failure::Fault)?;
    Ok(Answer::Yes)
}

fn read_connection_file(path: &Path) -> Result<ConnectionInfo, String> {
    let wrong = |why: String| format!("connection file {}: {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if json.get("curve_secretkey").is_some_and(|key| !key.is_null()) {
        return Err(wrong(
            "CurveZMQ encryption is not supported; use the ipc transport, or start Jupyter without encryption".into(),
        ));
    }
    let connection: ConnectionInfo =
        serde_path_to_error::deserialize(json).map_err(|error| wrong(error.to_string()))?;
    match connection.signature_scheme.as_str() {
        "hmac-sha256" => Ok(connection),
        other => Err(wrong(format!("signature_scheme {other:?} is not supported, expected \"hmac-sha256\""))),
    }
}

async fn serve<E: Execute + Send + 'static>(
    connection: ConnectionInfo,
    open: impl FnOnce() -> E + Send + 'static,
) -> Result<(), String> {
    // Before the sockets: a signal that arrives early must not kill the kernel.
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupts), Ok(mut terminations)) = signals else {
        return Err("cannot listen to signals".into());
    };
    // A kernel that was killed has left its own, and nothing can be bound over them.
    remove_socket_files(&connection);
    let id = uuid::Uuid::new_v4().to_string();
    let cannot = |what: &'static str| move |error: zmq::RuntimeError| format!("cannot bind the {what} socket: {error}");
    let iopub = iopub::bind(&connection, &id).await.map_err(cannot("iopub"))?;
    let shell = zmq::create_kernel_shell_connection(&connection, &id).await.map_err(cannot("shell"))?;
    let control = zmq::create_kernel_control_connection(&connection, &id).await.map_err(cannot("control"))?;
    let stdin = zmq::create_kernel_stdin_connection(&connection, &id).await.map_err(cannot("stdin"))?;
    let heartbeat = zmq::create_kernel_heartbeat_connection(&connection).await.map_err(cannot("heartbeat"))?;

    let (stop, mut stopped) = mpsc::unbounded_channel();
    let kernel = Arc::new(Kernel::new(connection, iopub::publish(iopub), stop));
    let shell_thread = shell::start(shell, Arc::clone(&kernel), open)
        .map_err(|error| format!("cannot start the session's thread: {error}"))?;
    control::start(control, Arc::clone(&kernel));
    tokio::spawn(discard(stdin));
    tokio::spawn(echo(heartbeat));

    let parent_gone = parent_gone();
    tokio::pin!(parent_gone);
    loop {
        tokio::select! {
            _ = interrupts.recv() => kernel.interrupt(),
            _ = terminations.recv() => break,
            _ = stopped.recv() => break,
            () = &mut parent_gone => break,
        }
    }

    kernel.end();
    let cleaned_up = tokio::time::timeout(Duration::from_millis(CLEANUP_MS_MAX), shell_thread.join()).await;
    if cleaned_up.is_err() {
        eprintln!("kernetes: the running cell did not stop in time, leaving it");
    }
    kernel.publisher.flush().await;
    tokio::time::sleep(Duration::from_millis(LINGER_MS)).await;
    remove_socket_files(&kernel.connection);
    Ok(())
}

/// Removes what the ipc transport binds; tcp has nothing to remove.
fn remove_socket_files(connection: &ConnectionInfo) {
    if connection.transport != Transport::IPC {
        return;
    }
    let ConnectionInfo { ip, shell_port, iopub_port, stdin_port, control_port, hb_port, .. } = connection;
    for port in [shell_port, iopub_port, stdin_port, control_port, hb_port] {
        let path = format!("{ip}-{port}");
        if fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket()) {
            // If it can't be removed, binding says so.
            let _ = fs::remove_file(path);
        }
    }
}

/// Cells never ask for input, so whatever comes by stdin is late or lost.
async fn discard(mut stdin: zmq::KernelStdinConnection) {
    loop {
        if stdin.socket.recv().await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

async fn echo(mut heartbeat: zmq::KernelHeartbeatConnection) {
    loop {
        match heartbeat.socket.recv().await {
            // A peer that has gone meanwhile doesn't need its echo.
            Ok(beat) => drop(heartbeat.socket.send(beat).await),
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Ends when the process that started the kernel has died; never, if Jupyter didn't say which (`JPY_PARENT_PID`).
async fn parent_gone() {
    let Some(announced) = std::env::var("JPY_PARENT_PID").ok().and_then(|pid| pid.parse::<u32>().ok()) else {
        return std::future::pending().await;
    };
    let first = std::os::unix::process::parent_id();
    let orphaned = |parent: u32| parent != first || (parent == 1 && announced != 1);
    while !orphaned(std::os::unix::process::parent_id()) {
        tokio::time::sleep(Duration::from_millis(PARENT_CHECK_MS)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        let path = std::env::temp_dir().join(format!("kernetes-{}.json", uuid::Uuid::new_v4()));
        fs::write(&path, json).unwrap();
        let refusal = read_connection_file(&path).unwrap_err();
        fs::remove_file(path).unwrap();
        refusal
    }

    #[test]
    fn a_connection_file_that_cannot_be_used_is_refused_with_the_reason() {
        let rest = r#""ip": "127.0.0.1", "transport": "tcp", "shell_port": 1, "iopub_port": 2, "stdin_port": 3,
            "control_port": 4, "hb_port": 5, "key": "k""#;
        assert!(refusal("{").contains("EOF"));
        assert!(refusal("{}").contains("missing field `ip`"));
        assert!(refusal(&format!(r#"{{{rest}, "signature_scheme": "hmac-md5"}}"#)).contains("hmac-sha256"));
        assert!(
            refusal(&format!(r#"{{{rest}, "signature_scheme": "hmac-sha256", "curve_secretkey": "x"}}"#))
                .contains("CurveZMQ")
        );
    }
}
