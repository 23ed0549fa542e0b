//! Replicas come with one and the same spec. What the server makes of it is remembered, so that it is made once and they
//! go on sharing it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::api::object::{Object, Part};
use crate::api::selector::Labels;
use crate::api::status::Cause;

/// What was made of the spec of the newest pod.
#[derive(Clone, Default)]
pub struct PodSpecs {
    pub defaulted: Memo,
    pub tolerating: Memo,
    pub valid: Valid,
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

/// The last spec that came to a step, and what the step made of it.
#[derive(Clone, Default)]
pub struct Memo(Option<(Part, Part)>);

impl Memo {
    /// Does a step that looks at nothing but the spec and changes nothing else.
    pub fn run(&mut self, object: &mut Object, step: impl FnOnce(&mut Object)) {
        match &self.0 {
            Some((sent, made)) if Arc::ptr_eq(sent, object.spec_part()) => object.set_spec_part(made.clone()),
            _ => {
                let sent = object.spec_part().clone();
                step(object);
                self.0 = Some((sent, object.spec_part().clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_share_what_was_made_of_their_spec() {
        let mut memo = Memo::default();
        let mut hosted = |pod: &Object, host: &str| {
            let mut pod = pod.clone();
            memo.run(&mut pod, |pod| pod.spec_mut::<Pod>().hostname = Some(host.into()));
            pod
        };
        let web = Object::new::<Pod>("default", "web", Default::default());
        let (one, two) = (hosted(&web, "a"), hosted(&web, "b"));
        assert!(Arc::ptr_eq(one.spec_part(), two.spec_part()));
        let other = hosted(&Object::new::<Pod>("default", "db", Default::default()), "c");
        assert_eq!(other.spec::<Pod>().hostname.as_deref(), Some("c"));
        assert_eq!(web.spec::<Pod>().hostname, None);
    }
}
