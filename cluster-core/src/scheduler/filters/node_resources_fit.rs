//! What a pod requests must be free; what the others really use plays no part.
//! <https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#how-pods-with-resource-requests-are-scheduled>

use std::borrow::Cow;

use super::{Change, Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeResourcesFit;

impl Filter for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let (wanted, all, taken) = (&cycle.ask.requests, &node.allocatable, &node.requested);
        let mut reasons: Vec<Cow<'static, str>> = Vec::new();
        let mut is_unresolvable = false;
        if node.pods.len() as i64 + 1 > node.pods_max {
            reasons.push("Too many pods".into());
        }
        let mut compare = |wanted: i64, all: i64, taken: i64, reason: &dyn Fn() -> Cow<'static, str>| {
            if wanted > 0 && wanted > all - taken {
                reasons.push(reason());
                is_unresolvable |= wanted > all;
            }
        };
        compare(wanted.milli_cpu, all.milli_cpu, taken.milli_cpu, &|| "Insufficient cpu".into());
        compare(wanted.memory, all.memory, taken.memory, &|| "Insufficient memory".into());
        compare(wanted.ephemeral_storage, all.ephemeral_storage, taken.ephemeral_storage, &|| {
            "Insufficient ephemeral-storage".into()
        });
        for (name, wanted) in &wanted.scalars {
            let of = |amounts: &std::collections::BTreeMap<String, i64>| amounts.get(name).copied().unwrap_or(0);
            compare(*wanted, of(&all.scalars), of(&taken.scalars), &|| format!("Insufficient {name}").into());
        }
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Rejection { plugin: self.name(), reasons, is_unresolvable })
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::NodePut(node) => self.check(cycle, node).is_ok(),
            Change::PodRemoved(_) => true,
            _ => false,
        }
    }
}
