//! The network: addresses, kube-proxy's rules, and connections that travel by them.

pub mod addresses;
pub mod client;
pub mod connect;
pub mod datagram;
pub mod dns;
pub mod informer;
pub mod ingress;
pub mod iptables;
pub mod ipvs;
mod netexec;
pub mod nftables;
mod path;
pub mod policy;
pub mod policy_agent;
pub mod proxy;
pub mod question;
pub mod reply;
pub mod rules;
pub mod url;
