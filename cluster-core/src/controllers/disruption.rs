//! disruption-controller: how many pods a PodDisruptionBudget allows to be disrupted now.
//! <https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-budgets>

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time as MetaTime};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use super::share::scaled;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;
use crate::disruption::{covers, tell_allowed, tell_failed_sync};
use crate::store::Change;

/// A pod that was to be evicted and is still there after this time was not evicted.
const DELETION_TIMEOUT: Duration = Duration::from_secs(120);
/// The same for a pod that was told that it would be disrupted.
const STALE_TIMEOUT: Duration = Duration::from_secs(120);
const SOURCE: &str = "controllermanager";

pub struct DisruptionController;

impl Controller for DisruptionController {
    fn name(&self) -> &str {
        "disruption-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![Watch::itself(PodDisruptionBudget::kind()), Watch::with(Pod::kind(), concerned)];
        // What pods belong to is only looked up.
        let owners = [ReplicaSet::kind(), Deployment::kind(), StatefulSet::kind(), ReplicationController::kind()];
        watches.extend(owners.map(|kind| Watch::with(kind, |_, _| Vec::new())));
        watches
    }

    /// A name may be that of a budget and of a pod: both are looked at.
    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if let Some(budget) = view.get::<PodDisruptionBudget>(key) {
            sync(budget, view, &mut plan);
        }
        if let Some((pod, since)) = view.get::<Pod>(key).and_then(|pod| Some((pod, announced_at(pod)?))) {
            take_back(pod, since, view, &mut plan);
        }
        plan
    }
}

fn sync(budget: &Object, view: &View<'_>, plan: &mut Plan) {
    let pods: Vec<&Object> = view.list::<Pod>(&budget.key.namespace).filter(|pod| covers(budget, pod)).collect();
    if pods.is_empty() {
        plan.event(EventNote::normal(budget, "NoPods", "No matching pods found").from(SOURCE));
    }
    let mut told = budget.clone();
    match Expectation::of(budget, &pods, view) {
        Ok(expected) => *told.status_mut::<PodDisruptionBudget>() = status(budget, &pods, expected, view, plan),
        Err(error) => {
            let text = format!("Failed to calculate the number of expected pods: {error}");
            plan.event(EventNote::warning(budget, "CalculateExpectedPodCountFailed", text).from(SOURCE));
            tell_failed_sync(told.status_mut::<PodDisruptionBudget>(), error, view.now);
        }
    }
    if !told.same_status(budget) {
        plan.update_status(told, "its pods have changed");
    }
}

/// A pod concerns the budgets that cover it, and itself while it has been told that it would be disrupted.
fn concerned(view: &View<'_>, change: &Change) -> Vec<Key> {
    let pod = change.object();
    let budgets = view.list::<PodDisruptionBudget>(&pod.key.namespace).filter(|budget| covers(budget, pod));
    let itself = change.after.as_ref().filter(|pod| announced_at(pod).is_some());
    budgets.chain(itself).map(|object| object.key.clone()).collect()
}

/// How many pods there should be, and how many of them healthy.
struct Expectation {
    pods: i32,
    healthy: i32,
    /// A pod that nobody controls is among them, and a share of how many is asked for.
    unmanaged: bool,
}

impl Expectation {
    fn of(budget: &Object, pods: &[&Object], view: &View<'_>) -> Result<Expectation, String> {
        let spec = budget.spec::<PodDisruptionBudget>();
        match (&spec.max_unavailable, &spec.min_available) {
            (Some(most), _) => {
                let (count, unmanaged) = scale_of_owners(pods, view)?;
                let healthy = count.saturating_sub(scaled(Some(most), count, true)).max(0);
                Ok(Expectation { pods: count, healthy, unmanaged })
            }
            (None, Some(IntOrString::Int(least))) => {
                Ok(Expectation { pods: pods.len() as i32, healthy: *least, unmanaged: false })
            }
            (None, Some(share)) => {
                let (count, unmanaged) = scale_of_owners(pods, view)?;
                Ok(Expectation { pods: count, healthy: scaled(Some(share), count, true), unmanaged })
            }
            (None, None) => Ok(Expectation { pods: 0, healthy: 0, unmanaged: false }),
        }
    }
}

/// The sum of the sizes of all that control these pods, and whether some are controlled by nobody.
fn scale_of_owners(pods: &[&Object], view: &View<'_>) -> Result<(i32, bool), String> {
    let mut scales: BTreeMap<&str, i32> = BTreeMap::new();
    let mut unmanaged = false;
    for pod in pods {
        let Some(owner) = pod.controller() else {
            unmanaged = true;
            continue;
        };
        let found = view.by_uid(&owner.uid).map(|owner| (owner, deployment_above(owner, view)));
        let Some((owner, above)) = found else {
            return Err(format!("found no controllers for pod {:?}", pod.key.name));
        };
        let counted = above.unwrap_or(owner);
        if !counted.kind.has_subresource("scale") {
            return Err(format!("{} does not implement the scale subresource", counted.kind.qualified_resource()));
        }
        scales.entry(counted.uid()).or_insert_with(|| replicas(counted));
    }
    Ok((scales.values().fold(0, |sum, scale| sum.saturating_add(*scale)), unmanaged))
}

/// A ReplicaSet of a Deployment is only a part of it.
fn deployment_above<'a>(owner: &'a Object, view: &View<'a>) -> Option<&'a Object> {
    let above = owner.is::<ReplicaSet>().then(|| owner.controller()).flatten()?;
    view.by_uid(&above.uid).filter(|above| above.is::<Deployment>())
}

fn replicas(owner: &Object) -> i32 {
    if owner.is::<Deployment>() {
        owner.spec::<Deployment>().replicas.unwrap_or(1)
    } else if owner.is::<ReplicaSet>() {
        owner.spec::<ReplicaSet>().replicas.unwrap_or(1)
    } else {
        let json = owner.to_json();
        let replicas = json.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        replicas.try_into().unwrap_or(i32::MAX)
    }
}

fn status(
    budget: &Object,
    pods: &[&Object],
    expected: Expectation,
    view: &View<'_>,
    plan: &mut Plan,
) -> PodDisruptionBudgetStatus {
    if expected.unmanaged {
        plan.event(EventNote::warning(budget, "UnmanagedPods", unmanaged_text(budget)).from(SOURCE));
    }
    let known = budget.status::<PodDisruptionBudget>();
    let disrupted = still_disrupted(budget, pods, view, plan);
    let counts = |pod: &&&Object| !pod.is_terminating() && !disrupted.contains_key(&*pod.key.name);
    let healthy = pods.iter().filter(counts).filter(|pod| pods::is_ready(pod)).count() as i32;
    let allowed = if expected.pods > 0 { healthy.saturating_sub(expected.healthy).max(0) } else { 0 };
    let mut status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(expected.healthy),
        expected_pods: Some(expected.pods),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: budget.metadata().generation,
        conditions: known.conditions.clone(),
    };
    tell_allowed(&mut status, view.now);
    status
}

/// The pods of which an eviction was granted and whose deletion is not seen yet.
fn still_disrupted(budget: &Object, pods: &[&Object], view: &View<'_>, plan: &mut Plan) -> BTreeMap<String, MetaTime> {
    let mut still = BTreeMap::new();
    let Some(known) = &budget.status::<PodDisruptionBudget>().disrupted_pods else { return still };
    for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
        let Some(granted) = known.get(&*pod.key.name) else { continue };
        let due = Time::from(granted) + DELETION_TIMEOUT;
        if due < view.now {
            let namespace = &budget.key.namespace;
            let text = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            plan.event(EventNote::warning(pod, "NotDeleted", text).from(SOURCE));
        } else {
            plan.requeue_after(due.since(view.now) + Duration::from_millis(1));
            still.insert(pod.key.name.to_string(), granted.clone());
        }
    }
    still
}

fn unmanaged_text(budget: &Object) -> String {
    let selector = budget.spec::<PodDisruptionBudget>().selector.clone().unwrap_or_default();
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of \
         the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods \
         please set \".spec.minAvailable\" field of the PDB to an integer value.",
        as_go_writes(&selector)
    )
}

fn as_go_writes(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}: {value},"));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let values = expression.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ");
        let (key, operator) = (&expression.key, &expression.operator);
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    });
    let (labels, expressions) = (labels.collect::<String>(), expressions.collect::<String>());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement\
         {{{expressions}}},}}"
    )
}

/// The pod does not believe any longer that it will be disrupted, if nothing came of that for long enough.
fn take_back(pod: &Object, since: Time, view: &View<'_>, plan: &mut Plan) {
    let wait = (since + STALE_TIMEOUT).since(view.now);
    if !wait.is_zero() {
        return plan.requeue_after(wait);
    }
    let mut pod = pod.clone();
    let generation = pod.metadata().generation;
    let conditions = pod.status_mut::<Pod>().conditions.iter_mut().flatten();
    for condition in conditions.filter(|condition| condition.type_ == "DisruptionTarget") {
        condition.status = "False".into();
        (condition.reason, condition.message) = (None, None);
        condition.last_transition_time = Some(view.now.to_meta());
        condition.observed_generation = generation;
    }
    plan.update_status(pod, "it was to be disrupted and was not").tolerate(&["NotFound"]);
}

/// Since when a pod that goes on living has been told that it would be disrupted. A kubelet keeps its word, however
/// late.
fn announced_at(pod: &Object) -> Option<Time> {
    let told = pods::condition(pod, "DisruptionTarget").filter(|told| told.status == "True")?;
    if !pods::is_active(pod) || told.reason.as_deref() == Some("TerminationByKubelet") {
        return None;
    }
    told.last_transition_time.as_ref().map(Time::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Cluster;
    use crate::api::request::{Body, Request, Verb};
    use crate::api::status::Status;
    use crate::controllers::testing::*;
    use crate::disruption::disrupted;

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "img:1"}]}})
    }

    fn budget(cluster: &mut Cluster, mut spec: Value) {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        create::<PodDisruptionBudget>(cluster, json!({"metadata": {"name": "b"}, "spec": spec}));
        settle(cluster);
    }

    /// Allowed, healthy, desired, expected; reason of the condition.
    fn told(cluster: &Cluster) -> ([i32; 4], String) {
        let status = cluster.get::<PodDisruptionBudget>("default", "b").unwrap().status::<PodDisruptionBudget>();
        let numbers =
            [status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods];
        (numbers.map(Option::unwrap), status.conditions.as_ref().unwrap()[0].reason.clone())
    }

    fn evict(cluster: &mut Cluster, name: &str) -> Result<(), Status> {
        let body = json!({"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 0}});
        let request = Request {
            subresource: "eviction",
            body: Body::Json(body),
            ..Request::new(&user(), Verb::Create, Pod::kind(), Key::new("default", name))
        };
        cluster.request(request).map(drop)
    }

    #[test]
    fn evictions_go_on_until_the_budget_is_spent() {
        let mut cluster = control_plane();
        for name in ["a", "b", "c"] {
            let pod = create::<Pod>(&mut cluster, pod(name));
            run_pod(&mut cluster, &pod, true);
        }
        budget(&mut cluster, json!({"minAvailable": 2}));
        assert_eq!(told(&cluster), ([1, 3, 2, 3], "SufficientPods".into()));
        evict(&mut cluster, "a").unwrap();
        let disrupted = |cluster: &Cluster| {
            let budget = cluster.get::<PodDisruptionBudget>("default", "b").unwrap();
            budget.status::<PodDisruptionBudget>().disrupted_pods.clone()
        };
        assert!(disrupted(&cluster).unwrap().contains_key("a"));
        settle(&mut cluster);
        assert_eq!((disrupted(&cluster), told(&cluster)), (None, ([0, 2, 2, 2], "InsufficientPods".into())));
        let refused = evict(&mut cluster, "b").unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.causes()[0].message, "The disruption budget b needs 2 healthy pods and has 2 currently");
    }

    #[test]
    fn a_share_is_one_of_what_the_controllers_want() {
        let mut cluster = control_plane();
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]}});
        let spec = json!({"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": template});
        create::<Deployment>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        play_kubelets(&mut cluster);
        budget(&mut cluster, json!({"maxUnavailable": "30%"}));
        assert_eq!(told(&cluster), ([2, 5, 3, 5], "SufficientPods".into()));
    }

    #[test]
    fn pods_without_a_controller_can_not_be_counted_in_shares() {
        let mut cluster = control_plane();
        let pod = create::<Pod>(&mut cluster, pod("a"));
        run_pod(&mut cluster, &pod, true);
        settle(&mut cluster);
        budget(&mut cluster, json!({"maxUnavailable": 1}));
        assert_eq!(told(&cluster), ([0, 1, 0, 0], "InsufficientPods".into()));
        let events = events(&cluster, "b");
        assert!(
            events[0].starts_with(
                "UnmanagedPods Pods selected by this PodDisruptionBudget (selector: \
                 &LabelSelector{MatchLabels:map[string]string{app: web,},\
                 MatchExpressions:[]LabelSelectorRequirement{},}) were found"
            ),
            "{events:?}"
        );
        let refused = evict(&mut cluster, "a").unwrap_err();
        assert_eq!(refused.causes()[0].message, "The disruption budget b does not allow evicting pods currently");
    }

    #[test]
    fn a_controller_that_has_no_scale_fails_the_sync() {
        let mut cluster = control_plane();
        let owner =
            create::<k8s_openapi::api::core::v1::ConfigMap>(&mut cluster, json!({"metadata": {"name": "owner"}}));
        let mut pod = pod("a");
        pod["metadata"]["ownerReferences"] = json!([owner.controller_reference()]);
        let pod = create::<Pod>(&mut cluster, pod);
        run_pod(&mut cluster, &pod, true);
        budget(&mut cluster, json!({"minAvailable": "50%"}));
        let status = cluster.get::<PodDisruptionBudget>("default", "b").unwrap().to_json()["status"].take();
        assert_eq!(status["conditions"][0]["reason"], "SyncFailed");
        assert_eq!(status["conditions"][0]["message"], "configmaps does not implement the scale subresource");
    }

    #[test]
    fn a_pod_that_is_not_deleted_after_all_counts_again() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        let pod = create::<Pod>(&mut cluster, pod("a"));
        run_pod(&mut cluster, &pod, true);
        let pod = cluster.get::<Pod>("default", "a").unwrap().clone();
        let told = disrupted(&pod, "PreemptionByScheduler", "somebody else comes", cluster.now());
        cluster.request(Request::update_status(&user(), told)).unwrap();
        let target = |cluster: &Cluster| {
            let pod = cluster.get::<Pod>("default", "a").unwrap();
            pods::condition(pod, "DisruptionTarget").map(|told| told.status.clone())
        };
        cluster.advance(Duration::from_secs(110), |_| true);
        assert_eq!(target(&cluster).as_deref(), Some("True"));
        cluster.advance(Duration::from_secs(20), |_| true);
        assert_eq!(target(&cluster).as_deref(), Some("False"));
    }
}
