//! How a schedule ends: as usual, until nothing is left to happen; then everything is looked at once more, and the
//! controllers are restarted once more.

use std::collections::BTreeSet;

use super::action::{Action, FirstList};
use super::lab::Lab;
use super::properties::{self, Broken, Rest, quiescent};

/// A schedule that takes more steps has no end.
pub const STEPS_MAX: usize = 2000;

/// Goes on as usual to the end; `done` takes what happens.
pub fn drain(lab: &mut Lab<'_>, done: &mut Vec<Action>) -> Result<(), Broken> {
    let mut passed = BTreeSet::new();
    while let Some(action) = lab.usual() {
        if !passed.insert(lab.digest()) && repeats(lab, &action) {
            return Err(quiescent::broken(true, passed.len()));
        }
        if passed.len() > STEPS_MAX || done.len() > STEPS_MAX {
            return Err(quiescent::broken(false, STEPS_MAX));
        }
        done.push(action.clone());
        lab.act(&action)?;
    }
    Ok(())
}

/// A state that comes back goes round in circles, unless the time is what counts: digests leave it out.
pub fn repeats(lab: &Lab<'_>, next: &Action) -> bool {
    lab.task.scenario.horizon.is_zero() && !matches!(next, Action::Timer { .. })
}

/// Looks at a lab at rest. Answers with the number of steps that this took.
pub fn judge(lab: &mut Lab<'_>, usual_content: Option<u64>) -> Result<usize, Broken> {
    lab.wait()?;
    let mut done = Vec::new();
    let mut resynced = lab.clone();
    resynced.resync();
    drain(&mut resynced, &mut done)?;
    let mut restarted = resynced.clone();
    for part in 0..restarted.parts.len() {
        restarted.act(&Action::Restart { part, list: FirstList::Now })?;
    }
    drain(&mut restarted, &mut done)?;
    properties::at_rest(&Rest { lab, resynced: &resynced, restarted: &restarted, usual_content })?;
    Ok(done.len())
}
