//! What a program in a container asks of the network, and what it hears.

use std::time::Duration;

use super::connect::{Connection, Network, Options, Origin, Session};
use super::datagram::Datagram;
use super::dns::{self, Record};
use super::reply::Failure;
use super::{addresses, client};

/// Something that a program can't know by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// A connection with one GET.
    Get {
        url: String,
        options: Options,
    },
    Send(Datagram),
    /// The records of a name, tried with each of these domains behind it.
    Find {
        name: String,
        searched: Vec<String>,
    },
}

#[derive(Clone, Debug)]
pub enum Answer {
    Got(Box<Connection>),
    Heard(Box<Connection<String>>),
    Found { records: Result<Vec<Record>, Failure>, took: Duration },
}

impl Answer {
    /// How long it took, in virtual time.
    pub fn took(&self) -> Duration {
        match self {
            Answer::Got(connection) => connection.took,
            Answer::Heard(connection) => connection.took,
            Answer::Found { took, .. } => *took,
        }
    }
}

impl Network<'_> {
    /// Asks for a program that runs there.
    pub fn ask(&mut self, from: &Origin, question: &Question) -> Answer {
        match question {
            Question::Get { url, options } => Answer::Got(self.get(&mut Session::default(), from, url, options).into()),
            Question::Send(datagram) => Answer::Heard(self.datagram(from, datagram).into()),
            Question::Find { name, searched } => {
                let round_trip = self.world.settings.round_trip;
                let mut took = self.world.random.between(round_trip.0, round_trip.1);
                let records = self.find(from, name, searched);
                if records.is_err() {
                    took += client::DNS_TIMEOUT;
                }
                Answer::Found { records, took }
            }
        }
    }

    /// The records under the first of the names that has some.
    fn find(&self, from: &Origin, name: &str, searched: &[String]) -> Result<Vec<Record>, Failure> {
        let client = self.client(from)?;
        if !self.barred_out(&client, addresses::CLUSTER_DNS, ("UDP", 53)).is_empty() {
            return Err(Failure::TimedOut);
        }
        let store = &self.world.apiserver.store;
        let whole = name.trim_end_matches('.').to_lowercase();
        let all = searched.iter().map(|domain| match domain.as_str() {
            "" => whole.clone(),
            domain => format!("{whole}.{domain}"),
        });
        Ok(all.map(|name| dns::query(store, &name)).find(|records| !records.is_empty()).unwrap_or_default())
    }
}
