//! Connections travel by what the machines know at this moment; the clock does not move.

use super::Cluster;
use crate::api::Name;
use crate::controllers::ingress_nginx;
use crate::network::connect::{Connection, Load, Network, Options, Origin, Session};
use crate::network::datagram::Datagram;
use crate::network::ingress::Router;
use crate::network::question::{Answer, Question};
use crate::network::rules::Mode;

impl Cluster {
    /// Opens a connection and sends one GET to a URL: `web`, `http://web.default:80/`, `10.0.0.11:30080`.
    pub fn connect(&mut self, from: &Origin, url: &str, options: &Options) -> Connection {
        self.connect_again(&mut Session::default(), from, url, options)
    }

    /// The same for a client that keeps its connection open between requests.
    pub fn connect_again(&mut self, session: &mut Session, from: &Origin, url: &str, options: &Options) -> Connection {
        let running = (!self.is_stopped(ingress_nginx::NAME)).then(|| self.clients.get(ingress_nginx::NAME)).flatten();
        let view = running.map(|runner| runner.caches.view(self.world.now));
        let router = view.map(|view| move |host: &str, path: &str| ingress_nginx::route(&view, host, path));
        let ingress = router.as_ref().map(|router| router as &Router<'_>);
        let mut network = Network { machines: &mut self.machines, world: &mut self.world, ingress };
        network.get(session, from, url, options)
    }

    /// Sends a datagram and waits for an answer. The clock does not move.
    pub fn datagram(&mut self, from: &Origin, datagram: &Datagram) -> Connection<String> {
        Network { machines: &mut self.machines, world: &mut self.world, ingress: None }.datagram(from, datagram)
    }

    /// Answers what a program asks that runs there.
    pub(super) fn ask(&mut self, from: &Origin, question: &Question) -> Answer {
        if let Question::Get { url, options } = question {
            return Answer::Got(self.connect(from, url, options).into());
        }
        Network { machines: &mut self.machines, world: &mut self.world, ingress: None }.ask(from, question)
    }

    /// Opens many connections, one after the other, and counts who answered.
    pub fn load(&mut self, from: &Origin, url: &str, count: usize, options: &Options) -> Load {
        let mut load = Load::default();
        for _ in 0..count {
            load.add(&self.connect(from, url, options));
        }
        load
    }

    /// Switches all kube-proxies to a mode (`--proxy-mode`); those that run start anew.
    pub fn set_proxy_mode(&mut self, mode: Mode) {
        self.world.settings.proxy_mode = mode;
        self.record_fault(format!("kube-proxies use {}", mode.as_str()));
        let nodes: Vec<Name> = self.machines.keys().cloned().collect();
        for node in nodes {
            if self.world.faults.is_stopped(&format!("kube-proxy/{node}")) {
                continue;
            }
            if let Some(machine) = self.machines.get_mut(&node).filter(|machine| machine.powered) {
                machine.proxy.start(&mut self.world);
            }
        }
    }
}
