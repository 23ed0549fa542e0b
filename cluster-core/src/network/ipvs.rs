//! The rules of a node as `ipvsadm -Ln` prints them.
//! <https://kubernetes.io/docs/reference/networking/virtual-ips/#proxy-mode-ipvs>

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::addresses;
use super::proxy::Proxy;
use super::rules::{Front, Mode, Verdict};

/// What `ipvsadm -Ln` prints on a node: every virtual server with its backends, which take turns (`rr`). Only the head
/// if the node is not in IPVS mode.
pub fn list(proxy: &Proxy) -> String {
    let mut text = String::from(
        "IP Virtual Server version 1.2.1 (size=4096)\n\
         Prot LocalAddress:Port Scheduler Flags\n  \
         -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n",
    );
    if proxy.mode() != Mode::Ipvs {
        return text;
    }
    for rules in proxy.table().services() {
        for port in &rules.ports {
            let node_ip = addresses::machine_address(&proxy.node);
            let mut servers: Vec<(Ipv4Addr, u16, Front)> = vec![(rules.cluster_ip, port.port, Front::ClusterIp)];
            servers.extend(rules.outside_ips().map(|(ip, _)| (ip, port.port, Front::External)));
            servers.extend(port.node_port.map(|number| (node_ip, number, Front::NodePort)));
            for (address, number, front) in servers {
                let sticky = rules.affinity.map(|timeout| format!(" persistent {}", timeout.as_secs()));
                let server = format!("{}  {address}:{number} rr", port.protocol);
                let _ = writeln!(text, "{server}{}", sticky.unwrap_or_default());
                let Verdict::Backends(backends) = rules.verdict(port, rules.is_local(front), &proxy.node) else {
                    continue;
                };
                for backend in backends {
                    let remote = format!("{}:{}", backend.address, backend.port);
                    let _ = writeln!(text, "  -> {remote:<28} Masq    1      0          0         ");
                }
            }
        }
    }
    text
}
