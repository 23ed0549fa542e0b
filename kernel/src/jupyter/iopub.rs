//! What everyone hears: one task owns the iopub socket, welcomes subscribers (JEP 65) and joins stream pieces.

use std::net::TcpListener;
use std::time::Duration;

use jupyter_protocol::connection_info::Transport;
use jupyter_protocol::{ConnectionInfo, JupyterMessage, JupyterMessageContent};
use jupyter_zmq_client::{
    Connection, KernelIoPubXPubConnection, RuntimeError, SubscriptionEvent, create_kernel_iopub_xpub_connection,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use zeromq::{Socket, XPubSocket};

use super::message::{Request, unasked};

/// How long a piece of stdout or stderr waits for the next one, so that a thousand lines are a few messages.
const JOIN_MS: u64 = 10;
/// How long a subscriber that has stopped reading may leave its messages lying about.
#[cfg(target_os = "linux")]
const UNREAD_MS_MAX: u64 = 10_000;
/// How long it holds up the others where it can't be cut off.
const SEND_MS_MAX: u64 = 15_000;
const FLUSH_MS_MAX: u64 = 1_000;

/// Hands messages to the task that owns the socket, in order; never waits.
#[derive(Clone)]
pub struct Publisher(mpsc::UnboundedSender<Publication>);

enum Publication {
    Message(Box<JupyterMessage>),
    Flush(oneshot::Sender<()>),
}

impl Publisher {
    /// A message of any iopub type, caused by a request.
    pub fn publish(&self, request: &Request, kind: &str, content: Value) {
        // Fails only when the program is ending.
        let _ = self.0.send(Publication::Message(Box::new(request.publication(kind, content))));
    }

    pub fn status(&self, request: &Request, execution_state: &str) {
        self.publish(request, "status", json!({"execution_state": execution_state}));
    }

    /// Returns when all that was published has left, or after a second.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let _ = self.0.send(Publication::Flush(done));
        let _ = timeout(Duration::from_millis(FLUSH_MS_MAX), flushed).await;
    }
}

/// Binds the socket. Over TCP a subscriber that has stopped reading (a suspended console) is cut off, since the socket
/// writes to one subscriber after the other and would make all others wait; its ZeroMQ connects again when it goes on.
///
/// # Errors
/// The address can't be bound.
pub async fn bind(connection: &ConnectionInfo, session_id: &str) -> Result<KernelIoPubXPubConnection, RuntimeError> {
    if connection.transport != Transport::TCP {
        return create_kernel_iopub_xpub_connection(connection, session_id).await;
    }
    let listener = TcpListener::bind((connection.ip.as_str(), connection.iopub_port))?;
    listener.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&listener).set_tcp_user_timeout(Some(Duration::from_millis(UNREAD_MS_MAX)))?;
    let mut socket = XPubSocket::new();
    socket.bind_listener(listener).await?;
    Ok(Connection::new(socket, &connection.key, session_id))
}

/// Starts the task that owns the socket.
pub fn publish(connection: KernelIoPubXPubConnection) -> Publisher {
    let (sender, queue) = mpsc::unbounded_channel();
    tokio::spawn(pump(connection, queue));
    Publisher(sender)
}

async fn pump(mut connection: KernelIoPubXPubConnection, mut queue: mpsc::UnboundedReceiver<Publication>) {
    let mut stream: Option<Box<JupyterMessage>> = None;
    let mut stream_due = Instant::now();
    loop {
        tokio::select! {
            biased;
            event = connection.recv_subscription() => {
                if let Ok(SubscriptionEvent::Subscribe(topic)) = event {
                    let content = json!({"subscription": topic});
                    send(&mut connection, unasked("iopub_welcome", topic, content)).await;
                }
            }
            () = sleep_until(stream_due), if stream.is_some() => {
                if let Some(message) = stream.take() {
                    send(&mut connection, *message).await;
                }
            }
            publication = queue.recv() => {
                if let (Some(first), Some(Publication::Message(next))) = (&mut stream, &publication)
                    && join(first, next)
                {
                    continue;
                }
                if let Some(message) = stream.take() {
                    send(&mut connection, *message).await;
                }
                match publication {
                    Some(Publication::Message(message)) if message.header.msg_type == "stream" => {
                        stream = Some(message);
                        stream_due = Instant::now() + Duration::from_millis(JOIN_MS);
                    }
                    Some(Publication::Message(message)) => send(&mut connection, *message).await,
                    Some(Publication::Flush(done)) => drop(done.send(())),
                    None => return,
                }
            }
        }
    }
}

async fn send(connection: &mut KernelIoPubXPubConnection, message: JupyterMessage) {
    let kind = message.header.msg_type.clone();
    match timeout(Duration::from_millis(SEND_MS_MAX), connection.send(message)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => eprintln!("kernetes: could not publish {kind}: {error}"),
        Err(_) => eprintln!("kernetes: a subscriber does not read, {kind} may be lost"),
    }
}

/// Adds `next` to `first` if both are pieces of one stream of one cell.
fn join(first: &mut JupyterMessage, next: &JupyterMessage) -> bool {
    let parent = |message: &JupyterMessage| message.parent_header.as_ref().map(|header| header.msg_id.clone());
    if next.header.msg_type != "stream" || parent(first) != parent(next) {
        return false;
    }
    let (JupyterMessageContent::UnknownMessage(first), JupyterMessageContent::UnknownMessage(next)) =
        (&mut first.content, &next.content)
    else {
        return false;
    };
    if first.content["name"] != next.content["name"] {
        return false;
    }
    match (&mut first.content["text"], &next.content["text"]) {
        (Value::String(text), Value::String(more)) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::message::tests::{content, request};
    use super::*;

    /// A publisher whose messages can be read.
    pub fn recorded() -> (Publisher, impl FnMut() -> Vec<(String, Value)>) {
        let (sender, mut queue) = mpsc::unbounded_channel();
        let drain = move || {
            let messages = std::iter::from_fn(|| queue.try_recv().ok());
            messages
                .filter_map(|publication| match publication {
                    Publication::Message(message) => Some((message.header.msg_type.clone(), content(&message))),
                    Publication::Flush(_) => None,
                })
                .collect()
        };
        (Publisher(sender), drain)
    }

    #[test]
    fn pieces_of_one_stream_are_joined_and_others_are_not() {
        let cell = request("execute_request", "{}");
        let piece = |name: &str, text: &str| cell.publication("stream", json!({"name": name, "text": text}));
        let mut first = piece("stdout", "a");
        assert!(join(&mut first, &piece("stdout", "b\n")));
        assert_eq!(content(&first)["text"], "ab\n");
        assert!(!join(&mut first, &piece("stderr", "c")));
        assert!(!join(&mut first, &cell.publication("display_data", json!({}))));
    }
}
