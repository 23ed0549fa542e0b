//! Lifecycle hooks: what a container does right after its start and before its end.
//! <https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, HTTPGetAction, LifecycleHandler};

use super::worker::{Stage, Step, Worker};
use super::{Task, Turn, probes};
use crate::clock::Class;
use crate::runtime::container::Handle;

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
        let ran = self.run_hook(&hook, index, handle, turn);
        turn.after(ran.took, Class::Work, Task::PostStartDone(self.uid.clone(), handle, ran.failure.map(Into::into)));
        true
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

    /// Runs the preStop hook of a container within its grace period; how long that takes.
    pub(super) fn pre_stop(&mut self, index: usize, handle: Handle, grace: Duration, turn: &mut Turn<'_>) -> Duration {
        let hook = self.slots[index].spec(self.spec()).and_then(|spec| spec.lifecycle.as_ref()?.pre_stop.as_ref());
        let Some(hook) = hook.cloned() else { return Duration::ZERO };
        let ran = self.run_hook(&hook, index, handle, turn);
        if ran.failure.is_some() && ran.took <= grace {
            turn.event(&self.pod, true, "FailedPreStopHook", "PreStopHook failed".into(), &self.causes);
        }
        ran.took
    }

    fn run_hook(&self, hook: &LifecycleHandler, index: usize, handle: Handle, turn: &mut Turn<'_>) -> Ran {
        let whose = || format!("Container \"{}\" in Pod \"{}\"", self.slots[index].name, self.full_name());
        if let Some(sleep) = &hook.sleep {
            return Ran { took: Duration::from_secs(sleep.seconds.max(0).unsigned_abs()), failure: None };
        }
        if let Some(http) = &hook.http_get {
            let asked = self.slots[index].spec(self.spec()).map_or(Ok(()), |spec| ask(http, spec, handle, turn));
            let failure = asked.err().map(|error| {
                let path = http.path.as_deref().unwrap_or_default();
                format!("HTTP lifecycle hook ({path}) for {} failed - error: {error}", whose())
            });
            return Ran { took: Duration::ZERO, failure };
        }
        let command = hook.exec.as_ref().and_then(|exec| exec.command.clone()).unwrap_or_default();
        self.furnish(handle, turn);
        let Some(done) = turn.runtime.exec(handle, &command, turn.world.now) else {
            return Ran { took: Duration::ZERO, failure: None };
        };
        let failure = (done.code != 0).then(|| {
            let words = command.join(" ");
            let error = format!("command '{words}' exited with {}: {}", done.code, done.output);
            let message = &done.output;
            format!("Exec lifecycle hook ([{words}]) for {} failed - error: {error}, message: {message:?}", whose())
        });
        Ran { took: done.took, failure }
    }
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
