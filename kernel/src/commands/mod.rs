//! The programs that a person types into a cell: kubectl and its companions. Each speaks to the cluster as a client
//! and writes the text that the real program writes.

pub mod api;
pub mod context;
mod crictl;
pub mod curl;
pub mod docker;
mod etcdctl;
pub mod files;
mod filters;
pub mod kubectl;
pub mod line;
pub mod nc;
mod packet_rules;
pub mod remote;
mod sed;
pub mod shell;
mod suggest;

pub use api::Api;
pub use context::{Context, Stream};

/// A program by the name under which it is called.
pub trait Program: Sync {
    fn name(&self) -> &'static str;

    /// Runs with the words after the program's name; returns the exit code.
    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32;

    /// One line that says what it is for.
    fn about(&self) -> &'static str;
}

/// Every program there is.
pub const ALL: &[&dyn Program] = &[
    &kubectl::Kubectl,
    &docker::Docker,
    &crictl::Crictl,
    &curl::Curl,
    &nc::Nc,
    &etcdctl::Etcdctl,
    &packet_rules::IPTABLES_SAVE,
    &packet_rules::IPVSADM,
    &packet_rules::NFT,
    &filters::GREP,
    &filters::HEAD,
    &filters::TAIL,
    &filters::WC,
    &filters::SORT,
    &filters::UNIQ,
    &filters::CUT,
    &sed::SED,
    &filters::CAT,
    &filters::LESS,
    &filters::ECHO,
    &filters::BASE64,
    &filters::XARGS,
];

/// The program of that name.
pub fn find(name: &str) -> Option<&'static dyn Program> {
    ALL.iter().copied().find(|program| program.name() == name)
}
