//! What a controller in a cell and the kernel say to each other: one JSON object a line, over a Unix domain socket.
//!
//! The cell says hello and is welcomed. Then the kernel speaks first, one reconcile at a time: the cell may ask what the
//! informers know, any number of times, and ends with its plan or a panic. Both ends use these types.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::controller::Kind;
use crate::{Key, Object, Plan, Time, Verb, Watches, Write};

/// Names the socket on which the kernel waits for controllers.
pub const SOCKET_VARIABLE: &str = "KERNETES_CONTROLLERS";

/// From the kernel to the cell.
#[derive(Clone, Debug, PartialEq)]
pub enum ToCell {
    Welcome,
    Reconcile(Key, Time),
    /// The answer to an [`Ask`].
    Objects(Vec<Value>),
    /// The [`Ask`] can't be answered: why.
    Unknown(String),
}

/// From the cell to the kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum FromCell {
    Hello(String, Watches),
    Ask(Ask),
    Plan(Plan),
    /// The reconcile panicked with this message.
    Panic(String),
}

/// A question of a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Get(Kind, Key),
    List(Kind),
    /// By the uid of the controlling owner.
    Owned(Kind, String),
}

impl Ask {
    pub fn kind(&self) -> &Kind {
        match self {
            Ask::Get(kind, _) | Ask::List(kind) | Ask::Owned(kind, _) => kind,
        }
    }

    /// Those of `objects` that answer it.
    pub fn among<'a>(&'a self, objects: &'a [Arc<Value>]) -> impl Iterator<Item = &'a Arc<Value>> {
        let (api_version, kind) = self.kind();
        objects.iter().filter(move |object| {
            object.api_version() == api_version
                && object.kind() == kind
                && match self {
                    Ask::Get(_, key) => object.key() == *key,
                    Ask::List(_) => true,
                    Ask::Owned(_, uid) => object.owned_by(&json!({"metadata": {"uid": uid}})),
                }
        })
    }
}

/// What can be said in one line.
pub trait Message: Sized {
    fn to_json(&self) -> Value;
    fn from_json(value: &Value) -> Option<Self>;
}

impl Message for ToCell {
    fn to_json(&self) -> Value {
        match self {
            ToCell::Welcome => json!({"welcome": true}),
            ToCell::Reconcile(key, now) => {
                json!({"reconcile": {"key": key_to_json(key), "now_ms": now.0}})
            }
            ToCell::Objects(objects) => json!({"objects": objects}),
            ToCell::Unknown(why) => json!({"unknown": why}),
        }
    }

    fn from_json(value: &Value) -> Option<ToCell> {
        let (word, value) = value.as_object()?.iter().next()?;
        Some(match word.as_str() {
            "welcome" => ToCell::Welcome,
            "reconcile" => ToCell::Reconcile(key_of(&value["key"])?, Time(value["now_ms"].as_i64()?)),
            "objects" => ToCell::Objects(value.as_array()?.clone()),
            "unknown" => ToCell::Unknown(value.as_str()?.to_owned()),
            _ => return None,
        })
    }
}

impl Message for FromCell {
    fn to_json(&self) -> Value {
        match self {
            FromCell::Hello(name, watches) => json!({"hello": {
                "name": name, "main": watches.main, "owned": watches.owned, "also": watches.also,
            }}),
            FromCell::Ask(Ask::Get(kind, key)) => {
                json!({"get": {"kind": kind, "key": key_to_json(key)}})
            }
            FromCell::Ask(Ask::List(kind)) => json!({"list": {"kind": kind}}),
            FromCell::Ask(Ask::Owned(kind, uid)) => json!({"owned": {"kind": kind, "uid": uid}}),
            FromCell::Plan(plan) => json!({"plan": plan_to_json(plan)}),
            FromCell::Panic(message) => json!({"panic": message}),
        }
    }

    fn from_json(value: &Value) -> Option<FromCell> {
        let (word, value) = value.as_object()?.iter().next()?;
        Some(match word.as_str() {
            "hello" => {
                let watches = Watches {
                    main: kind_of(&value["main"])?,
                    owned: all(&value["owned"], kind_of)?,
                    also: all(&value["also"], kind_of)?,
                };
                FromCell::Hello(value["name"].as_str()?.to_owned(), watches)
            }
            "get" => FromCell::Ask(Ask::Get(kind_of(&value["kind"])?, key_of(&value["key"])?)),
            "list" => FromCell::Ask(Ask::List(kind_of(&value["kind"])?)),
            "owned" => FromCell::Ask(Ask::Owned(kind_of(&value["kind"])?, value["uid"].as_str()?.to_owned())),
            "plan" => FromCell::Plan(plan_of(value)?),
            "panic" => FromCell::Panic(value.as_str()?.to_owned()),
            _ => return None,
        })
    }
}

fn key_to_json(key: &Key) -> Value {
    json!([key.namespace, key.name])
}

fn key_of(value: &Value) -> Option<Key> {
    Some(Key::new(value[0].as_str()?, value[1].as_str()?))
}

fn kind_of(value: &Value) -> Option<Kind> {
    Some((value[0].as_str()?.to_owned(), value[1].as_str()?.to_owned()))
}

fn plan_to_json(plan: &Plan) -> Value {
    let write = |write: &Write| json!({"verb": write.verb.as_str(), "object": write.object, "body": write.body, "reason": write.reason});
    let writes: Vec<Value> = plan.writes.iter().map(write).collect();
    let requeue_after_ms = plan.requeue_after.map(|delay| delay.as_millis() as u64);
    json!({"writes": writes, "requeue_after_ms": requeue_after_ms, "retry": plan.retry})
}

fn plan_of(value: &Value) -> Option<Plan> {
    let write = |value: &Value| {
        let (verb, _) = *Verb::ALL.iter().find(|(_, word)| value["verb"] == *word)?;
        let reason = value["reason"].as_str()?.to_owned();
        Some(Write { verb, object: value["object"].clone(), body: value["body"].clone(), reason })
    };
    let requeue_after = value["requeue_after_ms"].as_u64().map(Duration::from_millis);
    let retry = value["retry"].as_str().map(str::to_owned);
    Some(Plan { writes: all(&value["writes"], write)?, requeue_after, retry })
}

fn all<T>(value: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(one).collect()
}

/// One end of the connection.
#[derive(Debug)]
pub struct Dialog {
    reader: RefCell<BufReader<UnixStream>>,
}

impl From<BufReader<UnixStream>> for Dialog {
    fn from(reader: BufReader<UnixStream>) -> Dialog {
        Dialog { reader: RefCell::new(reader) }
    }
}

/// Unwinds a reconcile whose kernel has gone; no panic is told.
pub(crate) struct Gone;

impl Dialog {
    pub fn new(stream: UnixStream) -> Dialog {
        Dialog::from(BufReader::new(stream))
    }

    /// A second handle on the same connection, to say things while the first one listens.
    pub fn twin(&self) -> io::Result<Dialog> {
        self.reader.borrow().get_ref().try_clone().map(Dialog::new)
    }

    /// Hangs up, for all handles.
    pub fn close(&self) {
        let _ = self.reader.borrow().get_ref().shutdown(std::net::Shutdown::Both);
    }

    pub fn say(&self, message: &impl Message) -> io::Result<()> {
        let mut line = message.to_json().to_string();
        line.push('\n');
        self.reader.borrow_mut().get_mut().write_all(line.as_bytes())
    }

    /// The next message; an error of kind `UnexpectedEof` once the other end has gone.
    pub fn hear<M: Message>(&self) -> io::Result<M> {
        let mut line = String::new();
        if self.reader.borrow_mut().read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let message = serde_json::from_str(&line).ok().and_then(|value| M::from_json(&value));
        message.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("not a message: {line}")))
    }

    pub(crate) fn ask(&self, ask: &Ask) -> Vec<Value> {
        let answer = self.say(&FromCell::Ask(ask.clone())).and_then(|()| self.hear());
        match answer {
            Ok(ToCell::Objects(objects)) => objects,
            Ok(ToCell::Unknown(why)) => panic!("{why}"),
            Ok(_) | Err(_) => std::panic::resume_unwind(Box::new(Gone)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<M: Message + Clone + PartialEq + std::fmt::Debug + Send + 'static>(messages: &[M]) {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let (here, there) = (Dialog::new(here), Dialog::new(there));
        for message in messages {
            here.say(message).expect("a listener");
            assert_eq!(there.hear::<M>().expect("a message"), *message);
        }
        drop(here);
        assert_eq!(there.hear::<M>().expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn every_message_arrives_as_it_was_said() {
        let kind = ("example.com/v1".to_owned(), "Pool".to_owned());
        there_and_back(&[
            ToCell::Welcome,
            ToCell::Reconcile(Key::new("shop", "web"), Time(1500)),
            ToCell::Objects(vec![json!({"kind": "Pod"})]),
            ToCell::Unknown("not watched\n".to_owned()),
        ]);
        let mut plan = Plan::new();
        for (verb, _) in Verb::ALL {
            plan.writes.push(Write {
                verb,
                object: json!({"kind": "Pod"}),
                body: json!({"a": 1}),
                reason: "why".into(),
            });
        }
        there_and_back(&[
            FromCell::Hello(
                "pool".to_owned(),
                Watches::of("example.com/v1", "Pool").owns("v1", "Pod").also("v1", "Node"),
            ),
            FromCell::Ask(Ask::Get(kind.clone(), Key::new("", "web"))),
            FromCell::Ask(Ask::List(kind.clone())),
            FromCell::Ask(Ask::Owned(kind, "u-1".to_owned())),
            FromCell::Plan(plan.requeue_after(Duration::from_millis(250))),
            FromCell::Plan(Plan::done().retry("no answer")),
            FromCell::Panic("index out of bounds".to_owned()),
        ]);
    }

    #[test]
    fn a_line_that_is_no_message_is_an_error() {
        let (mut here, there) = UnixStream::pair().expect("a pair of sockets");
        here.write_all(b"{\"plan\": 3}\nnonsense\n").expect("a listener");
        let there = Dialog::new(there);
        for _ in 0..2 {
            assert_eq!(there.hear::<FromCell>().expect_err("no message").kind(), io::ErrorKind::InvalidData);
        }
    }
}
