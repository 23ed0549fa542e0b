//! A channel on which requests come and replies go: shell and control differ only in who answers.

use jupyter_protocol::JupyterMessage;
use jupyter_zmq_client::{Connection, RawMessage};
use serde_json::Value;
use tokio::sync::mpsc;
use zeromq::{RouterSocket, SocketRecv};

use super::control::Kernel;
use super::message::{Request, error_content};
use crate::output::CellError;

/// The way back to the frontends of one channel.
#[derive(Clone)]
pub struct Replies(mpsc::UnboundedSender<JupyterMessage>);

/// Reads a socket for as long as the program runs: each request goes to `take`, together with the way back.
pub fn open(connection: Connection<RouterSocket>, mut take: impl FnMut(Request, &Replies) + Send + 'static) {
    let (mut outgoing, mut incoming) = connection.split();
    let (sender, mut queue) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(reply) = queue.recv().await {
            // A frontend that has gone meanwhile doesn't need its reply.
            let _ = outgoing.send(reply).await;
        }
    });
    tokio::spawn(async move {
        let replies = Replies(sender);
        loop {
            let Ok(frames) = incoming.socket.recv().await else {
                tokio::task::yield_now().await;
                continue;
            };
            match RawMessage::from_multipart(frames, &incoming.mac)
                .map_err(|error| error.to_string())
                .and_then(Request::read)
            {
                Ok(request) => take(request, &replies),
                Err(why) => eprintln!("kernetes: ignored a message: {why}"),
            }
        }
    });
}

/// Answers one request: busy, what `answer` says (to an unknown request: that it is unknown), idle.
pub fn serve(
    kernel: &Kernel,
    replies: &Replies,
    mut request: Request,
    answer: impl FnOnce(&Request) -> Option<Result<Value, CellError>>,
) {
    request.start();
    kernel.publisher.status(&request, "busy");
    let content = match answer(&request) {
        Some(Ok(content)) => content,
        Some(Err(error)) => error_content(&error),
        None => error_content(&CellError::new(
            "UnknownRequest",
            format!("this kernel does not know {:?} on this channel", request.kind()),
        )),
    };
    if let Some(reply) = request.reply(content) {
        // Fails only when the program is ending.
        let _ = replies.0.send(reply);
    }
    kernel.publisher.status(&request, "idle");
    if request.kind() == "shutdown_request" {
        kernel.stop();
    }
}
