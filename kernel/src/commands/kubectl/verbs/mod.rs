//! The table of verbs: one file each.

pub mod apply;
mod auth;
mod create;
mod delete;
mod describe;
mod discovery;
mod drain;
mod events;
mod exec;
mod explain;
mod expose;
mod get;
mod label;
mod logs;
mod nodes;
mod patch;
mod replace;
mod rollout;
mod run;
mod scale;
mod set;
pub mod three_way;
mod wait;

pub use apply::LAST_APPLIED;

use super::super::suggest::suggestions;
use super::verb::Verb;

/// Every verb, in the order of kubectl's overview.
pub const ALL: &[&Verb] = &[
    &create::CREATE,
    &create::namespace::VERB,
    &create::deployment::VERB,
    &create::configmap::VERB,
    &create::secret::GENERIC,
    &create::service::VERB,
    &create::serviceaccount::VERB,
    &create::token::VERB,
    &create::role::ROLE,
    &create::role::CLUSTER_ROLE,
    &create::role::ROLE_BINDING,
    &create::role::CLUSTER_ROLE_BINDING,
    &expose::VERB,
    &run::VERB,
    &explain::VERB,
    &exec::VERB,
    &set::env::VERB,
    &set::image::VERB,
    &set::resources::VERB,
    &get::VERB,
    &delete::VERB,
    &rollout::VERB,
    &rollout::history::VERB,
    &rollout::pause::PAUSE,
    &rollout::pause::RESUME,
    &rollout::restart::VERB,
    &rollout::status::VERB,
    &rollout::undo::VERB,
    &scale::VERB,
    &discovery::CLUSTER_INFO,
    &nodes::CORDON,
    &nodes::UNCORDON,
    &drain::VERB,
    &nodes::TAINT,
    &describe::VERB,
    &logs::VERB,
    &events::VERB,
    &apply::VERB,
    &patch::VERB,
    &replace::VERB,
    &wait::VERB,
    &label::LABEL,
    &label::ANNOTATE,
    &auth::CAN_I,
    &auth::WHO_AM_I,
    &discovery::API_RESOURCES,
    &discovery::API_VERSIONS,
    &discovery::VERSION,
];

/// The verb of these words: one, or two for a word under a verb.
pub fn find(words: &[&str]) -> Option<&'static Verb> {
    ALL.iter().copied().find(|verb| {
        let mut names = verb.name.split(' ');
        let (first, second) = (names.next().unwrap_or_default(), names.next());
        match (words, second) {
            ([word], None) => *word == first || verb.aliases.contains(word),
            ([group, word], Some(second)) => *group == first && (*word == second || verb.aliases.contains(word)),
            _ => false,
        }
    })
}

/// What kubectl says to a verb that it does not know.
pub fn unknown(word: &str) -> String {
    let mut text = format!("unknown command {word:?} for \"kubectl\"");
    let firsts = ALL.iter().map(|verb| verb.name).filter(|name| !name.contains(' '));
    let near = suggestions(word, firsts);
    if !near.is_empty() {
        text.push_str("\n\nDid you mean this?\n\t");
        text.push_str(&near.join("\n\t"));
    }
    text
}

/// What `kubectl` alone prints.
pub fn overview() -> String {
    let mut text = String::from(
        "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/\n\nCommands:\n",
    );
    let singles: Vec<&&Verb> = ALL.iter().filter(|verb| !verb.name.contains(' ')).collect();
    let width = singles.iter().map(|verb| verb.name.len()).max().unwrap_or(0);
    for verb in singles {
        text.push_str(&format!("  {:width$}   {}\n", verb.name, verb.about));
    }
    text.push_str("\nUsage:\n  kubectl [flags] [options]\n\nUse \"kubectl <command> --help\" for more information about a given command.");
    text
}
