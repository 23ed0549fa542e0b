//! The network: addresses, kube-proxy's rules, and connections that travel by them.

pub mod addresses;
pub mod proxy;
