//! What the scheduler knows of the cluster: nodes with the pods on them, those it has only decided on included.

use std::sync::Arc;

use super::budgets::Budgets;
use super::node::NodeInfo;
use super::pod::PodInfo;
use super::spreading::Owners;
use super::terms::Namespaces;
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
}

impl Cache {
    pub fn nodes(&self) -> &imbl::Vector<Arc<NodeInfo>> {
        &self.nodes
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
