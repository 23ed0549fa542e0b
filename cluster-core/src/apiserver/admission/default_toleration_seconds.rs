//! DefaultTolerationSeconds: a pod stays 300 s on a node that has become unready or unreachable.

use k8s_openapi::api::core::v1::{Pod, Toleration};

use super::{Attributes, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

pub struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind()])
    }

    fn shapes_pod_specs(&self) -> bool {
        true
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.request.subresource.is_empty() {
            return Ok(());
        }
        for key in TAINTS {
            if !is_tolerated(object, key) {
                object.spec_mut::<Pod>().tolerations.get_or_insert_default().push(Toleration {
                    key: Some(key.into()),
                    operator: Some("Exists".into()),
                    effect: Some("NoExecute".into()),
                    toleration_seconds: Some(300),
                    value: None,
                });
            }
        }
        Ok(())
    }
}

fn is_tolerated(pod: &Object, taint: &str) -> bool {
    let covers = |toleration: &Toleration| {
        toleration.key.as_deref().is_none_or(|key| key == taint || key.is_empty())
            && matches!(toleration.effect.as_deref(), None | Some("" | "NoExecute"))
    };
    pod.spec::<Pod>().tolerations.iter().flatten().any(covers)
}
