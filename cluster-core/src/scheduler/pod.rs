//! What scheduling needs to know of a pod, read from its spec once.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::selector::{Labels, Selector};
use crate::api::{Key, Name};

/// What a container without a request counts as when nodes are compared (not when they are filtered).
const MILLI_CPU_ASSUMED: i64 = 100;
const MEMORY_BYTES_ASSUMED: i64 = 200 << 20;

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
pub struct Asks(Vec<Arc<Ask>>);

impl Asks {
    const MAX: usize = 8;

    pub fn pod(&mut self, object: &Object) -> PodInfo {
        let ask = Ask::read(object);
        let ask = match self.0.iter().position(|known| **known == ask) {
            Some(at) => self.0.remove(at),
            None => Arc::new(ask),
        };
        self.0.truncate(Asks::MAX - 1);
        self.0.insert(0, ask.clone());
        PodInfo { object: object.clone(), ask }
    }
}

/// Amounts of resources; memory and storage in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// Extended resources and huge pages.
    pub scalars: BTreeMap<String, i64>,
}

type Quantities = BTreeMap<String, Quantity>;

impl Resources {
    pub fn read(quantities: Option<&Quantities>) -> Resources {
        let mut resources = Resources::default();
        for (name, quantity) in quantities.into_iter().flatten() {
            resources.set(name, quantity);
        }
        resources
    }

    fn set(&mut self, name: &str, quantity: &Quantity) {
        match name {
            "cpu" => self.milli_cpu = quantity::millis(quantity),
            "memory" => self.memory = quantity::units(quantity),
            "ephemeral-storage" => self.ephemeral_storage = quantity::units(quantity),
            "pods" => {}
            _ => {
                self.scalars.insert(name.to_owned(), quantity::units(quantity));
            }
        }
    }

    pub fn add(&mut self, other: &Resources) {
        self.combine(other, |a, b| a.saturating_add(b));
    }

    pub fn subtract(&mut self, other: &Resources) {
        self.combine(other, |a, b| a.saturating_sub(b));
    }

    fn raise_to(&mut self, other: &Resources) {
        self.combine(other, Ord::max);
    }

    fn combine(&mut self, other: &Resources, with: fn(i64, i64) -> i64) {
        self.milli_cpu = with(self.milli_cpu, other.milli_cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            let known = self.scalars.entry(name.clone()).or_default();
            *known = with(*known, *amount);
        }
    }
}

/// A port of the node that a container takes.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPort {
    ip: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let any = |port: &HostPort| port.ip == "0.0.0.0";
        self.port == other.port && self.protocol == other.protocol && (self.ip == other.ip || any(self) || any(other))
    }
}

/// One term of a node affinity: all its requirements must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTerm {
    labels: Selector,
    /// Lists of node names, and whether the node must be among them.
    names: Vec<(bool, Vec<String>)>,
    is_empty: bool,
}

impl NodeTerm {
    pub fn read(term: &core::NodeSelectorTerm) -> NodeTerm {
        let expressions: Vec<_> = term.match_expressions.iter().flatten().map(label_requirement).collect();
        let fields = term.match_fields.iter().flatten().filter(|field| field.key == "metadata.name");
        NodeTerm {
            is_empty: expressions.is_empty() && term.match_fields.as_ref().is_none_or(Vec::is_empty),
            labels: Selector::of(&meta::LabelSelector { match_expressions: Some(expressions), match_labels: None }),
            names: fields.map(|field| (field.operator == "In", field.values.clone().unwrap_or_default())).collect(),
        }
    }

    /// A term without requirements matches no node.
    pub fn matches(&self, name: &str, labels: Option<&Labels>) -> bool {
        !self.is_empty
            && self.names.iter().all(|(among, names)| names.iter().any(|known| known == name) == *among)
            && self.labels.matches(labels)
    }

    /// The only nodes by name that the term could match; `None` if it doesn't say.
    fn pinned(&self) -> Option<Vec<&str>> {
        let mut lists = self.names.iter().filter(|(among, _)| *among).map(|(_, names)| names);
        let first = lists.next()?.iter().map(String::as_str);
        let others: Vec<_> = lists.collect();
        Some(first.filter(|name| others.iter().all(|names| names.iter().any(|other| other == name))).collect())
    }
}

fn label_requirement(requirement: &core::NodeSelectorRequirement) -> meta::LabelSelectorRequirement {
    meta::LabelSelectorRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone(),
    }
}

/// One term of an affinity to other pods.
#[derive(Clone, Debug, PartialEq)]
pub struct PodTerm {
    pub topology_key: String,
    /// Without a selector it matches no pod.
    selector: Option<Selector>,
    namespaces: Vec<String>,
    namespace_selector: Option<Selector>,
}

/// The labels of namespaces.
pub type Namespaces = imbl::OrdMap<Name, Object>;

impl PodTerm {
    fn read(term: &core::PodAffinityTerm, own_namespace: &str) -> PodTerm {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(own_namespace.to_owned());
        }
        PodTerm {
            topology_key: term.topology_key.clone(),
            selector: term.label_selector.as_ref().map(Selector::of),
            namespaces,
            namespace_selector: term.namespace_selector.as_ref().map(Selector::of),
        }
    }

    pub fn matches(&self, pod: &Ask, namespaces: &Namespaces) -> bool {
        let in_namespace = self.namespaces.iter().any(|name| **name == *pod.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| {
                let labels = namespaces.get(&pod.namespace).and_then(|found| found.metadata().labels.as_ref());
                selector.matches(labels)
            });
        in_namespace && self.selector.as_ref().is_some_and(|selector| selector.matches(Some(&pod.labels)))
    }
}

/// One topology spread constraint.
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/>
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub topology_key: String,
    pub max_skew: i64,
    pub min_domains: i64,
    /// `DoNotSchedule`; otherwise it is a wish.
    pub is_required: bool,
    /// Pods that are counted match all of these; none are if it is empty.
    pub selectors: Vec<Selector>,
    pub honors_affinity: bool,
    pub honors_taints: bool,
}

impl Spread {
    fn read(constraint: &core::TopologySpreadConstraint, labels: &Labels) -> Spread {
        let mut selectors: Vec<Selector> = constraint.label_selector.iter().map(Selector::of).collect();
        let own = |key: &String| Some((key.clone(), labels.get(key)?.clone()));
        let keys: Labels = constraint.match_label_keys.iter().flatten().filter_map(own).collect();
        if !selectors.is_empty() && !keys.is_empty() {
            selectors.push(Selector::of_labels(&keys));
        }
        Spread {
            topology_key: constraint.topology_key.clone(),
            max_skew: i64::from(constraint.max_skew),
            min_domains: i64::from(constraint.min_domains.unwrap_or(1)),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            selectors,
            honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    pub fn matches(&self, pod: &Ask) -> bool {
        !self.selectors.is_empty() && self.selectors.iter().all(|selector| selector.matches(Some(&pod.labels)))
    }
}

/// Everything in a pod that scheduling depends on. Pods that ask for the same are scheduled alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub namespace: Name,
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
    /// Names of persistent volume claims.
    pub claims: Vec<String>,
    /// Kind and name of the controlling owner.
    pub controller: Option<(String, String)>,
}

impl Ask {
    pub fn read(pod: &Object) -> Ask {
        let spec = pod.spec::<Pod>();
        let labels = pod.metadata().labels.clone().unwrap_or_default();
        let assumed = Resources { milli_cpu: MILLI_CPU_ASSUMED, memory: MEMORY_BYTES_ASSUMED, ..Resources::default() };
        let compared = requests(spec, &assumed);
        let mut ask = Ask {
            namespace: pod.key.namespace.clone(),
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
            claims: claims(&pod.key.name, spec),
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

/// <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let named = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
    let same_effect = named(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let same_key = named(&toleration.key).is_none_or(|key| key == taint.key);
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    let same_value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => value(&toleration.value) == value(&taint.value),
        Some(_) => false,
    };
    same_effect && same_key && same_value
}

/// What a pod needs at once: all its containers, or at its start the largest of its init containers beside the
/// sidecars that run by then; requests of the pod as a whole take precedence; overhead comes on top.
/// <https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers>
fn requests(spec: &PodSpec, assumed: &Resources) -> Resources {
    let of = |container: &Container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let mut all = assumed.clone();
        for (name, quantity) in requests.into_iter().flatten() {
            all.set(name, quantity);
        }
        all
    };
    let mut running = Resources::default();
    spec.containers.iter().for_each(|container| running.add(&of(container)));
    let (mut sidecars, mut starting) = (Resources::default(), Resources::default());
    for container in spec.init_containers.iter().flatten() {
        let mut now = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            running.add(&now);
            sidecars.add(&now);
            now = sidecars.clone();
        } else {
            now.add(&sidecars);
        }
        starting.raise_to(&now);
    }
    running.raise_to(&starting);
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    for (name, quantity) in whole.into_iter().flatten() {
        running.set(name, quantity);
    }
    running.add(&Resources::read(spec.overhead.as_ref()));
    running
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let ip = port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".into());
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
        Some(HostPort { ip, protocol, port: number })
    });
    taken.collect()
}

/// Claims by name, and those that are made for the pod's ephemeral volumes.
fn claims(pod: &str, spec: &PodSpec) -> Vec<String> {
    let volumes = spec.volumes.iter().flatten();
    let claimed = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{pod}-{}", volume.name)),
        (None, None) => None,
    });
    claimed.collect()
}

/// What a node offers to pods: its resources, and how many pods.
pub fn allocatable(node: &Object) -> (Resources, i64) {
    let status = node.status::<Node>();
    let quantities = status.allocatable.as_ref().or(status.capacity.as_ref());
    let pods = quantities.and_then(|all| all.get("pods")).map_or(0, quantity::units);
    (Resources::read(quantities), pods)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::kind::KindRef;

    fn ask(spec: Value) -> Ask {
        let pod = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": spec});
        Ask::read(&Object::from_json(KindRef::of::<Pod>(), pod).unwrap())
    }

    #[test]
    fn a_pod_needs_its_containers_or_its_largest_start() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let spec = json!({
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": cpu("200m")},
                {"name": "migrate", "resources": cpu("2")},
            ],
            "containers": [{"name": "a", "resources": cpu("500m")}, {"name": "b"}],
            "overhead": {"cpu": "50m"},
        });
        let ask = ask(spec);
        assert_eq!(ask.requests.milli_cpu, 2250);
        assert_eq!(ask.memory_assumed, 3 * MEMORY_BYTES_ASSUMED);
    }

    #[test]
    fn a_wildcard_address_takes_the_port_on_all() {
        let port = |ip: &str, protocol: &str| HostPort { ip: ip.into(), protocol: protocol.into(), port: 80 };
        assert!(port("0.0.0.0", "TCP").conflicts_with(&port("192.0.2.7", "TCP")));
        assert!(!port("192.0.2.8", "TCP").conflicts_with(&port("192.0.2.7", "TCP")));
        assert!(!port("0.0.0.0", "TCP").conflicts_with(&port("0.0.0.0", "UDP")));
    }

    #[test]
    fn tolerations() {
        let taint =
            Taint { key: "team".into(), value: Some("red".into()), effect: "NoSchedule".into(), time_added: None };
        for (toleration, tolerated) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "team", "operator": "Exists"}), true),
            (json!({"key": "team", "value": "red"}), true),
            (json!({"key": "team", "value": "blue"}), false),
            (json!({"key": "team", "value": "red", "effect": "NoExecute"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
        ] {
            assert_eq!(
                tolerates(&serde_json::from_value(toleration.clone()).unwrap(), &taint),
                tolerated,
                "{toleration}"
            );
        }
    }
}
