//! The scenarios in which exercises search a learner's controllers: one file a scenario, one line in [`ALL`].

mod certificate;
mod clean_up;
mod pool;
mod quiet;
mod release;
mod secret;

use super::scenario::Scenario;

/// By the name that an exercise writes.
pub const ALL: &[fn() -> Scenario] =
    &[pool::scenario, certificate::scenario, secret::scenario, clean_up::scenario, quiet::scenario, release::scenario];

pub fn find(name: &str) -> Option<Scenario> {
    ALL.iter().map(|scenario| scenario()).find(|scenario| scenario.name == name)
}
