//! Programs in containers that answer what an apiserver asks, and where they listen.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::api::Name;

/// In Go's words: no answer in time.
pub const TIMED_OUT: &str = "context deadline exceeded";

/// A program in a container that is asked over HTTPS.
pub trait Reviews: Send + Sync {
    /// Its answer to a review that is sent to a path.
    fn answer(&self, path: &str, review: &Value) -> Reply;
}

/// What a program says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: u16,
    /// A review, or a text that says what is wrong.
    pub body: Value,
    /// How long it lets wait; [`Duration::MAX`] if there will never be an answer.
    pub took: Duration,
}

impl Reply {
    pub fn new(status: u16, body: Value) -> Reply {
        Reply { status, body, took: Duration::ZERO }
    }
}

/// A program that listens.
#[derive(Clone)]
pub struct Listener {
    pub machine: Name,
    /// The certificate that it shows, in PEM.
    pub certificate: Arc<str>,
    pub program: Arc<dyn Reviews>,
}

/// The programs of the cluster's own containers that can be asked, by address and port.
#[derive(Clone, Default)]
pub struct Listeners {
    all: imbl::OrdMap<(Ipv4Addr, u16), Listener>,
    /// Machines without power: what they had answers no more, and refuses nothing.
    dark: imbl::OrdSet<Name>,
}

impl Listeners {
    pub fn open(&mut self, address: (Ipv4Addr, u16), listener: Listener) {
        self.all.insert(address, listener);
    }

    pub fn close(&mut self, address: (Ipv4Addr, u16)) {
        self.all.remove(&address);
    }

    pub fn power_off(&mut self, machine: &Name) {
        self.dark.insert(machine.clone());
    }

    /// Whatever ran there before has ended.
    pub fn power_on(&mut self, machine: &Name) {
        if self.dark.remove(machine).is_some() {
            let left = self.all.iter().filter(|(_, listener)| listener.machine != *machine);
            self.all = left.map(|(address, listener)| (*address, listener.clone())).collect();
        }
    }

    /// Who listens there.
    ///
    /// # Errors
    /// In Go's words why there is no connection.
    pub fn dial(&self, (address, port): (Ipv4Addr, u16)) -> Result<&Listener, String> {
        match self.all.get(&(address, port)) {
            Some(listener) if self.dark.contains(&listener.machine) => Err(TIMED_OUT.into()),
            Some(listener) => Ok(listener),
            None => Err(format!("dial tcp {address}:{port}: connect: connection refused")),
        }
    }
}
