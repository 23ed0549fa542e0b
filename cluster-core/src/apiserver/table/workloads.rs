//! Deployments and what they are made of, daemon sets, stateful sets, jobs.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::Value;

use super::age::{age, human_duration, since_time};
use super::{cells, containers, labels_text, or_none, printers, selector_text};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    Deployment: "Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*" => deployment,
    ReplicaSet: "Name, Desired#, Current#, Ready#, Age, Containers*, Images*, Selector*" => replica_set,
    ReplicationController: "Name, Desired#, Current#, Ready#, Age, Containers*, Images*, Selector*" => replication_controller,
    DaemonSet: "Name, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, Containers*, Images*, Selector*" => daemon_set,
    StatefulSet: "Name, Ready, Age, Containers*, Images*" => stateful_set,
    ControllerRevision: "Name, Controller, Revision, Age" => controller_revision,
    Job: "Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*" => job,
    CronJob: "Name, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age, Containers*, Images*, Selector*" => cron_job,
}

fn deployment(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<Deployment>(), object.status::<Deployment>());
    let (names, images) = containers(spec.template.spec.as_ref());
    cells![
        &*object.key.name,
        format!("{}/{}", status.ready_replicas.unwrap_or(0), spec.replicas.unwrap_or(1)),
        status.updated_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0),
        age(object, now),
        names,
        images,
        selector_text(&spec.selector),
    ]
}

fn replica_set(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<ReplicaSet>(), object.status::<ReplicaSet>());
    let (names, images) = containers(spec.template.as_ref().and_then(|template| template.spec.as_ref()));
    cells![
        &*object.key.name,
        spec.replicas.unwrap_or(1),
        status.replicas,
        status.ready_replicas.unwrap_or(0),
        age(object, now),
        names,
        images,
        selector_text(&spec.selector),
    ]
}

fn replication_controller(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<ReplicationController>(), object.status::<ReplicationController>());
    let (names, images) = containers(spec.template.as_ref().and_then(|template| template.spec.as_ref()));
    cells![
        &*object.key.name,
        spec.replicas.unwrap_or(1),
        status.replicas,
        status.ready_replicas.unwrap_or(0),
        age(object, now),
        names,
        images,
        labels_text(spec.selector.iter().flatten()),
    ]
}

fn daemon_set(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<DaemonSet>(), object.status::<DaemonSet>());
    let template = spec.template.spec.as_ref();
    let (names, images) = containers(template);
    cells![
        &*object.key.name,
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.updated_number_scheduled.unwrap_or(0),
        status.number_available.unwrap_or(0),
        labels_text(template.into_iter().flat_map(|spec| spec.node_selector.iter().flatten())),
        age(object, now),
        names,
        images,
        selector_text(&spec.selector),
    ]
}

fn stateful_set(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<StatefulSet>(), object.status::<StatefulSet>());
    let (names, images) = containers(spec.template.spec.as_ref());
    cells![
        &*object.key.name,
        format!("{}/{}", status.ready_replicas.unwrap_or(0), spec.replicas.unwrap_or(1)),
        age(object, now),
        names,
        images,
    ]
}

fn controller_revision(object: &Object, now: Time) -> Vec<Value> {
    let controller = object.controller().map(|owner| {
        let group = owner.api_version.split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
        format!("{}{group}/{}", owner.kind.to_lowercase(), owner.name)
    });
    cells![
        &*object.key.name,
        controller.as_deref().unwrap_or("<none>"),
        object.spec::<ControllerRevision>().revision,
        age(object, now),
    ]
}

fn job(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<Job>(), object.status::<Job>());
    let succeeded = status.succeeded.unwrap_or(0);
    let completions = match (spec.completions, spec.parallelism.unwrap_or(0)) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    };
    let duration = match (&status.start_time, &status.completion_time) {
        (None, _) => String::new(),
        (Some(start), Some(end)) => human_duration(Time::from(end).since(Time::from(start))),
        (Some(start), None) => human_duration(now.since(Time::from(start))),
    };
    let (names, images) = containers(spec.template.spec.as_ref());
    cells![
        &*object.key.name,
        job_state(object),
        completions,
        duration,
        age(object, now),
        names,
        images,
        spec.selector.as_ref().map_or("<none>".into(), selector_text),
    ]
}

/// The first of these that is true, else `Running`.
fn job_state(object: &Object) -> &'static str {
    let conditions = object.status::<Job>().conditions.as_deref().unwrap_or_default();
    let is = |type_: &str| conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True");
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if object.is_terminating() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn cron_job(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<CronJob>(), object.status::<CronJob>());
    let job = spec.job_template.spec.as_ref();
    let (names, images) = containers(job.and_then(|job| job.template.spec.as_ref()));
    let last = status.last_schedule_time.as_ref();
    cells![
        &*object.key.name,
        spec.schedule.as_str(),
        or_none(spec.time_zone.as_deref()),
        if spec.suspend.unwrap_or(false) { "True" } else { "False" },
        status.active.as_ref().map_or(0, Vec::len),
        last.map_or("<none>".into(), |time| since_time(Some(time), now)),
        age(object, now),
        names,
        images,
        job.and_then(|job| job.selector.as_ref()).map_or("<none>".into(), selector_text),
    ]
}
