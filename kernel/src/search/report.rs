//! What a search tells: how far it has come, and the shortest story that leads to a failure.

use std::fmt;

use cluster_core::api::request::{Body, Request};
use cluster_core::clock::Time;
use cluster_core::trace::{Trace, What};

use super::action::Action;
use super::explore::{Bounds, Failure};
use super::lab::{Lab, Task};
use super::properties;
use crate::grading::words::Words;

/// Begins the name of a phase that is a fault plan.
pub const FAULT_PLAN: &str = "fault plan: ";

/// How far a search has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    pub schedules: usize,
    pub steps: usize,
    /// Distinct states of the exhaustive part.
    pub states: usize,
    pub faults: usize,
    pub phases: Vec<Phase>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    pub schedules: usize,
    pub steps: usize,
    pub is_complete: bool,
}

impl Coverage {
    pub fn new(bounds: &Bounds) -> Coverage {
        Coverage { schedules: 0, steps: 0, states: 0, faults: bounds.faults, phases: Vec::new() }
    }

    /// Every schedule within the bounds was looked at.
    pub fn is_exhausted(&self) -> bool {
        self.phases.iter().any(|phase| phase.name == "every schedule" && phase.is_complete)
    }
}

/// One line: what was searched, and whether that is all there is.
impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coverage { schedules, steps, states, faults, phases } = self;
        match self.is_exhausted() {
            true => write!(out, "all schedules with at most {faults} faults: {states} states, {steps} steps"),
            false => {
                let complete = || phases.iter().filter(|phase| phase.is_complete).map(|phase| phase.name.as_str());
                let plans = complete().filter(|name| name.starts_with(FAULT_PLAN)).count();
                let others: Vec<&str> = complete().filter(|name| !name.starts_with(FAULT_PLAN)).collect();
                let others = others.join(", ");
                write!(out, "bounded: {schedules} schedules, {steps} steps; complete: {plans} fault plans, {others}")
            }
        }
    }
}

/// As many lines of a story are told, so many of them from its end.
const LINES_MAX: usize = 40;
const LAST_LINES: usize = 8;

/// A failure that can be told, stored and replayed.
#[derive(Clone, Debug)]
pub struct Story {
    pub property: &'static str,
    pub demands: Words,
    pub found: Words,
    /// The schedule by the names of its actions, as [`find`] takes them.
    pub actions: Vec<String>,
    /// What happened, a line each, with what was written.
    pub lines: Vec<Words>,
    /// What was written and why, from this moment on.
    pub trace: Trace,
    pub begun_at: Time,
}

pub fn story(task: &Task, failure: &Failure) -> Story {
    let property = properties::ALL.iter().find(|property| property.name() == failure.broken.property);
    let mut lines = Vec::new();
    let mut trace = Trace::default();
    if let Ok(mut lab) = Lab::new(task) {
        for action in &failure.schedule {
            lines.push(line(&mut lab, action));
        }
        trace = lab.cluster.trace().clone();
    }
    Story {
        property: failure.broken.property,
        demands: property.map(|property| property.demands()).unwrap_or_default(),
        found: failure.broken.found.clone(),
        actions: failure.schedule.iter().map(|action| action.words(&task.names).en).collect(),
        lines,
        trace,
        begun_at: task.begun_at,
    }
}

/// One action and what it writes: `pool-controller writes: create ConfigMap web-0 (too few)`.
fn line(lab: &mut Lab<'_>, action: &Action) -> Words {
    let mut words = action.words(&lab.task.names);
    let mut wrote = false;
    let mut add = |more: Words| words = words.and(&more);
    match action {
        Action::Edit => {
            if let Some(edit) = lab.task.scenario.edits.get(lab.edits) {
                add(edit.name.clone());
            }
        }
        Action::Write { part, .. } => {
            wrote = true;
            if let Some(write) = lab.parts[*part].run.as_ref().and_then(|run| run.write()) {
                add(Words::same(request(&write.request)));
            }
        }
        _ => {}
    }
    let next = lab.cluster.trace().next_sequence();
    // The last action is the one that fails.
    let _ = lab.act(action);
    let refused = lab.cluster.trace().since(next).find_map(|entry| match &entry.what {
        What::Request(refused) if wrote && refused.code >= 400 => Some(refused.reason.clone()),
        _ => None,
    });
    if let Some(why) = refused {
        add(Words::new(format!("断られた（{why}）"), format!("refused ({why})")));
    }
    if *action == Action::Settle {
        let writes = lab.cluster.trace().writes().filter(|(entry, _)| entry.sequence >= next);
        for (entry, write) in writes {
            let name = write.object().map_or(&write.key.name, |object| &object.key.name);
            add(Words::same(format!("{} {} {} {name}", entry.actor, write.verb.as_str(), write.kind.kind)));
        }
    }
    words
}

fn request(request: &Request) -> String {
    let name = match &request.body {
        Body::Json(object) if request.key.name.is_empty() => {
            let metadata = &object["metadata"];
            metadata["name"].as_str().or(metadata["generateName"].as_str()).unwrap_or_default()
        }
        _ => &request.key.name,
    };
    let status = if request.subresource.is_empty() { "" } else { "/" };
    let (verb, kind, part) = (request.verb.as_str(), &request.kind.kind, request.subresource);
    format!("{verb} {kind}{status}{part} {name} ({})", request.reason)
}

/// The actions of stored names, one after another; the error is the first name that nothing bears at its turn.
pub fn find(task: &Task, names: &[String]) -> Result<Vec<Action>, String> {
    let mut found = Vec::new();
    let Ok(mut lab) = Lab::new(task) else { return Ok(found) };
    for name in names {
        let choices = lab.usual().into_iter().chain(lab.choices(true));
        let action = { choices }.find(|action| action.words(&task.names).en == *name);
        let action = action.ok_or_else(|| format!("nothing is called `{name}` after {} steps", found.len()))?;
        let is_broken = lab.act(&action).is_err();
        found.push(action);
        if is_broken {
            break;
        }
    }
    Ok(found)
}

impl Story {
    /// What was found, and the numbered lines that lead to it; of very many the first and the last.
    pub fn words(&self) -> Words {
        let tell = |found: &str, line: fn(&Words) -> &str| {
            let last = self.lines.len();
            let is_shown =
                |number: usize| last <= LINES_MAX || number < LINES_MAX - LAST_LINES || number > last - LAST_LINES;
            let lines = (1..).zip(&self.lines).filter_map(|(number, words)| match is_shown(number) {
                true => Some(format!("\n{number:>3}. {}", line(words))),
                false if number == LINES_MAX - LAST_LINES => Some("\n     …".to_owned()),
                false => None,
            });
            format!("{found}{}", lines.collect::<String>())
        };
        Words::new(tell(&self.found.ja, |words| &words.ja), tell(&self.found.en, |words| &words.en))
    }
}

impl fmt::Display for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.property, self.words().en)
    }
}
