//! Fault plans: one kind of trouble from the beginning to the end of a schedule.

use std::collections::BTreeSet;

use cluster_core::api::Name;

use super::action::{Action, FirstList, Outcome};
use super::lab::Lab;

/// What is late comes at last: so many steps come before it.
const LATE_STEPS_MAX: usize = 40;

/// What a plan does in place of what is usual; `None` for the usual.
pub struct Plan {
    pub name: String,
    choose: Choose,
    /// What it has done and does only once each.
    done: BTreeSet<(usize, usize)>,
}

enum Choose {
    /// The informers of a controller hear of this kind only when nothing else is left to do.
    Lag(usize, Name),
    /// Every event comes twice.
    Twice,
    /// All edits are made at once, and events that are overwritten are never heard.
    Unheard,
    /// The first attempt of every write of a controller ends like this.
    EachWrite(Outcome),
    /// A controller crashes after each of its writes.
    CrashAfterWrites,
    /// A controller is down while these edits are made.
    DownDuring(usize, usize),
    /// When all is done, a controller starts again and sees an old state.
    Stale(usize, FirstList),
}

/// All plans for a task.
pub fn all(lab: &Lab<'_>) -> Vec<Plan> {
    let plan = |name: String, choose: Choose| Plan { name, choose, done: BTreeSet::new() };
    let mut plans = vec![
        plan("the first attempt of every write fails".into(), Choose::EachWrite(Outcome::Error)),
        plan("the first attempt of every write is refused".into(), Choose::EachWrite(Outcome::Conflict)),
        plan("the first answer to every write is lost".into(), Choose::EachWrite(Outcome::LostAnswer)),
        plan("a crash after every write".into(), Choose::CrashAfterWrites),
        plan("every event comes twice".into(), Choose::Twice),
        plan("changes in between are never heard of".into(), Choose::Unheard),
    ];
    let edits = lab.task.scenario.edits.len();
    for (part, subject) in lab.task.subjects.iter().enumerate() {
        for kind in subject.kinds() {
            let name = format!("{} hears late of {}", lab.task.names[part], kind.kind);
            plans.push(plan(name, Choose::Lag(part, kind.kind.clone())));
        }
        for edit in 0..edits {
            plans.push(plan(
                format!("{} is down from edit {} on", lab.task.names[part], edit + 1),
                Choose::DownDuring(part, edit),
            ));
        }
        for edit in 0..edits {
            let stale = |list: FirstList| {
                plan(format!("{} starts again with an old list", lab.task.names[part]), Choose::Stale(part, list))
            };
            plans.extend([stale(FirstList::AtEdit(edit)), stale(FirstList::MainAtEdit(edit))]);
        }
    }
    plans
}

impl Plan {
    /// What happens next under this plan; `None` at rest.
    pub fn next(&mut self, lab: &Lab<'_>) -> Option<Action> {
        let usual = lab.usual();
        let edit_is_next = || lab.choices(false).contains(&Action::Edit);
        match (&self.choose, &usual) {
            (Choose::Lag(part, kind), Some(Action::Hear { part: of, kind: next }))
                if part == of && kind == next && self.done.len() < LATE_STEPS_MAX =>
            {
                self.done.insert((0, self.done.len()));
                let others = lab.choices(false).into_iter().filter(|action| Some(action) != usual.as_ref());
                let others = others.filter(|action| !matches!(action, Action::Skip { .. } | Action::Timer { .. }));
                let mut others: Vec<Action> = others.collect();
                // An edit comes only after all else.
                others.sort_by_key(|action| *action == Action::Edit);
                others.into_iter().next().or(usual)
            }
            (Choose::Twice, Some(Action::Hear { part, kind })) => {
                let heard = lab.parts[*part].inboxes.values().find(|inbox| *inbox.kind.kind == **kind);
                let revision =
                    heard.and_then(|inbox| inbox.events.front()).map_or(0, |heard| heard.event.change.revision);
                match self.done.insert((*part, revision as usize)) {
                    true => Some(Action::HearTwice { part: *part, kind: kind.clone() }),
                    false => usual,
                }
            }
            // Only after the first edit there is something that can be overwritten.
            (Choose::Unheard, _) if lab.edits > 0 && edit_is_next() => Some(Action::Edit),
            (Choose::Unheard, Some(Action::Hear { part, kind })) => {
                let inbox = lab.parts[*part].inboxes.values().find(|inbox| *inbox.kind.kind == **kind);
                match inbox.is_some_and(|inbox| lab.parts[*part].is_overwritten(inbox.kind.slot)) {
                    true => Some(Action::Skip { part: *part, kind: kind.clone() }),
                    false => usual,
                }
            }
            (Choose::EachWrite(outcome), Some(Action::Write { part, .. })) => {
                let sent = lab.parts[*part].run.as_ref().and_then(|run| run.write()).map_or(0, |write| {
                    let request = &write.request;
                    let name = format!(
                        "{:?} {} {} {}",
                        request.verb, request.kind.kind, request.key.name, request.subresource
                    );
                    super::canon::digest_of(&name) as usize
                });
                match self.done.insert((*part, sent)) {
                    true => Some(Action::Write { part: *part, outcome: *outcome }),
                    false => usual,
                }
            }
            (Choose::EachWrite(Outcome::LostAnswer), Some(Action::Hear { part, .. })) => {
                sent_again(*part, lab).or(usual)
            }
            (Choose::CrashAfterWrites, _) => {
                let writes = lab.tally.writes;
                let crashed = lab.parts.iter().position(|part| part.run.as_ref().is_some_and(|run| run.next > 0));
                match crashed {
                    Some(part) if self.done.insert((part, writes)) => {
                        Some(Action::Restart { part, list: FirstList::Now })
                    }
                    _ => usual,
                }
            }
            (Choose::DownDuring(part, edit), Some(Action::Edit))
                if lab.edits == *edit && self.done.insert((*part, 0)) =>
            {
                Some(Action::Crash { part: *part })
            }
            (Choose::Stale(part, list), None) if self.done.insert((*part, 0)) => {
                Some(Action::Restart { part: *part, list: *list })
            }
            _ => usual,
        }
    }
}

/// The retry of a key that has failed once. It comes before the events do that tell of the first attempt.
fn sent_again(part: usize, lab: &Lab<'_>) -> Option<Action> {
    let state = &lab.parts[part];
    let key = state.failures.iter().find(|(_, failures)| **failures == 1).map(|(key, _)| key.clone())?;
    if state.queue.contains(&key) {
        return Some(Action::Begin { part, key });
    }
    let is_due = state.timers.iter().any(|timer| timer.key == key && !timer.is_asked);
    is_due.then_some(Action::Timer { part, key })
}
