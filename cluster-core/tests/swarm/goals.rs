//! What must be there in the end: one row a goal. Each names what is not as it should be.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::selector::Selector;
use cluster_core::controllers::pods::{claims, is_active, is_finished, is_ready};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota,
    Service,
};
use k8s_openapi::api::discovery::v1::{EndpointConditions, EndpointSlice};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::run::{NAMESPACES, Run};

struct Goal {
    name: &'static str,
    /// Puts what is not as it should be into the list.
    unmet: fn(&Cluster, &mut Vec<String>),
}

const ALL: &[Goal] = &[
    Goal { name: "nodes are ready", unmet: nodes },
    Goal { name: "namespaces are there or gone", unmet: namespaces },
    Goal { name: "pods run", unmet: pods },
    Goal { name: "Deployments have their pods", unmet: deployments },
    Goal { name: "sets have their pods", unmet: replica_sets },
    Goal { name: "StatefulSets have their pods", unmet: stateful_sets },
    Goal { name: "DaemonSets have their pods", unmet: daemon_sets },
    Goal { name: "Jobs are done", unmet: jobs },
    Goal { name: "Services have their endpoints", unmet: services },
    Goal { name: "claims have their volumes", unmet: volumes },
    Goal { name: "budgets know their pods", unmet: budgets },
    Goal { name: "quotas count what is there", unmet: quotas },
    Goal { name: "nothing outlives its owners", unmet: orphans },
    Goal { name: "nothing is stuck on its way out", unmet: terminating },
    Goal { name: "each manager has one entry", unmet: managers },
    Goal { name: "machines run what they should, and nothing else", unmet: machines },
    Goal { name: "machines route to the pods that are ready", unmet: rules },
];

/// What is not yet as it should be.
pub fn unmet(run: &Run) -> Vec<String> {
    let mut all = Vec::new();
    for goal in ALL {
        let mut found = Vec::new();
        (goal.unmet)(&run.cluster, &mut found);
        all.extend(found.into_iter().map(|what| format!("{}: {what}", goal.name)));
    }
    all
}

/// A quota may keep pods from a namespace.
pub fn is_limited(cluster: &Cluster, namespace: &str) -> bool {
    cluster.list::<ResourceQuota>(namespace).next().is_some()
}

fn owned<'a>(cluster: &'a Cluster, owner: &'a Object) -> impl Iterator<Item = &'a Object> {
    let by = move |pod: &&Object| pod.controller().is_some_and(|of| of.uid == owner.uid());
    cluster.list::<Pod>(&owner.key.namespace).filter(by)
}

/// Says what is wrong with an object.
fn say(found: &mut Vec<String>, object: &Object, what: impl std::fmt::Display) {
    found.push(format!("{} {} {what}", object.kind.kind, object.key));
}

fn nodes(cluster: &Cluster, found: &mut Vec<String>) {
    for (name, _) in cluster.machines() {
        let Some(node) = cluster.get::<Node>("", name) else {
            found.push(format!("{name} is not registered"));
            continue;
        };
        let conditions = node.status::<Node>().conditions.iter().flatten();
        let ready = conditions.filter(|known| known.type_ == "Ready").any(|known| known.status == "True");
        let taints = node.spec::<Node>().taints.as_deref().unwrap_or_default();
        if !ready || !taints.is_empty() {
            say(found, node, format!("ready: {ready}, taints: {taints:?}"));
        }
    }
}

fn namespaces(cluster: &Cluster, found: &mut Vec<String>) {
    for namespace in cluster.list::<Namespace>("").filter(|namespace| namespace.is_terminating()) {
        say(found, namespace, format!("is still there: {:?}", namespace.status::<Namespace>().conditions));
    }
    for kind in cluster.kinds().filter(|kind| kind.namespaced && &*kind.kind != "Binding") {
        for object in cluster.list_of(kind, "") {
            if cluster.get::<Namespace>("", &object.key.namespace).is_none() {
                say(found, object, "is in no namespace");
            }
        }
    }
    for namespace in cluster.list::<Namespace>("").filter(|namespace| !namespace.is_terminating()) {
        use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
        let name = &namespace.key.name;
        if cluster.get::<ServiceAccount>(name, "default").is_none() {
            say(found, namespace, "has no default ServiceAccount");
        }
        if cluster.get::<ConfigMap>(name, "kube-root-ca.crt").is_none() && !is_limited(cluster, name) {
            say(found, namespace, "has no kube-root-ca.crt");
        }
    }
}

/// Every pod of users that is there has ended or is ready, but for those whose claim is gone.
fn pods(cluster: &Cluster, found: &mut Vec<String>) {
    for pod in cluster.list::<Pod>("").filter(|pod| is_active(pod)) {
        let usable = |name: String| {
            let claim = cluster.get::<PersistentVolumeClaim>(&pod.key.namespace, &name);
            claim.is_some_and(|claim| !claim.is_terminating())
        };
        if pod.controller().is_none() && !claims(pod).all(usable) {
            continue;
        }
        let status = pod.status::<Pod>();
        let by_task = pod.spec::<Pod>().restart_policy.as_deref() != Some("Always");
        if !is_ready(pod) && !by_task {
            let waits =
                status.container_statuses.iter().flatten().filter_map(|status| status.state.as_ref()?.waiting.clone());
            let waits: Vec<_> = waits.filter_map(|waiting| waiting.reason).collect();
            let unbound = status.conditions.iter().flatten().find(|known| known.type_ == "PodScheduled");
            let message = unbound.and_then(|known| known.message.clone()).unwrap_or_default();
            say(found, pod, format!("is {:?}, not ready {waits:?} {message}", status.phase));
        }
    }
}

fn deployments(cluster: &Cluster, found: &mut Vec<String>) {
    for object in cluster.list::<Deployment>("").filter(|object| !object.is_terminating()) {
        let (spec, status) = (object.spec::<Deployment>(), object.status::<Deployment>());
        let wanted = spec.replicas.unwrap_or(1);
        let seen = status.observed_generation == object.metadata().generation;
        let numbers = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas];
        let limited = is_limited(cluster, &object.key.namespace);
        if !seen || !limited && numbers.iter().any(|number| number.unwrap_or(0) != wanted) {
            say(found, object, format!("wants {wanted}, has {numbers:?}, its spec is seen: {seen}"));
        }
        let sets = cluster.list::<ReplicaSet>(&object.key.namespace);
        let sets = sets.filter(|set| set.controller().is_some_and(|of| of.uid == object.uid()));
        let active = sets.filter(|set| set.spec::<ReplicaSet>().replicas.unwrap_or(0) > 0).count();
        if active > 1 && !limited {
            say(found, object, format!("has {active} ReplicaSets with pods"));
        }
    }
}

fn replica_sets(cluster: &Cluster, found: &mut Vec<String>) {
    let sets = cluster.list::<ReplicaSet>("").map(|set| {
        let (spec, status) = (set.spec::<ReplicaSet>(), set.status::<ReplicaSet>());
        (set, spec.replicas, status.replicas, status.ready_replicas, status.observed_generation)
    });
    let controllers = cluster.list::<ReplicationController>("").map(|set| {
        let (spec, status) = (set.spec::<ReplicationController>(), set.status::<ReplicationController>());
        (set, spec.replicas, status.replicas, status.ready_replicas, status.observed_generation)
    });
    for (set, wanted, replicas, ready, observed) in sets.chain(controllers).filter(|(set, ..)| !set.is_terminating()) {
        let wanted = wanted.unwrap_or(1);
        let pods: Vec<&Object> = owned(cluster, set).filter(|pod| is_active(pod)).collect();
        let (count, ready_count) = (pods.len() as i32, pods.iter().filter(|pod| is_ready(pod)).count() as i32);
        let enough = count == wanted || count < wanted && is_limited(cluster, &set.key.namespace);
        if !enough || replicas != count || ready.unwrap_or(0) != ready_count || observed != set.metadata().generation {
            say(
                found,
                set,
                format!("wants {wanted}, says {replicas} and {ready:?} ready, there are {count} and {ready_count}"),
            );
        }
    }
}

fn stateful_sets(cluster: &Cluster, found: &mut Vec<String>) {
    for set in cluster.list::<StatefulSet>("").filter(|set| !set.is_terminating()) {
        let (spec, status) = (set.spec::<StatefulSet>(), set.status::<StatefulSet>());
        let wanted = spec.replicas.unwrap_or(1);
        let names: BTreeSet<String> = owned(cluster, set).map(|pod| pod.key.name.to_string()).collect();
        let ordinals: BTreeSet<String> = (0..wanted).map(|ordinal| format!("{}-{ordinal}", set.key.name)).collect();
        let limited = is_limited(cluster, &set.key.namespace);
        let numbers = (status.replicas, status.ready_replicas.unwrap_or(0));
        if !limited && (names != ordinals || numbers != (wanted, wanted))
            || status.observed_generation != set.metadata().generation
        {
            say(found, set, format!("wants {wanted}, says {numbers:?}, there are {names:?}"));
        }
        let strategy = spec.update_strategy.as_ref();
        let on_delete = strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete");
        let partition = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition).unwrap_or(0);
        for pod in owned(cluster, set).filter(|_| !on_delete && !limited) {
            let ordinal: i32 = pod.key.name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(-1);
            let revision = pod.label("controller-revision-hash");
            if ordinal >= partition && revision != status.update_revision.as_deref() {
                say(found, pod, format!("is of revision {revision:?}, not {:?}", status.update_revision));
            }
        }
    }
}

fn daemon_sets(cluster: &Cluster, found: &mut Vec<String>) {
    let nodes = cluster.list::<Node>("").count() as i32;
    for set in cluster.list::<DaemonSet>("").filter(|set| !set.is_terminating()) {
        let status = set.status::<DaemonSet>();
        let limited = is_limited(cluster, &set.key.namespace);
        let numbers = [status.desired_number_scheduled, status.current_number_scheduled, status.number_ready];
        let mut on: BTreeMap<String, usize> = BTreeMap::new();
        for pod in owned(cluster, set).filter(|pod| is_active(pod)) {
            *on.entry(pod.spec::<Pod>().node_name.clone().unwrap_or_default()).or_default() += 1;
        }
        if status.observed_generation != set.metadata().generation
            || !limited && (numbers.iter().any(|number| *number != nodes) || on.len() as i32 != nodes)
            || on.values().any(|count| *count > 1)
        {
            say(found, set, format!("wants {nodes}, says {numbers:?}, they are on {on:?}"));
        }
    }
}

fn is_over(job: &Object) -> bool {
    let conditions = job.status::<Job>().conditions.iter().flatten();
    conditions.into_iter().any(|known| matches!(known.type_.as_str(), "Complete" | "Failed") && known.status == "True")
}

fn jobs(cluster: &Cluster, found: &mut Vec<String>) {
    for job in cluster.list::<Job>("").filter(|job| !job.is_terminating()) {
        let (spec, status) = (job.spec::<Job>(), job.status::<Job>());
        let by_clock = job.controller().is_some_and(|owner| owner.kind == "CronJob");
        let waits = spec.suspend == Some(true) || spec.parallelism == Some(0);
        if !is_over(job) && !waits && !by_clock && !is_limited(cluster, &job.key.namespace) {
            say(found, job, format!("is not over: {status:?}"));
        }
        if is_over(job) && owned(cluster, job).any(is_active) {
            say(found, job, "is over, and has pods that are not");
        }
        let counted = status.uncounted_terminated_pods.as_ref();
        if is_over(job) && counted.is_some_and(|of| of.succeeded.iter().chain(&of.failed).any(|uids| !uids.is_empty()))
        {
            say(found, job, format!("is over, and has not counted {counted:?}"));
        }
        if waits && !is_over(job) && owned(cluster, job).any(is_active) {
            say(found, job, "waits, and has pods that don't");
        }
    }
    for pod in cluster.list::<Pod>("").filter(|pod| is_finished(pod)) {
        let tracked = pod.metadata().finalizers.iter().flatten().any(|name| name == "batch.kubernetes.io/job-tracking");
        let by_clock = pod.key.name.starts_with("tick");
        let job = pod.controller().and_then(|owner| cluster.get::<Job>(&pod.key.namespace, &owner.name));
        // The last failure of an index stays until it is replaced, and such a Job replaces nothing.
        let waits = job.is_some_and(|job| job.spec::<Job>().parallelism == Some(0));
        if tracked && !by_clock && !waits {
            say(found, pod, "has ended and is not counted");
        }
    }
    for cron in cluster.list::<CronJob>("").filter(|cron| !cron.is_terminating()) {
        let active = cron.status::<CronJob>().active.as_deref().unwrap_or_default();
        let gone = |name: &str| cluster.get::<Job>(&cron.key.namespace, name).is_none();
        let waits = cron.spec::<CronJob>().suspend == Some(true);
        if let Some(job) = active.iter().filter_map(|job| job.name.as_deref()).find(|name| gone(name)).filter(|_| waits)
        {
            say(found, cron, format!("says that {job} is active, which is not there"));
        }
    }
}

fn services(cluster: &Cluster, found: &mut Vec<String>) {
    for service in cluster.list::<Service>("").filter(|service| !service.is_terminating()) {
        let spec = service.spec::<Service>();
        let Some(selector) = spec.selector.as_ref().map(Selector::of_labels) else { continue };
        let all = spec.publish_not_ready_addresses == Some(true);
        let wanted: BTreeSet<String> = cluster
            .list::<Pod>(&service.key.namespace)
            .filter(|pod| selector.matches(pod.metadata().labels.as_ref()))
            .filter(|pod| is_active(pod) && (is_ready(pod) || all) && pod.status::<Pod>().pod_ip.is_some())
            .map(|pod| format!("{} {}", pod.key.name, pod.status::<Pod>().pod_ip.clone().unwrap_or_default()))
            .collect();
        let mut there = BTreeSet::new();
        let mut twice = Vec::new();
        let of_service = |slice: &&Object| {
            slice.label("kubernetes.io/service-name") == Some(&*service.key.name) && !slice.is_terminating()
        };
        for slice in cluster.list::<EndpointSlice>(&service.key.namespace).filter(of_service) {
            for endpoint in slice.spec::<EndpointSlice>().endpoints.iter().flatten() {
                let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true);
                let name = endpoint.target_ref.as_ref().and_then(|target| target.name.clone()).unwrap_or_default();
                let address = endpoint.addresses.first().cloned().unwrap_or_default();
                if ready && !there.insert(format!("{name} {address}")) {
                    twice.push(name);
                }
            }
        }
        if there != wanted || !twice.is_empty() {
            say(found, service, format!("should go to {wanted:?}, goes to {there:?}, twice to {twice:?}"));
        }
        let old = cluster.get::<Endpoints>(&service.key.namespace, &service.key.name);
        let subsets = old.iter().flat_map(|old| old.spec::<Endpoints>().subsets.iter().flatten());
        let old: BTreeSet<String> = subsets
            .flat_map(|subset| subset.addresses.iter().flatten())
            .map(|address| {
                let name = address.target_ref.as_ref().and_then(|target| target.name.clone()).unwrap_or_default();
                format!("{name} {}", address.ip)
            })
            .collect();
        if old != wanted {
            say(found, service, format!("should go to {wanted:?}, its Endpoints are {old:?}"));
        }
    }
}

fn volumes(cluster: &Cluster, found: &mut Vec<String>) {
    let users: BTreeSet<(String, String)> = cluster
        .list::<Pod>("")
        .filter(|pod| is_active(pod))
        .flat_map(|pod| claims(pod).map(|claim| (pod.key.namespace.to_string(), claim)).collect::<Vec<_>>())
        .collect();
    for claim in cluster.list::<PersistentVolumeClaim>("") {
        let spec = claim.spec::<PersistentVolumeClaim>();
        let phase = claim.status::<PersistentVolumeClaim>().phase.as_deref().unwrap_or_default();
        let used = users.contains(&(claim.key.namespace.to_string(), claim.key.name.to_string()));
        if phase != "Bound" && used && !claim.is_terminating() {
            say(found, claim, format!("is {phase}"));
        }
        let volume = spec.volume_name.as_deref().and_then(|name| cluster.get::<PersistentVolume>("", name));
        let of = volume.and_then(|volume| volume.spec::<PersistentVolume>().claim_ref.as_ref()?.uid.clone());
        if phase == "Bound" && of.as_deref() != Some(claim.uid()) {
            say(found, claim, format!("is bound to {:?}, which is of {of:?}", spec.volume_name));
        }
    }
    for volume in cluster.list::<PersistentVolume>("").filter(|volume| !volume.is_terminating()) {
        let claim = volume.spec::<PersistentVolume>().claim_ref.as_ref();
        let uid = claim.and_then(|claim| claim.uid.as_deref());
        let mut all = cluster.list::<PersistentVolumeClaim>("");
        let there = uid.is_some_and(|uid| all.any(|claim| claim.uid() == uid));
        let phase = volume.status::<PersistentVolume>().phase.as_deref().unwrap_or_default();
        let expected = match (uid, there) {
            (None, _) => "Available",
            (Some(_), true) => "Bound",
            (Some(_), false) => "Released",
        };
        if phase != expected {
            say(found, volume, format!("is {phase}, not {expected}"));
        }
        let policy = volume.spec::<PersistentVolume>().persistent_volume_reclaim_policy.as_deref();
        if phase == "Released" && matches!(policy, Some("Delete" | "Recycle")) {
            say(found, volume, format!("is Released, its policy is {policy:?}"));
        }
    }
}

fn budgets(cluster: &Cluster, found: &mut Vec<String>) {
    for budget in cluster.list::<PodDisruptionBudget>("") {
        let status = budget.status::<PodDisruptionBudget>();
        let covered =
            cluster.list::<Pod>(&budget.key.namespace).filter(|pod| cluster_core::disruption::covers(budget, pod));
        let covered: Vec<&Object> = covered.filter(|pod| is_active(pod)).collect();
        let ready = covered.iter().filter(|pod| is_ready(pod)).count() as i32;
        let failed = status.conditions.iter().flatten().any(|known| known.reason == "SyncFailed");
        let allowed = (ready - status.desired_healthy.unwrap_or(0)).max(0);
        let expected = status.expected_pods.unwrap_or(0);
        let right = status.current_healthy == Some(ready)
            && status.disruptions_allowed == Some(if expected > 0 { allowed } else { 0 })
            && status.observed_generation == budget.metadata().generation
            && status.disrupted_pods.as_ref().is_none_or(BTreeMap::is_empty);
        if !failed && !right {
            say(found, budget, format!("should know of {ready} that are ready, says {status:?}"));
        }
    }
}

fn quotas(cluster: &Cluster, found: &mut Vec<String>) {
    let count = |kind: &str, namespace: &str| {
        let kind = cluster.kinds().find(|known| &*known.kind == kind).expect("a kind");
        cluster.list_of(kind, namespace).count() as i64 * 1000
    };
    for quota in cluster.list::<ResourceQuota>("") {
        let namespace = &quota.key.namespace;
        let pods = || cluster.list::<Pod>(namespace).filter(|pod| !is_finished(pod));
        let cpu = |pod: &Object| {
            let of = |container: &k8s_openapi::api::core::v1::Container| {
                let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
                requests.and_then(|requests| requests.get("cpu")).map_or(0, cluster_core::api::quantity::millis)
            };
            let spec = pod.spec::<Pod>();
            let all: i64 = spec.containers.iter().map(of).sum();
            let init = spec.init_containers.as_deref().unwrap_or_default();
            let sidecars: i64 = init.iter().filter(|container| container.restart_policy.is_some()).map(of).sum();
            let first = init.iter().map(of).max().unwrap_or(0);
            (all + sidecars).max(first)
        };
        let used = quota.status::<ResourceQuota>().used.clone().unwrap_or_default();
        for resource in quota.spec::<ResourceQuota>().hard.iter().flatten().map(|(resource, _)| resource) {
            let expected = match resource.as_str() {
                "pods" => pods().count() as i64 * 1000,
                "requests.cpu" => pods().map(cpu).sum(),
                "count/configmaps" => count("ConfigMap", namespace),
                "count/jobs.batch" => count("Job", namespace),
                "services" => count("Service", namespace),
                "persistentvolumeclaims" => count("PersistentVolumeClaim", namespace),
                _ => continue,
            };
            let told = used.get(resource).map(cluster_core::api::quantity::millis);
            if told != Some(expected) {
                say(found, quota, format!("{resource} is {:?}, not {expected}m", used.get(resource)));
            }
        }
    }
}

/// All objects, each once.
fn everything(cluster: &Cluster) -> impl Iterator<Item = &Object> {
    let mut slots = BTreeSet::new();
    let kinds: Vec<&KindRef> = cluster.kinds().filter(|kind| slots.insert(kind.slot)).collect();
    kinds.into_iter().flat_map(|kind| cluster.list_of(kind, ""))
}

fn orphans(cluster: &Cluster, found: &mut Vec<String>) {
    let uids: BTreeSet<&str> = everything(cluster).map(Object::uid).collect();
    for object in everything(cluster) {
        let owners = object.metadata().owner_references.as_deref().unwrap_or_default();
        if !owners.is_empty() && owners.iter().all(|owner| !uids.contains(owner.uid.as_str())) {
            let names: Vec<&str> = owners.iter().map(|owner| owner.name.as_str()).collect();
            say(found, object, format!("outlives {names:?}"));
        }
    }
}

fn terminating(cluster: &Cluster, found: &mut Vec<String>) {
    for object in everything(cluster).filter(|object| object.is_terminating() && !object.is::<Namespace>()) {
        // What pods still use stays until they are gone.
        if object.is::<PersistentVolumeClaim>() || object.is::<PersistentVolume>() {
            let name = &*object.key.name;
            let namespace = &*object.key.namespace;
            if object.is::<PersistentVolume>()
                || cluster.list::<Pod>(namespace).any(|pod| claims(pod).any(|claim| claim == name))
            {
                continue;
            }
        }
        let metadata = object.metadata();
        let since = metadata.deletion_timestamp.as_ref().map(cluster_core::clock::Time::from);
        if since.is_some_and(|since| cluster.now().since(since).as_secs() > 60) {
            say(found, object, format!("goes since {since:?}, held by {:?}", metadata.finalizers));
        }
    }
}

/// Who writes in one way has one entry in managedFields.
fn managers(cluster: &Cluster, found: &mut Vec<String>) {
    for object in everything(cluster).filter(|object| NAMESPACES.contains(&&*object.key.namespace)) {
        let mut ways = BTreeSet::new();
        for entry in cluster_core::apiserver::managed::entries(object) {
            if !ways.insert((&entry.manager, entry.applied, &entry.api_version, &entry.subresource)) {
                say(found, object, format!("has two entries of {}", entry.manager));
            }
        }
    }
}

fn machines(cluster: &Cluster, found: &mut Vec<String>) {
    for (name, machine) in cluster.machines() {
        for sandbox in machine.runtime.sandboxes() {
            let pod = cluster.get::<Pod>(&sandbox.pod.namespace, &sandbox.pod.name);
            if pod.is_none_or(|pod| pod.uid() != &*sandbox.pod_uid) {
                found.push(format!("{name} has a sandbox of {}, which is gone", sandbox.pod));
            }
        }
        let running = machine.runtime.containers().filter(|(_, container)| container.is_running());
        let mut names = BTreeSet::new();
        for (_, container) in running {
            if !names.insert((container.identity.pod_uid.clone(), container.identity.name.clone())) {
                found.push(format!("{name} runs {} of {} twice", container.identity.name, container.identity.pod));
            }
        }
    }
}

/// kube-proxy's rules and the slices name the same pods.
fn rules(cluster: &Cluster, found: &mut Vec<String>) {
    for service in cluster.list::<Service>("").filter(|service| &*service.key.name != "kubernetes") {
        let spec = service.spec::<Service>();
        if spec.cluster_ip.as_deref() == Some("None") || spec.selector.is_none() {
            continue;
        }
        let of_service = |slice: &&Object| slice.label("kubernetes.io/service-name") == Some(&*service.key.name);
        let slices = cluster.list::<EndpointSlice>(&service.key.namespace).filter(of_service);
        let endpoints = slices.flat_map(|slice| slice.spec::<EndpointSlice>().endpoints.iter().flatten());
        let is_ready = |conditions: &EndpointConditions| conditions.ready == Some(true);
        let ready: BTreeSet<String> = endpoints
            .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(is_ready))
            .flat_map(|endpoint| endpoint.addresses.clone())
            .collect();
        for (name, machine) in cluster.machines() {
            let rules = machine.proxy.table().get(&service.key);
            let backends = rules.iter().flat_map(|rules| &rules.ports).flat_map(|port| &port.backends);
            let routed: BTreeSet<String> =
                backends.filter(|backend| backend.ready).map(|backend| backend.address.to_string()).collect();
            if routed != ready {
                say(found, service, format!("goes to {ready:?}, on {name} to {routed:?}"));
            }
        }
    }
}
