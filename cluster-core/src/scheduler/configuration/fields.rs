//! The fields of a KubeSchedulerConfiguration, as a schema: for strict reading, and for whoever writes one.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

use super::POINTS;
use crate::api::kind::KindRef;
use crate::api::object::Object;

/// The arguments that plugins take.
pub const FIT: &[&str] = &["scoringStrategy", "ignoredResources", "ignoredResourceGroups"];
pub const SPREAD: &[&str] = &["defaultConstraints", "defaultingType"];
pub const POD_AFFINITY: &[&str] = &["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"];
pub const NODE_AFFINITY: &[&str] = &["addedAffinity"];

/// The kind as if a custom resource had it; it is never stored.
pub fn definition() -> Object {
    let definition = json!({
        "metadata": {"name": "kubeschedulerconfigurations.kubescheduler.config.k8s.io"},
        "spec": {
            "group": "kubescheduler.config.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "kubeschedulerconfigurations", "kind": "KubeSchedulerConfiguration"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema()}}],
        },
    });
    // The text above is a definition.
    let none = || Object::new::<CustomResourceDefinition>("", "", Default::default());
    Object::from_json(KindRef::of::<CustomResourceDefinition>(), definition).unwrap_or_else(|_| none())
}

fn object(description: &str, properties: Value) -> Value {
    json!({"type": "object", "description": description, "properties": properties})
}

fn list(description: &str, items: Value) -> Value {
    json!({"type": "array", "description": description, "items": items})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "format": "int32", "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn anything(description: &str) -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": description})
}

fn schema() -> Value {
    let plugin = object(
        "A plugin.",
        json!({
            "name": text("The plugin's name, such as NodeResourcesFit; * for all where plugins are turned off."),
            "weight": number("What its points are multiplied with."),
        }),
    );
    let points: Map<String, Value> = POINTS
        .iter()
        .map(|point| {
            let lists = json!({
                "enabled": list("Plugins that are asked here, with their weights.", plugin.clone()),
                "disabled": list("Plugins that are not asked here.", plugin.clone()),
            });
            (
                (*point).to_owned(),
                object("The plugins of one point of a scheduling cycle; multiPoint is all of them.", lists),
            )
        })
        .collect();
    let args = object(
        "What the plugin is told.",
        json!({
            "apiVersion": text("The version of the arguments."),
            "kind": text("The kind of the arguments."),
            "scoringStrategy": object("NodeResourcesFit: how nodes get points for what is left on them.", json!({
                "type": text("LeastAllocated, MostAllocated or RequestedToCapacityRatio."),
                "resources": list("The resources that are looked at; cpu and memory, if none are named.", object("", json!({
                    "name": text("The resource."),
                    "weight": number("Its weight, 1 to 100."),
                }))),
                "requestedToCapacityRatio": object("Points by use.", json!({
                    "shape": list("Points between which straight lines are drawn.", object("", json!({
                        "utilization": number("How much is used, in percent."),
                        "score": number("The points that it gives, 0 to 10."),
                    }))),
                })),
            })),
            "ignoredResources": list("NodeResourcesFit: extended resources that are not looked at.", text("A resource.")),
            "ignoredResourceGroups": list("NodeResourcesFit: groups of such resources.", text("A group.")),
            "defaultingType": text("PodTopologySpread: System, or List for defaultConstraints."),
            "defaultConstraints": list("PodTopologySpread: for pods without constraints of their own.", anything("A constraint.")),
            "hardPodAffinityWeight": number("InterPodAffinity: what a required affinity of another pod weighs, 0 to 100."),
            "ignorePreferredTermsOfExistingPods": flag("InterPodAffinity: what others prefer does not count."),
            "addedAffinity": anything("NodeAffinity: what nodes must match beside what pods say."),
        }),
    );
    let profile = object(
        "A scheduler by the name that pods give it.",
        json!({
            "schedulerName": text("The name that pods have in spec.schedulerName; default-scheduler, if it is not there."),
            "percentageOfNodesToScore": number("How many nodes in a hundred must be found before the search ends."),
            "plugins": object("Which plugins are asked at which point.", Value::Object(points)),
            "pluginConfig": list("What plugins are told.", object("", json!({"name": text("The plugin."), "args": args}))),
        }),
    );
    object(
        "KubeSchedulerConfiguration is the file with which kube-scheduler is started.",
        json!({
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": anything(""),
            "profiles": list("The schedulers that this process is.", profile),
            "percentageOfNodesToScore": number("How many nodes in a hundred must be found before the search ends; 0 leaves it to the size of the cluster."),
            "parallelism": number("How many nodes are looked at at once."),
            "podInitialBackoffSeconds": number("How long a pod backs off after its first attempt."),
            "podMaxBackoffSeconds": number("How long a pod backs off at most."),
            "leaderElection": anything("Which of several processes works."),
            "clientConnection": anything("How it reaches the apiserver."),
            "enableProfiling": flag("It tells how it spends its time."),
            "enableContentionProfiling": flag("It tells how long it waits for locks."),
            "extenders": list("Programs beside the plugins.", anything("A program.")),
            "delayCacheUntilActive": flag("It waits with its caches until it works."),
        }),
    )
}
