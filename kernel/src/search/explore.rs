//! The order of a search: the usual schedule, the fault plans, few deviations from the usual, everything within bounds,
//! chance. The first failure ends it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use cluster_core::random::Random;

use super::action::Action;
use super::ending::{self, STEPS_MAX};
use super::lab::{Lab, Task};
use super::plans;
use super::properties::{Broken, quiescent};
use super::report::{Coverage, FAULT_PLAN, Phase};

/// A walk takes so many steps by chance before it goes on as usual.
const WALK_STEPS: u64 = 40;

/// How far a search goes.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Faults in one schedule; so many of them may be crashes, and so many may be others.
    pub faults: usize,
    pub crashes: usize,
    pub others: usize,
    /// Deviations from the usual schedule.
    pub deviations: usize,
    /// Steps of all schedules together; beyond it nothing new is begun.
    pub steps_max: usize,
    /// States that are kept in the exhaustive part.
    pub states_max: usize,
    pub walks: usize,
    pub seed: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            faults: 2,
            crashes: 2,
            others: 2,
            deviations: 2,
            steps_max: 200_000,
            states_max: 20_000,
            walks: 100,
            seed: 1,
        }
    }
}

impl Bounds {
    fn allow(&self, lab: &Lab<'_>, action: &Action) -> bool {
        let others = lab.faults - lab.crashes;
        let is_left = if action.is_crash() { lab.crashes < self.crashes } else { others < self.others };
        !action.is_fault() || lab.faults < self.faults && is_left
    }
}

/// A schedule that breaks a property.
#[derive(Clone, Debug)]
pub struct Failure {
    pub broken: Broken,
    pub schedule: Vec<Action>,
}

pub struct Explorer<'t> {
    task: &'t Task,
    bounds: &'t Bounds,
    usual_content: Option<u64>,
    /// States from which the usual schedule is known to end well.
    good: HashSet<u64>,
    pub coverage: Coverage,
}

type Found<T> = Result<T, Failure>;

fn failing<T>(result: Result<T, Broken>, schedule: &[Action]) -> Found<T> {
    result.map_err(|broken| Failure { broken, schedule: schedule.to_vec() })
}

impl<'t> Explorer<'t> {
    pub fn new(task: &'t Task, bounds: &'t Bounds) -> Explorer<'t> {
        Explorer { task, bounds, usual_content: None, good: HashSet::new(), coverage: Coverage::new(bounds) }
    }

    /// What there is at the end of the usual schedule.
    pub fn usual_content(&self) -> Option<u64> {
        self.usual_content
    }

    pub fn run(&mut self) -> Found<()> {
        let start = failing(Lab::new(self.task), &[])?;
        self.phase("the usual schedule", |search| {
            let rest = search.follow(start.clone(), &mut Vec::new(), false)?;
            search.usual_content = rest.map(|lab| lab.content());
            Ok(true)
        })?;
        for mut plan in plans::all(&start) {
            let name = format!("{FAULT_PLAN}{}", plan.name);
            self.phase(&name, |search| search.follow_plan(start.clone(), &mut plan).map(|()| true))?;
        }
        for deviations in 1..=self.bounds.deviations {
            if self.is_over() {
                break;
            }
            self.phase(&format!("{deviations} deviations"), |search| {
                search.deviate(start.clone(), deviations, &mut Vec::new(), &mut HashMap::new())?;
                Ok(!search.is_over())
            })?;
        }
        if self.bounds.states_max > 0 && !self.is_over() {
            self.phase("every schedule", |search| search.exhaust(&start))?;
        }
        if !self.coverage.is_exhausted() && !self.is_over() {
            self.phase("chance", |search| {
                let mut random = Random::new(search.bounds.seed);
                for walk in 0..search.bounds.walks {
                    if search.is_over() {
                        return Ok(false);
                    }
                    search.walk(start.clone(), &mut random, walk % 2 == 1)?;
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn phase(&mut self, name: &str, run: impl FnOnce(&mut Self) -> Found<bool>) -> Found<()> {
        let (schedules, steps) = (self.coverage.schedules, self.coverage.steps);
        let outcome = run(self);
        let phase = Phase {
            name: name.to_owned(),
            schedules: self.coverage.schedules - schedules,
            steps: self.coverage.steps - steps,
            is_complete: matches!(outcome, Ok(true)),
        };
        self.coverage.phases.push(phase);
        outcome.map(drop)
    }

    fn choices(&self, lab: &Lab<'t>, with_faults: bool) -> Vec<Action> {
        let mut choices = lab.choices(with_faults && lab.faults < self.bounds.faults);
        choices.retain(|action| self.bounds.allow(lab, action));
        choices
    }

    fn is_over(&self) -> bool {
        self.coverage.steps >= self.bounds.steps_max
    }

    fn act(&mut self, lab: &mut Lab<'t>, action: Action, schedule: &mut Vec<Action>) -> Found<()> {
        self.coverage.steps += 1;
        schedule.push(action);
        let Some(action) = schedule.last() else { return Ok(()) };
        let result = lab.act(action);
        failing(result, schedule)
    }

    /// Goes on as usual to the end, and looks at it. Answers with the end, or with nothing if it is known from here on.
    fn follow(&mut self, mut lab: Lab<'t>, schedule: &mut Vec<Action>, may_know: bool) -> Found<Option<Lab<'t>>> {
        let begun = schedule.len();
        let mut passed = BTreeSet::new();
        loop {
            let digest = lab.digest();
            if may_know && self.good.contains(&digest) {
                self.good.extend(passed);
                schedule.truncate(begun);
                return Ok(None);
            }
            let Some(action) = lab.usual() else { break };
            if !passed.insert(digest) && ending::repeats(&lab, &action) {
                return failing(Err(quiescent::broken(true, schedule.len() - begun)), schedule);
            }
            if schedule.len() - begun > STEPS_MAX {
                return failing(Err(quiescent::broken(false, schedule.len() - begun)), schedule);
            }
            self.act(&mut lab, action, schedule)?;
        }
        self.rest(&mut lab, schedule)?;
        self.good.extend(passed);
        schedule.truncate(begun);
        Ok(Some(lab))
    }

    /// Looks at the end of a schedule.
    fn rest(&mut self, lab: &mut Lab<'t>, schedule: &[Action]) -> Found<()> {
        self.coverage.schedules += 1;
        self.coverage.steps += failing(ending::judge(lab, self.usual_content), schedule)?;
        Ok(())
    }

    fn follow_plan(&mut self, mut lab: Lab<'t>, plan: &mut plans::Plan) -> Found<()> {
        let mut schedule = Vec::new();
        while let Some(action) = plan.next(&lab) {
            if schedule.len() > STEPS_MAX {
                return failing(Err(quiescent::broken(false, schedule.len())), &schedule);
            }
            self.act(&mut lab, action, &mut schedule)?;
        }
        self.rest(&mut lab, &schedule)
    }

    /// All schedules with at most so many deviations from here on. `seen` knows how many were left at a state.
    fn deviate(
        &mut self,
        mut lab: Lab<'t>,
        left: usize,
        schedule: &mut Vec<Action>,
        seen: &mut HashMap<State, usize>,
    ) -> Found<()> {
        if left == 0 {
            return self.follow(lab, schedule, true).map(drop);
        }
        let begun = schedule.len();
        for _ in 0..STEPS_MAX {
            let known = seen.entry(state(&lab)).or_insert(0);
            if self.is_over() || *known >= left {
                schedule.truncate(begun);
                return Ok(());
            }
            *known = left;
            let usual = lab.usual();
            for action in self.choices(&lab, true) {
                if Some(&action) == usual.as_ref() {
                    continue;
                }
                let mut fork = lab.clone();
                let length = schedule.len();
                self.act(&mut fork, action, schedule)?;
                self.deviate(fork, left - 1, schedule, seen)?;
                schedule.truncate(length);
            }
            let Some(action) = usual else { break };
            self.act(&mut lab, action, schedule)?;
        }
        schedule.truncate(begun);
        Ok(())
    }

    /// Breadth first through all states. True if there are no more within the bounds.
    fn exhaust(&mut self, start: &Lab<'t>) -> Found<bool> {
        let mut parents: Vec<(usize, Option<Action>)> = vec![(0, None)];
        let mut seen = HashSet::from([state(start)]);
        let mut frontier = VecDeque::from([(start.clone(), 0)]);
        while let Some((lab, node)) = frontier.pop_front() {
            if self.is_over() || seen.len() > self.bounds.states_max {
                return Ok(false);
            }
            for action in self.choices(&lab, true) {
                let mut fork = lab.clone();
                self.coverage.steps += 1;
                let result = fork.act(&action);
                if result.is_ok() && !seen.insert(state(&fork)) {
                    continue;
                }
                parents.push((node, Some(action)));
                let mut schedule = path(&parents, parents.len() - 1);
                failing(result, &schedule)?;
                self.follow(fork.clone(), &mut schedule, true)?;
                frontier.push_back((fork, parents.len() - 1));
            }
            self.coverage.states = seen.len();
        }
        // Deadlines are moments, which a digest leaves out.
        Ok(self.task.scenario.horizon.is_zero())
    }

    /// Steps by chance: any one is as likely as another, or each actor has a rank that decides until it changes.
    /// <https://doi.org/10.1145/1736020.1736040>
    fn walk(&mut self, mut lab: Lab<'t>, random: &mut Random, is_ranked: bool) -> Found<()> {
        let mut schedule = Vec::new();
        let ranks = random.draw();
        let change_at = random.below(WALK_STEPS);
        for step in 0..WALK_STEPS {
            let with_faults = lab.faults < self.bounds.faults && random.below(8) == 0;
            let choices = self.choices(&lab, with_faults);
            let salt = ranks ^ u64::from(step >= change_at);
            let chosen = match is_ranked && !with_faults {
                true => choices.iter().max_by_key(|action| super::canon::digest_of(&(salt, actor(action)))).cloned(),
                false => choices.get(random.below(choices.len() as u64) as usize).cloned(),
            };
            let Some(action) = chosen else { break };
            self.act(&mut lab, action, &mut schedule)?;
        }
        self.follow(lab, &mut schedule, true).map(drop)
    }
}

/// What lies ahead of a lab: its digest, and the faults and crashes that have been.
type State = (u64, usize, usize);

fn state(lab: &Lab<'_>) -> State {
    (lab.digest(), lab.faults, lab.crashes)
}

fn path(parents: &[(usize, Option<Action>)], node: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut at = node;
    while let Some((parent, Some(action))) = parents.get(at) {
        actions.push(action.clone());
        at = *parent;
    }
    actions.reverse();
    actions
}

/// Who acts, for ranks: an informer, a worker, the cluster, whoever edits.
fn actor(action: &Action) -> (usize, usize, &str) {
    match action {
        Action::Hear { part, kind } | Action::HearTwice { part, kind } => (0, *part, kind),
        Action::Skip { part, kind } | Action::Lose { part, kind } => (0, *part, kind),
        Action::Begin { part, .. } | Action::Write { part, .. } => (1, *part, ""),
        Action::Timer { part, .. } | Action::Relist { part } => (2, *part, ""),
        Action::Restart { part, .. } | Action::Crash { part } | Action::Start { part } => (3, *part, ""),
        Action::Settle => (4, 0, ""),
        Action::Edit => (5, 0, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutants::names;
    use super::*;

    #[test]
    fn crashes_and_other_faults_have_budgets_of_their_own() {
        let task = names::lost_answer().task(true);
        let lab = Lab::new(&task).unwrap();
        let faults = |bounds: Bounds| {
            let mut faults = Explorer::new(&task, &bounds).choices(&lab, true);
            faults.retain(Action::is_fault);
            faults
        };
        assert!(faults(Bounds { crashes: 0, ..Bounds::default() }).iter().all(|fault| !fault.is_crash()));
        assert!(faults(Bounds { others: 0, ..Bounds::default() }).iter().all(Action::is_crash));
        assert!(faults(Bounds { faults: 0, ..Bounds::default() }).is_empty());
        assert!(faults(Bounds::default()).iter().any(Action::is_crash));
    }
}
