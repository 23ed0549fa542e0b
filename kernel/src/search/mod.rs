//! The search that breaks controllers: schedules are tried one by one, not left to luck.
//!
//! A `Task` is controllers in a `Scenario`. A `Lab` is one state of it: a cluster of which only the apiserver runs, and
//! the informers, queues, timers and half-done reconciles (`part.rs`) of the controllers. An `Action` is what can happen
//! next. The `Explorer` forks the lab at each choice, in the order of `explore.rs`; `properties/` are looked at after each
//! write and at the end of each schedule, and a state is known again by its canonical digest (`canon.rs`). The first
//! failure is shrunk and told as a story of named actions.

mod action;
mod canon;
mod ending;
mod explore;
mod lab;
mod part;
mod plans;
pub mod properties;
mod report;
pub mod scenario;
pub mod scenarios;
mod shrink;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod mutants;

pub use action::Action;
pub use explore::Bounds;
pub use lab::Task;
pub use part::{OnRefusal, Subject};
pub use report::{Coverage, Story};

use cluster_core::Cluster;
use explore::Explorer;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Report {
    pub failure: Option<Story>,
    pub coverage: Coverage,
}

/// Searches schedules for one that breaks a property.
pub fn search(task: &Task, bounds: &Bounds) -> Report {
    let mut explorer = Explorer::new(task, bounds);
    let outcome = explorer.run();
    let usual_content = explorer.usual_content();
    let coverage = explorer.coverage;
    let failure = outcome.err().map(|failure| report::story(task, &shrink::shrink(task, failure, usual_content)));
    Report { failure, coverage }
}

/// The controllers that have joined a cluster.
pub fn joined(cluster: &Cluster) -> Vec<Subject> {
    cluster.joined().map(Subject::new).collect()
}

/// Runs a stored schedule again: the story of the property that it breaks, if it still does. The error is a name that
/// nothing bears.
pub fn replay(task: &Task, actions: &[String]) -> Result<Option<Story>, String> {
    let schedule = report::find(task, actions)?;
    Ok(shrink::replay(task, &schedule, None).map(|failure| report::story(task, &failure)))
}

#[cfg(test)]
mod tests {
    use super::mutants::{memory, names};
    use super::*;

    #[test]
    fn a_failure_is_stored_by_names_and_replays() {
        let case = names::lost_answer();
        let story = case.search(false).failure.expect("the mutant fails");
        assert!(story.actions.iter().any(|name| name.contains("the answer is lost")), "{story}");
        let again = replay(&case.task(false), &story.actions).expect("every name is found").expect("it fails again");
        assert_eq!((again.property, again.actions), (story.property, story.actions.clone()));
        assert!(replay(&case.task(true), &["nonsense".to_owned()]).is_err());
    }

    #[test]
    fn a_small_world_is_searched_to_its_end() {
        let bounds = Bounds { faults: 1, steps_max: 200_000, states_max: 100_000, walks: 0, ..Bounds::default() };
        let report = search(&names::lost_answer().task(true), &bounds);
        assert!(report.failure.is_none() && report.coverage.is_exhausted(), "{}", report.coverage);
        assert!(report.coverage.to_string().starts_with("all schedules with at most 1 faults"), "{}", report.coverage);
    }

    #[test]
    fn what_depends_on_moments_is_never_called_searched_to_its_end() {
        let bounds = Bounds { faults: 0, steps_max: 50_000, walks: 2, ..Bounds::default() };
        let report = search(&memory::deadline_in_a_timer().task(true), &bounds);
        assert!(report.failure.is_none() && !report.coverage.is_exhausted(), "{}", report.coverage);
        assert!(report.coverage.to_string().starts_with("bounded: "), "{}", report.coverage);
    }

    #[test]
    fn the_same_search_ends_alike() {
        let case = names::random_name();
        let (one, other) = (case.search(false), case.search(false));
        assert_eq!(one.coverage, other.coverage);
        assert_eq!(one.failure.map(|story| story.actions), other.failure.map(|story| story.actions));
    }
}
