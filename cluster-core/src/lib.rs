//! A whole Kubernetes cluster as one value: no I/O, no threads, no clock, no randomness but its seed's.
//!
//! The way of a manifest, in the order of the modules: [`api`] (a request about an object) → [`apiserver`] (default,
//! admit, validate) → [`store`] → [`watch`] → [`controllers`] → `apiserver` … → [`scheduler`] → [`kubelet`] →
//! [`runtime`] → status → [`trace`]. [`cluster`] wires them together and makes the steps; [`world`] is what each part
//! is handed when its turn comes; [`faults`] sit where parts meet.

pub mod apiserver;
pub mod certificates;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod disruption;
pub mod events;
pub mod faults;
pub mod go_json;
pub mod kubelet;
pub mod listeners;
mod map;
pub mod network;
pub mod node_selection;
pub mod quota;
pub mod random;
pub mod registry;
pub mod runtime;
pub mod scheduler;
pub mod store;
pub mod trace;
pub mod watch;
pub mod world;

pub use cluster::{Cluster, Config};
/// A crate of its own, because the types of all kinds take long to compile and seldom change.
pub use cluster_api as api;

pub(crate) use map::HashMap;
