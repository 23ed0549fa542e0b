//! Probes and lifecycle hooks: one handler each, and numbers that make sense.
//! <https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/>

use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction, TCPSocketAction,
};

use super::field::{Causes, Path};
use super::{names, ports, text};

/// What a probe and a hook have in common.
#[derive(Default)]
struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

pub fn liveness(causes: &mut Causes, path: &Path, checked: &Probe) {
    probe(causes, path, checked);
    success_once(causes, path, checked);
}

pub fn readiness(causes: &mut Causes, path: &Path, checked: &Probe) {
    probe(causes, path, checked);
    if let Some(seconds) = checked.termination_grace_period_seconds {
        let path = path.child("terminationGracePeriodSeconds");
        causes.invalid(&path, seconds, "must not be set for readinessProbes");
    }
}

pub fn startup(causes: &mut Causes, path: &Path, checked: &Probe) {
    probe(causes, path, checked);
    success_once(causes, path, checked);
}

fn success_once(causes: &mut Causes, path: &Path, probe: &Probe) {
    let times = probe.success_threshold.unwrap_or(0);
    if times != 1 {
        causes.invalid(&path.child("successThreshold"), times, "must be 1");
    }
}

fn probe(causes: &mut Causes, path: &Path, probe: &Probe) {
    let how = Handler {
        exec: probe.exec.as_ref(),
        http_get: probe.http_get.as_ref(),
        tcp_socket: probe.tcp_socket.as_ref(),
        grpc: probe.grpc.as_ref(),
        sleep: None,
    };
    handler(causes, path, &how, None);
    causes.non_negative(&path.child("initialDelaySeconds"), probe.initial_delay_seconds);
    causes.non_negative(&path.child("timeoutSeconds"), probe.timeout_seconds);
    causes.non_negative(&path.child("periodSeconds"), probe.period_seconds);
    causes.non_negative(&path.child("successThreshold"), probe.success_threshold);
    causes.non_negative(&path.child("failureThreshold"), probe.failure_threshold);
    if let Some(seconds) = probe.termination_grace_period_seconds.filter(|seconds| *seconds <= 0) {
        causes.invalid(&path.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
    }
}

/// The hooks of a container; a pause before its end has to fit into the grace period of the pod.
pub fn lifecycle(causes: &mut Causes, path: &Path, hooks: &Lifecycle, grace_period_seconds: Option<i64>) {
    for (field, hook) in [("postStart", &hooks.post_start), ("preStop", &hooks.pre_stop)] {
        if let Some(LifecycleHandler { exec, http_get, sleep, tcp_socket }) = hook {
            let how = Handler {
                exec: exec.as_ref(),
                http_get: http_get.as_ref(),
                tcp_socket: tcp_socket.as_ref(),
                grpc: None,
                sleep: sleep.as_ref(),
            };
            handler(causes, &path.child(field), &how, grace_period_seconds);
        }
    }
}

fn handler(causes: &mut Causes, path: &Path, handler: &Handler<'_>, grace_period_seconds: Option<i64>) {
    let mut found = false;
    let mut first = |causes: &mut Causes, field: &str, present: bool| {
        if !present {
            return false;
        }
        if found {
            causes.forbidden(&path.child(field), "may not specify more than 1 handler type");
            return false;
        }
        found = true;
        true
    };
    if first(causes, "exec", handler.exec.is_some())
        && let Some(exec) = handler.exec
        && exec.command.as_ref().is_none_or(Vec::is_empty)
    {
        causes.required(&path.child("exec.command"), "");
    }
    if first(causes, "httpGet", handler.http_get.is_some())
        && let Some(http) = handler.http_get
    {
        http_get(causes, &path.child("httpGet"), http);
    }
    if first(causes, "tcpSocket", handler.tcp_socket.is_some())
        && let Some(tcp) = handler.tcp_socket
    {
        ports::number_or_name(causes, &path.child("tcpSocket.port"), &tcp.port);
    }
    if first(causes, "grpc", handler.grpc.is_some())
        && let Some(grpc) = handler.grpc
    {
        ports::port_number(causes, &path.child("grpc.port"), grpc.port);
    }
    if first(causes, "sleep", handler.sleep.is_some())
        && let (Some(sleep), Some(grace)) = (handler.sleep, grace_period_seconds)
        && !(0..=grace).contains(&sleep.seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.invalid(&path.child("sleep"), sleep.seconds, detail);
    }
    if !found {
        causes.required(path, "must specify a handler type");
    }
}

fn http_get(causes: &mut Causes, path: &Path, http: &HTTPGetAction) {
    if text(&http.path).is_empty() {
        causes.required(&path.child("path"), "");
    }
    ports::number_or_name(causes, &path.child("port"), &http.port);
    causes.one_of(&path.child("scheme"), http.scheme.as_deref(), &["HTTP", "HTTPS"]);
    for header in http.http_headers.iter().flatten() {
        causes.invalid_each(&path.child("httpHeaders"), &header.name, names::http_header_name(&header.name));
    }
}
