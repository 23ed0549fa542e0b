//! One scheduling cycle: which nodes pass the filters, and how many points each of them gets.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/>

use std::sync::Arc;

use super::cache::Cache;
use super::filters::inter_pod_affinity::Neighbours;
use super::filters::pod_topology_spread::Domains;
use super::filters::{self, Rejection};
use super::node::NodeInfo;
use super::pod::{Ask, PodInfo};
use super::profile::Profile;
use super::scores::pod_topology_spread::Wishes;
use super::scores::{self, Candidate};

/// What the plugins are handed: the pod, the cluster, and what was counted over the whole cluster beforehand.
pub struct Cycle<'a> {
    pub pod: &'a PodInfo,
    pub ask: &'a Ask,
    pub cache: &'a Cache,
    pub profile: Arc<Profile>,
    pub domains: Vec<Domains>,
    pub neighbours: Neighbours,
}

impl<'a> Cycle<'a> {
    pub fn new(pod: &'a PodInfo, cache: &'a Cache) -> Cycle<'a> {
        Cycle {
            domains: Domains::count(&pod.ask, cache),
            neighbours: Neighbours::count(&pod.ask, cache),
            ..Cycle::without_counts(pod, cache)
        }
    }

    /// For what depends on a single node or pod.
    pub fn without_counts(pod: &'a PodInfo, cache: &'a Cache) -> Cycle<'a> {
        let profile = cache.profile(&pod.ask);
        Cycle { pod, ask: &pod.ask, cache, profile, domains: Vec::new(), neighbours: Neighbours::default() }
    }

    /// The first refusal of a node, if any.
    pub fn check(&self, node: &NodeInfo) -> Result<(), Rejection> {
        self.profile.filters().try_for_each(|filter| filter.check(self, node))
    }

    fn check_alone(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let mut alone = self.profile.filters().filter(|filter| filter.looks_at_node_alone());
        alone.try_for_each(|filter| filter.check(self, node))
    }

    fn check_around(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let ask = self.ask;
        if self.domains.is_empty() && ask.affinity.is_empty() && ask.claims.is_empty() && !self.cache.any_affinity() {
            return Ok(());
        }
        let mut around = self.profile.filters().filter(|filter| !filter.looks_at_node_alone());
        around.try_for_each(|filter| filter.check(self, node))
    }

    /// The same, with the pods that have been promised room on the node, and without them: either may refuse.
    pub fn check_with_nominated(&self, node: &NodeInfo) -> Result<(), Rejection> {
        self.check(node).and_then(|()| check_nominated(self, node))
    }

    /// The node with the pods that are nominated to it and that this pod may not push aside; `None` if there are none.
    fn with_nominated(&self, node: &NodeInfo) -> Option<NodeInfo> {
        let counts = |(key, (name, pod)): &(&crate::api::Key, &(crate::api::Name, Arc<PodInfo>))| {
            *name == node.name && pod.ask.priority >= self.ask.priority && *key != self.pod.key()
        };
        let mut nominated = self.cache.nominated.iter().filter(counts).peekable();
        nominated.peek()?;
        let mut node = node.clone();
        nominated.for_each(|(_, (_, pod))| node.add(pod.clone()));
        Some(node)
    }
}

/// What is known about nodes for all pods that ask for the same, until a node changes.
#[derive(Clone, Debug)]
pub struct Class {
    ask: Arc<Ask>,
    owners_version: u64,
    known: Arc<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    wishes: Wishes,
    /// The nodes as they were when they were looked at, by position; `None` for never.
    nodes: Vec<Option<Arc<NodeInfo>>>,
    /// What was seen of each.
    seen: Vec<Seen>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    rejection: Option<Arc<Rejection>>,
    values: [i64; scores::COUNT],
}

impl Class {
    pub fn new(pod: &PodInfo, cache: &Cache) -> Class {
        let wishes = cache.spread(&pod.ask).into_iter().filter(|constraint| !constraint.is_required).collect();
        let are_defaults = pod.ask.spread.is_empty() && cache.profile(&pod.ask).spread.is_system;
        Class {
            ask: pod.ask.clone(),
            owners_version: cache.owners.version,
            known: Arc::new(Known { wishes: Wishes::new(wishes, are_defaults), nodes: Vec::new(), seen: Vec::new() }),
        }
    }

    fn is_of(&self, pod: &PodInfo, cache: &Cache) -> bool {
        self.owners_version == cache.owners.version && (Arc::ptr_eq(&self.ask, &pod.ask) || self.ask == pod.ask)
    }
}

impl Known {
    /// Looks at the nodes that have changed.
    fn refresh(&mut self, cycle: &Cycle<'_>) {
        let nodes = cycle.cache.nodes();
        self.wishes.resize(nodes.len());
        self.seen.resize_with(nodes.len(), Seen::default);
        self.nodes.resize(nodes.len(), None);
        for (position, (known, node)) in self.nodes.iter_mut().zip(nodes.leaves().flatten()).enumerate() {
            if known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, node)) {
                self.wishes.count(cycle.ask, position, node);
                self.seen[position] = see(cycle, node);
                *known = Some(node.clone());
            }
        }
    }
}

/// The classes of the pods that were scheduled last.
#[derive(Clone, Debug, Default)]
pub struct Classes(Vec<Class>);

impl Classes {
    const MAX: usize = 4;

    /// The class of a pod; the one that was used longest ago makes room for a new one.
    pub fn of(&mut self, pod: &PodInfo, cache: &Cache) -> &mut Class {
        let class = match self.0.iter().position(|class| class.is_of(pod, cache)) {
            Some(at) => self.0.remove(at),
            None => Class::new(pod, cache),
        };
        self.0.truncate(Classes::MAX - 1);
        self.0.insert(0, class);
        &mut self.0[0]
    }
}

/// The outcome for all nodes that were looked at.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    pub nodes: usize,
    pub profile: Arc<Profile>,
    /// How many nodes were looked at.
    pub looked_at: usize,
    pub rejected: Vec<(usize, Arc<Rejection>)>,
    /// Positions of the nodes that passed.
    pub passed: Vec<usize>,
    /// For each plugin, the points that it gives to each of them, times its weight.
    pub points: [Vec<i64>; scores::COUNT],
    /// What holds for the nodes that were not looked at because the pod names others.
    pub unnamed: Option<Rejection>,
    /// Why no node was looked at.
    pub refusal: Option<Rejection>,
}

impl Evaluation {
    /// All points of each node that passed.
    pub fn totals(&self) -> Vec<i64> {
        let mut totals = vec![0; self.passed.len()];
        for points in &self.points {
            totals.iter_mut().zip(points).for_each(|(total, points)| *total += points);
        }
        totals
    }
}

/// Looks for nodes from position `start` on, round and round.
pub fn evaluate(pod: &PodInfo, cache: &Cache, class: &mut Class, start: usize) -> Evaluation {
    let cycle = Cycle::new(pod, cache);
    let nodes = cache.nodes().len();
    let profile = cycle.profile.clone();
    let mut evaluation = Evaluation { nodes, profile: profile.clone(), ..Evaluation::default() };
    let refuse = |filter: &dyn filters::Filter| Some(Rejection::unresolvable(filter.name(), filter.refuse(&cycle)?));
    evaluation.refusal = profile.filters().find_map(refuse);
    if nodes == 0 || evaluation.refusal.is_some() {
        return evaluation;
    }
    let known = Arc::make_mut(&mut class.known);
    known.refresh(&cycle);
    let known = &*known;
    let enough = profile.nodes_to_find(nodes);
    let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(enough);
    evaluation.passed.reserve(enough);
    evaluation.points.iter_mut().for_each(|points| points.reserve(enough));
    let mut look = |position: usize, evaluation: &mut Evaluation| {
        let (Some(node), seen) = (&known.nodes[position], &known.seen[position]) else { return };
        evaluation.looked_at += 1;
        let rejection = match &seen.rejection {
            Some(rejection) => Some(rejection.clone()),
            None => cycle.check_around(node).and_then(|()| check_nominated(&cycle, node)).err().map(Arc::new),
        };
        match rejection {
            Some(rejection) => evaluation.rejected.push((position, rejection)),
            None => {
                evaluation.passed.push(position);
                for (points, value) in evaluation.points.iter_mut().zip(seen.values) {
                    points.push(value);
                }
                candidates.push(Candidate { position, node });
            }
        }
    };
    let nominated = cache.nominated.get(pod.key()).and_then(|(name, _)| cache.position(name));
    if let Some(position) = nominated.filter(|position| is_free(&cycle, known, *position)) {
        look(position, &mut evaluation);
    } else if let Some(names) = pod.ask.pinned_nodes() {
        evaluation.unnamed =
            Some(Rejection::unresolvable("NodeAffinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        for position in names.iter().filter_map(|name| cache.position(name)) {
            look(position, &mut evaluation);
        }
    } else {
        for index in (start..nodes).chain(0..start.min(nodes)) {
            look(cache.looked_at(index), &mut evaluation);
            if evaluation.passed.len() >= enough {
                break;
            }
        }
    }
    if candidates.len() > 1 {
        for (index, plugin, weight) in profile.scores() {
            let points = &mut evaluation.points[index];
            plugin.finish(&cycle, &known.wishes, &candidates, points);
            points.iter_mut().for_each(|points| *points *= weight);
        }
    }
    evaluation
}

fn see(cycle: &Cycle<'_>, node: &NodeInfo) -> Seen {
    let rejection = cycle.check_alone(node).err().map(Arc::new);
    let mut values = [0; scores::COUNT];
    if rejection.is_none() {
        for (index, plugin, _) in cycle.profile.scores() {
            values[index] = plugin.look(cycle, node);
        }
    }
    Seen { rejection, values }
}

/// The room that was promised to the pod is there.
fn is_free(cycle: &Cycle<'_>, known: &Known, position: usize) -> bool {
    known.nodes[position].as_ref().is_some_and(|node| cycle.check_with_nominated(node).is_ok())
}

fn check_nominated(cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
    if cycle.cache.nominated.is_empty() {
        return Ok(());
    }
    cycle.with_nominated(node).map_or(Ok(()), |node| cycle.check(&node))
}
