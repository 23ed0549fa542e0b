//! Replicas come with one and the same spec. What the server makes of it is remembered, so that it is made once and they
//! go on sharing it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::admission::Situation;
use crate::HashMap;
use crate::api::Name;
use crate::api::object::{Object, Part};
use crate::api::selector::Labels;
use crate::api::status::Cause;

/// What was made of the spec of the newest pod.
#[derive(Clone, Default)]
pub struct PodSpecs {
    pub defaulted: Memo,
    pub admitted: Memo<Situation>,
    pub valid: Valid,
    /// By the node that a pod was bound to.
    pub bound: HashMap<Name, Memo>,
}

/// The last spec that was found to be valid, with the annotations beside it.
#[derive(Clone, Default)]
pub struct Valid(Option<(Part, Option<Labels>)>);

impl Valid {
    /// What is wrong with a new pod; looks at its spec only if it is not that of the pod before.
    pub fn check(&mut self, pod: &Object, validate: impl FnOnce(&Object) -> Vec<Cause>) -> Vec<Cause> {
        let annotations = &pod.metadata().annotations;
        if self.0.as_ref().is_some_and(|(spec, with)| Arc::ptr_eq(spec, pod.spec_part()) && with == annotations) {
            return Vec::new();
        }
        let causes = validate(pod);
        // The names of ephemeral volumes depend on that of the pod.
        let alike = pod.spec::<Pod>().volumes.iter().flatten().all(|volume| volume.ephemeral.is_none());
        if causes.is_empty() && alike {
            self.0 = Some((pod.spec_part().clone(), annotations.clone()));
        }
        causes
    }
}

/// The last spec that came to a step, the situation in which it came, and what the step made of it.
#[derive(Clone)]
pub struct Memo<S = ()>(Option<(Part, S, Part)>);

impl<S> Default for Memo<S> {
    fn default() -> Memo<S> {
        Memo(None)
    }
}

impl<S: PartialEq> Memo<S> {
    /// Gives the object what was made of its spec in such a situation; false if that is not known. Equal specs are one
    /// from here on.
    pub fn recall(&mut self, object: &mut Object, situation: &S) -> bool {
        let is_equal = object.kind.codec.spec_equal;
        match &mut self.0 {
            Some((sent, known, made)) if known == situation && is_equal(sent, object.spec_part()) => {
                sent.clone_from(object.spec_part());
                object.set_spec_part(made.clone());
                true
            }
            _ => false,
        }
    }

    pub fn keep(&mut self, sent: Part, situation: S, made: Part) {
        self.0 = Some((sent, situation, made));
    }
}

impl Memo {
    /// Does a step that looks at nothing but the spec and changes nothing else.
    pub fn run(&mut self, object: &mut Object, step: impl FnOnce(&mut Object)) {
        if !self.recall(object, &()) {
            let sent = object.spec_part().clone();
            step(object);
            self.keep(sent, (), object.spec_part().clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    #[test]
    fn replicas_share_what_was_made_of_their_spec() {
        let mut memo = Memo::default();
        let mut hosted = |pod: &Object, host: &str| {
            let mut pod = pod.clone();
            memo.run(&mut pod, |pod| pod.spec_mut::<Pod>().hostname = Some(host.into()));
            pod
        };
        let pod = |name, subdomain: &str| {
            let spec = PodSpec { subdomain: Some(subdomain.into()), ..PodSpec::default() };
            Object::new::<Pod>("default", name, spec)
        };
        let web = pod("web-1", "web");
        let (one, two, equal) = (hosted(&web, "a"), hosted(&web, "b"), hosted(&pod("web-2", "web"), "c"));
        assert!(Arc::ptr_eq(one.spec_part(), two.spec_part()));
        assert!(Arc::ptr_eq(one.spec_part(), equal.spec_part()));
        let other = hosted(&pod("db", "db"), "c");
        assert_eq!(other.spec::<Pod>().hostname.as_deref(), Some("c"));
        assert_eq!(web.spec::<Pod>().hostname, None);
    }
}
