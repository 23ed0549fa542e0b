//! `search: {scenario: pool, for: [stable]}`: the controllers that have joined hold these properties in every schedule that a
//! search tries (all properties if none are named). See `kernel/src/search`.

use std::cell::RefCell;

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;
use crate::search::properties;
use crate::search::scenario::Scenario;
use crate::search::{self, Bounds, Story, Subject, Task, scenarios};

/// A learner waits for it.
const BOUNDS: Bounds =
    Bounds { faults: 2, crashes: 2, others: 2, deviations: 2, steps_max: 12_000, states_max: 500, walks: 20, seed: 1 };

#[derive(Debug, Deserialize)]
#[serde(try_from = "Parameters")]
pub struct Search {
    scenario: String,
    properties: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    scenario: String,
    #[serde(default, rename = "for")]
    properties: Vec<String>,
}

impl TryFrom<Parameters> for Search {
    type Error = String;

    fn try_from(Parameters { scenario, properties }: Parameters) -> Result<Search, String> {
        if scenarios::find(&scenario).is_none() {
            return Err(format!(
                "`{scenario}` is no scenario, expected one of {}",
                listed(scenarios::ALL.iter().map(|one| one().name))
            ));
        }
        let is_known = |name: &&String| properties::ALL.iter().any(|property| property.name() == **name);
        match properties.iter().find(|name| !is_known(name)) {
            Some(unknown) => {
                let known = listed(properties::ALL.iter().map(|property| property.name()));
                Err(format!("`{unknown}` is no property, expected one of {known}"))
            }
            None => Ok(Search { scenario, properties }),
        }
    }
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Property for Search {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let Some(scenario) = scenarios::find(&self.scenario) else { return Ok(()) };
        let subjects = search::joined(cluster);
        if subjects.len() != scenario.controllers {
            let (found, wanted) = (subjects.len(), scenario.controllers);
            return Err(Words::new(
                format!("加わったコントローラーが{found}個（求められているのは{wanted}個）"),
                format!("{found} controllers have joined where {wanted} are asked for"),
            ));
        }
        let is_asked =
            |story: &Story| self.properties.is_empty() || self.properties.iter().any(|name| name == story.property);
        match found(start, scenario, subjects)?.filter(is_asked) {
            None => Ok(()),
            Some(story) => Err(story.words()),
        }
    }

    fn story(&self, answer: &Cluster, start: &Cluster) -> Option<Story> {
        found(start, scenarios::find(&self.scenario)?, search::joined(answer)).ok()?
    }

    fn is_timeless(&self) -> bool {
        true
    }
}

thread_local! {
    /// The last search: the checks of an exercise ask for its properties one after another.
    static LAST: RefCell<Option<Searched>> = const { RefCell::new(None) };
}

struct Searched {
    scenario: &'static str,
    subjects: Vec<Subject>,
    found: Option<Story>,
}

fn found(start: &Cluster, scenario: Scenario, subjects: Vec<Subject>) -> Result<Option<Story>, Words> {
    let is_same = |last: &Searched| {
        last.scenario == scenario.name
            && last.subjects.len() == subjects.len()
            && last.subjects.iter().zip(&subjects).all(|(one, other)| one.is(other))
    };
    let known = |last: &Option<Searched>| last.as_ref().filter(|last| is_same(last)).map(|last| last.found.clone());
    if let Some(found) = LAST.with_borrow(known) {
        return Ok(found);
    }
    let name = scenario.name;
    let task = Task::new(start, scenario, subjects.clone()).map_err(Words::same)?;
    let found = search::search(&task, &BOUNDS).failure;
    LAST.set(Some(Searched { scenario: name, subjects, found: found.clone() }));
    Ok(found)
}
