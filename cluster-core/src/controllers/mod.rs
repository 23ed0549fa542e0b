//! Control loops: the shape of one, what they share (caches, queues, the runner; claims, pods, Jobs, revisions), then one
//! file each.

pub mod cache;
pub mod claim;
pub mod controller;
pub mod jobs;
pub mod pods;
pub mod queue;
pub mod revisions;
pub mod runner;
pub mod share;

pub mod certificate_approver;
pub mod certificate_cleaner;
pub mod certificate_signer;
pub mod cloud_controller_manager;
pub mod cluster_role_aggregation;
pub mod cron_job;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
mod endpoint_ports;
pub mod endpoints;
pub mod endpointslice;
pub mod endpointslice_mirroring;
pub mod ephemeral_volume;
pub mod garbage_collector;
pub mod horizontal_pod_autoscaler;
pub mod ingress_nginx;
pub mod job;
pub mod local_path_provisioner;
pub mod metrics_server;
pub mod namespace;
pub mod node_lifecycle;
pub mod persistentvolume_binder;
pub mod pod_gc;
pub mod replicaset;
pub mod replication_controller;
pub mod resource_quota;
pub mod root_ca;
pub mod service_account;
pub mod service_account_tokens;
pub mod statefulset;
pub mod storage_protection;
pub mod taint_eviction;
pub mod ttl;
pub mod ttl_after_finished;
pub mod volume_expand;

#[cfg(test)]
pub mod testing;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;

use controller::Controller;
use replicaset::ReplicaController;

/// The loops of kube-controller-manager: one line each.
pub fn all() -> Vec<Arc<dyn Controller>> {
    vec![
        Arc::new(deployment::DeploymentController),
        Arc::new(statefulset::StatefulSetController),
        Arc::new(job::JobController),
        Arc::new(job::orphans::JobOrphanController),
        Arc::new(cron_job::CronJobController),
        Arc::new(horizontal_pod_autoscaler::HorizontalPodAutoscalerController),
        Arc::new(ttl_after_finished::TtlAfterFinishedController),
        Arc::new(daemonset::DaemonSetController),
        Arc::new(ReplicaController::<ReplicaSet>::default()),
        Arc::new(ReplicaController::<ReplicationController>::default()),
        Arc::new(endpointslice::EndpointSliceController),
        Arc::new(endpoints::EndpointsController),
        Arc::new(endpointslice_mirroring::EndpointSliceMirroringController),
        Arc::new(node_lifecycle::NodeLifecycleController),
        Arc::new(taint_eviction::TaintEvictionController),
        Arc::new(pod_gc::PodGarbageCollector),
        Arc::new(garbage_collector::GarbageCollector),
        Arc::new(namespace::NamespaceController),
        Arc::new(service_account::ServiceAccountController),
        Arc::new(service_account_tokens::TokensController),
        Arc::new(persistentvolume_binder::VolumeBinder),
        Arc::new(volume_expand::VolumeExpander),
        Arc::new(ephemeral_volume::EphemeralVolumeController),
        Arc::new(local_path_provisioner::LocalPathProvisioner),
        Arc::new(disruption::DisruptionController),
        Arc::new(storage_protection::ClaimProtection),
        Arc::new(storage_protection::VolumeProtection),
        Arc::new(resource_quota::ResourceQuotaController),
        Arc::new(root_ca::RootCaPublisher),
        Arc::new(cluster_role_aggregation::ClusterRoleAggregationController),
        Arc::new(certificate_approver::CertificateApprover),
        Arc::new(certificate_signer::CertificateSigner),
        Arc::new(certificate_cleaner::CertificateCleaner),
        Arc::new(ttl::TtlController),
    ]
}

/// What a cluster has only if somebody starts it: one line each. They are clients, no part of kube-controller-manager.
pub fn optional() -> [Arc<dyn Controller>; 3] {
    [
        Arc::new(ingress_nginx::IngressNginx),
        Arc::new(metrics_server::MetricsServer),
        Arc::new(cloud_controller_manager::CloudControllerManager),
    ]
}
