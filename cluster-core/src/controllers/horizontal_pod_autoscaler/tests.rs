use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::super::testing::{control_plane, create, events, patch, settle};
use super::*;
use crate::controllers::metrics_server;
use crate::{Cluster, Config};

/// A Deployment `web` of this size and an autoscaler `h` of it.
fn autoscaled(mut cluster: Cluster, replicas: i32, resources: Value, extra: Value) -> Cluster {
    let containers = json!([
        {"name": "c", "image": "hpa-example", "ports": [{"containerPort": 80}], "resources": resources}
    ]);
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": replicas, "selector": selector, "template": template});
    create::<Deployment>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut spec = json!({"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4});
    for (field, value) in extra.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    create::<HorizontalPodAutoscaler>(&mut cluster, json!({"metadata": {"name": "h"}, "spec": spec}));
    cluster
}

/// A whole cluster with metrics, where requests come to the pods of `web`.
fn loaded(replicas: i32, per_second: u64, extra: Value) -> Cluster {
    let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
    settle(&mut cluster);
    cluster.start(metrics_server::NAME);
    let ports = json!([{"port": 80}]);
    create::<Service>(
        &mut cluster,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}),
    );
    let mut cluster = autoscaled(cluster, replicas, json!({"requests": {"cpu": "200m"}}), extra);
    settle(&mut cluster);
    cluster.set_traffic(&Key::new("default", "web"), per_second);
    cluster
}

fn wait(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Duration::from_secs(seconds), |_| true);
}

fn size(cluster: &Cluster) -> i32 {
    replicas(cluster.get::<Deployment>("default", "web").unwrap())
}

fn status(cluster: &Cluster) -> HorizontalPodAutoscalerStatus {
    cluster.get::<HorizontalPodAutoscaler>("default", "h").unwrap().status::<HorizontalPodAutoscaler>().clone()
}

fn conditions(cluster: &Cluster) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let conditions = status(cluster).conditions.into_iter().flatten();
    conditions.map(|known| format!("{}={} {}", known.type_, known.status, text(&known.reason))).collect()
}

#[test]
fn the_size_is_kept_within_the_limits() {
    let mut cluster = autoscaled(control_plane(), 7, json!({}), json!({}));
    wait(&mut cluster, 16);
    assert_eq!(size(&cluster), 4);
    let told = "SuccessfulRescale New size: 4; reason: Current number of replicas above Spec.MaxReplicas";
    assert_eq!(events(&cluster, "h"), [told]);
    assert_eq!(conditions(&cluster), ["AbleToScale=True SucceededRescale"]);
    patch::<Deployment>(&mut cluster, "web", json!({"spec": {"replicas": 1}})).unwrap();
    wait(&mut cluster, 16);
    assert_eq!(size(&cluster), 2);
}

#[test]
fn without_metrics_the_size_stays() {
    let mut cluster = autoscaled(control_plane(), 3, json!({}), json!({}));
    wait(&mut cluster, 16);
    let expected = ["AbleToScale=True SucceededGetScale", "ScalingActive=False FailedGetResourceMetric"];
    assert_eq!(conditions(&cluster), expected);
    let told = events(&cluster, "h");
    let problem = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from \
                   resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    assert_eq!(told[0], format!("FailedGetResourceMetric {problem}"));
    let start = "FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: failed to get \
                 cpu resource metric value: ";
    assert_eq!(told[1], format!("{start}{problem}"));
}

#[test]
fn load_makes_it_grow_and_what_is_over_lets_it_shrink_late() {
    let mut cluster = loaded(2, 60, json!({"maxReplicas": 6}));
    // 600m of load over 2 pods that request 200m each are 150 %, and 80 % are wanted.
    wait(&mut cluster, 420);
    assert_eq!(size(&cluster), 4);
    let expected = [
        "AbleToScale=True ReadyForNewScale",
        "ScalingActive=True ValidMetricFound",
        "ScalingLimited=False DesiredWithinRange",
    ];
    assert_eq!(conditions(&cluster), expected);
    let told = "SuccessfulRescale New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(events(&cluster, "h").contains(&told.to_owned()), "{:?}", events(&cluster, "h"));
    let current = status(&cluster).current_metrics.unwrap().remove(0).resource.unwrap().current;
    assert_eq!((current.average_utilization, current.average_value.unwrap().0.as_str()), (Some(75), "151m"));

    cluster.set_traffic(&Key::new("default", "web"), 0);
    wait(&mut cluster, 120);
    assert_eq!((size(&cluster), conditions(&cluster).remove(0)), (4, "AbleToScale=True ScaleDownStabilized".into()));
    wait(&mut cluster, 330);
    assert_eq!(size(&cluster), 2);
    assert!(
        events(&cluster, "h").contains(&"SuccessfulRescale New size: 2; reason: All metrics below target".to_owned())
    );
    wait(&mut cluster, 60);
    assert_eq!(conditions(&cluster).remove(2), "ScalingLimited=True TooFewReplicas");
}

#[test]
fn a_container_may_be_what_counts_and_rules_how_fast() {
    let target = json!({"type": "AverageValue", "averageValue": "100m"});
    let metric =
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": target}});
    let policies = json!([{"type": "Pods", "value": 1, "periodSeconds": 60}]);
    let extra = json!({"maxReplicas": 9, "metrics": [metric], "behavior": {"scaleUp": {"policies": policies}}});
    let mut cluster = loaded(2, 60, extra);
    wait(&mut cluster, 400);
    let limited = conditions(&cluster).remove(2);
    assert!(size(&cluster) > 3 && size(&cluster) < 9, "{}", size(&cluster));
    assert!(
        matches!(limited.as_str(), "ScalingLimited=True ScaleUpLimit" | "ScalingLimited=False DesiredWithinRange"),
        "{limited}"
    );
    let sizes: Vec<String> = events(&cluster, "h").into_iter().filter(|told| told.contains("New size")).collect();
    assert_eq!(sizes[0], "SuccessfulRescale New size: 3; reason: cpu resource above target");
    let current = status(&cluster).current_metrics.unwrap().remove(0).container_resource.unwrap();
    assert_eq!((current.container.as_str(), current.current.average_utilization), ("c", None));
}

#[test]
fn pods_that_request_nothing_and_autoscalers_that_share_pods_are_told_of() {
    let mut cluster = Cluster::new(Config { nodes: 1, ..Config::default() });
    cluster.start(metrics_server::NAME);
    let mut cluster = autoscaled(cluster, 2, json!({}), json!({}));
    wait(&mut cluster, 60);
    let told = events(&cluster, "h");
    let missing = told.iter().find(|told| told.contains("missing request")).expect("an event tells of it");
    assert!(missing.starts_with(
        "FailedGetResourceMetric failed to get cpu utilization: missing request for cpu in container c of Pod web-"
    ));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    create::<HorizontalPodAutoscaler>(
        &mut cluster,
        json!({"metadata": {"name": "i"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}),
    );
    wait(&mut cluster, 31);
    let told = "AmbiguousSelector pods by selector app=web are controlled by multiple HPAs: [{h default} {i default}]";
    assert!(events(&cluster, "i").contains(&told.to_owned()), "{:?}", events(&cluster, "i"));
    assert_eq!(conditions(&cluster)[1], "ScalingActive=False AmbiguousSelector");
}
