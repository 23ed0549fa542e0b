//! Nodes: taints, pod networks that never change. <https://kubernetes.io/docs/concepts/architecture/nodes/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::{Value, json};

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::shown::Struct;
use crate::apiserver::validation::{addresses, names};
use crate::apiserver::{ApiServer, Moment};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec::<Node>();
        // Old clients know one network a node, new ones a list that begins with it.
        let (one, list) = (spec.pod_cidr.clone(), spec.pod_cidrs.clone().unwrap_or_default());
        match (one.filter(|one| !one.is_empty()), list.first()) {
            (Some(one), None) => object.spec_mut::<Node>().pod_cidrs = Some(vec![one]),
            (None, Some(first)) => object.spec_mut::<Node>().pod_cidr = Some(first.clone()),
            _ => {}
        }
    }

    /// NodeTaint: nothing is scheduled to a new node before its conditions have been looked at.
    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let taints = object.spec_mut::<Node>().taints.get_or_insert_default();
        if !taints.iter().any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule") {
            taints.push(Taint { key: NOT_READY.into(), effect: "NoSchedule".into(), ..Taint::default() });
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, mut causes) = (object.spec::<Node>(), Causes::new());
        taints(&mut causes, spec.taints.as_deref().unwrap_or_default());
        let (path, list) = (Path::new("spec.podCIDRs"), spec.pod_cidrs.as_deref().unwrap_or_default());
        let networks: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(index, network)| addresses::cidr(&mut causes, &path.index(index), network))
            .collect();
        if list.len() > 1 && (list.len() > 2 || !addresses::is_dual_stack(&networks)) {
            causes.invalid(&path, json!(list), "may specify no more than one CIDR for each IP family");
        }
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, after, mut causes) = (old.spec::<Node>(), new.spec::<Node>(), Causes::new());
        let (had, has) =
            (before.pod_cidrs.as_deref().unwrap_or_default(), after.pod_cidrs.as_deref().unwrap_or_default());
        if !had.is_empty() {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            let changed = if had.len() != has.len() { 1 } else { had.iter().zip(has).filter(|(a, b)| a != b).count() };
            (0..changed).for_each(|_| causes.forbidden(&Path::new("spec.podCIDRs"), detail));
        }
        if before.provider_id.as_deref().is_some_and(|id| !id.is_empty()) && before.provider_id != after.provider_id {
            let detail = "node updates may not change providerID except from \"\" to valid";
            causes.forbidden(&Path::new("spec.providerID"), detail);
        }
        taints(&mut causes, after.taints.as_deref().unwrap_or_default());
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let list = new.status::<Node>().addresses.as_deref().unwrap_or_default();
        for (index, address) in list.iter().enumerate() {
            if list[..index].contains(address) {
                let shown = [("Type", address.type_.as_str().into()), ("Address", address.address.as_str().into())];
                causes.duplicate_struct(&Path::new("status.addresses").index(index), Struct(&shown), "");
            }
        }
        causes.into()
    }

    fn keeps_new_status(&self) -> bool {
        true
    }
}

fn taints(causes: &mut Causes, taints: &[Taint]) {
    let mut known = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        // The API calls the place so, though taints stand in the spec.
        let path = Path::new("metadata.taints").index(index);
        let value = taint.value.as_deref().unwrap_or_default();
        causes.invalid_each(&path.child("key"), &taint.key, names::qualified_name(&taint.key));
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            causes.invalid(&path.child("value"), value, wrong.join(";"));
        }
        causes.required_one_of(&path.child("effect"), Some(&taint.effect), &EFFECTS);
        if !known.insert((&taint.effect, &taint.key)) {
            let shown = [
                ("Key", taint.key.as_str().into()),
                ("Value", value.into()),
                ("Effect", taint.effect.as_str().into()),
                ("TimeAdded", taint.time_added.as_ref().map_or(Value::Null, |time| json!(time))),
            ];
            causes.duplicate_struct(&path, Struct(&shown), "taints must be unique by key and effect pair");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_new_node_is_tainted_and_keeps_its_status() {
        let mut api = Api::new::<Node>();
        let node =
            json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.1.0.0/24"}, "status": {"phase": "Running"}});
        let made = api.create(node).unwrap();
        assert_eq!(made["spec"]["taints"], json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
        assert_eq!(made["spec"]["podCIDRs"], json!(["10.1.0.0/24"]));
        assert_eq!((&made["status"]["phase"], &made["status"]["nodeInfo"]["osImage"]), (&json!("Running"), &json!("")));
        let moved = json!({"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}});
        assert_eq!(
            api.merge_refusal("n", moved),
            ["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"]
        );
    }

    #[test]
    fn taints_are_unique_and_have_an_effect() {
        let mut api = Api::new::<Node>();
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        let list = json!([taint, taint, {"key": "b"}, {"key": "c", "effect": "Maybe"}]);
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "n"}, "spec": {"taints": list}})),
            [
                "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\
                 \"TimeAdded\":null}: taints must be unique by key and effect pair",
                "metadata.taints[2].effect: Required value",
                "metadata.taints[3].effect: Unsupported value: \"Maybe\": supported values: \"NoSchedule\", \
                 \"PreferNoSchedule\", \"NoExecute\"",
            ]
        );
    }
}
