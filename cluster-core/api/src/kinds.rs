//! Every kind that Kubernetes 1.36 serves: one row each.
//!
//! A row: type, group, version, resource, singular, scope, short names, categories, shape (`spec(Spec, Status)`; `whole`
//! where the fields stand at the top level, `bare(Fields)` if a type of our own holds these), verbs, subresources with their verbs.

use std::sync::LazyLock;

use super::event::EventFields;
use super::kind::{KindRef, Resource, Row, bare_codec, kinds, split_codec, whole_codec};

/// The built-in kinds, in the order in which discovery lists them.
pub fn built_in() -> &'static [KindRef] {
    &BUILT_IN
}

fn row(group: &str, version: &str, kind: &str) -> &'static KindRef {
    let found = BUILT_IN.iter().find(|row| *row.group == *group && *row.version == *version && *row.kind == *kind);
    found.expect("each type of the table has its row")
}

/// Two versions of one thing share a slot: events of both groups, autoscalers of both versions.
fn assign_slots(rows: &mut [Row<'_>]) {
    let stored_as = |row: &Row<'_>| match (row.group, row.resource) {
        ("events.k8s.io", resource) => ("".to_owned(), resource.to_owned()),
        (group, resource) => (group.to_owned(), resource.to_owned()),
    };
    for index in 0..rows.len() {
        let first = rows.iter().position(|row| stored_as(row) == stored_as(&rows[index]));
        rows[index].slot = first.unwrap_or(index);
    }
}

kinds! {
    (api::core::v1) Binding: "" "v1" "bindings" "binding" ns [] [] whole only "create",
    (api::core::v1) ComponentStatus: "" "v1" "componentstatuses" "componentstatus" cluster ["cs"] [] whole only "get,list",
    (api::core::v1) ConfigMap: "" "v1" "configmaps" "configmap" ns ["cm"] [] whole crud,
    (api::core::v1) Endpoints: "" "v1" "endpoints" "endpoints" ns ["ep"] [] whole crud,
    (api::core::v1) Event: "" "v1" "events" "event" ns ["ev"] [] bare(EventFields) crud,
    (api::core::v1) LimitRange: "" "v1" "limitranges" "limitrange" ns ["limits"] [] spec(LimitRangeSpec) crud,
    (api::core::v1) Namespace: "" "v1" "namespaces" "namespace" cluster ["ns"] [] spec(NamespaceSpec, NamespaceStatus) only "create,delete,get,list,patch,update,watch" + "finalize:update,status:get/patch/update",
    (api::core::v1) Node: "" "v1" "nodes" "node" cluster ["no"] [] spec(NodeSpec, NodeStatus) crud + "proxy:create/delete/get/patch/update,status:get/patch/update",
    (api::core::v1) PersistentVolumeClaim: "" "v1" "persistentvolumeclaims" "persistentvolumeclaim" ns ["pvc"] [] spec(PersistentVolumeClaimSpec, PersistentVolumeClaimStatus) crud + "status:get/patch/update",
    (api::core::v1) PersistentVolume: "" "v1" "persistentvolumes" "persistentvolume" cluster ["pv"] [] spec(PersistentVolumeSpec, PersistentVolumeStatus) crud + "status:get/patch/update",
    (api::core::v1) Pod: "" "v1" "pods" "pod" ns ["po"] ["all"] spec(PodSpec, PodStatus) crud + "attach:create/get,binding:create,ephemeralcontainers:get/patch/update,eviction:create,exec:create/get,log:get,portforward:create/get,proxy:create/delete/get/patch/update,resize:get/patch/update,status:get/patch/update",
    (api::core::v1) PodTemplate: "" "v1" "podtemplates" "podtemplate" ns [] [] whole crud,
    (api::core::v1) ReplicationController: "" "v1" "replicationcontrollers" "replicationcontroller" ns ["rc"] ["all"] spec(ReplicationControllerSpec, ReplicationControllerStatus) crud + "scale:get/patch/update,status:get/patch/update",
    (api::core::v1) ResourceQuota: "" "v1" "resourcequotas" "resourcequota" ns ["quota"] [] spec(ResourceQuotaSpec, ResourceQuotaStatus) crud + "status:get/patch/update",
    (api::core::v1) Secret: "" "v1" "secrets" "secret" ns [] [] whole crud,
    (api::core::v1) ServiceAccount: "" "v1" "serviceaccounts" "serviceaccount" ns ["sa"] [] whole crud + "token:create",
    (api::core::v1) Service: "" "v1" "services" "service" ns ["svc"] ["all"] spec(ServiceSpec, ServiceStatus) crud + "proxy:create/delete/get/patch/update,status:get/patch/update",
    (kube_aggregator::pkg::apis::apiregistration::v1) APIService: "apiregistration.k8s.io" "v1" "apiservices" "apiservice" cluster [] ["api-extensions"] spec(APIServiceSpec, APIServiceStatus) crud + "status:get/patch/update",
    (api::apps::v1) ControllerRevision: "apps" "v1" "controllerrevisions" "controllerrevision" ns [] [] whole crud,
    (api::apps::v1) DaemonSet: "apps" "v1" "daemonsets" "daemonset" ns ["ds"] ["all"] spec(DaemonSetSpec, DaemonSetStatus) crud + "status:get/patch/update",
    (api::apps::v1) Deployment: "apps" "v1" "deployments" "deployment" ns ["deploy"] ["all"] spec(DeploymentSpec, DeploymentStatus) crud + "scale:get/patch/update,status:get/patch/update",
    (api::apps::v1) ReplicaSet: "apps" "v1" "replicasets" "replicaset" ns ["rs"] ["all"] spec(ReplicaSetSpec, ReplicaSetStatus) crud + "scale:get/patch/update,status:get/patch/update",
    (api::apps::v1) StatefulSet: "apps" "v1" "statefulsets" "statefulset" ns ["sts"] ["all"] spec(StatefulSetSpec, StatefulSetStatus) crud + "scale:get/patch/update,status:get/patch/update",
    (api::events::v1) Event: "events.k8s.io" "v1" "events" "event" ns ["ev"] [] whole crud,
    (api::authentication::v1) SelfSubjectReview: "authentication.k8s.io" "v1" "selfsubjectreviews" "selfsubjectreview" cluster [] [] whole only "create",
    (api::authentication::v1) TokenReview: "authentication.k8s.io" "v1" "tokenreviews" "tokenreview" cluster [] [] spec(TokenReviewSpec, TokenReviewStatus) only "create",
    (api::authorization::v1) LocalSubjectAccessReview: "authorization.k8s.io" "v1" "localsubjectaccessreviews" "localsubjectaccessreview" ns [] [] spec(SubjectAccessReviewSpec, SubjectAccessReviewStatus) only "create",
    (api::authorization::v1) SelfSubjectAccessReview: "authorization.k8s.io" "v1" "selfsubjectaccessreviews" "selfsubjectaccessreview" cluster [] [] spec(SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus) only "create",
    (api::authorization::v1) SelfSubjectRulesReview: "authorization.k8s.io" "v1" "selfsubjectrulesreviews" "selfsubjectrulesreview" cluster [] [] spec(SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus) only "create",
    (api::authorization::v1) SubjectAccessReview: "authorization.k8s.io" "v1" "subjectaccessreviews" "subjectaccessreview" cluster [] [] spec(SubjectAccessReviewSpec, SubjectAccessReviewStatus) only "create",
    (api::autoscaling::v2) HorizontalPodAutoscaler: "autoscaling" "v2" "horizontalpodautoscalers" "horizontalpodautoscaler" ns ["hpa"] ["all"] spec(HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus) crud + "status:get/patch/update",
    (api::autoscaling::v1) HorizontalPodAutoscaler: "autoscaling" "v1" "horizontalpodautoscalers" "horizontalpodautoscaler" ns ["hpa"] ["all"] spec(HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus) crud + "status:get/patch/update",
    (api::batch::v1) CronJob: "batch" "v1" "cronjobs" "cronjob" ns ["cj"] ["all"] spec(CronJobSpec, CronJobStatus) crud + "status:get/patch/update",
    (api::batch::v1) Job: "batch" "v1" "jobs" "job" ns [] ["all"] spec(JobSpec, JobStatus) crud + "status:get/patch/update",
    (api::certificates::v1) CertificateSigningRequest: "certificates.k8s.io" "v1" "certificatesigningrequests" "certificatesigningrequest" cluster ["csr"] [] spec(CertificateSigningRequestSpec, CertificateSigningRequestStatus) crud + "approval:get/patch/update,status:get/patch/update",
    (api::networking::v1) IngressClass: "networking.k8s.io" "v1" "ingressclasses" "ingressclass" cluster [] [] spec(IngressClassSpec) crud,
    (api::networking::v1) Ingress: "networking.k8s.io" "v1" "ingresses" "ingress" ns ["ing"] [] spec(IngressSpec, IngressStatus) crud + "status:get/patch/update",
    (api::networking::v1) IPAddress: "networking.k8s.io" "v1" "ipaddresses" "ipaddress" cluster ["ip"] [] spec(IPAddressSpec) crud,
    (api::networking::v1) NetworkPolicy: "networking.k8s.io" "v1" "networkpolicies" "networkpolicy" ns ["netpol"] [] spec(NetworkPolicySpec) crud,
    (api::networking::v1) ServiceCIDR: "networking.k8s.io" "v1" "servicecidrs" "servicecidr" cluster [] [] spec(ServiceCIDRSpec, ServiceCIDRStatus) crud + "status:get/patch/update",
    (api::policy::v1) PodDisruptionBudget: "policy" "v1" "poddisruptionbudgets" "poddisruptionbudget" ns ["pdb"] [] spec(PodDisruptionBudgetSpec, PodDisruptionBudgetStatus) crud + "status:get/patch/update",
    (api::rbac::v1) ClusterRoleBinding: "rbac.authorization.k8s.io" "v1" "clusterrolebindings" "clusterrolebinding" cluster [] [] whole crud,
    (api::rbac::v1) ClusterRole: "rbac.authorization.k8s.io" "v1" "clusterroles" "clusterrole" cluster [] [] whole crud,
    (api::rbac::v1) RoleBinding: "rbac.authorization.k8s.io" "v1" "rolebindings" "rolebinding" ns [] [] whole crud,
    (api::rbac::v1) Role: "rbac.authorization.k8s.io" "v1" "roles" "role" ns [] [] whole crud,
    (api::storage::v1) CSIDriver: "storage.k8s.io" "v1" "csidrivers" "csidriver" cluster [] [] spec(CSIDriverSpec) crud,
    (api::storage::v1) CSINode: "storage.k8s.io" "v1" "csinodes" "csinode" cluster [] [] spec(CSINodeSpec) crud,
    (api::storage::v1) CSIStorageCapacity: "storage.k8s.io" "v1" "csistoragecapacities" "csistoragecapacity" ns [] [] whole crud,
    (api::storage::v1) StorageClass: "storage.k8s.io" "v1" "storageclasses" "storageclass" cluster ["sc"] [] whole crud,
    (api::storage::v1) VolumeAttachment: "storage.k8s.io" "v1" "volumeattachments" "volumeattachment" cluster [] [] spec(VolumeAttachmentSpec, VolumeAttachmentStatus) crud + "status:get/patch/update",
    (api::storage::v1) VolumeAttributesClass: "storage.k8s.io" "v1" "volumeattributesclasses" "volumeattributesclass" cluster ["vac"] [] whole crud,
    (api::admissionregistration::v1) MutatingAdmissionPolicy: "admissionregistration.k8s.io" "v1" "mutatingadmissionpolicies" "mutatingadmissionpolicy" cluster [] ["api-extensions"] spec(MutatingAdmissionPolicySpec) crud,
    (api::admissionregistration::v1) MutatingAdmissionPolicyBinding: "admissionregistration.k8s.io" "v1" "mutatingadmissionpolicybindings" "mutatingadmissionpolicybinding" cluster [] ["api-extensions"] spec(MutatingAdmissionPolicyBindingSpec) crud,
    (api::admissionregistration::v1) MutatingWebhookConfiguration: "admissionregistration.k8s.io" "v1" "mutatingwebhookconfigurations" "mutatingwebhookconfiguration" cluster [] ["api-extensions"] whole crud,
    (api::admissionregistration::v1) ValidatingAdmissionPolicy: "admissionregistration.k8s.io" "v1" "validatingadmissionpolicies" "validatingadmissionpolicy" cluster [] ["api-extensions"] spec(ValidatingAdmissionPolicySpec, ValidatingAdmissionPolicyStatus) crud + "status:get/patch/update",
    (api::admissionregistration::v1) ValidatingAdmissionPolicyBinding: "admissionregistration.k8s.io" "v1" "validatingadmissionpolicybindings" "validatingadmissionpolicybinding" cluster [] ["api-extensions"] spec(ValidatingAdmissionPolicyBindingSpec) crud,
    (api::admissionregistration::v1) ValidatingWebhookConfiguration: "admissionregistration.k8s.io" "v1" "validatingwebhookconfigurations" "validatingwebhookconfiguration" cluster [] ["api-extensions"] whole crud,
    (apiextensions_apiserver::pkg::apis::apiextensions::v1) CustomResourceDefinition: "apiextensions.k8s.io" "v1" "customresourcedefinitions" "customresourcedefinition" cluster ["crd", "crds"] ["api-extensions"] spec(CustomResourceDefinitionSpec, CustomResourceDefinitionStatus) crud + "status:get/patch/update",
    (api::scheduling::v1) PriorityClass: "scheduling.k8s.io" "v1" "priorityclasses" "priorityclass" cluster ["pc"] [] whole crud,
    (api::coordination::v1) Lease: "coordination.k8s.io" "v1" "leases" "lease" ns [] [] spec(LeaseSpec) crud,
    (api::node::v1) RuntimeClass: "node.k8s.io" "v1" "runtimeclasses" "runtimeclass" cluster [] [] whole crud,
    (api::discovery::v1) EndpointSlice: "discovery.k8s.io" "v1" "endpointslices" "endpointslice" ns [] [] whole crud,
    (api::resource::v1) DeviceClass: "resource.k8s.io" "v1" "deviceclasses" "deviceclass" cluster [] [] spec(DeviceClassSpec) crud,
    (api::resource::v1) ResourceClaim: "resource.k8s.io" "v1" "resourceclaims" "resourceclaim" ns [] [] spec(ResourceClaimSpec, ResourceClaimStatus) crud + "status:get/patch/update",
    (api::resource::v1) ResourceClaimTemplate: "resource.k8s.io" "v1" "resourceclaimtemplates" "resourceclaimtemplate" ns [] [] spec(ResourceClaimTemplateSpec) crud,
    (api::resource::v1) ResourceSlice: "resource.k8s.io" "v1" "resourceslices" "resourceslice" cluster [] [] spec(ResourceSliceSpec) crud,
    (api::flowcontrol::v1) FlowSchema: "flowcontrol.apiserver.k8s.io" "v1" "flowschemas" "flowschema" cluster [] [] spec(FlowSchemaSpec, FlowSchemaStatus) crud + "status:get/patch/update",
    (api::flowcontrol::v1) PriorityLevelConfiguration: "flowcontrol.apiserver.k8s.io" "v1" "prioritylevelconfigurations" "prioritylevelconfiguration" cluster [] [] spec(PriorityLevelConfigurationSpec, PriorityLevelConfigurationStatus) crud + "status:get/patch/update",
}
