//! Validation: what must hold of an object before it is written. One file a subject, and [`field`] to say what is wrong.
//! The checks and their order are those of kube-apiserver, so that the causes of a refusal come in the same order.

pub mod addresses;
pub mod containers;
pub mod cron;
pub mod env;
pub mod field;
pub mod internal_types;
pub mod job;
pub mod job_status;
pub mod metadata;
pub mod mounts;
pub mod names;
pub mod paths;
pub mod pod;
pub mod pod_spec;
pub mod pod_status;
pub mod pod_template;
pub mod pod_update;
pub mod ports;
pub mod probes;
pub mod projected;
pub mod replica_status;
pub mod resources;
pub mod rollout;
pub mod scheduling;
pub mod security;
pub mod selectors;
pub mod shown;
pub mod topology;
pub mod unified_diff;
pub mod volumes;

/// A text that is not there is the empty one.
pub fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}
