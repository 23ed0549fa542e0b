//! The lives of pods and containers, read off the trace: when each was wished, placed, running, ready, ending.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::api::Key;
use cluster_core::api::object::Object;
use cluster_core::clock::Time;
use cluster_core::trace::{ContainerEntry, ContainerPhase, Entry, RequestEntry, Trace, What};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Pod;

/// What a pod or a container is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No node yet.
    Unscheduled,
    /// On a node, its containers being made.
    Creating,
    /// Running, but not ready to serve.
    NotReady,
    Ready,
    /// It has ended, or waits to be started again.
    Down,
    /// To be deleted.
    Terminating,
}

impl Stage {
    pub const ALL: [Stage; 6] =
        [Stage::Unscheduled, Stage::Creating, Stage::NotReady, Stage::Ready, Stage::Down, Stage::Terminating];

    pub fn words(self, japanese: bool) -> &'static str {
        match (self, japanese) {
            (Stage::Unscheduled, true) => "ノード未定",
            (Stage::Unscheduled, false) => "unscheduled",
            (Stage::Creating, true) => "作成中",
            (Stage::Creating, false) => "creating",
            (Stage::NotReady, true) => "未 Ready",
            (Stage::NotReady, false) => "not ready",
            (Stage::Ready, _) => "Ready",
            (Stage::Down, true) => "停止",
            (Stage::Down, false) => "down",
            (Stage::Terminating, true) => "終了処理中",
            (Stage::Terminating, false) => "terminating",
        }
    }
}

/// One pod (by uid) or one container of the plain host (by name).
#[derive(Clone, Debug)]
pub struct Life {
    pub name: String,
    /// The workload that owns it, `pod` for a bare one, `docker` for a container of the plain host.
    pub group: String,
    pub labels: BTreeMap<String, String>,
    pub node: Option<String>,
    /// Each stage from its moment to that of the next.
    pub stages: Vec<(Time, Stage)>,
    pub restarts: Vec<Time>,
    pub gone: Option<Time>,
}

impl Life {
    fn enter(&mut self, at: Time, stage: Stage) {
        if self.gone.is_none() && self.stages.last().is_none_or(|(_, last)| *last != stage) {
            self.stages.push((at, stage));
        }
    }

    pub fn born(&self) -> Time {
        self.stages.first().map_or(Time::ZERO, |(at, _)| *at)
    }

    pub fn stage_at(&self, at: Time) -> Option<Stage> {
        if self.gone.is_some_and(|gone| gone <= at) {
            return None;
        }
        self.stages.iter().rev().find(|(from, _)| *from <= at).map(|(_, stage)| *stage)
    }

    /// Stages with their ends, cut off at `until`.
    pub fn spans(&self, until: Time) -> impl Iterator<Item = (Time, Time, Stage)> {
        let end = self.gone.unwrap_or(until).min(until);
        let ends = self.stages.iter().skip(1).map(|(at, _)| *at).chain([end]).collect::<Vec<_>>();
        self.stages.iter().zip(ends).map(|((from, stage), to)| (*from, to, *stage)).filter(|(from, to, _)| from < to)
    }
}

/// Whose lives a picture shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    Everything,
    /// The containers of the plain host, all or by the beginning of their names.
    Docker(String),
    /// A workload by kind and name: `deployment/web`.
    Workload {
        kind: String,
        name: String,
    },
    /// Bare pods, by the beginning of their names.
    Pod(String),
    /// Pods with a label.
    Label(String, String),
    /// A component.
    Actor(String),
}

impl Subject {
    /// `deployment/web`, `pod/web`, `docker`, `docker/web`, `app=web`; nothing for everything.
    pub fn parse(text: &str) -> Result<Subject, String> {
        if text.is_empty() || text == "all" {
            return Ok(Subject::Everything);
        }
        if let Some((label, value)) = text.split_once('=') {
            return Ok(Subject::Label(label.into(), value.into()));
        }
        let (kind, name) = text.split_once('/').unwrap_or((text, ""));
        match kind {
            "docker" => Ok(Subject::Docker(name.into())),
            "pod" | "pods" | "po" if !name.is_empty() => Ok(Subject::Pod(name.into())),
            "deployment" | "deploy" | "deployments" if !name.is_empty() => {
                Ok(Subject::Workload { kind: "Deployment".into(), name: name.into() })
            }
            "replicaset" | "rs" | "replicasets" if !name.is_empty() => {
                Ok(Subject::Workload { kind: "ReplicaSet".into(), name: name.into() })
            }
            "statefulset" | "sts" | "statefulsets" if !name.is_empty() => {
                Ok(Subject::Workload { kind: "StatefulSet".into(), name: name.into() })
            }
            kind if !name.is_empty() && kind.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
                let (initial, rest) = kind.split_at(1);
                Ok(Subject::Workload { kind: initial.to_uppercase() + rest, name: name.into() })
            }
            _ => Err(format!(
                "'{text}' is not something to plot: expected deployment/NAME, replicaset/NAME, pod/NAME, docker[/NAME] or LABEL=VALUE"
            )),
        }
    }

    pub fn includes(&self, life: &Life) -> bool {
        match self {
            Subject::Everything => true,
            Subject::Docker(prefix) => life.group == "docker" && life.name.starts_with(prefix.as_str()),
            Subject::Workload { kind, name } => life.group == format!("{}/{name}", kind.to_lowercase()),
            Subject::Pod(prefix) => life.group == "pod" && life.name.starts_with(prefix.as_str()),
            Subject::Label(label, value) => life.labels.get(label) == Some(value),
            Subject::Actor(_) => false,
        }
    }

    /// True for a request about the very object of that kind and name.
    pub fn names(&self, request: &RequestEntry) -> bool {
        let (kind, name) = match self {
            Subject::Workload { kind, name } => (kind.as_str(), name.as_str()),
            Subject::Pod(name) => ("Pod", name.as_str()),
            _ => return false,
        };
        let known = [&request.kind.kind, &request.kind.resource, &request.kind.singular];
        let is_kind = known.iter().any(|word| word.eq_ignore_ascii_case(kind))
            || request.kind.short_names.iter().any(|word| word.eq_ignore_ascii_case(kind));
        is_kind && *request.key.name == *name
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subject::Everything => f.write_str("all pods"),
            Subject::Docker(prefix) if prefix.is_empty() => f.write_str("docker"),
            Subject::Docker(prefix) => write!(f, "docker/{prefix}"),
            Subject::Workload { kind, name } => write!(f, "{}/{name}", kind.to_lowercase()),
            Subject::Pod(prefix) => write!(f, "pod/{prefix}"),
            Subject::Label(label, value) => write!(f, "{label}={value}"),
            Subject::Actor(name) => f.write_str(name),
        }
    }
}

/// All lives in the trace, in the order in which they began.
pub fn lives(trace: &Trace) -> Vec<Life> {
    let mut reader = Reader::default();
    for entry in trace.iter() {
        match &entry.what {
            What::Request(write) if write.is_write() => reader.write(entry, write),
            What::Container(container) if container.pod.namespace.is_empty() => reader.docker(entry, container),
            What::Container(container) => reader.restart(entry, container),
            _ => {}
        }
    }
    reader.lives
}

/// Moments at which somebody broke or repaired something, in words.
pub fn faults(trace: &Trace) -> Vec<(Time, String)> {
    trace
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Fault(text) => Some((entry.at, text.to_string())),
            _ => None,
        })
        .collect()
}

/// How many replicas a workload was wished to have, from each moment on.
pub fn wishes(trace: &Trace, subject: &Subject) -> Vec<(Time, i32)> {
    let Subject::Workload { kind, name } = subject else { return Vec::new() };
    let mut wishes: Vec<(Time, i32)> = Vec::new();
    for (entry, write) in trace.writes() {
        if *write.kind.kind != **kind || *write.key.name != **name {
            continue;
        }
        let wish = write.after.as_ref().map_or(0, replicas);
        if wishes.last().is_none_or(|(_, last)| *last != wish) {
            wishes.push((entry.at, wish));
        }
    }
    wishes
}

fn replicas(object: &Object) -> i32 {
    if object.is_terminating() {
        return 0;
    }
    let replicas = if object.is::<Deployment>() {
        object.spec::<Deployment>().replicas
    } else if object.is::<ReplicaSet>() {
        object.spec::<ReplicaSet>().replicas
    } else if object.is::<StatefulSet>() {
        object.spec::<StatefulSet>().replicas
    } else {
        object.to_json().pointer("/spec/replicas").and_then(|value| value.as_i64()).map(|value| value as i32)
    };
    replicas.unwrap_or(1)
}

#[derive(Default)]
struct Reader {
    lives: Vec<Life>,
    by_uid: BTreeMap<String, usize>,
    docker: BTreeMap<String, usize>,
    /// The owner of each workload that is owned itself (a ReplicaSet's Deployment), by uid.
    owners: BTreeMap<String, String>,
    /// The containers that have been started, by their pod's uid and their name.
    started: BTreeSet<(String, String)>,
}

impl Reader {
    fn write(&mut self, entry: &Entry, write: &RequestEntry) {
        let Some(object) = write.object() else { return };
        if !object.is::<Pod>() {
            if let Some(owner) = object.controller() {
                self.owners
                    .entry(object.uid().to_owned())
                    .or_insert_with(|| format!("{}/{}", owner.kind.to_lowercase(), owner.name));
            }
            return;
        }
        let index = *self.by_uid.entry(object.uid().to_owned()).or_insert_with(|| {
            let group = match object.controller() {
                None => "pod".to_owned(),
                Some(owner) => match self.owners.get(&owner.uid) {
                    Some(grand) => grand.clone(),
                    None => format!("{}/{}", owner.kind.to_lowercase(), owner.name),
                },
            };
            self.lives.push(Life {
                name: object.key.name.to_string(),
                group,
                labels: object.metadata().labels.clone().unwrap_or_default(),
                node: None,
                stages: Vec::new(),
                restarts: Vec::new(),
                gone: None,
            });
            self.lives.len() - 1
        });
        let life = &mut self.lives[index];
        life.node = life.node.take().or_else(|| object.spec::<Pod>().node_name.clone());
        match &write.after {
            Some(after) => life.enter(entry.at, stage_of(after)),
            None => life.gone = Some(entry.at),
        }
    }

    fn restart(&mut self, entry: &Entry, container: &ContainerEntry) {
        if container.phase != ContainerPhase::Started {
            return;
        }
        let is_first = self.started.insert((container.pod_uid.to_string(), container.container.to_string()));
        if let Some(&index) = self.by_uid.get(&*container.pod_uid).filter(|_| !is_first) {
            self.lives[index].restarts.push(entry.at);
        }
    }

    fn docker(&mut self, entry: &Entry, container: &ContainerEntry) {
        let stage = match container.phase {
            ContainerPhase::Pulling | ContainerPhase::Created => Stage::Creating,
            ContainerPhase::Started => Stage::Ready,
            ContainerPhase::Exited { .. } => Stage::Down,
            ContainerPhase::SandboxRemoved => {
                if let Some(index) = self.docker.remove(&*container.pod.name) {
                    self.lives[index].gone = Some(entry.at);
                }
                return;
            }
            _ => return,
        };
        let Key { name, .. } = &container.pod;
        let index = *self.docker.entry(name.to_string()).or_insert_with(|| {
            self.lives.push(Life {
                name: name.to_string(),
                group: "docker".into(),
                labels: BTreeMap::new(),
                node: None,
                stages: Vec::new(),
                restarts: Vec::new(),
                gone: None,
            });
            self.lives.len() - 1
        });
        let life = &mut self.lives[index];
        if stage == Stage::Ready && life.stages.iter().any(|(_, stage)| *stage == Stage::Down) {
            life.restarts.push(entry.at);
        }
        life.enter(entry.at, stage);
    }
}

fn stage_of(pod: &Object) -> Stage {
    let (spec, status) = (pod.spec::<Pod>(), pod.status::<Pod>());
    if pod.is_terminating() {
        return Stage::Terminating;
    }
    if spec.node_name.is_none() {
        return Stage::Unscheduled;
    }
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return Stage::Down;
    }
    let condition = |name: &str| {
        status.conditions.iter().flatten().any(|condition| condition.type_ == name && condition.status == "True")
    };
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let running = |container: &k8s_openapi::api::core::v1::ContainerStatus| {
        container.state.as_ref().is_some_and(|state| state.running.is_some())
    };
    if condition("Ready") {
        Stage::Ready
    } else if containers.iter().any(running) {
        Stage::NotReady
    } else if containers.iter().any(|container| {
        container.last_state.as_ref().is_some_and(|s| s.terminated.is_some())
            || container.state.as_ref().is_some_and(|s| s.terminated.is_some())
    }) {
        Stage::Down
    } else {
        Stage::Creating
    }
}
