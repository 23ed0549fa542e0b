//! Requests as they come off a socket, and the messages that answer them.
//!
//! jupyter-protocol's content types refuse requests that real clients send (a history search without `n`, an execute
//! request without `silent`) and lack fields that clients read (`supported_features`), so contents are JSON here; the
//! crate does the headers, identities and signatures.

use jupyter_protocol::{Header, JupyterMessage, UnknownMessage};
use jupyter_zmq_client::RawMessage;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::output::CellError;

const PROTOCOL_VERSION: &str = super::kernel_info::PROTOCOL_VERSION;

/// One request, of any type.
pub struct Request {
    /// Whose header the answers name as their parent, and whose identities find the way back.
    parent: JupyterMessage,
    content: Result<Value, String>,
    /// When the kernel took it up: frontends show how long a cell took.
    started: jiff::Timestamp,
}

impl Request {
    /// Reads frames whose signature has been checked. A request is kept even if its content is not JSON: someone waits
    /// for the answer.
    ///
    /// # Errors
    /// Without a message id and a type there is nobody to answer.
    pub fn read(frames: RawMessage) -> Result<Request, String> {
        let [header, _, metadata, content, ..] = frames.jparts.as_slice() else {
            return Err(format!("a message of {} parts, expected 4 or more", frames.jparts.len()));
        };
        let header: Value = serde_json::from_slice(header).map_err(|error| format!("header: {error}"))?;
        let text = |field: &str| header.get(field).and_then(Value::as_str).map(str::to_owned);
        let required = |field: &str| text(field).ok_or_else(|| format!("header: {field} is missing"));
        let header = Header {
            msg_id: required("msg_id")?,
            msg_type: required("msg_type")?,
            username: text("username").unwrap_or_default(),
            session: text("session").unwrap_or_default(),
            date: serde_json::from_value(header["date"].clone()).unwrap_or_default(),
            version: text("version").unwrap_or_else(|| PROTOCOL_VERSION.to_owned()),
        };
        let content = serde_json::from_slice(content).map_err(|error| format!("content is not JSON: {error}"));
        let parent = JupyterMessage {
            zmq_identities: frames.zmq_identities,
            metadata: serde_json::from_slice(metadata).unwrap_or_else(|_| json!({})),
            content: untyped(&header.msg_type, json!({})),
            header,
            parent_header: None,
            buffers: Vec::new(),
            channel: None,
        };
        Ok(Request { parent, content, started: jiff::Timestamp::now() })
    }

    /// `execute_request`, `comm_open` …
    pub fn kind(&self) -> &str {
        &self.parent.header.msg_type
    }

    /// What the frontend adds, `cellId` for one.
    pub fn metadata(&self) -> &Value {
        &self.parent.metadata
    }

    /// The content as the fields that a handler needs.
    ///
    /// # Errors
    /// The reply for a content that is not JSON or lacks a field.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, CellError> {
        let wrong = |why: String| CellError::new("InvalidRequest", format!("{}: {why}", self.kind()));
        let content = self.content.clone().map_err(wrong)?;
        serde_path_to_error::deserialize(content).map_err(|error| wrong(error.to_string()))
    }

    pub fn start(&mut self) {
        self.started = jiff::Timestamp::now();
    }

    /// The reply to this request, if its type is one that gets replies.
    pub fn reply(&self, content: Value) -> Option<JupyterMessage> {
        let kind = self.kind().strip_suffix("_request")?;
        let started = json!({"started": self.started.to_string()});
        Some(self.child(&format!("{kind}_reply"), content).with_metadata(started))
    }

    /// A message for everyone who listens, caused by this request. Its topic is its type.
    pub fn publication(&self, kind: &str, content: Value) -> JupyterMessage {
        self.child(kind, content).with_zmq_identities(vec![kind.to_owned().into()])
    }

    fn child(&self, kind: &str, content: Value) -> JupyterMessage {
        signed_by_kernel(JupyterMessage::new(untyped(kind, content), Some(&self.parent)))
    }
}

/// A message that no request caused, under a topic that subscribers asked for.
pub fn unasked(kind: &str, topic: String, content: Value) -> JupyterMessage {
    signed_by_kernel(JupyterMessage::new(untyped(kind, content), None)).with_zmq_identities(vec![topic.into()])
}

/// The content of a reply to a request that failed.
pub fn error_content(error: &CellError) -> Value {
    json!({"status": "error", "ename": error.ename, "evalue": error.evalue, "traceback": error.traceback})
}

fn untyped(kind: &str, content: Value) -> jupyter_protocol::JupyterMessageContent {
    UnknownMessage { msg_type: kind.to_owned(), content }.into()
}

fn signed_by_kernel(mut message: JupyterMessage) -> JupyterMessage {
    "kernetes".clone_into(&mut message.header.username);
    PROTOCOL_VERSION.clone_into(&mut message.header.version);
    message
}

#[cfg(test)]
pub(super) mod tests {
    use jupyter_zmq_client::Connection;
    use zeromq::{RouterSocket, Socket, ZmqMessage};

    use super::*;

    /// A request as it would come from a frontend.
    pub fn request(kind: &str, content: &str) -> Request {
        let header = json!({"msg_id": "1", "msg_type": kind, "username": "", "session": "s", "version": "5.4"});
        let frame = |text: String| bytes::Bytes::from(text);
        let jparts = vec![frame(header.to_string()), frame("{}".into()), frame("{}".into()), frame(content.into())];
        Request::read(RawMessage { zmq_identities: vec!["peer".into()], jparts }).unwrap()
    }

    /// What a message says, as JSON.
    pub fn content(message: &JupyterMessage) -> Value {
        serde_json::to_value(&message.content).unwrap()
    }

    #[tokio::test]
    async fn only_a_message_signed_with_the_key_is_read() {
        // From the protocol's description: HMAC-SHA256 over header, parent header, metadata and content.
        let signature = "ba3ba2b3dc867d1fbaab74cc2777c2374a910813a098f2478060c08ce81b6966";
        let frames = |signature: &str, content: &str| {
            let frames = ["peer", "<IDS|MSG>", signature, r#"{"msg_id":"1","msg_type":"x"}"#, "{}", "{}", content];
            ZmqMessage::try_from(frames.map(|frame| bytes::Bytes::from(frame.to_owned())).to_vec()).unwrap()
        };
        let key = Connection::new(RouterSocket::new(), "secret", "").mac;
        assert!(RawMessage::from_multipart(frames(signature, "{}"), &key).is_ok());
        assert!(RawMessage::from_multipart(frames(signature, r#"{"code":"other"}"#), &key).is_err());
        assert!(RawMessage::from_multipart(frames("", "{}"), &key).is_err());
        assert!(RawMessage::from_multipart(frames("not hexadecimal", "{}"), &key).is_err());
    }

    #[test]
    fn a_reply_goes_back_to_its_sender_and_names_its_request() {
        let reply = request("history_request", "{}").reply(json!({"status": "ok"})).unwrap();
        assert_eq!(reply.header.msg_type, "history_reply");
        assert_eq!(reply.zmq_identities, ["peer"]);
        assert_eq!(reply.parent_header.unwrap().msg_id, "1");
        assert!(request("comm_msg", "{}").reply(json!({})).is_none());
    }

    #[test]
    fn a_content_that_cannot_be_parsed_names_the_field() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Cursor {
            position: usize,
        }
        let evalue = |content: &str| request("inspect_request", content).parse::<Cursor>().unwrap_err().evalue;
        assert!(evalue("{nonsense").starts_with("inspect_request: content is not JSON"));
        assert!(evalue("{}").contains("missing field `position`"));
        assert!(evalue(r#"{"position": -1}"#).contains("position: invalid value"));
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(frames: Vec<Vec<u8>>, delimiter: proptest::sample::Index) {
            let mut frames: Vec<bytes::Bytes> = frames.into_iter().map(Into::into).collect();
            frames.insert(delimiter.index(frames.len() + 1), "<IDS|MSG>".into());
            let message = ZmqMessage::try_from(frames).unwrap();
            if let Ok(frames) = RawMessage::from_multipart(message, &None) {
                let _ = Request::read(frames);
            }
        }
    }

    #[test]
    fn a_message_without_id_has_nobody_to_answer() {
        let jparts = ["{}", "{}", "{}", "{}"].map(bytes::Bytes::from).to_vec();
        let error = Request::read(RawMessage { zmq_identities: Vec::new(), jparts }).err().unwrap();
        assert_eq!(error, "header: msg_id is missing");
    }
}
