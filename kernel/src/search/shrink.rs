//! A shorter schedule that breaks the same property.

use super::action::Action;
use super::ending;
use super::explore::Failure;
use super::lab::{Lab, Task};
use super::properties::Broken;

/// So many shorter schedules are tried: a person waits.
const TRIES_MAX: usize = 300;
/// And so many actions are replayed at most: a loop without an end is long, and no shorter for being looked at.
const ACTIONS_MAX: usize = 40_000;

/// Leaves out what can be left out: halves, quarters, then single actions, and what follows by itself.
pub fn shrink(task: &Task, failure: Failure, usual_content: Option<u64>) -> Failure {
    let mut best = failure;
    let mut weight = cost(task, &best);
    let (mut tries, mut actions) = (0, 0);
    let mut size = best.schedule.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.schedule.len() && tries < TRIES_MAX && actions < ACTIONS_MAX {
            tries += 1;
            actions += best.schedule.len();
            let end = (at + size).min(best.schedule.len());
            let without: Vec<Action> = [&best.schedule[..at], &best.schedule[end..]].concat();
            let shorter = replay(task, &without, usual_content);
            let shorter = shorter.filter(|shorter| shorter.broken.property == best.broken.property);
            match shorter.map(|shorter| (cost(task, &shorter), shorter)) {
                Some((less, shorter)) if less < weight => (weight, best) = (less, shorter),
                _ => at += size,
            }
        }
        size /= 2;
    }
    best
}

/// Faults weigh most, then what departs from the usual, then the length.
fn cost(task: &Task, failure: &Failure) -> (usize, usize, usize) {
    let Ok(mut lab) = Lab::new(task) else { return (0, 0, 0) };
    let mut unusual = 0;
    for action in &failure.schedule {
        unusual += usize::from(lab.usual().as_ref() != Some(action));
        if lab.act(action).is_err() {
            break;
        }
    }
    let faults = failure.schedule.iter().filter(|action| action.is_fault()).count();
    (faults, unusual, failure.schedule.len())
}

/// Runs a schedule, leaving out what is not possible, and then goes on as usual. The failure has all that happened.
pub fn replay(task: &Task, schedule: &[Action], usual_content: Option<u64>) -> Option<Failure> {
    let mut done = Vec::new();
    let broken = run(task, schedule, usual_content, &mut done).err()?;
    Some(Failure { broken, schedule: done })
}

fn run(task: &Task, schedule: &[Action], usual_content: Option<u64>, done: &mut Vec<Action>) -> Result<(), Broken> {
    let mut lab = Lab::new(task)?;
    for action in schedule {
        let is_usual = lab.usual().as_ref() == Some(action);
        if is_usual || lab.choices(true).contains(action) {
            done.push(action.clone());
            lab.act(action)?;
        }
    }
    ending::drain(&mut lab, done)?;
    ending::judge(&mut lab, usual_content).map(drop)
}
