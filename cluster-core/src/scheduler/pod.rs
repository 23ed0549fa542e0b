//! What scheduling needs to know of a pod, read from its spec once.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Taint, Toleration};

use super::resources::{Resources, requests};
use super::terms::{NodeTerm, PodTerm, Spread, tolerates};
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};
use crate::api::{Key, Name};
use crate::node_selection::{HostPort, host_ports};

/// A pod and what it asks for.
#[derive(Clone, Debug)]
pub struct PodInfo {
    pub object: Object,
    pub ask: Arc<Ask>,
}

impl PodInfo {
    pub fn key(&self) -> &Key {
        &self.object.key
    }
}

/// Reads pods; those that ask for the same as one of the last few share what they ask for.
#[derive(Clone, Debug, Default)]
pub struct Asks(Vec<PodInfo>);

impl Asks {
    const MAX: usize = 8;

    pub fn pod(&mut self, object: &Object) -> PodInfo {
        let (at, ask) = match self.0.iter().position(|known| are_replicas(&known.object, object)) {
            Some(at) => (Some(at), self.0[at].ask.clone()),
            None => {
                let ask = Ask::read(object);
                let at = self.0.iter().position(|known| *known.ask == ask);
                (at, at.map_or_else(|| Arc::new(ask), |at| self.0[at].ask.clone()))
            }
        };
        let pod = PodInfo { object: object.clone(), ask };
        match at {
            Some(at) => drop(self.0.remove(at)),
            None => self.0.truncate(Asks::MAX - 1),
        }
        self.0.insert(0, pod.clone());
        pod
    }
}

/// They share their spec and all else that [`Ask::read`] looks at, so that it would find the same in both.
fn are_replicas(a: &Object, b: &Object) -> bool {
    let has_own_claims = || a.spec::<Pod>().volumes.iter().flatten().any(|volume| volume.ephemeral.is_some());
    Arc::ptr_eq(a.spec_part(), b.spec_part())
        && a.key.namespace == b.key.namespace
        && a.metadata().labels == b.metadata().labels
        && a.metadata().owner_references == b.metadata().owner_references
        && !has_own_claims()
}

/// Everything in a pod that scheduling depends on. Pods that ask for the same are scheduled alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub namespace: Name,
    /// The profile that decides about it.
    pub scheduler_name: Name,
    pub labels: Labels,
    pub priority: i32,
    /// `preemptionPolicy` is not `Never`.
    pub preempts: bool,
    pub gated: bool,
    pub requests: Resources,
    /// Requests with an assumed amount for containers that have none.
    pub milli_cpu_assumed: i64,
    pub memory_assumed: i64,
    pub host_ports: Vec<HostPort>,
    pub node_selector: Selector,
    /// Required: one of the terms must match.
    pub node_terms: Option<Vec<NodeTerm>>,
    pub preferred_nodes: Vec<(i64, NodeTerm)>,
    pub tolerations: Vec<Toleration>,
    pub spread: Vec<Spread>,
    pub affinity: Vec<PodTerm>,
    pub anti_affinity: Vec<PodTerm>,
    /// Preferred affinity with its weight, preferred anti-affinity with its weight below zero.
    pub preferred_pods: Vec<(i64, PodTerm)>,
    /// Of all its containers and image volumes, with their tags.
    pub images: Vec<String>,
    /// Names of persistent volume claims.
    pub claims: Vec<String>,
    /// Those of them that are made for the pod.
    pub ephemeral_claims: Vec<String>,
    /// Kind and name of the controlling owner.
    pub controller: Option<(String, String)>,
}

impl Ask {
    pub fn read(pod: &Object) -> Ask {
        let spec = pod.spec::<Pod>();
        let labels = pod.metadata().labels.clone().unwrap_or_default();
        let compared = requests(spec, &Resources::assumed());
        let mut ask = Ask {
            namespace: pod.key.namespace.clone(),
            scheduler_name: spec.scheduler_name.as_deref().unwrap_or_default().into(),
            priority: spec.priority.unwrap_or(0),
            preempts: spec.preemption_policy.as_deref() != Some("Never"),
            gated: spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()),
            requests: requests(spec, &Resources::default()),
            milli_cpu_assumed: compared.milli_cpu,
            memory_assumed: compared.memory,
            host_ports: host_ports(spec),
            node_selector: spec.node_selector.as_ref().map(Selector::of_labels).unwrap_or_default(),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            spread: spec.topology_spread_constraints.iter().flatten().map(|c| Spread::read(c, &labels)).collect(),
            controller: pod.controller().map(|owner| (owner.kind.clone(), owner.name.clone())),
            claims: claims(&pod.key.name, spec, true),
            ephemeral_claims: claims(&pod.key.name, spec, false),
            images: images(spec),
            labels,
            node_terms: None,
            preferred_nodes: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            preferred_pods: Vec::new(),
        };
        if let Some(affinity) = &spec.affinity {
            ask.read_affinity(affinity);
        }
        ask
    }

    fn read_affinity(&mut self, affinity: &core::Affinity) {
        let namespace = self.namespace.clone();
        let term = |term: &core::PodAffinityTerm| PodTerm::read(term, &namespace);
        if let Some(node) = &affinity.node_affinity {
            let required = node.required_during_scheduling_ignored_during_execution.as_ref();
            self.node_terms =
                required.map(|required| required.node_selector_terms.iter().map(NodeTerm::read).collect());
            let preferred = node.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            self.preferred_nodes =
                preferred.map(|wish| (i64::from(wish.weight), NodeTerm::read(&wish.preference))).collect();
        }
        if let Some(pods) = &affinity.pod_affinity {
            let required = pods.required_during_scheduling_ignored_during_execution.iter().flatten();
            self.affinity = required.map(term).collect();
            let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            self.preferred_pods.extend(preferred.map(|wish| (i64::from(wish.weight), term(&wish.pod_affinity_term))));
        }
        if let Some(pods) = &affinity.pod_anti_affinity {
            let required = pods.required_during_scheduling_ignored_during_execution.iter().flatten();
            self.anti_affinity = required.map(term).collect();
            let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            self.preferred_pods.extend(preferred.map(|wish| (-i64::from(wish.weight), term(&wish.pod_affinity_term))));
        }
    }

    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.claims.iter().map(|claim| Key::new(self.namespace.clone(), claim.as_str()))
    }

    pub fn has_pod_affinity(&self) -> bool {
        !self.affinity.is_empty() || !self.anti_affinity.is_empty() || !self.preferred_pods.is_empty()
    }

    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| tolerates(toleration, taint))
    }

    /// The node selector and the required node affinity.
    pub fn selects_node(&self, name: &str, labels: Option<&Labels>) -> bool {
        self.node_selector.matches(labels)
            && self.node_terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(name, labels)))
    }

    /// The only nodes by name that the required affinity could match; `None` if it doesn't say.
    pub fn pinned_nodes(&self) -> Option<Vec<&str>> {
        let mut all: Vec<&str> = Vec::new();
        for term in self.node_terms.as_ref().filter(|terms| !terms.is_empty())? {
            all.extend(term.pinned()?);
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }
}

fn images(spec: &PodSpec) -> Vec<String> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers).map(|container| &container.image);
    let volumes = spec.volumes.iter().flatten().filter_map(|volume| Some(&volume.image.as_ref()?.reference));
    containers.chain(volumes).map(|image| with_tag(image.as_deref().unwrap_or_default())).collect()
}

/// As the container runtime names it to the API.
fn with_tag(image: &str) -> String {
    let has_tag = image.rfind(':') > image.rfind('/');
    if has_tag { image.to_owned() } else { format!("{image}:latest") }
}

/// Claims by name, if `named`, and those that are made for the pod's ephemeral volumes.
fn claims(pod: &str, spec: &PodSpec, named: bool) -> Vec<String> {
    let volumes = spec.volumes.iter().flatten();
    let claimed = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => named.then(|| claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{pod}-{}", volume.name)),
        (None, None) => None,
    });
    claimed.collect()
}
