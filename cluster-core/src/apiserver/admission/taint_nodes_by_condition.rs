//! TaintNodesByCondition: a new node takes no pods until it is known to be ready.

use k8s_openapi::api::core::v1::{Node, Taint};

use super::{Attributes, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Node::kind()])
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let is_it = |taint: &Taint| taint.key == NOT_READY && taint.effect == "NoSchedule";
        if attributes.creates() && !object.spec::<Node>().taints.iter().flatten().any(is_it) {
            let taint = Taint { key: NOT_READY.into(), effect: "NoSchedule".into(), ..Taint::default() };
            object.spec_mut::<Node>().taints.get_or_insert_default().push(taint);
        }
        Ok(())
    }
}
