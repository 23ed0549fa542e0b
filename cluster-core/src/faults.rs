//! Faults: rules that are looked at where parts meet, never inside of a part.

use std::time::Duration;

use crate::api::Name;
use crate::api::kind::KindRef;
use crate::api::status::Status;
use crate::clock::Time;

/// Where a rule is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// A watch event reaches a component.
    Delivery,
    /// A component's request reaches the apiserver.
    Request,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The event is lost; the request fails before it has done anything.
    Drop,
    /// It comes later by this much.
    Delay(Duration),
    /// The event comes twice.
    Duplicate,
    /// The request is done, but its answer is lost.
    LoseAnswer,
}

/// One rule. Empty names match everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub edge: Edge,
    /// The component that hears or asks: its whole name, or the part before a slash (`kubelet` for every node's).
    pub component: Name,
    /// The kind's name, singular or plural, in any case.
    pub kind: Name,
    /// The object's name, or its beginning.
    pub name: Name,
    pub effect: Effect,
    /// How many more times it applies; `None` for ever.
    pub times: Option<u32>,
    pub until: Option<Time>,
}

/// The rules in force.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
    /// Nodes that can't reach the control plane, and the other way round.
    cut_off: imbl::OrdSet<Name>,
    /// Components that are stopped.
    stopped: imbl::OrdSet<Name>,
}

impl Faults {
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Takes away all rules, and says how many there were.
    pub fn clear(&mut self) -> usize {
        let count = self.rules.len();
        self.rules.clear();
        count
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn cut_off(&mut self, node: &str) {
        self.cut_off.insert(node.into());
    }

    pub fn heal(&mut self, node: &str) {
        self.cut_off.remove(node);
    }

    pub fn is_cut_off(&self, node: &str) -> bool {
        self.cut_off.contains(node)
    }

    pub fn set_stopped(&mut self, component: &str, stopped: bool) {
        if stopped {
            self.stopped.insert(component.into());
        } else {
            self.stopped.remove(component);
        }
    }

    pub fn is_stopped(&self, component: &str) -> bool {
        self.stopped.contains(component)
    }

    pub fn stopped(&self) -> impl Iterator<Item = &Name> {
        self.stopped.iter()
    }

    /// What happens to an event on its way to a component.
    pub fn on_delivery(&mut self, component: &str, kind: &KindRef, name: &str, now: Time) -> Option<Effect> {
        self.verdict(Edge::Delivery, component, Some(kind), name, now)
    }

    /// What happens to an event of a machine that is no object: a container of the plain host has exited.
    pub fn on_machine_event(&mut self, component: &str, name: &str, now: Time) -> Option<Effect> {
        self.verdict(Edge::Delivery, component, None, name, now)
    }

    /// What happens to a request on its way to the apiserver.
    pub fn on_request(&mut self, component: &str, kind: &KindRef, name: &str, now: Time) -> Option<Effect> {
        self.verdict(Edge::Request, component, Some(kind), name, now)
    }

    /// Why a component can't speak with the apiserver at all.
    pub fn unreachable(&self, component: &str) -> Option<Status> {
        let refused =
            "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?";
        if self.is_stopped("kube-apiserver") {
            return Some(Status::unavailable(refused));
        }
        if node_of(component).is_some_and(|node| self.is_cut_off(node)) {
            return Some(Status::unavailable("dial tcp 10.0.0.1:6443: connect: no route to host"));
        }
        self.is_stopped("etcd").then(|| Status::timeout("etcdserver: request timed out"))
    }

    fn verdict(
        &mut self,
        edge: Edge,
        component: &str,
        kind: Option<&KindRef>,
        name: &str,
        now: Time,
    ) -> Option<Effect> {
        if self.rules.is_empty() {
            return None;
        }
        self.rules.retain(|rule| rule.times != Some(0) && rule.until.is_none_or(|until| now < until));
        let rule = self.rules.iter_mut().find(|rule| rule.edge == edge && rule.matches(component, kind, name))?;
        if let Some(times) = &mut rule.times {
            *times -= 1;
        }
        Some(rule.effect.clone())
    }
}

impl Rule {
    fn matches(&self, component: &str, kind: Option<&KindRef>, name: &str) -> bool {
        let same_kind = |text: &str| {
            let names = |kind: &KindRef| [kind.kind.clone(), kind.resource.clone(), kind.singular.clone()];
            kind.is_some_and(|kind| names(kind).iter().any(|known| known.eq_ignore_ascii_case(text)))
        };
        (self.component.is_empty()
            || *self.component == *component
            || component.split('/').next() == Some(&*self.component))
            && (self.kind.is_empty() || same_kind(&self.kind))
            && name.starts_with(&*self.name)
    }
}

/// The node that a component runs on: `kubelet/node-1` is on node-1.
pub fn node_of(component: &str) -> Option<&str> {
    component.split_once('/').map(|(_, node)| node)
}
