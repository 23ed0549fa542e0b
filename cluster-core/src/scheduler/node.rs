//! A node as the scheduler sees it: what it offers, what is taken, by whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::pod::PodInfo;
use super::resources::{Resources, allocatable};
use crate::api::object::Object;
use crate::api::selector::Labels;
use crate::api::{Key, Name};
use crate::node_selection::HostPort;

#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub name: Name,
    metadata: Arc<ObjectMeta>,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    pub allocatable: Arc<Resources>,
    pub pods_max: i64,
    /// Bytes of the images that it has, by each of their names.
    pub images: Arc<BTreeMap<String, i64>>,
    pub requested: Resources,
    /// Requests with an assumed amount for containers that have none.
    pub milli_cpu_assumed: i64,
    pub memory_assumed: i64,
    pub ports: Vec<HostPort>,
    pub pods: Vec<Arc<PodInfo>>,
}

impl NodeInfo {
    pub fn new(node: &Object) -> NodeInfo {
        let (allocatable, pods_max) = allocatable(node);
        let spec = node.spec::<Node>();
        NodeInfo {
            name: node.key.name.clone(),
            metadata: node.metadata_arc().clone(),
            taints: spec.taints.clone().unwrap_or_default(),
            unschedulable: spec.unschedulable.unwrap_or(false),
            allocatable: Arc::new(allocatable),
            pods_max,
            images: Arc::new(images(node)),
            requested: Resources::default(),
            milli_cpu_assumed: 0,
            memory_assumed: 0,
            ports: Vec::new(),
            pods: Vec::new(),
        }
    }

    pub fn labels(&self) -> Option<&Labels> {
        self.metadata.labels.as_ref()
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels()?.get(key).map(String::as_str)
    }

    /// Takes what another state of the same node says about it, and keeps the pods. False if that is nothing new.
    pub fn update(&mut self, new: NodeInfo) -> bool {
        let same = self.labels() == new.labels()
            && self.taints == new.taints
            && self.unschedulable == new.unschedulable
            && self.allocatable == new.allocatable
            && self.pods_max == new.pods_max;
        self.metadata = new.metadata;
        self.taints = new.taints;
        self.unschedulable = new.unschedulable;
        self.allocatable = new.allocatable;
        self.pods_max = new.pods_max;
        if self.images != new.images {
            self.images = new.images;
        }
        !same
    }

    pub fn add(&mut self, pod: Arc<PodInfo>) {
        self.requested.add(&pod.ask.requests);
        self.milli_cpu_assumed += pod.ask.milli_cpu_assumed;
        self.memory_assumed += pod.ask.memory_assumed;
        self.ports.extend(pod.ask.host_ports.iter().cloned());
        self.pods.push(pod);
    }

    pub fn remove(&mut self, key: &Key) -> Option<Arc<PodInfo>> {
        let at = self.pods.iter().position(|pod| pod.key() == key)?;
        let pod = self.pods.remove(at);
        self.requested.subtract(&pod.ask.requests);
        self.milli_cpu_assumed -= pod.ask.milli_cpu_assumed;
        self.memory_assumed -= pod.ask.memory_assumed;
        for port in &pod.ask.host_ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.remove(at);
            }
        }
        Some(pod)
    }
}

fn images(node: &Object) -> BTreeMap<String, i64> {
    let images = node.status::<Node>().images.iter().flatten();
    let named = images.flat_map(|image| {
        let bytes = image.size_bytes.unwrap_or(0);
        image.names.iter().flatten().map(move |name| (name.clone(), bytes))
    });
    named.collect()
}
