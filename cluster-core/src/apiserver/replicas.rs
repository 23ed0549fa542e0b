//! Replicas come with one and the same spec. What the server makes of it is remembered, so that it is made once and they
//! go on sharing it.

use std::sync::Arc;

use crate::api::object::{Object, Part};

/// What was made of the spec of the newest pod.
#[derive(Clone, Default)]
pub struct PodSpecs {
    pub defaulted: Memo,
    pub tolerating: Memo,
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
    use k8s_openapi::api::core::v1::Pod;

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
