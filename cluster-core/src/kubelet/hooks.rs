//! Lifecycle hooks: what a container does right after its start and before its end.
//! <https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, HTTPGetAction, LifecycleHandler};

use super::ordered::{Order, Purpose};
use super::termination::GRACE_AFTER_HOOK;
use super::worker::{Stage, Step, Worker};
use super::{Task, Turn, probes};
use crate::clock::Class;
use crate::network::connect::Options;
use crate::network::question::Question;
use crate::runtime::container::Handle;
use crate::runtime::shell::exec::{EXEC_MAX, Exec, Ran as Ended};
use crate::runtime::shell::input::Input;

/// How long after a failed postStart hook the container may start again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a hook went.
struct Ran {
    took: Duration,
    /// What went wrong, in the kubelet's words.
    failure: Option<String>,
}

impl Worker {
    /// Begins the postStart hook of a container whose program has just started. False if it has none.
    pub(super) fn post_start(&mut self, index: usize, handle: Handle, turn: &mut Turn<'_>) -> bool {
        let hook = self.slots[index].spec(self.spec()).and_then(|spec| spec.lifecycle.as_ref()?.post_start.as_ref());
        let Some(hook) = hook.cloned() else { return false };
        if let Some(ran) = self.run_hook(&hook, (index, handle), (Purpose::PostStart, EXEC_MAX), turn) {
            let done = Task::PostStartDone(self.uid.clone(), handle, ran.failure.map(Into::into));
            turn.after(ran.took, Class::Work, done);
        }
        true
    }

    /// The same for a hook that had to wait for the network.
    pub(super) fn post_start_ran(&mut self, (index, handle): (usize, Handle), exec: &Exec, turn: &mut Turn<'_>) {
        let hook =
            self.slots.get(index).and_then(|slot| slot.spec(self.spec())?.lifecycle.as_ref()?.post_start.clone());
        let failure = hook.and_then(|hook| self.failure(index, &hook, exec));
        self.post_start_done(handle, failure.as_deref(), turn);
    }

    /// The postStart hook is over: the container counts as running, or is ended.
    pub fn post_start_done(&mut self, handle: Handle, failure: Option<&str>, turn: &mut Turn<'_>) {
        let Some(index) = self.slot_of(handle) else { return };
        if self.slots[index].step != Step::Starting || self.stage != Stage::Running {
            return;
        }
        let Some(message) = failure else { return self.runs(index, handle, 0, turn) };
        turn.event(&self.pod, true, "FailedPostStartHook", "PostStartHook failed".into(), &self.causes);
        self.slots[index].hook_failure = Some(message.into());
        self.kill(index, handle, "FailedPostStartHook".into(), turn);
    }

    /// A container has ended because of its hook: it waits with that reason for a moment.
    pub(super) fn wait_after_hook(&mut self, index: usize, turn: &mut Turn<'_>) {
        let Some(message) = self.slots[index].hook_failure.take() else { return };
        if self.stage == Stage::Running && self.should_restart(index, turn.runtime) {
            self.block(index, "PostStartHookError", message.to_string(), LOOK_AGAIN, turn);
        }
    }

    /// Runs the preStop hook of a container within its grace period; how long that takes. `None` if it has to wait for the
    /// network: then the container is stopped when it has ended.
    pub(super) fn pre_stop(
        &mut self,
        index: usize,
        handle: Handle,
        grace: Duration,
        turn: &mut Turn<'_>,
    ) -> Option<Duration> {
        let hook = self.slots[index].spec(self.spec()).and_then(|spec| spec.lifecycle.as_ref()?.pre_stop.as_ref());
        let Some(hook) = hook.cloned() else { return Some(Duration::ZERO) };
        let ran = self.run_hook(&hook, (index, handle), (Purpose::PreStop(grace), grace), turn)?;
        if ran.failure.is_some() && ran.took <= grace {
            turn.event(&self.pod, true, "FailedPreStopHook", "PreStopHook failed".into(), &self.causes);
        }
        Some(ran.took)
    }

    /// A preStop hook has ended that had to wait for the network.
    pub(super) fn pre_stop_ran(
        &mut self,
        (_, handle): (usize, Handle),
        grace: Duration,
        exec: &Exec,
        turn: &mut Turn<'_>,
    ) {
        if exec.code != 0 && exec.took < grace {
            turn.event(&self.pod, true, "FailedPreStopHook", "PreStopHook failed".into(), &self.causes);
        }
        self.signal(handle, grace.saturating_sub(exec.took).max(GRACE_AFTER_HOOK), turn);
    }

    /// Runs a hook; nothing yet if it has to wait for the network.
    fn run_hook(
        &self,
        hook: &LifecycleHandler,
        (index, handle): (usize, Handle),
        (purpose, patience): (Purpose, Duration),
        turn: &mut Turn<'_>,
    ) -> Option<Ran> {
        if let Some(sleep) = &hook.sleep {
            return Some(Ran { took: Duration::from_secs(sleep.seconds.max(0).unsigned_abs()), failure: None });
        }
        if let Some(http) = &hook.http_get {
            if let Some(url) = self.elsewhere(http, index) {
                let options = Options { timeout: Some(patience), host: None };
                let order = Order::Get(Question::Get { url, options });
                self.order((index, handle), order, (purpose, patience), turn);
                return None;
            }
            let asked = self.slots[index].spec(self.spec()).map_or(Ok(()), |spec| ask(http, spec, handle, turn));
            let failure = asked.err().map(|error| {
                let path = http.path.as_deref().unwrap_or_default();
                format!("HTTP lifecycle hook ({path}) for {} failed - error: {error}", self.whose(index))
            });
            return Some(Ran { took: Duration::ZERO, failure });
        }
        let command = command(hook);
        self.furnish(handle, turn);
        match turn.runtime.exec(handle, command, turn.world.now) {
            None => Some(Ran { took: Duration::ZERO, failure: None }),
            Some(Ended::Ended(done)) => Some(Ran { took: done.took, failure: self.failure(index, hook, &done) }),
            Some(Ended::Asks) => {
                let running = turn.runtime.begin(handle, command, Input::closed(""))?;
                self.order((index, handle), Order::Run(running.into()), (purpose, patience), turn);
                None
            }
        }
    }

    /// The URL of a hook that asks another host than its own pod.
    fn elsewhere(&self, http: &HTTPGetAction, index: usize) -> Option<String> {
        let host =
            http.host.as_deref().filter(|host| !host.is_empty() && *host != "localhost" && *host != "127.0.0.1")?;
        let port = probes::port(&http.port, self.slots[index].spec(self.spec())?).ok()?;
        let scheme = http.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
        let path = http.path.as_deref().unwrap_or_default().trim_start_matches('/');
        Some(format!("{scheme}://{host}:{port}/{path}"))
    }

    fn whose(&self, index: usize) -> String {
        format!("Container \"{}\" in Pod \"{}\"", self.slots[index].name, self.full_name())
    }

    /// What went wrong with a command that was a hook, in the kubelet's words.
    fn failure(&self, index: usize, hook: &LifecycleHandler, done: &Exec) -> Option<String> {
        (done.code != 0).then(|| {
            if let Some(http) = &hook.http_get {
                let path = http.path.as_deref().unwrap_or_default();
                let (whose, error) = (self.whose(index), &done.output);
                return format!("HTTP lifecycle hook ({path}) for {whose} failed - error: {error}");
            }
            let words = command(hook).join(" ");
            let error = format!("command '{words}' exited with {}: {}", done.code, done.output);
            let (message, whose) = (&done.output, self.whose(index));
            format!("Exec lifecycle hook ([{words}]) for {whose} failed - error: {error}, message: {message:?}")
        })
    }
}

fn command(hook: &LifecycleHandler) -> &[String] {
    hook.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default()
}

/// Whatever is answered is right.
fn ask(http: &HTTPGetAction, spec: &ContainerSpec, handle: Handle, turn: &Turn<'_>) -> Result<(), String> {
    let port = probes::port(&http.port, spec)?;
    let Some(container) = turn.runtime.container(handle) else { return Ok(()) };
    let path = http.path.as_deref().unwrap_or("/");
    if container.http(port, path).is_ok() {
        return Ok(());
    }
    let ip = turn.runtime.sandbox(&container.identity.pod_uid).map(|sandbox| sandbox.ip.clone()).unwrap_or_default();
    let host = http.host.as_deref().unwrap_or(&ip);
    Err(format!("Get \"http://{host}:{port}{path}\": dial tcp {host}:{port}: connect: connection refused"))
}
