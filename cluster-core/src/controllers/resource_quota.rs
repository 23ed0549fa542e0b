//! resourcequota-controller: counts what the objects of a namespace use, and writes that into its ResourceQuotas.
//! <https://kubernetes.io/docs/concepts/policy/resource-quotas/>

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::clock::Class;
use crate::quota;
use crate::store::Change;

/// `--resource-quota-sync-period`.
const SYNC_PERIOD: Duration = Duration::from_secs(300);

/// Longer than any watch takes to tell.
const CHARGE_DELAY: Duration = Duration::from_millis(20);

pub struct ResourceQuotaController;

/// The kinds that are counted.
fn counted() -> [&'static KindRef; 17] {
    [
        Pod::kind(),
        Service::kind(),
        PersistentVolumeClaim::kind(),
        ConfigMap::kind(),
        Secret::kind(),
        ServiceAccount::kind(),
        ReplicationController::kind(),
        ReplicaSet::kind(),
        Deployment::kind(),
        StatefulSet::kind(),
        DaemonSet::kind(),
        Job::kind(),
        CronJob::kind(),
        HorizontalPodAutoscaler::kind(),
        Ingress::kind(),
        NetworkPolicy::kind(),
        PodDisruptionBudget::kind(),
    ]
}

impl Controller for ResourceQuotaController {
    fn name(&self) -> &str {
        "resourcequota-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![Watch::itself(ResourceQuota::kind()).delayed(until_heard_of)];
        watches.extend(counted().map(|kind| Watch::with(kind, quotas_that_count)));
        watches
    }

    fn resync(&self) -> Option<Duration> {
        Some(SYNC_PERIOD)
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(quota) = view.get::<ResourceQuota>(key) else { return plan };
        let hard = quota.spec::<ResourceQuota>().hard.clone().unwrap_or_default();
        let is_counted = |kind: &&KindRef| hard.keys().any(|resource| quota::counts(kind, resource));
        let kinds = counted().into_iter().chain([ResourceQuota::kind()]).filter(is_counted);
        let used = quota::total(quota, kinds.flat_map(|kind| view.list_of(kind, &quota.key.namespace)));
        let status = quota.status::<ResourceQuota>();
        let known = (status.hard.clone().unwrap_or_default(), status.used.clone().unwrap_or_default());
        if known != (hard.clone(), used.clone()) {
            let mut counted = quota.clone();
            let status = counted.status_mut::<ResourceQuota>();
            (status.hard, status.used) = (Some(hard), Some(used));
            plan.update_status(counted, "what is used has changed").tolerate(&["NotFound"]);
        }
        plan
    }
}

/// A quota is charged before the charged object is heard of. To count at once would take the charge back.
fn until_heard_of(_: &View<'_>, change: &Change) -> (Duration, Class) {
    let hard = |quota: &Object| quota.spec::<ResourceQuota>().hard.clone();
    let sets_limits = change.before.as_ref().map(hard) != change.after.as_ref().map(hard);
    (if sets_limits { Duration::ZERO } else { CHARGE_DELAY }, Class::Work)
}

/// An object that comes has been charged by the apiserver; one that goes, or that uses something else now, makes the
/// quotas of its namespace be counted anew.
fn quotas_that_count(view: &View<'_>, change: &Change) -> Vec<Key> {
    let mut quotas = view.list::<ResourceQuota>(&change.key().namespace).peekable();
    if quotas.peek().is_none() {
        return Vec::new();
    }
    let uses = |object: &Option<Object>| object.as_ref().map(quota::usage);
    if change.before.is_none() || uses(&change.before) == uses(&change.after) {
        return Vec::new();
    }
    quotas.map(|quota| quota.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{control_plane, create, delete, settle, user};
    use super::*;
    use crate::Cluster;
    use crate::api::request::Request;
    use crate::api::status::Status;
    use crate::faults::{Edge, Effect, Rule};

    fn used(cluster: &Cluster) -> serde_json::Value {
        cluster.get::<ResourceQuota>("default", "q").unwrap().to_json()["status"]["used"].clone()
    }

    fn pod(name: &str, resources: serde_json::Value) -> serde_json::Value {
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
    }

    fn try_pod(cluster: &mut Cluster, mut pod: serde_json::Value) -> Result<(), Status> {
        pod["metadata"]["namespace"] = "default".into();
        cluster.request(Request::create(&user(), Object::from_json(Pod::kind(), pod).unwrap())).map(drop)
    }

    #[test]
    fn numbers_go_up_at_once_and_down_with_deletions() {
        let mut cluster = control_plane();
        settle(&mut cluster);
        let hard = json!({"pods": "2", "requests.cpu": "1", "count/configmaps": "9"});
        create::<ResourceQuota>(&mut cluster, json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}));
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        // Nobody has counted yet: nothing is limited.
        settle(&mut cluster);
        assert_eq!(used(&cluster), json!({"count/configmaps": "1", "pods": "0", "requests.cpu": "0"}));

        create::<Pod>(&mut cluster, pod("a", cpu("600m")));
        assert_eq!(used(&cluster)["requests.cpu"], "600m");
        let refused = try_pod(&mut cluster, pod("b", cpu("500m"))).unwrap_err();
        assert_eq!(
            refused.message,
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, \
             limited: requests.cpu=1"
        );
        let refused = try_pod(&mut cluster, pod("b", json!({}))).unwrap_err();
        assert_eq!(refused.message, "pods \"b\" is forbidden: failed quota: q: must specify requests.cpu for: c");

        delete::<Pod>(&mut cluster, "a").unwrap();
        settle(&mut cluster);
        assert_eq!(used(&cluster)["pods"], "0");
        try_pod(&mut cluster, pod("b", cpu("500m"))).unwrap();
    }

    #[test]
    fn a_pod_counts_though_the_controller_hears_of_it_late() {
        let mut cluster = control_plane();
        create::<ResourceQuota>(&mut cluster, json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}));
        settle(&mut cluster);
        let late = Rule {
            edge: Edge::Delivery,
            component: "kube-controller-manager".into(),
            kind: "pods".into(),
            name: "".into(),
            effect: Effect::Delay(Duration::from_millis(10)),
            times: None,
            until: None,
        };
        cluster.add_rule(late, "pods are heard of late");
        try_pod(&mut cluster, pod("a", json!({}))).unwrap();
        cluster.advance(Duration::from_secs(1), |_| true);
        assert_eq!(used(&cluster)["pods"], "1");
    }
}
