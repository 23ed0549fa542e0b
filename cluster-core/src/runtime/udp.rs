//! What a container's program answers to a datagram.

use std::net::Ipv4Addr;

use super::container::Container;
use super::programs::Site;

/// Where agnhost's netexec takes datagrams, if its manifest names no other port (`--udp-port`).
const NETEXEC_PORT: u16 = 8081;

impl Container {
    /// True if somebody hears a datagram for this port. Others are refused (ICMP: port unreachable).
    pub fn hears(&self, port: u16) -> bool {
        let named = self.udp_ports.contains(&port);
        match self.process.site() {
            Some((_, Site::Netexec)) => {
                self.is_running() && (named || self.udp_ports.is_empty() && port == NETEXEC_PORT)
            }
            Some((_, Site::Anything)) => self.is_running() && named,
            _ => false,
        }
    }

    /// The answer to a datagram from somebody, if there is one.
    /// <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost#netexec>
    pub fn hear(&self, text: &str, from: Ipv4Addr) -> Option<String> {
        if !self.healthy {
            return None;
        }
        let (_, site) = self.process.site()?;
        let (command, words) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        match (site, (command.to_lowercase().as_str(), words)) {
            (Site::Netexec, ("hostname", _)) => Some(self.hostname.to_string()),
            (Site::Netexec, ("clientip", _)) => Some(from.to_string()),
            (Site::Netexec, ("echo", words)) => Some(words.to_owned()),
            (Site::Anything, _) => Some(format!("Hello from {}\n", self.hostname)),
            _ => None,
        }
    }
}
