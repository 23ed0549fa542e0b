//! The rules of each kind: defaults, what the server decides, validation. One file each.

pub mod config_map;
pub mod cronjob;
pub mod custom_resource;
pub mod custom_resource_definition;
pub mod daemonset;
pub mod deployment;
pub mod job;
pub mod namespace;
pub mod pod;
pub mod pod_template;
pub mod replicaset;
pub mod replication_controller;
pub mod service;
pub mod statefulset;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, PodTemplate, ReplicationController, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::strategy::{Strategy, entry};
use crate::api::kind::KindRef;

pub fn all() -> Vec<(&'static KindRef, &'static dyn Strategy)> {
    vec![
        entry::<Namespace>(&namespace::Rules),
        entry::<Pod>(&pod::Rules),
        entry::<ConfigMap>(&config_map::ConfigMaps),
        entry::<Secret>(&config_map::Secrets),
        entry::<Service>(&service::Rules),
        entry::<Deployment>(&deployment::Rules),
        entry::<ReplicaSet>(&replicaset::Rules),
        entry::<ReplicationController>(&replication_controller::Rules),
        entry::<StatefulSet>(&statefulset::Rules),
        entry::<DaemonSet>(&daemonset::Rules),
        entry::<Job>(&job::Rules),
        entry::<CronJob>(&cronjob::Rules),
        entry::<PodTemplate>(&pod_template::Rules),
        entry::<CustomResourceDefinition>(&custom_resource_definition::Rules),
    ]
}
