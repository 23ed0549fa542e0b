//! One run: a cluster and a past drawn from a seed, one thing after the other.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::request::{Body, PatchType, Propagation, Request, Verb};
use cluster_core::api::{Key, Name};
use cluster_core::clock::Time;
use cluster_core::faults::{Edge, Effect};
use cluster_core::random::Random;
use cluster_core::trace::What;
use cluster_core::world::Settings;
use cluster_core::{Cluster, Config};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::{Value, json};

use crate::invariants::{self, Past};
use crate::{edits, faults, goals, story, workloads};

/// Once all is mended, this much virtual time is enough for everything: an informer's next list, the longest backoff, and
/// what comes of them.
const SETTLE_MAX: Duration = Duration::from_secs(1800);
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// Who has got what was wished is watched for so long again.
const REST: Duration = Duration::from_secs(40);
/// A cluster so small that does so many things within a second will never come to an end.
const STEPS_A_SECOND_MAX: u32 = 20_000;

/// Where users work.
pub const NAMESPACES: [&str; 2] = ["default", "team"];
/// A finalizer that nobody but the user takes away.
pub const HOLD: &str = "example.com/hold";

/// Something that can happen in a run. It says what it did in words, or nothing if there was nothing to do it to.
pub struct Act {
    pub name: &'static str,
    pub act: fn(&mut Run) -> Option<String>,
}

#[derive(Clone)]
pub struct Run {
    pub seed: u64,
    random: Random,
    pub cluster: Cluster,
    pub settings: Settings,
    features: BTreeSet<&'static str>,
    /// What was done, and when.
    pub actions: Vec<String>,
    past: Past,
    names: usize,
    rounds: u64,
    /// Components whose watches have lost events, and which don't list anew by themselves.
    pub deaf: BTreeSet<Name>,
    /// Containers that were made unhealthy: pod and container.
    pub sick: BTreeSet<(Key, String)>,
}

/// Runs a seed to its end; the error is its story.
pub fn check(seed: u64) -> Result<Run, String> {
    let mut run = Run::new(seed);
    let end = catch_unwind(AssertUnwindSafe(|| run.go_on(u64::MAX)));
    match end {
        Ok(Ok(())) => Ok(run),
        Ok(Err(what)) => Err(run.told(&what)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(run.told(&format!("it panicked: {}", text.unwrap_or("without words"))))
        }
    }
}

/// Runs a seed twice, and a fork of it from the middle on: all three must be the same to the byte.
pub fn check_twice(seed: u64) -> Result<Run, String> {
    let first = check(seed)?;
    let mut second = Run::new(seed);
    let middle = second.rounds / 2;
    second.go_on(middle).map_err(|what| second.told(&what))?;
    let mut fork = second.clone();
    for (name, other) in [("a second run", &mut second), ("a fork", &mut fork)] {
        other.go_on(u64::MAX).map_err(|what| other.told(&what))?;
        if let Some(at) = story::first_difference(&first.cluster, &other.cluster) {
            return Err(other.told(&format!("{name} of the same seed differs: {at}")));
        }
    }
    Ok(first)
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed ^ 0x5eed_0f5e_ed05);
        let all = workloads::ALL.iter().chain(edits::ALL).chain(faults::ALL).map(|act| act.name);
        let features = all.filter(|_| random.below(2) == 0).collect();
        let settings = settings(&mut random);
        let nodes = 1 + random.below(4) as usize;
        let cluster = Cluster::new(Config { seed, nodes, settings: settings.clone(), ..Config::default() });
        let rounds = 4 + random.below(20);
        Run {
            seed,
            random,
            cluster,
            settings,
            features,
            actions: Vec::new(),
            past: Past::default(),
            names: 0,
            rounds,
            deaf: BTreeSet::new(),
            sick: BTreeSet::new(),
        }
    }

    /// Goes on until so many rounds are left to do, or to the end.
    fn go_on(&mut self, rounds: u64) -> Result<(), String> {
        if self.actions.is_empty() {
            self.pass(Duration::from_secs(5))?;
            workloads::prepare(self);
        }
        for _ in 0..rounds {
            if self.rounds == 0 {
                return self.end();
            }
            self.rounds -= 1;
            self.round()?;
        }
        Ok(())
    }

    /// One thing happens, then some time passes.
    fn round(&mut self) -> Result<(), String> {
        let table = match self.below(10) {
            0..3 => workloads::ALL,
            3..7 => edits::ALL,
            _ => faults::ALL,
        };
        let on: Vec<&Act> = table.iter().filter(|act| self.features.contains(act.name)).collect();
        if !on.is_empty() {
            let act = on[self.below(on.len() as u64) as usize];
            let at = self.cluster.now();
            if let Some(what) = (act.act)(self) {
                self.actions.push(format!("{at} {}: {what}", act.name));
            }
        }
        let ms = [0, 20, 500, 4_000, 4_000, 20_000, 20_000, 90_000, 400_000];
        let most = ms[self.below(ms.len() as u64) as usize];
        let by = self.below(most + 1);
        self.pass(Duration::from_millis(by))
    }

    /// All is mended, the user wants nothing impossible any more, and waits.
    fn end(&mut self) -> Result<(), String> {
        self.actions.push(format!("{} the end begins", self.cluster.now()));
        faults::mend(self);
        self.pass(Duration::from_secs(30))?;
        edits::make_possible(self);
        let deadline = self.cluster.now() + SETTLE_MAX;
        loop {
            self.pass(LOOK_EVERY)?;
            edits::make_possible(self);
            let unmet = goals::unmet(self);
            if unmet.is_empty() {
                return self.rest();
            }
            if self.cluster.now() >= deadline {
                return Err(format!(
                    "after {SETTLE_MAX:?} it has not come to what is wished:\n  {}",
                    unmet.join("\n  ")
                ));
            }
        }
    }

    /// What is as it should be is left alone: only heartbeats are written, and what clocks make happen, pods that fail
    /// again and again, and a quota that something is given back to.
    fn rest(&mut self) -> Result<(), String> {
        let by_clock = self
            .objects(&["CronJob", "Job"])
            .iter()
            .any(|object| object.is::<CronJob>() || object.spec::<Job>().ttl_seconds_after_finished.is_some());
        self.pass(REST)?;
        let from = self.past.seen;
        self.pass(REST)?;
        let of_clocks = ["Lease", "Node", "Event"];
        let restless = self.cluster.trace().since(from + 1).find_map(|entry| match &entry.what {
            What::Request(write) if write.is_write() && !of_clocks.contains(&&*write.kind.kind) => {
                let key = &write.key;
                let excused = key.name.starts_with("fails-") || goals::is_limited(&self.cluster, &key.namespace);
                (!excused).then(|| story::line(entry))
            }
            _ => None,
        });
        match restless.filter(|_| !by_clock) {
            Some(write) => Err(format!("nothing is left to do, and yet: {write}")),
            None => Ok(()),
        }
    }

    /// Lets time pass, and looks at every commit.
    fn pass(&mut self, by: Duration) -> Result<(), String> {
        let until = self.cluster.now() + by;
        let (mut second, mut steps) = (self.now(), 0);
        while self.cluster.step_before(until) {
            self.look()?;
            steps += 1;
            if self.now().since(second).as_secs() > 0 {
                (second, steps) = (self.now(), 0);
            } else if steps > STEPS_A_SECOND_MAX {
                return Err(format!("it did {steps} things within a second"));
            }
        }
        self.look()
    }

    fn look(&mut self) -> Result<(), String> {
        invariants::look(&mut self.past, &self.cluster, &self.features)
    }

    /// The story of the run, with the last word on it.
    pub fn told(&self, what: &str) -> String {
        story::tell(self, what)
    }

    pub fn last_seen(&self) -> u64 {
        self.past.seen
    }

    pub fn features(&self) -> impl Iterator<Item = &&'static str> {
        self.features.iter()
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; none of none.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let index = self.below(of.len() as u64) as usize;
        of.get(index).cloned()
    }

    /// One of several that are not none.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        self.pick(of).expect("there is one")
    }

    /// A name that nothing has yet.
    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}-{}", self.names)
    }

    pub fn namespace(&mut self) -> &'static str {
        if self.chance(70) { NAMESPACES[0] } else { NAMESPACES[1] }
    }

    pub fn kind(&self, name: &str) -> KindRef {
        let found = self.cluster.kinds().find(|kind| *kind.kind == *name);
        found.unwrap_or_else(|| panic!("no kind {name}")).clone()
    }

    /// The objects of these kinds in the namespaces of users.
    pub fn objects(&self, kinds: &[&str]) -> Vec<Object> {
        let mut all = Vec::new();
        for kind in kinds {
            let kind = self.kind(kind);
            for namespace in NAMESPACES {
                all.extend(self.cluster.list_of(&kind, namespace).cloned());
            }
        }
        all
    }

    pub fn pick_object(&mut self, kinds: &[&str]) -> Option<Object> {
        let all = self.objects(kinds);
        self.pick(&all)
    }

    /// Sends a request of the user, and says in words what came of it.
    pub fn kubectl(&mut self, mut request: Request) -> String {
        request.actor = "kubectl".into();
        if request.options.field_manager.is_empty() {
            request.options.field_manager = "kubectl".into();
        }
        let name = match &request.body {
            Body::Json(body) if request.key.name.is_empty() => {
                body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            _ => request.key.name.to_string(),
        };
        let verb = request.verb.as_str();
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let what = format!(
            "{verb} {}{slash}{} {}",
            request.kind.kind,
            request.subresource,
            Key::new(request.key.namespace.clone(), name)
        );
        match self.cluster.request(request) {
            Ok(_) => what,
            Err(status) => format!("{what}: {} {}", status.code, status.message),
        }
    }

    pub fn create(&mut self, kind: &str, namespace: &str, body: Value) -> String {
        let kind = self.kind(kind);
        let mut request = Request::new(&"".into(), Verb::Create, &kind, Key::new(namespace, ""));
        request.body = Body::Json(with_type(&kind, body));
        self.kubectl(request)
    }

    pub fn patch(&mut self, object: &Object, body: Value) -> String {
        let told = short(&body);
        let request = Request::patch(&"".into(), &object.kind, object.key.clone(), PatchType::Merge, body);
        format!("{} {told}", self.kubectl(request))
    }

    pub fn delete(&mut self, object: &Object, propagation: Option<Propagation>, grace: Option<i64>) -> String {
        let mut request = Request::delete(&"".into(), &object.kind, object.key.clone());
        request.options.propagation = propagation;
        request.options.grace_period_seconds = grace;
        let how = propagation.map_or(String::new(), |how| format!(" {how:?}"));
        let grace = grace.map_or(String::new(), |grace| format!(" grace {grace}"));
        format!("{}{how}{grace}", self.kubectl(request))
    }

    /// Puts an object in its place anew, changed by this function.
    pub fn edit(&mut self, object: &Object, change: impl FnOnce(&mut Value)) -> String {
        let mut body = object.to_json();
        change(&mut body);
        let mut request = Request::new(&"".into(), Verb::Update, &object.kind, object.key.clone());
        request.body = Body::Json(with_type(&object.kind, body));
        self.kubectl(request)
    }

    pub fn rule(&mut self, edge: Edge, component: &str, kind: &str, effect: Effect, times: Option<u32>) -> String {
        let until = Some(self.cluster.now() + Duration::from_secs(120));
        let text = format!("{effect:?} {edge:?} of {component} about {kind:?}, {times:?} times");
        let rule = cluster_core::faults::Rule {
            edge,
            component: component.into(),
            kind: kind.into(),
            name: "".into(),
            effect,
            times,
            until,
        };
        self.cluster.add_rule(rule, text.as_str());
        text
    }

    pub fn now(&self) -> Time {
        self.cluster.now()
    }
}

fn with_type(kind: &KindRef, mut body: Value) -> Value {
    body["apiVersion"] = json!(kind.api_version());
    body["kind"] = json!(&*kind.kind);
    body
}

fn short(body: &Value) -> String {
    let text = body.to_string();
    text.chars().take(160).collect()
}

/// A cluster that is as quick as usual, quicker, or slow in some respect.
fn settings(random: &mut Random) -> Settings {
    let mut settings = Settings::default();
    let mut draw = |(low, high): (Duration, Duration)| match random.below(4) {
        0 => (low / 10, high / 10),
        1 => (low, high * 10),
        _ => (low, high),
    };
    settings.api = draw(settings.api);
    settings.watch = draw(settings.watch);
    settings.reconcile = draw(settings.reconcile);
    settings.sandbox = draw(settings.sandbox);
    settings.image_pull = draw(settings.image_pull);
    settings.container_start = draw(settings.container_start);
    settings
}
