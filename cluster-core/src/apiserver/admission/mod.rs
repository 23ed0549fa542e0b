//! Admission: what the server adds to an object, and what it refuses though the object itself is right.
//! <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>
//!
//! A plugin is a file and a line in [`PLUGINS`]. All of them see the object before it is checked and may change it; then,
//! as it would be written, once more to refuse it.

mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod limit_ranger;
mod namespace_lifecycle;
mod persistent_volume_claim_resize;
mod pod_security;
mod pod_topology_labels;
mod policies;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
#[cfg(test)]
mod tests;
pub mod webhooks;

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{LimitRange, Pod, ServiceAccount};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::{ApiServer, Moment, policy};
use crate::api::kind::{KindRef, Resource};
use crate::api::kinds;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::status::Status;
use crate::clock::Time;
use crate::random::Random;

pub use super::policy::Operation;
pub use pod_topology_labels::copy as copy_topology_labels;

/// The plugins that are on by default, in kube-apiserver's order.
const PLUGINS: &[&dyn Plugin] = &[
    &namespace_lifecycle::NamespaceLifecycle,
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccountPlugin,
    &taint_nodes_by_condition::TaintNodesByCondition,
    &pod_security::PodSecurity,
    &priority::Priority,
    &default_toleration_seconds::DefaultTolerationSeconds,
    &default_storage_class::DefaultStorageClass,
    &storage_object_in_use_protection::StorageObjectInUseProtection,
    &persistent_volume_claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClassPlugin,
    &certificates::CertificateApproval,
    &certificates::CertificateSigning,
    &certificates::CertificateSubjectRestriction,
    &default_ingress_class::DefaultIngressClass,
    &pod_topology_labels::PodTopologyLabels,
    &policies::MutatingAdmissionPolicy,
    &webhooks::MutatingAdmissionWebhook,
    &policies::ValidatingAdmissionPolicy,
    &webhooks::ValidatingAdmissionWebhook,
    &resource_quota::ResourceQuotaPlugin,
];

/// What a plugin may know of a request beside the object.
pub struct Attributes<'a> {
    pub server: &'a ApiServer,
    pub request: &'a Request,
    pub operation: Operation,
    /// The object before an update; the object that a delete is about.
    pub old: Option<&'a Object>,
    /// What a connection is asked for with: `PodExecOptions` and the like.
    pub connects: Option<&'a serde_json::Value>,
    pub now: Time,
    pub random: &'a mut Random,
    /// What to tell the client beside the answer.
    pub warnings: &'a mut Vec<String>,
    /// ResourceQuotas to be written with the object, once all plugins have let it pass.
    pub charges: Vec<Object>,
}

impl<'a> Attributes<'a> {
    /// The request as expressions see it.
    fn seen(&self) -> policy::Attributes<'a> {
        policy::Attributes { request: self.request, operation: self.operation, old: self.old }
    }
}

impl Attributes<'_> {
    pub fn creates(&self) -> bool {
        self.operation == Operation::Create && self.request.subresource.is_empty()
    }

    /// An update of the object itself, not of a subresource.
    pub fn updates(&self) -> bool {
        self.operation == Operation::Update && self.request.subresource.is_empty()
    }
}

/// An admission plugin.
pub trait Plugin: Sync {
    /// The kinds that it looks at, `None` for all.
    fn kinds(&self) -> Option<Vec<&'static KindRef>>;

    /// Mutating admission: changes or refuses an object that is created or updated.
    fn admit(&self, _attributes: &mut Attributes<'_>, _object: &mut Object) -> Result<(), Status> {
        Ok(())
    }

    /// Validating admission: refuses an object as it would be written, or the deletion of one.
    fn validate(&self, _attributes: &mut Attributes<'_>, _object: &Object) -> Result<(), Status> {
        Ok(())
    }

    /// What it makes of a new pod's spec is the same for every pod with this spec in a namespace.
    fn shapes_pod_specs(&self) -> bool {
        false
    }
}

/// Mutating admission, before validation.
pub fn admit(
    server: &mut ApiServer,
    request: &Request,
    old: Option<&Object>,
    object: &mut Object,
    warnings: &mut Vec<String>,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let situation = old.is_none().then(|| pod_situation(server, object)).flatten();
    let recalled = situation.as_ref().is_some_and(|situation| server.pod_specs.admitted.recall(object, situation));
    let (sent, metadata) = (object.spec_part().clone(), object.metadata_arc().clone());
    let (now, random) = (moment.now, &mut *moment.random);
    let mut attributes =
        Attributes { server, request, operation, old, connects: None, now, random, warnings, charges: Vec::new() };
    let mut shaped = None;
    for plugin in plugins_of(&request.kind) {
        let shapes = plugin.shapes_pod_specs();
        if !(recalled && shapes) {
            plugin.admit(&mut attributes, object)?;
        }
        if shapes {
            shaped = Some(object.spec_part().clone());
        }
    }
    if let (Some(situation), Some(shaped)) = (situation, shaped)
        && !recalled
        && std::ptr::eq(object.metadata(), &*metadata)
    {
        server.pod_specs.admitted.keep(sent, situation, shaped);
    }
    Ok(())
}

/// Validating admission, on the object as it would be written.
pub fn validate(
    server: &mut ApiServer,
    request: &Request,
    old: Option<&Object>,
    object: &Object,
    warnings: &mut Vec<String>,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let (now, random) = (moment.now, &mut *moment.random);
    let mut attributes =
        Attributes { server, request, operation, old, connects: None, now, random, warnings, charges: Vec::new() };
    plugins_of(&request.kind).iter().try_for_each(|plugin| plugin.validate(&mut attributes, object))?;
    let charges = attributes.charges;
    let is_taken = || operation == Operation::Create && server.store.get(&object.kind, &object.key).is_some();
    if charges.is_empty() || request.options.dry_run || is_taken() {
        return Ok(());
    }
    charges.into_iter().try_for_each(|quota| write_charge(server, quota, request, moment))
}

fn write_charge(
    server: &mut ApiServer,
    quota: Object,
    request: &Request,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let revision = quota.revision;
    let write = Request::update_status(&"kube-apiserver".into(), quota.clone())
        .because("what is admitted is charged")
        .caused_by(request.causes.clone());
    server.put(quota, Some(revision), &write, moment).map(drop)
}

/// Validating admission of a deletion.
pub fn validate_delete(
    server: &mut ApiServer,
    request: &Request,
    object: &Object,
    warnings: &mut Vec<String>,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let (old, now, random) = (Some(object), moment.now, &mut *moment.random);
    let (operation, connects, charges) = (Operation::Delete, None, Vec::new());
    let mut attributes = Attributes { server, request, operation, old, connects, now, random, warnings, charges };
    plugins_of(&request.kind).iter().try_for_each(|plugin| plugin.validate(&mut attributes, object))
}

/// Admission of a connection to a pod, which the request names. Webhooks alone look at these.
pub fn connect(
    server: &ApiServer,
    request: &Request,
    options: &serde_json::Value,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let (now, random, mut warnings) = (moment.now, &mut *moment.random, Vec::new());
    webhooks::connect(&mut Attributes {
        server,
        request,
        operation: Operation::Connect,
        old: None,
        connects: Some(options),
        now,
        random,
        warnings: &mut warnings,
        charges: Vec::new(),
    })
}

/// The plugins that look at a kind.
fn plugins_of(kind: &KindRef) -> &'static [&'static dyn Plugin] {
    static BY_SLOT: LazyLock<Vec<Vec<&'static dyn Plugin>>> = LazyLock::new(|| {
        let of_slot = |slot: usize| {
            let looks =
                |plugin: &&&dyn Plugin| plugin.kinds().is_none_or(|all| all.iter().any(|kind| kind.slot == slot));
            PLUGINS.iter().filter(looks).copied().collect()
        };
        // The last list is for custom kinds.
        (0..=kinds::built_in().len()).map(of_slot).collect()
    });
    &BY_SLOT[kind.slot.min(BY_SLOT.len() - 1)]
}

/// What the plugins that shape a pod's spec look at beside it: its namespace, and how old the objects are that they read.
pub type Situation = (crate::api::Name, [u64; 4]);

/// `None` for a pod that is not treated as others with its spec are.
fn pod_situation(server: &ApiServer, object: &Object) -> Option<Situation> {
    if !object.is::<Pod>() || service_account::is_mirror(object) {
        return None;
    }
    let read = [LimitRange::kind(), ServiceAccount::kind(), PriorityClass::kind(), RuntimeClass::kind()];
    Some((object.key.namespace.clone(), read.map(|kind| server.last_revision_of(kind.slot))))
}
