//! What can be answered without the session: on control at once, even while a cell runs, and on shell in its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jupyter_protocol::ConnectionInfo;
use jupyter_zmq_client::KernelControlConnection;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::iopub::Publisher;
use super::message::Request;
use super::{channel, kernel_info};
use crate::output::CellError;

/// What all channels share.
pub struct Kernel {
    pub connection: ConnectionInfo,
    pub publisher: Publisher,
    stop: mpsc::UnboundedSender<()>,
    interrupted: AtomicBool,
    ending: AtomicBool,
}

impl Kernel {
    pub fn new(connection: ConnectionInfo, publisher: Publisher, stop: mpsc::UnboundedSender<()>) -> Self {
        let (interrupted, ending) = (AtomicBool::new(false), AtomicBool::new(false));
        Kernel { connection, publisher, stop, interrupted, ending }
    }

    /// Asks the running cell to stop; when none runs this does nothing.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.ending()
    }

    /// An interrupt is meant for the cell that was running then, not for the next one.
    pub fn forget_interrupt(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Asks the program to end.
    pub fn stop(&self) {
        let _ = self.stop.send(());
    }

    /// From now on no cell starts, and the running one is asked to stop.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub fn ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Answers what needs no session; `None` for everything else.
    pub fn answer(&self, request: &Request) -> Option<Result<Value, CellError>> {
        Some(match request.kind() {
            "kernel_info_request" => Ok(kernel_info::content()),
            "connect_request" => Ok(self.connect()),
            "interrupt_request" => {
                self.interrupt();
                Ok(json!({"status": "ok"}))
            }
            "shutdown_request" => self.shutdown(request),
            "comm_info_request" => Ok(json!({"status": "ok", "comms": {}})),
            // Cells open no comms and have no targets: whoever opens one is told that it is closed.
            "comm_open" => self.refuse_comm(request),
            "comm_msg" | "comm_close" => Ok(Value::Null),
            _ => return None,
        })
    }

    fn connect(&self) -> Value {
        let ports = &self.connection;
        json!({
            "status": "ok",
            "shell_port": ports.shell_port,
            "iopub_port": ports.iopub_port,
            "stdin_port": ports.stdin_port,
            "control_port": ports.control_port,
            "hb_port": ports.hb_port,
        })
    }

    fn shutdown(&self, request: &Request) -> Result<Value, CellError> {
        #[derive(Deserialize)]
        struct Shutdown {
            #[serde(default)]
            restart: bool,
        }
        let Shutdown { restart } = request.parse()?;
        let content = json!({"status": "ok", "restart": restart});
        self.publisher.publish(request, "shutdown_reply", content.clone());
        Ok(content)
    }

    fn refuse_comm(&self, request: &Request) -> Result<Value, CellError> {
        #[derive(Deserialize)]
        struct CommOpen {
            comm_id: String,
        }
        let CommOpen { comm_id } = request.parse()?;
        self.publisher.publish(request, "comm_close", json!({"comm_id": comm_id, "data": {}}));
        Ok(Value::Null)
    }
}

/// Serves the control channel.
pub fn start(connection: KernelControlConnection, kernel: Arc<Kernel>) {
    channel::open(connection, move |request, replies| {
        channel::serve(&kernel, replies, request, |request| kernel.answer(request));
    });
}

#[cfg(test)]
pub(super) mod tests {
    use jupyter_protocol::connection_info::Transport;

    use super::super::iopub::tests::recorded;
    use super::super::message::tests::request;
    use super::*;

    /// A kernel without sockets, and what it has published.
    pub fn kernel() -> (Kernel, impl FnMut() -> Vec<(String, Value)>) {
        let (publisher, published) = recorded();
        let connection = ConnectionInfo {
            ip: "127.0.0.1".into(),
            transport: Transport::TCP,
            shell_port: 1,
            iopub_port: 2,
            stdin_port: 3,
            control_port: 4,
            hb_port: 5,
            key: String::new(),
            signature_scheme: "hmac-sha256".into(),
            kernel_name: None,
        };
        (Kernel::new(connection, publisher, mpsc::unbounded_channel().0), published)
    }

    #[test]
    fn connect_tells_the_ports() {
        let reply = kernel().0.answer(&request("connect_request", "{}")).unwrap().unwrap();
        assert_eq!((&reply["shell_port"], &reply["hb_port"]), (&json!(1), &json!(5)));
    }

    #[test]
    fn a_comm_for_an_unknown_target_is_closed_at_once() {
        let (kernel, mut published) = kernel();
        kernel.answer(&request("comm_open", r#"{"comm_id": "c", "target_name": "widget"}"#));
        assert_eq!(published(), [("comm_close".to_owned(), json!({"comm_id": "c", "data": {}}))]);
    }

    #[test]
    fn interrupt_is_seen_until_the_next_cell() {
        let (kernel, _) = kernel();
        kernel.answer(&request("interrupt_request", "{}"));
        assert!(kernel.interrupted());
        kernel.forget_interrupt();
        assert!(!kernel.interrupted());
    }
}
