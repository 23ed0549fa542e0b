//! The state of a search: a cluster of which only the apiserver and a few loops run, and the controllers under test
//! beside it. It is forked at every choice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::status::Status;
use cluster_core::api::{Key, Name};
use cluster_core::clock::Time;
use cluster_core::trace::{RequestEntry, Sequence, What};

use super::action::{Action, FirstList, Outcome};
use super::canon::{Names, content, digest_of};
use super::part::{OnRefusal, Part, Run, Subject, same};
use super::properties::{self, Broken, Written};
use super::scenario::{Act, Scenario, Scene};
use crate::grading::words::Words;

/// A reconcile takes this long, if nobody else has something to do in the meantime.
const RECONCILE: Duration = Duration::from_secs(1);
/// The cluster's own loops have this long to come to rest.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// What is searched: controllers in a scenario.
pub struct Task {
    pub scenario: Scenario,
    pub subjects: Vec<Subject>,
    /// The names of the controllers.
    pub names: Vec<String>,
    base: Cluster,
    /// The trace's number at which the scenario begins, and the moment.
    begun: Sequence,
    pub begun_at: Time,
}

impl Task {
    /// The cluster serves the kinds that the scenario and the controllers name; nothing of it runs on. The error says what
    /// the scenario can't begin with.
    pub fn new(cluster: &Cluster, scenario: Scenario, subjects: Vec<Subject>) -> Result<Task, String> {
        let mut base = cluster.with_loops(scenario.loops);
        base.settle(SETTLE_MAX, |_| true);
        // What was there before is long ago.
        base.advance(RECONCILE, |_| true);
        let (begun, begun_at) = (base.trace().next_sequence(), base.now());
        for object in &scenario.start {
            let request = Act::Create(object.clone()).request(&base)?;
            let Some(request) = request else { continue };
            base.request(request).map_err(|status| format!("{}: {}", scenario.name, status.message))?;
        }
        base.settle(SETTLE_MAX, |_| true);
        for edit in &scenario.edits {
            edit.act.request(&base)?;
        }
        for kind in subjects.iter().flat_map(Subject::kinds) {
            let (api_version, name) = (kind.api_version(), &kind.kind);
            if base.kind(&api_version, name).is_none_or(|known| known.slot != kind.slot) {
                return Err(format!(
                    "a controller watches {api_version} {name}, which is not served where the search begins"
                ));
            }
        }
        let names = subjects.iter().map(|subject| subject.controller.name().to_owned()).collect();
        Ok(Task { scenario, subjects, names, base, begun, begun_at })
    }
}

/// Something that a controller under test has created.
#[derive(Clone)]
pub struct Made {
    pub kind: KindRef,
    pub key: Key,
    pub uid: Name,
    /// The uid of the object whose reconcile it came from.
    pub owner: Name,
    /// It was made with a reference to an owner.
    pub had_owner: bool,
}

/// Whether the spec of an object was met after a write.
#[derive(Clone)]
pub struct Held {
    pub revision: u64,
    pub uid: Name,
    pub generation: i64,
    pub is_met: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Writes of the controllers under test that changed something.
    pub writes: usize,
    /// Those that changed nothing.
    pub idle_writes: usize,
}

#[derive(Clone)]
pub struct Lab<'t> {
    pub task: &'t Task,
    pub cluster: Cluster,
    pub parts: Vec<Part>,
    pub names: Names,
    /// What has been written since the search began, with digests.
    contents: Arc<BTreeMap<(usize, Key), (KindRef, u64)>>,
    /// What the cluster's own loops have not seen.
    unsettled: u64,
    /// How many edits were made, and when the last one.
    pub edits: usize,
    edited_at: Time,
    /// The store's revision at the beginning and after each edit.
    marks: Vec<u64>,
    pub faults: usize,
    /// How many of the faults were crashes.
    pub crashes: usize,
    /// Somebody has disturbed what the controllers made, or an event was lost.
    pub disturbed: bool,
    pub tally: Tally,
    pub made: Arc<Vec<Made>>,
    pub held: Arc<Vec<Held>>,
    seen: Sequence,
}

impl<'t> Lab<'t> {
    pub fn new(task: &'t Task) -> Result<Lab<'t>, Broken> {
        let cluster = task.base.clone();
        let mut lab = Lab {
            task,
            parts: vec![Part::default(); task.subjects.len()],
            names: Names::default(),
            contents: Arc::default(),
            unsettled: 0,
            edits: 0,
            edited_at: cluster.now(),
            marks: vec![cluster.revision()],
            faults: 0,
            crashes: 0,
            disturbed: false,
            tally: Tally::default(),
            made: Arc::default(),
            held: Arc::default(),
            seen: task.begun,
            cluster,
        };
        lab.absorb()?;
        for part in 0..lab.parts.len() {
            lab.start(part, FirstList::Now);
            lab.parts[part].trace_back(&task.subjects[part], lab.cluster.trace());
        }
        Ok(lab)
    }

    pub fn now(&self) -> Time {
        self.cluster.now()
    }

    /// When this was reached, nothing that was asked for is still to come.
    pub fn horizon(&self) -> Time {
        self.edited_at + self.task.scenario.horizon
    }

    /// Two states with the same digest go on alike.
    pub fn digest(&self) -> u64 {
        let store = self.contents.values().fold(0_u64, |sum, (_, digest)| sum.wrapping_add(*digest));
        let parts: Vec<u64> = self.parts.iter().map(|part| part.digest(&self.names)).collect();
        digest_of(&(store, self.unsettled, self.edits, parts))
    }

    /// What people would compare at the end.
    pub fn content(&self) -> u64 {
        content(self.contents.iter().filter_map(|((_, key), (kind, _))| self.cluster.store().get(kind, key)))
    }

    /// What happens next if nothing is late and nothing fails: events are heard in their order, plans carried out, keys
    /// reconciled; then the cluster's own loops act; then come retries, the next edit, and what time brings. `None` at
    /// rest.
    pub fn usual(&self) -> Option<Action> {
        let inboxes = self
            .parts
            .iter()
            .enumerate()
            .flat_map(|(part, state)| state.inboxes.values().map(move |inbox| (part, inbox)));
        let oldest = inboxes
            .filter_map(|(part, inbox)| {
                Some((inbox.events.front()?.event.change.revision, part, inbox.kind.kind.clone()))
            })
            .min();
        if let Some((_, part, kind)) = oldest {
            return Some(Action::Hear { part, kind });
        }
        let parts = || self.parts.iter().enumerate();
        if let Some((part, _)) = parts().find(|(_, state)| state.run.is_some()) {
            return Some(Action::Write { part, outcome: Outcome::Done });
        }
        if let Some((part, key)) = parts().find_map(|(part, state)| Some((part, state.queue.front()?))) {
            return Some(Action::Begin { part, key: key.clone() });
        }
        // What an informer lacks keeps a retry from getting anywhere, and can keep the cluster busy.
        let lacking = parts().find(|(_, state)| state.lacks).map(|(part, _)| Action::Relist { part });
        if lacking.is_some() && self.edits == self.task.scenario.edits.len() {
            return lacking;
        }
        if self.cluster.next_work_due().is_some() {
            return Some(Action::Settle);
        }
        let retry = || self.timer(|is_asked, _| !is_asked);
        if let Some(action) = retry().filter(|_| lacking.is_none()) {
            return Some(action);
        }
        if let Some(edit) = self.task.scenario.edits.get(self.edits) {
            let until = match edit.act {
                Act::Wait(wait) => self.edited_at + wait,
                _ => Time::ZERO,
            };
            return self.timer(|_, at| at <= until).or(Some(Action::Edit));
        }
        if let Some((part, _)) = parts().find(|(_, state)| !state.is_up) {
            return Some(Action::Start { part });
        }
        let until = self.horizon();
        self.timer(|_, at| at <= until)
    }

    /// The first timer of all parts for which this holds.
    fn timer(&self, is: impl Fn(bool, Time) -> bool) -> Option<Action> {
        let timers =
            self.parts.iter().enumerate().flat_map(|(part, state)| state.timers.iter().map(move |timer| (part, timer)));
        let first = timers.filter(|(_, timer)| is(timer.is_asked, timer.at)).min_by_key(|(_, timer)| timer.at);
        first.map(|(part, timer)| Action::Timer { part, key: timer.key.clone() })
    }

    /// Everything that could happen next.
    pub fn choices(&self, with_faults: bool) -> Vec<Action> {
        let mut found = Vec::new();
        let mut faults = Vec::new();
        for (part, state) in self.parts.iter().enumerate() {
            if !state.is_up {
                found.push(Action::Start { part });
                continue;
            }
            for inbox in state.inboxes.values().filter(|inbox| !inbox.events.is_empty()) {
                let kind = inbox.kind.kind.clone();
                found.push(Action::Hear { part, kind: kind.clone() });
                if state.is_overwritten(inbox.kind.slot) {
                    found.push(Action::Skip { part, kind: kind.clone() });
                }
                faults.push(Action::HearTwice { part, kind: kind.clone() });
                faults.push(Action::Lose { part, kind });
            }
            match state.run.is_some() {
                true => {
                    found.push(Action::Write { part, outcome: Outcome::Done });
                    let outcomes = [Outcome::Error, Outcome::Conflict, Outcome::LostAnswer];
                    faults.extend(outcomes.map(|outcome| Action::Write { part, outcome }));
                }
                false => found.extend(state.queue.iter().map(|key| Action::Begin { part, key: key.clone() })),
            }
            let horizon = self.horizon();
            if let Some(timer) = state.timers.first().filter(|timer| !timer.is_asked || timer.at <= horizon) {
                found.push(Action::Timer { part, key: timer.key.clone() });
            }
            faults.push(Action::Crash { part });
            faults.push(Action::Restart { part, list: FirstList::Now });
            let past = 0..self.marks.len() - 1;
            faults.extend(past.clone().map(|edit| Action::Restart { part, list: FirstList::AtEdit(edit) }));
            faults.extend(past.map(|edit| Action::Restart { part, list: FirstList::MainAtEdit(edit) }));
        }
        if self.cluster.next_work_due().is_some() {
            found.push(Action::Settle);
        }
        if self.task.scenario.edits.get(self.edits).is_some_and(|edit| !matches!(edit.act, Act::Wait(_))) {
            found.push(Action::Edit);
        }
        if with_faults {
            found.extend(faults);
        }
        found
    }

    /// Lets one thing happen. The error is a property that it breaks.
    pub fn act(&mut self, action: &Action) -> Result<(), Broken> {
        self.faults += usize::from(action.is_fault());
        self.crashes += usize::from(action.is_crash());
        match action {
            Action::Hear { part, kind } => self.hear(*part, kind, false),
            Action::HearTwice { part, kind } => self.hear(*part, kind, true),
            Action::Skip { part, kind } | Action::Lose { part, kind } => {
                let is_loss = matches!(action, Action::Lose { .. });
                self.disturbed |= is_loss;
                let state = &mut self.parts[*part];
                state.lacks |= is_loss;
                if let Some(inbox) = state.inboxes.values_mut().find(|inbox| *inbox.kind.kind == **kind) {
                    inbox.events.pop_front();
                }
            }
            Action::Begin { part, key } => self.begin(*part, key)?,
            Action::Write { part, outcome } => self.write(*part, *outcome)?,
            Action::Restart { part, list } => self.start(*part, *list),
            Action::Start { part } => self.start(*part, FirstList::Now),
            Action::Crash { part } => self.parts[*part].crash(),
            Action::Timer { part, key } => self.fire(*part, key)?,
            Action::Relist { part } => {
                self.parts[*part].relist(&self.task.subjects[*part], &self.cluster, &self.names);
            }
            Action::Settle => {
                self.cluster.settle(SETTLE_MAX, |_| true);
                self.absorb()?;
            }
            Action::Edit => self.edit()?,
        }
        Ok(())
    }

    fn hear(&mut self, part: usize, kind: &Name, keep: bool) {
        let now = self.now();
        let state = &mut self.parts[part];
        let slot = state.inboxes.values().find(|inbox| *inbox.kind.kind == **kind).map(|inbox| inbox.kind.slot);
        if let Some(slot) = slot {
            state.hear(&self.task.subjects[part], slot, now, keep);
        }
    }

    fn start(&mut self, part: usize, list: FirstList) {
        let subject = &self.task.subjects[part];
        let now = self.cluster.revision();
        let main = subject.main().map(|kind| kind.slot);
        let mark = |edit: usize| self.marks.get(edit).copied().unwrap_or(now);
        let revision = |kind: &KindRef| match list {
            FirstList::AtEdit(edit) => mark(edit),
            FirstList::MainAtEdit(edit) if Some(kind.slot) == main => mark(edit),
            FirstList::Now | FirstList::MainAtEdit(_) => now,
        };
        self.parts[part].start(subject, &self.cluster, &self.names, revision);
    }

    fn begin(&mut self, part: usize, key: &Key) -> Result<(), Broken> {
        if self.cluster.next_work_due().is_none() {
            self.cluster.advance(RECONCILE, |_| true);
        }
        let (now, subject) = (self.now(), &self.task.subjects[part]);
        let state = &mut self.parts[part];
        state.queue.retain(|known| known != key);
        if now.since(state.paced_from) > Duration::from_secs(60) {
            (state.pace, state.paced_from) = (BTreeMap::new(), now);
        }
        let runs = state.pace.entry(key.clone()).or_insert(0);
        *runs += 1;
        if *runs > self.task.scenario.runs_a_minute_max {
            return Err(properties::no_hot_loop::broken(subject.controller.name(), key, *runs));
        }
        let view = state.caches.clone();
        let plan = subject.plan(key, &view, now);
        let view_digest = state.view_digest();
        let revision = self.cluster.revision();
        let causes = state.causes.remove(key).unwrap_or_default();
        let key = key.clone();
        let run = Run { key, view, view_digest, began: now, revision, causes, plan: Arc::new(plan), next: 0 };
        if run.write().is_some() && run.plan.error.is_none() {
            self.parts[part].run = Some(run);
            return Ok(());
        }
        self.replay(part, &run)?;
        match &run.plan.error {
            Some(_) => self.retry(part, &run),
            None => self.finish(part, &run),
        }
        Ok(())
    }

    /// A reconcile plans the same again if it sees the same.
    fn replay(&self, part: usize, run: &Run) -> Result<(), Broken> {
        let subject = &self.task.subjects[part];
        match same(&run.plan, &subject.plan(&run.key, &run.view, run.began)) {
            true => Ok(()),
            false => Err(properties::replay::broken(subject.controller.name(), &run.key)),
        }
    }

    fn write(&mut self, part: usize, outcome: Outcome) -> Result<(), Broken> {
        let Some(run) = self.parts[part].run.take() else { return Ok(()) };
        self.replay(part, &run)?;
        let subject = &self.task.subjects[part];
        let Some(write) = run.write().cloned() else { return Ok(()) };
        let mut request = write.request.clone();
        request.actor = subject.controller.name().into();
        request.causes = run.causes.clone();
        let refused = |status: Status| (Vec::new(), Err(status));
        let (commits, answer) = match outcome {
            Outcome::Error => refused(Status::internal("the search lets this write fail")),
            Outcome::Conflict => refused(Status::stale(&request.kind, &request.key.name)),
            Outcome::Done | Outcome::LostAnswer => {
                let answer = self.cluster.request(request);
                let commits = self.absorb()?;
                match outcome {
                    Outcome::LostAnswer => (commits, Err(Status::timeout("context deadline exceeded"))),
                    _ => (commits, answer),
                }
            }
        };
        match commits.is_empty() {
            true => self.tally.idle_writes += usize::from(answer.is_ok()),
            false => self.tally.writes += 1,
        }
        self.note_made(part, &run, &commits);
        properties::on_write(&Written { lab: self, part, run: &run, write: &write, commits: &commits })?;
        let is_tolerated = |status: &Status| write.tolerated.contains(&status.reason);
        match answer {
            Err(status) if !is_tolerated(&status) && subject.on_refusal == OnRefusal::LookAgain => {
                self.retry(part, &run);
            }
            Err(status) if !is_tolerated(&status) && subject.on_refusal == OnRefusal::SendAgain => {
                self.send_again(part, run)?;
            }
            _ => self.go_on(part, run),
        }
        Ok(())
    }

    /// A retry inside of a reconcile, at most as often as a work queue would within a minute.
    fn send_again(&mut self, part: usize, run: Run) -> Result<(), Broken> {
        let state = &mut self.parts[part];
        let failures = state.failures.entry(run.key.clone()).or_insert(0);
        *failures += 1;
        if *failures > self.task.scenario.runs_a_minute_max {
            return Err(properties::no_hot_loop::broken(
                self.task.subjects[part].controller.name(),
                &run.key,
                *failures,
            ));
        }
        state.run = Some(run);
        Ok(())
    }

    fn go_on(&mut self, part: usize, mut run: Run) {
        run.advance();
        match run.write() {
            Some(_) => self.parts[part].run = Some(run),
            None => self.finish(part, &run),
        }
    }

    fn finish(&mut self, part: usize, run: &Run) {
        let now = self.now();
        let state = &mut self.parts[part];
        state.failures.remove(&run.key);
        let asked = [run.plan.requeue_after, run.plan.continue_after];
        for after in asked.into_iter().flatten() {
            state.come_back(&run.key, now + after, true);
        }
    }

    fn retry(&mut self, part: usize, run: &Run) {
        let now = self.now();
        let state = &mut self.parts[part];
        let after = state.backoff(&run.key);
        state.come_back(&run.key, now + after, false);
        state.causes.entry(run.key.clone()).or_default().merge(&run.causes);
    }

    fn fire(&mut self, part: usize, key: &Key) -> Result<(), Broken> {
        let state = &mut self.parts[part];
        let Some(index) = state.timers.iter().position(|timer| timer.key == *key) else { return Ok(()) };
        let timer = state.timers.remove(index);
        state.add(&timer.key);
        if timer.at > self.now() {
            self.cluster.run_until(timer.at, |_| true);
            self.absorb()?;
        }
        Ok(())
    }

    fn edit(&mut self) -> Result<(), Broken> {
        let Some(edit) = self.task.scenario.edits.get(self.edits) else { return Ok(()) };
        self.edits += 1;
        self.disturbed |= edit.disturbs;
        match (&edit.act, edit.act.request(&self.cluster)) {
            (Act::Wait(wait), _) => {
                let until = (self.edited_at + *wait).max(self.now());
                self.cluster.run_until(until, |_| true);
            }
            // What an edit wants to change may not be there yet, or no longer.
            (_, Ok(Some(request))) => drop(self.cluster.request(request)),
            (_, Ok(None) | Err(_)) => {}
        }
        self.edited_at = self.now();
        self.absorb()?;
        self.marks.push(self.cluster.revision());
        for state in &mut self.parts {
            (state.pace, state.paced_from) = (BTreeMap::new(), self.edited_at);
        }
        Ok(())
    }

    /// Takes notice of what has been written since it last looked.
    fn absorb(&mut self) -> Result<Vec<RequestEntry>, Broken> {
        let next = self.cluster.trace().next_sequence();
        let entries = (self.seen..next).filter_map(|sequence| match &self.cluster.trace().get(sequence)?.what {
            What::Request(request) if request.is_write() => Some((**request).clone()),
            _ => None,
        });
        let commits: Vec<RequestEntry> = entries.collect();
        self.seen = next;
        if commits.is_empty() {
            self.note_settled();
            return Ok(commits);
        }
        let contents = Arc::make_mut(&mut self.contents);
        for commit in &commits {
            self.names.learn(commit);
            let place =
                (commit.kind.slot, commit.object().map_or_else(|| commit.key.clone(), |object| object.key.clone()));
            let digest = match &commit.after {
                Some(object) => self.names.object(object),
                None => 0,
            };
            contents.insert(place, (commit.kind.clone(), digest));
            self.unsettled = digest_of(&(self.unsettled, digest));
        }
        self.note_settled();
        for state in &mut self.parts {
            state.receive(&self.cluster, &self.names);
        }
        self.note_held();
        let safe = (self.task.scenario.safe)(&Scene(&self.cluster));
        safe.map_err(|found| Broken { property: properties::safety::NAME, found })?;
        Ok(commits)
    }

    fn note_settled(&mut self) {
        if self.cluster.next_work_due().is_none() {
            self.unsettled = 0;
        }
    }

    fn note_held(&mut self) {
        let Some(ready) = self.task.scenario.ready else { return };
        let scene = Scene(&self.cluster);
        let revision = self.cluster.revision();
        let held = Arc::make_mut(&mut self.held);
        for kind in self.task.subjects.iter().filter_map(Subject::main) {
            for object in self.cluster.list_of(kind, "") {
                held.push(Held {
                    revision,
                    uid: object.uid().into(),
                    generation: object.metadata().generation.unwrap_or(0),
                    is_met: ready(&scene, &object.to_json()),
                });
            }
        }
    }

    fn note_made(&mut self, part: usize, run: &Run, commits: &[RequestEntry]) {
        let created: Vec<Made> = commits
            .iter()
            .filter(|commit| commit.before.is_none())
            .filter_map(|commit| {
                let object = commit.after.as_ref()?;
                let main = self.task.subjects[part].main()?;
                let owner = run.view.view(run.began).get_of(main, &run.key).map_or("", |owner| owner.uid());
                Some(Made {
                    kind: commit.kind.clone(),
                    key: object.key.clone(),
                    uid: object.uid().into(),
                    owner: owner.into(),
                    had_owner: object.controller().is_some(),
                })
            })
            .collect();
        if !created.is_empty() {
            Arc::make_mut(&mut self.made).extend(created);
        }
    }

    /// Time passes to the horizon, at rest.
    pub fn wait(&mut self) -> Result<(), Broken> {
        let until = self.horizon();
        if until > self.now() {
            self.cluster.run_until(until, |_| true);
            self.absorb()?;
        }
        Ok(())
    }

    /// Everything is looked at once more.
    pub fn resync(&mut self) {
        self.cluster.advance(RECONCILE, |_| true);
        for (state, subject) in self.parts.iter_mut().zip(&self.task.subjects) {
            state.resync(subject);
        }
    }

    pub fn met(&self) -> Result<(), Words> {
        (self.task.scenario.met)(&Scene(&self.cluster))
    }
}
