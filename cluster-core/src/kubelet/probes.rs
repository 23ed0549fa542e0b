//! Probes: whether a container has started, is ready for traffic, is still alive.
//! <https://kubernetes.io/docs/concepts/workloads/pods/probes/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::ordered::{Order, Purpose};
use super::worker::{Step, Worker};
use super::{Task, Turn, script};
use crate::clock::{Class, Time};
use crate::runtime::container::Handle;
use crate::runtime::shell::exec::{Exec, Ran, Running};
use crate::runtime::shell::input::Input;
use crate::trace::{Causes, ContainerPhase, What};

/// From a container's start to its first readiness probe, if nothing asks for more.
const FIRST_LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    Startup,
    Readiness,
    Liveness,
}

/// How the probes of a container stand.
#[derive(Clone, Debug)]
pub struct Probes {
    /// It has passed its startup probe, or has none.
    pub started: bool,
    /// It has passed its readiness probe, or has none.
    pub ready: bool,
    counts: [Count; 3],
}

/// Successes or failures in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    successes: i32,
    failures: i32,
    /// A threshold was reached: `settle` need not wait for this probe any more.
    decided: bool,
}

impl Probes {
    pub fn new(spec: &ContainerSpec) -> Probes {
        let (started, ready) = (spec.startup_probe.is_none(), spec.readiness_probe.is_none());
        Probes { started, ready, counts: [Count::default(); 3] }
    }
}

fn of(spec: &ContainerSpec, kind: ProbeKind) -> Option<&Probe> {
    match kind {
        ProbeKind::Startup => spec.startup_probe.as_ref(),
        ProbeKind::Readiness => spec.readiness_probe.as_ref(),
        ProbeKind::Liveness => spec.liveness_probe.as_ref(),
    }
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
}

impl Worker {
    /// Sets up the probes of a container that has just started.
    pub(super) fn begin_probes(&mut self, index: usize, handle: Handle, turn: &mut Turn<'_>) {
        if script::is_never_ready(&self.pod) {
            self.slots[index].probes.ready = false;
        }
        if self.slots[index].probes.started {
            self.begin_readiness(index, handle, turn);
            self.plan_first(index, handle, ProbeKind::Liveness, turn);
            if self.slots[index].is_ready() {
                self.note_readiness(index, turn);
            }
        } else {
            self.plan_first(index, handle, ProbeKind::Startup, turn);
        }
    }

    /// A pod whose script says that it is never ready is not asked.
    pub(super) fn begin_readiness(&mut self, index: usize, handle: Handle, turn: &mut Turn<'_>) {
        if !script::is_never_ready(&self.pod) {
            self.plan_first(index, handle, ProbeKind::Readiness, turn);
        }
    }

    /// Probes tick from the time at which the pod was first seen; only a readiness probe without a delay is made at
    /// once.
    fn plan_first(&mut self, index: usize, handle: Handle, kind: ProbeKind, turn: &mut Turn<'_>) {
        let Some(probe) = self.slots[index].spec(self.spec()).and_then(|spec| of(spec, kind)) else { return };
        let delay = seconds(probe.initial_delay_seconds, 0);
        let period = seconds(probe.period_seconds, 10).max(Duration::from_secs(1));
        let started_at = turn.runtime.container(handle).map_or(turn.world.now, |container| container.started_at);
        let from = (started_at + delay).max(turn.world.now);
        let wait = if kind == ProbeKind::Readiness && delay.is_zero() {
            FIRST_LOOK
        } else {
            next_tick(self.seen_at, period, from).since(turn.world.now)
        };
        self.plan(index, handle, kind, wait, turn);
    }

    /// What somebody waits for is work; watching over what runs is not.
    fn plan(&self, index: usize, handle: Handle, kind: ProbeKind, wait: Duration, turn: &mut Turn<'_>) {
        let awaited = kind != ProbeKind::Liveness && !self.slots[index].probes.counts[kind as usize].decided;
        let class = if awaited { Class::Work } else { Class::Background };
        turn.after(wait, class, Task::Probe(self.uid.clone(), index, handle, kind));
    }

    /// Makes one probe.
    pub fn probe(&mut self, index: usize, handle: Handle, kind: ProbeKind, turn: &mut Turn<'_>) {
        let Some(slot) = self.slots.get(index).filter(|slot| slot.current == Some(handle)) else { return };
        let is_over = match kind {
            ProbeKind::Startup => slot.probes.started,
            ProbeKind::Readiness => script::is_never_ready(&self.pod),
            ProbeKind::Liveness => false,
        };
        if slot.step != Step::Running || is_over {
            return;
        }
        let Some(spec) = slot.spec(self.spec()) else { return };
        let Some(probe) = of(spec, kind) else { return };
        if probe.exec.is_some() {
            self.furnish(handle, turn);
        }
        let result = match make(probe, spec, handle, turn) {
            Made::Judged(result) => result,
            Made::Asks(running) => {
                let patience = seconds(probe.timeout_seconds, 1) + Duration::from_millis(1);
                return self.order((index, handle), Order::Run(running), (Purpose::Probe(kind), patience), turn);
            }
        };
        self.probed(index, handle, kind, result, turn);
    }

    /// A probe has been made; the error is what the kubelet says about it.
    pub(super) fn probed(
        &mut self,
        index: usize,
        handle: Handle,
        kind: ProbeKind,
        result: Result<(), String>,
        turn: &mut Turn<'_>,
    ) {
        let Some(probe) = self.slots[index].spec(self.spec()).and_then(|spec| of(spec, kind)) else { return };
        let period = seconds(probe.period_seconds, 10).max(Duration::from_secs(1));
        let (successes_needed, failures_allowed) =
            (probe.success_threshold.unwrap_or(1), probe.failure_threshold.unwrap_or(3));
        let count = &mut self.slots[index].probes.counts[kind as usize];
        match &result {
            Ok(()) => *count = Count { successes: count.successes + 1, failures: 0, ..*count },
            Err(_) => *count = Count { successes: 0, failures: count.failures + 1, ..*count },
        }
        let (passed, failed) = (count.successes >= successes_needed, count.failures >= failures_allowed);
        count.decided |= passed || failed;
        if let Err(message) = &result {
            let word = match kind {
                ProbeKind::Startup => "Startup",
                ProbeKind::Readiness => "Readiness",
                ProbeKind::Liveness => "Liveness",
            };
            turn.event(&self.pod, true, "Unhealthy", format!("{word} probe failed: {message}"), &Causes::None);
        }
        match kind {
            ProbeKind::Startup if passed => {
                self.slots[index].probes.started = true;
                self.begin_probes(index, handle, turn);
                self.status_changed(0, turn);
                return self.sync(turn);
            }
            ProbeKind::Readiness if passed != failed && self.slots[index].probes.ready != passed => {
                self.slots[index].probes.ready = passed;
                self.note_readiness(index, turn);
            }
            ProbeKind::Startup | ProbeKind::Liveness if failed => {
                let word = if kind == ProbeKind::Startup { "startup" } else { "liveness" };
                let message = format!("Container {} failed {word} probe, will be restarted", self.slots[index].name);
                return self.kill(index, handle, message, turn);
            }
            _ => {}
        }
        self.plan(index, handle, kind, period, turn);
    }

    /// Tells that a container has become ready, or is no more.
    pub(super) fn note_readiness(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &self.slots[index];
        let phase = if slot.is_ready() { ContainerPhase::Ready } else { ContainerPhase::NotReady };
        let identity = self.identity(index);
        let entry = identity.entry(&turn.runtime.machine, phase);
        let causes = self.causes.clone();
        let sequence = turn.world.record(turn.actor, causes, What::Container(Box::new(entry)));
        self.status_changed(sequence, turn);
    }
}

/// The first tick that is not before `from`.
fn next_tick(origin: Time, period: Duration, from: Time) -> Time {
    let passed = from.since(origin).as_micros();
    let ticks = passed.div_ceil(period.as_micros()).max(1);
    origin + Duration::from_micros((ticks * period.as_micros()) as u64)
}

/// A probe that has been made.
enum Made {
    /// With this result; the error is what the kubelet says about it.
    Judged(Result<(), String>),
    /// It is a command that has to wait for the network.
    Asks(Box<Running>),
}

fn make(probe: &Probe, spec: &ContainerSpec, handle: Handle, turn: &mut Turn<'_>) -> Made {
    let Some(exec) = &probe.exec else { return Made::Judged(ask(probe, spec, handle, turn)) };
    let command = exec.command.as_deref().unwrap_or_default();
    match turn.runtime.exec(handle, command, turn.world.now) {
        Some(Ran::Ended(done)) => Made::Judged(judge(&done, probe)),
        Some(Ran::Asks) => match turn.runtime.begin(handle, command, Input::closed("")) {
            Some(running) => Made::Asks(running.into()),
            None => Made::Judged(Err("container is not running".into())),
        },
        None => Made::Judged(Err("container is not running".into())),
    }
}

/// What the kubelet says about a command that was a probe.
fn judge(done: &Exec, probe: &Probe) -> Result<(), String> {
    if done.took > seconds(probe.timeout_seconds, 1) {
        let command = probe.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default();
        let patience = probe.timeout_seconds.unwrap_or(1);
        return Err(format!("command timed out: {:?} timed out after {patience}s", command.join(" ")));
    }
    if done.code == 0 { Ok(()) } else { Err(done.output.clone()) }
}

impl Worker {
    /// A command that was a probe has ended.
    pub(super) fn probe_ended(
        &mut self,
        (index, handle): (usize, Handle),
        kind: ProbeKind,
        done: &Exec,
        turn: &mut Turn<'_>,
    ) {
        let Some(slot) = self.slots.get(index).filter(|slot| slot.current == Some(handle)) else { return };
        if slot.step != Step::Running || kind == ProbeKind::Startup && slot.probes.started {
            return;
        }
        let Some(probe) = slot.spec(self.spec()).and_then(|spec| of(spec, kind)) else { return };
        let result = judge(done, probe);
        self.probed(index, handle, kind, result, turn);
    }
}

/// Makes a probe that is no command.
fn ask(probe: &Probe, spec: &ContainerSpec, handle: Handle, turn: &mut Turn<'_>) -> Result<(), String> {
    let Some(container) = turn.runtime.container(handle) else { return Err("container is gone".into()) };
    let ip = turn.runtime.sandbox(&container.identity.pod_uid).map(|sandbox| sandbox.ip.clone()).unwrap_or_default();
    if let Some(http) = &probe.http_get {
        let port = port(&http.port, spec)?;
        let path = http.path.as_deref().unwrap_or("/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let scheme = http.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
        let url = format!("{scheme}://{ip}:{port}{slash}{path}");
        return match container.http(port, path) {
            Ok(_) if scheme == "https" && !container.speaks_tls() => {
                Err(format!("Get \"{url}\": http: server gave HTTP response to HTTPS client"))
            }
            // What Go's server says to a client that speaks plainly.
            Ok(_) if scheme == "http" && container.speaks_tls() => Err("HTTP probe failed with statuscode: 400".into()),
            Ok(answer) if answer.took >= seconds(probe.timeout_seconds, 1) => Err(format!(
                "Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            )),
            Ok(answer) if (200..400).contains(&answer.status) => Ok(()),
            Ok(answer) if answer.status == 0 => {
                Err(format!("Get \"{url}\": net/http: HTTP/1.x transport connection broken"))
            }
            Ok(answer) => Err(format!("HTTP probe failed with statuscode: {}", answer.status)),
            Err(_) => Err(format!("Get \"{url}\": dial tcp {ip}:{port}: connect: connection refused")),
        };
    }
    if let Some(tcp) = &probe.tcp_socket {
        let port = port(&tcp.port, spec)?;
        let open = container.listens_on(port);
        return if open { Ok(()) } else { Err(format!("dial tcp {ip}:{port}: connect: connection refused")) };
    }
    if let Some(grpc) = &probe.grpc {
        let port = u16::try_from(grpc.port).unwrap_or_default();
        return match (container.listens_on(port), container.healthy) {
            (true, true) => Ok(()),
            (true, false) => Err("service unhealthy (responded with \"NOT_SERVING\")".into()),
            (false, _) => Err(format!("timeout: failed to connect service \"{ip}:{port}\" within 1s")),
        };
    }
    Ok(())
}

/// The number of a port that may be told by its name.
pub fn port(port: &IntOrString, spec: &ContainerSpec) -> Result<u16, String> {
    match port {
        IntOrString::Int(number) => u16::try_from(*number).map_err(|_| format!("invalid port number: {number}")),
        IntOrString::String(name) => {
            let named = spec.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name));
            let number = named.and_then(|port| u16::try_from(port.container_port).ok());
            number.or_else(|| name.parse().ok()).ok_or_else(|| format!("couldn't find port: {name}"))
        }
    }
}
