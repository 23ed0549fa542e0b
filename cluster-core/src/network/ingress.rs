//! The way through an ingress controller: it ends the connection of the client, reads the host and the path, and opens a
//! connection of its own to an endpoint of the Service that they lead to.
//! <https://kubernetes.io/docs/concepts/services-networking/ingress/>

use std::net::Ipv4Addr;
use std::time::Duration;

use super::addresses;
use super::client::Client;
use super::connect::{Network, Way};
use super::reply::{Failure, Reply};
use super::url::Url;
use crate::api::Key;

/// An endpoint that can't be reached is given up after this long, and tried three times (`proxy_connect_timeout`,
/// `proxy_next_upstream_tries`).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3 * 5);

/// Where a host and a path lead.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    pub service: Key,
    /// Those that are ready.
    pub endpoints: Vec<(Ipv4Addr, u16)>,
}

/// What the controller makes of a host and a path, as far as it has been told; `None` if no rule is about them.
pub type Router<'a> = dyn Fn(&str, &str) -> Option<Destination> + 'a;

impl Network<'_> {
    /// Sends a request to the address of the ingress controller, which has one only while it runs.
    pub(super) fn enter(&mut self, url: &Url, way: &mut Way) -> Option<Result<Reply, Failure>> {
        let router = self.ingress?;
        Some(match (url.port, url.tls) {
            (80, true) => Err(Failure::NotTls),
            (80, false) | (443, true) => Ok(self.proxy(router(&url.host_header, &url.path), url, way)),
            (443, false) => Ok(Reply::page(400, self.world.now)),
            _ => Err(Failure::Refused),
        })
    }

    fn proxy(&mut self, destination: Option<Destination>, url: &Url, way: &mut Way) -> Reply {
        let Some(Destination { service, endpoints }) = destination else { return Reply::page(404, self.world.now) };
        way.service = Some(service);
        let Some(chosen) = endpoints.get(self.world.random.below(endpoints.len().max(1) as u64) as usize) else {
            return Reply::page(503, self.world.now);
        };
        let controller = Client { address: addresses::INGRESS, node: None, namespace: None, pod: None };
        let before = way.waited;
        let answer = self.deliver(&controller, controller.address, *chosen, &Url { tls: false, ..url.clone() }, way);
        // The client's own connection ends at the controller: it has none to the pod that it could use again.
        way.peer = None;
        match answer {
            Ok(reply) => reply,
            Err(Failure::TimedOut) => {
                way.waited = before + CONNECT_TIMEOUT;
                Reply::page(504, self.world.now)
            }
            Err(_) => Reply::page(502, self.world.now),
        }
    }
}
