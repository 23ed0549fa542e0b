//! The table of verbs: one file each.

pub mod apply;
mod attach;
mod auth;
mod autoscale;
mod certificate;
pub mod completion;
pub mod config;
mod cp;
mod create;
mod debug;
mod delete;
mod describe;
mod diff;
mod discovery;
mod drain;
mod dump;
mod edit;
mod events;
mod exec;
mod explain;
mod expose;
mod get;
mod group;
pub mod help;
mod kustomize;
mod label;
mod last_applied;
mod logs;
mod nodes;
mod overrides;
mod patch;
pub mod plugin;
mod pods;
mod port_forward;
mod proxy;
mod prune;
mod reconcile;
mod replace;
mod rollout;
mod run;
mod scale;
mod set;
pub mod three_way;
mod top;
mod version;
mod wait;

pub use apply::LAST_APPLIED;
pub use explain::{schema_in, with_common_fields};

use super::super::suggest::suggestions;
use super::help::names;
use super::verb::Verb;

/// Every verb; those that stand below another right after it.
pub const ALL: &[&Verb] = &[
    &create::CREATE,
    &create::namespace::VERB,
    &create::deployment::VERB,
    &create::job::JOB,
    &create::job::CRON_JOB,
    &create::configmap::VERB,
    &create::secret::SECRET,
    &create::secret::GENERIC,
    &create::secret::DOCKER_REGISTRY,
    &create::secret::TLS,
    &create::service::SERVICE,
    &create::service::CLUSTER_IP,
    &create::service::NODE_PORT,
    &create::service::LOAD_BALANCER,
    &create::service::EXTERNAL_NAME,
    &create::ingress::VERB,
    &create::serviceaccount::VERB,
    &create::token::VERB,
    &create::role::ROLE,
    &create::role::CLUSTER_ROLE,
    &create::role::ROLE_BINDING,
    &create::role::CLUSTER_ROLE_BINDING,
    &create::policy::QUOTA,
    &create::policy::DISRUPTION_BUDGET,
    &create::policy::PRIORITY_CLASS,
    &expose::VERB,
    &run::VERB,
    &set::SET,
    &set::env::VERB,
    &set::image::VERB,
    &set::resources::VERB,
    &set::selector::VERB,
    &set::service_account::VERB,
    &set::subject::VERB,
    &explain::VERB,
    &get::VERB,
    &edit::VERB,
    &delete::VERB,
    &rollout::VERB,
    &rollout::history::VERB,
    &rollout::pause::PAUSE,
    &rollout::pause::RESUME,
    &rollout::restart::VERB,
    &rollout::status::VERB,
    &rollout::undo::VERB,
    &scale::VERB,
    &autoscale::VERB,
    &certificate::CERTIFICATE,
    &certificate::APPROVE,
    &certificate::DENY,
    &discovery::CLUSTER_INFO,
    &dump::VERB,
    &top::TOP,
    &top::POD,
    &top::NODE,
    &nodes::CORDON,
    &nodes::UNCORDON,
    &drain::VERB,
    &nodes::TAINT,
    &describe::VERB,
    &logs::VERB,
    &attach::VERB,
    &exec::VERB,
    &port_forward::VERB,
    &proxy::VERB,
    &cp::VERB,
    &auth::AUTH,
    &auth::CAN_I,
    &reconcile::VERB,
    &auth::WHO_AM_I,
    &events::VERB,
    &diff::VERB,
    &debug::VERB,
    &apply::VERB,
    &last_applied::VIEW,
    &last_applied::SET,
    &patch::VERB,
    &replace::VERB,
    &wait::VERB,
    &kustomize::VERB,
    &label::LABEL,
    &label::ANNOTATE,
    &discovery::API_RESOURCES,
    &discovery::API_VERSIONS,
    &completion::VERB,
    &config::CONFIG,
    &config::CURRENT_CONTEXT,
    &config::DELETE_CLUSTER,
    &config::DELETE_CONTEXT,
    &config::DELETE_USER,
    &config::GET_CLUSTERS,
    &config::GET_CONTEXTS,
    &config::GET_USERS,
    &config::RENAME_CONTEXT,
    &config::SET,
    &config::SET_CLUSTER,
    &config::SET_CONTEXT,
    &config::SET_CREDENTIALS,
    &config::UNSET,
    &config::USE_CONTEXT,
    &config::VIEW,
    &plugin::PLUGIN,
    &plugin::LIST,
    &version::VERB,
    &help::HELP,
    &help::OPTIONS,
];

/// The verb that a word means below another: `status` below `rollout`, `get` below nothing.
pub fn below(parent: &str, word: &str) -> Option<&'static Verb> {
    ALL.iter().copied().find(|verb| {
        let (above, last) = verb.name.rsplit_once(' ').unwrap_or(("", verb.name));
        above == parent && (last == word || verb.aliases.contains(&word))
    })
}

/// What kubectl says to a verb that it does not know.
pub fn unknown(word: &str) -> String {
    let mut text = format!("unknown command {word:?} for \"kubectl\"");
    let near = suggestions(word, names());
    if !near.is_empty() {
        text.push_str("\n\nDid you mean this?\n\t");
        text.push_str(&near.join("\n\t"));
    }
    text
}
