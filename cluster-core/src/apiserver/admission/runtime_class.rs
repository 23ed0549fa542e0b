//! RuntimeClass: what a pod's runtime costs, and on which nodes it is. <https://kubernetes.io/docs/concepts/containers/runtime-class/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::{RuntimeClass, Scheduling};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Attributes, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Status;
use crate::apiserver::ApiServer;

pub struct RuntimeClassPlugin;

impl Plugin for RuntimeClassPlugin {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind()])
    }

    fn shapes_pod_specs(&self) -> bool {
        true
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let Some(class) = class_of(attributes, object)? else { return Ok(()) };
        if let Some(overhead) = overhead(class) {
            let given = object.spec::<Pod>().overhead.as_ref();
            if given.is_some_and(|given| !same_amounts(given, overhead)) {
                return refused(object, OTHER_OVERHEAD);
            }
            object.spec_mut::<Pod>().overhead = Some(overhead.clone());
        }
        match &class.spec::<RuntimeClass>().scheduling {
            Some(scheduling) => schedule(object, scheduling),
            None => Ok(()),
        }
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let class = class_of(attributes, object)?;
        if !attributes.creates() {
            return Ok(());
        }
        match (class.and_then(overhead), &object.spec::<Pod>().overhead) {
            (Some(wanted), given) if !given.as_ref().is_some_and(|given| same_amounts(given, wanted)) => {
                refused(object, OTHER_OVERHEAD)
            }
            (None, Some(_)) => {
                refused(object, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
            }
            _ => Ok(()),
        }
    }
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

fn refused(pod: &Object, detail: &str) -> Result<(), Status> {
    Err(Status::forbidden(&pod.kind, &pod.key.name, detail))
}

/// The class that a new pod names.
fn class_of<'a>(attributes: &Attributes<'a>, pod: &Object) -> Result<Option<&'a Object>, Status> {
    let server: &'a ApiServer = attributes.server;
    let Some(name) = pod.spec::<Pod>().runtime_class_name.as_deref().filter(|_| attributes.creates()) else {
        return Ok(None);
    };
    let class = server.store.get(RuntimeClass::kind(), &Key::cluster(name));
    let missing = || format!("pod rejected: RuntimeClass \"{name}\" not found");
    class.map(Some).ok_or_else(|| Status::forbidden(&pod.kind, &pod.key.name, &missing()))
}

fn overhead(class: &Object) -> Option<&BTreeMap<String, Quantity>> {
    class.spec::<RuntimeClass>().overhead.as_ref()?.pod_fixed.as_ref()
}

fn same_amounts(one: &BTreeMap<String, Quantity>, other: &BTreeMap<String, Quantity>) -> bool {
    let amounts = |all: &BTreeMap<String, Quantity>| -> Vec<(String, Option<quantity::Millis>)> {
        all.iter().map(|(name, amount)| (name.clone(), quantity::parse(&amount.0))).collect()
    };
    amounts(one) == amounts(other)
}

/// Binds the pod to the nodes that have the runtime.
fn schedule(pod: &mut Object, scheduling: &Scheduling) -> Result<(), Status> {
    for (label, wanted) in scheduling.node_selector.iter().flatten() {
        let given = pod.spec::<Pod>().node_selector.as_ref().and_then(|selector| selector.get(label));
        if let Some(given) = given.filter(|given| *given != wanted) {
            let detail = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{label}] = {wanted}; pod.spec.nodeSelector[{label}] = \
                 {given}"
            );
            return refused(pod, &detail);
        }
        let selector = pod.spec_mut::<Pod>().node_selector.get_or_insert_default();
        selector.insert(label.clone(), wanted.clone());
    }
    for toleration in scheduling.tolerations.iter().flatten() {
        let known = pod.spec::<Pod>().tolerations.iter().flatten().any(|known| known == toleration);
        if !known {
            pod.spec_mut::<Pod>().tolerations.get_or_insert_default().push(toleration.clone());
        }
    }
    Ok(())
}
