//! `add-node: node-4`, `untaint: node-3` and `bring-back: node-1`: a machine joins, a node loses its taints, and a machine has
//! power and reaches the control plane, whatever was wrong with it.

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{PatchType, Request};
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde_json::json;

use super::{ACTOR, Fault, refused};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct AddNode {
    node: String,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Untaint {
    node: String,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct BringBack {
    node: String,
}

impl Fault for AddNode {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        if cluster.machine(&self.node).is_none() {
            cluster.record_fault(format!("{} joins", self.node));
            cluster.add_node(&self.node);
        }
        Ok(())
    }

    fn words(&self) -> Words {
        Words::new(format!("{} が加わった", self.node), format!("the joining of {}", self.node))
    }
}

impl Fault for Untaint {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let key = Key::new("", self.node.as_str());
        let patch = json!({"spec": {"taints": null}});
        let request = Request::patch(&ACTOR.into(), KindRef::of::<Node>(), key, PatchType::Merge, patch);
        cluster.request(request.because("a check of the exercise")).map(drop).map_err(|status| refused(&status))
    }

    fn words(&self) -> Words {
        Words::new(format!("{} のtaintを外した", self.node), format!("the removal of the taints of {}", self.node))
    }
}

impl Fault for BringBack {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        cluster.heal(&self.node);
        cluster.power_on(&self.node);
        Ok(())
    }

    fn words(&self) -> Words {
        Words::new(format!("{} が戻った", self.node), format!("the return of {}", self.node))
    }
}
