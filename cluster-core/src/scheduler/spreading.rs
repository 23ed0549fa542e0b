//! Which pods are replicas of one thing: what the default topology spread counts.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};

use super::pod::Ask;
use super::profile::DefaultSpread;
use super::terms::Spread;
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};
use crate::api::{Key, Name};

pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// The selectors of Services, and of the controllers that own pods.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    services: imbl::OrdMap<Key, Arc<Labels>>,
    controllers: imbl::OrdMap<(Name, Key), Arc<Selector>>,
    /// Counts the changes of anything here.
    pub version: u64,
}

impl Owners {
    pub fn put(&mut self, object: &Object) {
        let selector = if object.is::<Service>() {
            let labels = object.spec::<Service>().selector.clone().unwrap_or_default();
            if self.services.get(&object.key).is_none_or(|known| **known != labels) {
                self.version += 1;
                self.services.insert(object.key.clone(), Arc::new(labels));
            }
            return;
        } else if object.is::<ReplicaSet>() {
            Selector::of(&object.spec::<ReplicaSet>().selector)
        } else if object.is::<StatefulSet>() {
            Selector::of(&object.spec::<StatefulSet>().selector)
        } else if object.is::<ReplicationController>() {
            object.spec::<ReplicationController>().selector.as_ref().map(Selector::of_labels).unwrap_or_default()
        } else {
            return;
        };
        let name = (object.kind.kind.clone(), object.key.clone());
        if self.controllers.get(&name).is_none_or(|known| **known != selector) {
            self.version += 1;
            self.controllers.insert(name, Arc::new(selector));
        }
    }

    pub fn remove(&mut self, object: &Object) {
        self.version += 1;
        if object.is::<Service>() {
            self.services.remove(&object.key);
        } else {
            self.controllers.remove(&(object.kind.kind.clone(), object.key.clone()));
        }
    }

    /// The defaults for pods without constraints of their own: replicas are spread over nodes and zones as far as nothing
    /// else speaks against it, or as a profile says.
    /// <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>
    pub fn default_spread(&self, pod: &Ask, defaults: &DefaultSpread) -> Vec<Spread> {
        let mut selectors: Vec<Selector> = self
            .services
            .range(Key::new(pod.namespace.clone(), "")..)
            .take_while(|(key, _)| key.namespace == pod.namespace)
            .filter(|(_, labels)| !labels.is_empty())
            .map(|(_, labels)| Selector::of_labels(labels))
            .filter(|selector| selector.matches(Some(&pod.labels)))
            .collect();
        if let Some((kind, name)) = &pod.controller {
            let key = Key::new(pod.namespace.clone(), name.as_str());
            let owner = self.controllers.get(&(kind.as_str().into(), key));
            selectors.extend(owner.filter(|selector| !selector.is_everything()).map(|selector| (**selector).clone()));
        }
        if selectors.is_empty() {
            return Vec::new();
        }
        let spread = |(topology_key, max_skew, is_required): &(String, i64, bool)| Spread {
            topology_key: topology_key.clone(),
            max_skew: *max_skew,
            min_domains: 1,
            is_required: *is_required,
            selectors: selectors.clone(),
            honors_affinity: true,
            honors_taints: false,
        };
        defaults.constraints.iter().map(spread).collect()
    }
}
