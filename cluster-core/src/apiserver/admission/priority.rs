//! Priority: the name of a PriorityClass becomes a number. <https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/>

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::{Attributes, Operation, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;

pub struct Priority;

impl Plugin for Priority {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind(), PriorityClass::kind()])
    }

    fn shapes_pod_specs(&self) -> bool {
        true
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !object.is::<Pod>() || !attributes.request.subresource.is_empty() {
            return Ok(());
        }
        match attributes.old {
            None => prioritize(attributes.server, object),
            Some(old) => {
                keep(old, object);
                Ok(())
            }
        }
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let is_default = |object: &Object| object.spec::<PriorityClass>().global_default == Some(true);
        if !object.is::<PriorityClass>() || attributes.operation == Operation::Delete || !is_default(object) {
            return Ok(());
        }
        match default_class(attributes.server) {
            Some(other) if other.key != object.key => {
                let other = &other.key.name;
                let detail = format!("PriorityClass {other} is already marked as default. Only one default can exist");
                Err(Status::forbidden(&object.kind, &object.key.name, &detail))
            }
            _ => Ok(()),
        }
    }
}

/// The class of pods that name none: of several the one with the lowest value.
fn default_class(server: &ApiServer) -> Option<&Object> {
    let classes = server.store.objects(PriorityClass::kind()).values();
    let defaults = classes.filter(|class| class.spec::<PriorityClass>().global_default == Some(true));
    defaults.min_by_key(|class| class.spec::<PriorityClass>().value.unwrap_or(0))
}

fn prioritize(server: &ApiServer, pod: &mut Object) -> Result<(), Status> {
    let refused = |pod: &Object, detail: &str| Err(Status::forbidden(&pod.kind, &pod.key.name, detail));
    let spec = pod.spec::<Pod>();
    let class = match spec.priority_class_name.as_deref().filter(|name| !name.is_empty()) {
        None => default_class(server),
        Some(name) => match server.store.get(PriorityClass::kind(), &Key::cluster(name)) {
            None => return refused(pod, &format!("no PriorityClass with name {name} was found")),
            found => found,
        },
    };
    let (priority, policy) = match class.map(|class| class.spec::<PriorityClass>()) {
        Some(class) => (class.value.unwrap_or(0), class.preemption_policy.clone()),
        None => (0, Some("PreemptLowerPriority".to_owned())),
    };
    if let Some(given) = spec.priority.filter(|given| *given != priority) {
        let detail = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return refused(pod, &detail);
    }
    if let (Some(given), Some(policy)) = (&spec.preemption_policy, &policy)
        && given != policy
    {
        let detail = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return refused(pod, &detail);
    }
    let spec = pod.spec_mut::<Pod>();
    spec.priority_class_name = class.map(|class| class.key.name.to_string());
    spec.priority = Some(priority);
    spec.preemption_policy = policy.or_else(|| spec.preemption_policy.take());
    Ok(())
}

/// An update that leaves out what admission added does not take it away.
fn keep(old: &Object, pod: &mut Object) {
    let (known, given) = (old.spec::<Pod>(), pod.spec::<Pod>());
    if given.priority.is_none() && known.priority.is_some() {
        pod.spec_mut::<Pod>().priority = known.priority;
    }
    if pod.spec::<Pod>().preemption_policy.is_none() && known.preemption_policy.is_some() {
        pod.spec_mut::<Pod>().preemption_policy = known.preemption_policy.clone();
    }
}
