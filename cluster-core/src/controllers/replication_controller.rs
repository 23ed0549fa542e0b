//! ReplicationControllers, in the terms of ReplicaSets.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller/>

use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};

use super::replicaset::ReplicaKind;
use crate::api::object::Object;
use crate::api::selector::Selector;

impl ReplicaKind for ReplicationController {
    const CONTROLLER: &'static str = "replicationcontroller-controller";
    const SOURCE: &'static str = "replication-controller";

    fn replicas(set: &Object) -> Option<i32> {
        set.spec::<ReplicationController>().replicas
    }

    fn min_ready_seconds(set: &Object) -> i32 {
        set.spec::<ReplicationController>().min_ready_seconds.unwrap_or(0)
    }

    fn selector(set: &Object) -> Selector {
        set.spec::<ReplicationController>().selector.as_ref().map(Selector::of_labels).unwrap_or_default()
    }

    fn template(set: &Object) -> Option<&PodTemplateSpec> {
        set.spec::<ReplicationController>().template.as_ref()
    }

    fn status(set: &Object) -> ReplicaSetStatus {
        let status = set.status::<ReplicationController>().clone();
        let condition = |condition: ReplicationControllerCondition| ReplicaSetCondition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            last_transition_time: condition.last_transition_time,
        };
        ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: None,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|list| list.into_iter().map(condition).collect()),
        }
    }

    fn set_status(set: &mut Object, status: ReplicaSetStatus) {
        let condition = |condition: ReplicaSetCondition| ReplicationControllerCondition {
            type_: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            last_transition_time: condition.last_transition_time,
        };
        *set.status_mut::<ReplicationController>() = ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|list| list.into_iter().map(condition).collect()),
        };
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::controllers::testing::*;

    #[test]
    fn it_keeps_as_many_pods_as_it_says() {
        let mut cluster = control_plane();
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]}});
        let spec = json!({"replicas": 2, "selector": {"app": "web"}, "template": template});
        let made = create::<ReplicationController>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        play_kubelets(&mut cluster);
        assert!(cluster.list::<Pod>("default").all(|pod| pod.controller() == Some(&made.controller_reference())));
        let status = |cluster: &crate::Cluster| {
            cluster.get::<ReplicationController>("default", "web").unwrap().to_json()["status"].take()
        };
        assert_eq!(
            status(&cluster),
            json!({"availableReplicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1, "readyReplicas": 2,
                "replicas": 2})
        );
        assert_eq!(events(&cluster, "web").len(), 2);

        patch::<ReplicationController>(&mut cluster, "web", json!({"spec": {"replicas": 0}})).unwrap();
        settle(&mut cluster);
        assert_eq!(status(&cluster), json!({"observedGeneration": 2, "replicas": 0}));
    }
}
