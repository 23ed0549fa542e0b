//! The rules of each kind: defaults, what the server decides, validation. One file each.

pub mod address;
pub mod admission_policy;
pub mod api_service;
pub mod autoscaler;
pub mod certificate;
pub mod config_map;
pub mod cronjob;
pub mod csi;
pub mod custom_resource;
pub mod custom_resource_definition;
pub mod daemonset;
pub mod deployment;
pub mod device;
pub mod disruption_budget;
pub mod endpoints;
pub mod event;
pub mod flow_control;
pub mod ingress;
pub mod job;
pub mod lease;
pub mod limit_range;
pub mod namespace;
pub mod network_policy;
pub mod node;
pub mod pod;
pub mod pod_template;
pub mod priority_class;
pub mod rbac;
pub mod replicaset;
pub mod replication_controller;
pub mod resource_quota;
pub mod runtime_class;
pub mod service;
pub mod service_account;
pub mod statefulset;
pub mod storage_class;
#[cfg(test)]
pub mod testing;
pub mod volume;
pub mod volume_claim;
pub mod webhook;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use k8s_openapi::api::networking::v1::{IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;

use super::strategy::{Strategy, entry};
use crate::api::kind::KindRef;

pub fn all() -> Vec<(&'static KindRef, &'static dyn Strategy)> {
    vec![
        entry::<Namespace>(&namespace::Rules),
        entry::<Pod>(&pod::Rules),
        entry::<ConfigMap>(&config_map::ConfigMaps),
        entry::<Secret>(&config_map::Secrets),
        entry::<ServiceAccount>(&service_account::Rules),
        entry::<Event>(&event::Rules),
        entry::<Service>(&service::Rules),
        entry::<Endpoints>(&endpoints::Whole),
        entry::<EndpointSlice>(&endpoints::Slices),
        entry::<Ingress>(&ingress::Ingresses),
        entry::<IngressClass>(&ingress::Classes),
        entry::<NetworkPolicy>(&network_policy::Rules),
        entry::<IPAddress>(&address::Addresses),
        entry::<ServiceCIDR>(&address::Networks),
        entry::<Deployment>(&deployment::Rules),
        entry::<ReplicaSet>(&replicaset::Rules),
        entry::<ReplicationController>(&replication_controller::Rules),
        entry::<StatefulSet>(&statefulset::Rules),
        entry::<DaemonSet>(&daemonset::Rules),
        entry::<Job>(&job::Rules),
        entry::<CronJob>(&cronjob::Rules),
        entry::<PodTemplate>(&pod_template::Rules),
        entry::<HorizontalPodAutoscaler>(&autoscaler::Rules),
        entry::<PodDisruptionBudget>(&disruption_budget::Rules),
        entry::<PriorityClass>(&priority_class::Rules),
        entry::<PersistentVolume>(&volume::Rules),
        entry::<PersistentVolumeClaim>(&volume_claim::Rules),
        entry::<StorageClass>(&storage_class::StorageClasses),
        entry::<VolumeAttributesClass>(&storage_class::AttributesClasses),
        entry::<CSIDriver>(&csi::Drivers),
        entry::<CSINode>(&csi::Nodes),
        entry::<CSIStorageCapacity>(&csi::StorageCapacities),
        entry::<VolumeAttachment>(&csi::Attachments),
        entry::<Node>(&node::Rules),
        entry::<LimitRange>(&limit_range::Rules),
        entry::<ResourceQuota>(&resource_quota::Rules),
        entry::<RuntimeClass>(&runtime_class::Rules),
        entry::<Lease>(&lease::Rules),
        entry::<Role>(&rbac::Roles),
        entry::<ClusterRole>(&rbac::ClusterRoles),
        entry::<RoleBinding>(&rbac::RoleBindings),
        entry::<ClusterRoleBinding>(&rbac::ClusterRoleBindings),
        entry::<CertificateSigningRequest>(&certificate::Rules),
        entry::<FlowSchema>(&flow_control::FlowSchemas),
        entry::<PriorityLevelConfiguration>(&flow_control::PriorityLevels),
        entry::<ValidatingWebhookConfiguration>(&webhook::Validating),
        entry::<MutatingWebhookConfiguration>(&webhook::Mutating),
        entry::<ValidatingAdmissionPolicy>(&admission_policy::Validating),
        entry::<ValidatingAdmissionPolicyBinding>(&admission_policy::ValidatingBindings),
        entry::<MutatingAdmissionPolicy>(&admission_policy::Mutating),
        entry::<MutatingAdmissionPolicyBinding>(&admission_policy::MutatingBindings),
        entry::<DeviceClass>(&device::Classes),
        entry::<ResourceClaim>(&device::Claims),
        entry::<ResourceClaimTemplate>(&device::Templates),
        entry::<ResourceSlice>(&device::Slices),
        entry::<APIService>(&api_service::Rules),
        entry::<CustomResourceDefinition>(&custom_resource_definition::Rules),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kinds;
    use crate::apiserver::strategy::strategy;

    /// Counted off a cluster of Kubernetes 1.36.
    #[test]
    fn every_kind_of_kubernetes_is_served() {
        let kinds = kinds::built_in();
        let count = |is: &dyn Fn(&KindRef) -> bool| kinds.iter().filter(|kind| is(kind)).count();
        assert_eq!((kinds.len(), count(&|kind| kind.namespaced)), (68, 34));
        assert_eq!(count(&|kind| kind.verbs.len() == 8), 59);
        assert_eq!(count(&|kind| kind.allows("create") && !kind.allows("get")), 7);
        assert_eq!(kinds.iter().map(|kind| kind.subresources.len()).sum::<usize>(), 45);
        assert_eq!(count(&|kind| kind.has_subresource("status")), 27);
        assert_eq!(count(&|kind| kind.has_subresource("scale")), 4);
    }

    #[test]
    fn which_kinds_a_put_creates_and_which_insist_on_a_resource_version() {
        let named = |is: &dyn Fn(&dyn Strategy) -> bool| -> Vec<String> {
            let kinds = kinds::built_in().iter().filter(|kind| is(strategy(kind)));
            let mut names: Vec<_> = kinds.map(|kind| kind.resource.to_string()).collect();
            names.sort();
            names.dedup();
            names
        };
        assert_eq!(
            named(&|rules| rules.creates_on_update()),
            [
                "clusterrolebindings",
                "clusterroles",
                "endpoints",
                "events",
                "leases",
                "limitranges",
                "rolebindings",
                "roles",
                "runtimeclasses",
                "services",
            ]
        );
        let insisting = named(&|rules| rules.needs_resource_version());
        for kind in ["leases", "poddisruptionbudgets", "csidrivers", "validatingwebhookconfigurations"] {
            assert!(insisting.iter().any(|name| name == kind), "{kind}");
        }
    }
}
