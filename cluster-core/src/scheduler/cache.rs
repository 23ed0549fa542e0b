//! What the scheduler knows of the cluster: nodes with the pods on them, those it has only decided on included.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::budgets::Budgets;
use super::node::NodeInfo;
use super::pod::{Ask, PodInfo};
use super::profile::{Configuration, NODES_MIN, Profile};
use super::spreading::{Owners, ZONE};
use super::terms::{Namespaces, Spread};
use super::volumes::Volumes;
use crate::HashMap;
use crate::api::object::Object;
use crate::api::{Key, Name};

#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// In the order in which they came.
    nodes: imbl::Vector<Arc<NodeInfo>>,
    names: Arc<Vec<Name>>,
    positions: HashMap<Name, usize>,
    /// The node of each pod, and the newest that is known of the pod.
    placed: HashMap<Key, (Name, Object)>,
    /// Pods on nodes that are not known.
    homeless: imbl::OrdMap<Key, (Name, Arc<PodInfo>)>,
    /// Placed pods with an affinity to other pods.
    with_affinity: usize,
    /// How many placed pods use each claim.
    claimed: imbl::OrdMap<Key, usize>,
    /// How many nodes have each image.
    images: imbl::OrdMap<String, usize>,
    /// Pods that wait for room that preemption makes on a node.
    pub nominated: imbl::OrdMap<Key, (Name, Arc<PodInfo>)>,
    pub budgets: Budgets,
    pub owners: Owners,
    pub volumes: Volumes,
    pub namespaces: Namespaces,
    pub configuration: Arc<Configuration>,
    /// Positions of nodes in the order in which they are looked at, if that is not the order in which they came.
    order: Option<Arc<Vec<usize>>>,
}

/// Which zone a node is in, as the order of the search counts them: region and zone.
fn zone(node: &NodeInfo) -> (&str, &str) {
    let label = |key: &str| node.label(key).unwrap_or_default();
    (label("topology.kubernetes.io/region"), label(ZONE))
}

impl Cache {
    pub fn nodes(&self) -> &imbl::Vector<Arc<NodeInfo>> {
        &self.nodes
    }

    /// The profile that a pod names.
    pub fn profile(&self, ask: &Ask) -> Arc<Profile> {
        self.configuration.profile(&ask.scheduler_name).cloned().unwrap_or_default()
    }

    /// The topology spread of a pod: its own, or what its profile has for those that say nothing.
    pub fn spread(&self, ask: &Ask) -> Vec<Spread> {
        if ask.spread.is_empty() {
            self.owners.default_spread(ask, &self.profile(ask).spread)
        } else {
            ask.spread.clone()
        }
    }

    /// The position of the node that is looked at as number `index`. A large cluster is searched zone by zone in turn,
    /// so that the nodes that are found are spread over the zones.
    pub fn looked_at(&self, index: usize) -> usize {
        self.order.as_ref().and_then(|order| order.get(index).copied()).unwrap_or(index)
    }

    /// Takes the zones into account as they are now.
    pub fn sort_by_zones(&mut self) {
        if self.order.is_some() || self.nodes.len() < NODES_MIN {
            return;
        }
        let mut zones: Vec<((&str, &str), VecDeque<usize>)> = Vec::new();
        let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (position, node) in self.nodes.iter().enumerate() {
            let number = *numbers.entry(zone(node)).or_insert(zones.len());
            if number == zones.len() {
                zones.push((zone(node), VecDeque::new()));
            }
            zones[number].1.push_back(position);
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        while order.len() < self.nodes.len() {
            order.extend(zones.iter_mut().filter_map(|(_, positions)| positions.pop_front()));
        }
        self.order = Some(Arc::new(order));
    }

    /// The names of the nodes by their positions.
    pub fn names(&self) -> &Arc<Vec<Name>> {
        &self.names
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    pub fn node(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(self.position(name)?)
    }

    pub fn node_of(&self, pod: &Key) -> Option<&Name> {
        self.placed.get(pod).map(|(node, _)| node)
    }

    /// The newest that is known of a pod that has a node.
    pub fn pod(&self, key: &Key) -> Option<&Object> {
        self.placed.get(key).map(|(_, object)| object)
    }

    /// Takes a newer state of a pod that is on this node already. False if it isn't, or if what it asks for may have
    /// changed.
    pub fn refresh(&mut self, object: &Object, node: &str) -> bool {
        let Some((known_node, known)) = self.placed.get_mut(&object.key) else { return false };
        let same = **known_node == *node && Arc::ptr_eq(known.metadata_arc(), object.metadata_arc());
        *known = object.clone();
        same
    }

    /// Some pod on some node cares about other pods.
    pub fn any_affinity(&self) -> bool {
        self.with_affinity > 0
    }

    /// A pod that has a node uses the claim.
    pub fn is_claimed(&self, namespace: &Name, claim: &str) -> bool {
        self.claimed.contains_key(&Key::new(namespace.clone(), claim))
    }

    pub fn nodes_with_image(&self, image: &str) -> usize {
        self.images.get(image).copied().unwrap_or(0)
    }

    /// Takes a new or changed node. False if nothing changed that scheduling depends on.
    pub fn put_node(&mut self, object: &Object) -> bool {
        let new = NodeInfo::new(object);
        if self.node(&new.name).is_none_or(|known| zone(known) != zone(&new)) {
            self.order = None;
        }
        let known = self.node(&new.name).map(|node| node.images.clone()).unwrap_or_default();
        if known != new.images {
            known.keys().for_each(|image| count(&mut self.images, image.clone(), false));
            new.images.keys().for_each(|image| count(&mut self.images, image.clone(), true));
        }
        if let Some(position) = self.position(&new.name) {
            return self.change(position, |node| node.update(new)).unwrap_or(false);
        }
        let name = new.name.clone();
        self.positions.insert(name.clone(), self.nodes.len());
        self.nodes.push_back(Arc::new(new));
        Arc::make_mut(&mut self.names).push(name.clone());
        let waiting: Vec<_> =
            self.homeless.iter().filter(|(_, (node, _))| *node == name).map(|(k, _)| k.clone()).collect();
        let position = self.nodes.len() - 1;
        for key in waiting {
            if let Some((_, pod)) = self.homeless.remove(&key) {
                self.change(position, |node| node.add(pod));
            }
        }
        true
    }

    pub fn remove_node(&mut self, name: &Name) {
        let Some(position) = self.positions.remove(name) else { return };
        let node = self.nodes.remove(position);
        self.order = None;
        Arc::make_mut(&mut self.names).remove(position);
        node.images.keys().for_each(|image| count(&mut self.images, image.clone(), false));
        for pod in &node.pods {
            self.homeless.insert(pod.key().clone(), (name.clone(), pod.clone()));
        }
        for (later, node) in self.nodes.iter().enumerate().skip(position) {
            self.positions.insert(node.name.clone(), later);
        }
    }

    /// Puts a pod on a node, or takes a newer state of one that is there.
    pub fn place(&mut self, pod: Arc<PodInfo>, node: &Name) {
        let key = pod.key().clone();
        self.take_away(&key);
        self.nominated.remove(&key);
        self.with_affinity += usize::from(pod.ask.has_pod_affinity());
        pod.ask.claim_keys().for_each(|claim| count(&mut self.claimed, claim, true));
        self.placed.insert(key.clone(), (node.clone(), pod.object.clone()));
        match self.position(node) {
            Some(position) => {
                self.change(position, |node| node.add(pod));
            }
            None => {
                self.homeless.insert(key, (node.clone(), pod));
            }
        }
    }

    pub fn take_away(&mut self, key: &Key) -> Option<Arc<PodInfo>> {
        let (node, _) = self.placed.remove(key)?;
        let pod = match self.position(&node) {
            Some(position) => self.change(position, |node| node.remove(key)).flatten(),
            None => self.homeless.remove(key).map(|(_, pod)| pod),
        }?;
        self.with_affinity -= usize::from(pod.ask.has_pod_affinity());
        pod.ask.claim_keys().for_each(|claim| count(&mut self.claimed, claim, false));
        Some(pod)
    }

    fn change<T>(&mut self, position: usize, change: impl FnOnce(&mut NodeInfo) -> T) -> Option<T> {
        self.nodes.get_mut(position).map(|node| change(Arc::make_mut(node)))
    }
}

/// Counts one more or one less; what is not there at all is not kept.
fn count<K: Ord + Clone>(counts: &mut imbl::OrdMap<K, usize>, key: K, more: bool) {
    let known = counts.get(&key).copied().unwrap_or(0);
    match if more { known + 1 } else { known.saturating_sub(1) } {
        0 => counts.remove(&key),
        number => counts.insert(key, number),
    };
}
