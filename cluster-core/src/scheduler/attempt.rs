//! One attempt to find a pod a node, and what comes of it: a binding, or a place in the queue.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::cycle::{Evaluation, evaluate};
use super::filters::Change;
use super::pod::PodInfo;
use super::preemption::{self, Outcome};
use super::queue::Entry;
use super::{Binding, Scheduler, Wake, actor, report};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Body, Request, Verb};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::clock::Class;
use crate::random::Random;
use crate::trace::{Causes, Sequence};
use crate::world::{Event, World};

impl Scheduler {
    pub(super) fn schedule(&mut self, entry: &Entry, world: &mut World) {
        let pod = &entry.pod;
        let start = self.start;
        self.cache.sort_by_zones();
        let class = self.classes.of(pod, &self.cache);
        let evaluation = evaluate(pod, &self.cache, class, start);
        if evaluation.nodes > 0 && evaluation.unnamed.is_none() {
            self.start = (start + evaluation.looked_at) % evaluation.nodes;
        }
        let chosen = choose(&evaluation, &mut world.random)
            .and_then(|(position, points)| Some((self.cache.nodes().get(position)?.name.clone(), points)));
        let names = self.cache.names().clone();
        let outcome = match chosen {
            Some((node, points)) => {
                let told = told(&node, points, &evaluation);
                let mut causes = entry.causes.clone();
                causes.add(world.note(&actor(), entry.causes.clone(), pod.key(), told));
                self.assume(pod, &node, causes, world);
                Ok(node)
            }
            None => Err(self.give_up(entry, &evaluation, world)),
        };
        self.history.record(world.now, pod.key(), names, evaluation, outcome);
    }

    /// Takes the pod for bound from now on, so that the next cycle sees its place taken, and sends the binding.
    fn assume(&mut self, pod: &Arc<PodInfo>, node: &Name, causes: Causes, world: &mut World) {
        let key = pod.key().clone();
        let volumes =
            self.cache.node(node).and_then(|info| self.cache.volumes.steps(&pod.ask, info)).unwrap_or_default();
        self.cache.volumes.promise(&volumes);
        self.cache.place(pod.clone(), node);
        self.binding.insert(key.clone(), Binding { pod: pod.clone(), node: node.clone(), causes, volumes });
        self.send_binding(key, world);
    }

    pub(super) fn send_binding(&self, key: Key, world: &mut World) {
        let latency = world.api_latency();
        world.after(latency, Class::Work, Event::Scheduler(Wake::Bind(self.incarnation, key)));
    }

    pub(super) fn bind(&mut self, key: &Key, world: &mut World) {
        let Some(Binding { pod, node, causes, volumes }) = self.binding.get(key).cloned() else { return };
        let sent = world.trace.next_sequence();
        if !self.cache.volumes.are_bound(&volumes) {
            let mut steps = volumes.iter();
            match steps.try_for_each(|step| self.cache.volumes.carry_out(step, &node, &causes, world)) {
                Ok(()) => {
                    report::nominate(&pod.object, &node, &causes, world);
                    self.waiting_for_volumes.insert(key.clone());
                }
                Err(status) => self.binding_failed(key, "PreBind plugin \"VolumeBinding\"", &status, sent, world),
            }
            return;
        }
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": pod.object.uid()},
            "target": {"kind": "Node", "name": &*node},
        });
        let request = Request {
            subresource: "binding",
            body: Body::Json(body),
            ..Request::new(&actor(), Verb::Create, KindRef::of::<Pod>(), key.clone())
        };
        match world.request(request.caused_by(causes).because("the best node for it")) {
            Ok(_) => {
                self.binding.remove(key);
                report::scheduled(&pod.object, &node, sent, world);
            }
            Err(status) => self.binding_failed(key, "Bind plugin \"DefaultBinder\"", &status, sent, world),
        }
    }

    fn binding_failed(&mut self, key: &Key, at: &str, status: &Status, sent: Sequence, world: &mut World) {
        let binding = self.binding.remove(key);
        self.cache.volumes.take_back(binding.as_ref().map(|binding| &*binding.volumes).unwrap_or_default());
        // If it was bound by somebody else, the watch has told where, or will.
        let waiting = self.queue.get(key).map(|entry| entry.pod.clone());
        if let Some(pod) = &waiting {
            self.cache.take_away(key);
            self.changed(&Change::PodRemoved(&pod.ask), sent, world.now);
            self.queue.retry(key, sent, world.now);
        }
        if let Some(pod) = waiting.or(binding.map(|binding| binding.pod)).filter(|_| !status.is_not_found()) {
            report::binding_failed(&pod.object, at, &status.message, sent, world);
        }
    }

    /// No node passed: makes room on one if that helps, tells it, and lets the pod wait. Returns what was told.
    fn give_up(&mut self, entry: &Entry, evaluation: &Evaluation, world: &mut World) -> String {
        let pod = &entry.pod;
        let preempts = evaluation.profile.preempts;
        let nomination = if evaluation.nodes == 0 || evaluation.refusal.is_some() || !preempts {
            Outcome::Refuse(String::new())
        } else {
            preemption::preempt(pod, evaluation, &self.cache, &mut world.random)
        };
        let message = match &nomination {
            _ if evaluation.nodes == 0 => "no nodes available to schedule pods".to_owned(),
            _ if !preempts => evaluation.message(),
            Outcome::Nominate { .. } => evaluation.message(),
            // Plugins that would have a say now have not prepared themselves, and miss what they would have noted.
            _ if evaluation.refusal.is_some() => format!("{} not found", evaluation.message()),
            // The plugin for dynamic resources has its say first: there never are any.
            Outcome::Refuse(why) => format!("{} no new claims to deallocate, preemption: {why}", evaluation.message()),
        };
        let mut causes = entry.causes.clone();
        causes.add(world.note(&actor(), entry.causes.clone(), pod.key(), evaluation.message()));
        self.queue.give_up(pod.key(), evaluation.refused_by(), world.now);
        let nominated = match nomination {
            Outcome::Nominate { node, victims } => {
                self.cache.nominated.insert(pod.key().clone(), (node.clone(), pod.clone()));
                for victim in victims {
                    let newest = self.cache.pod(victim.key()).unwrap_or(&victim.object).clone();
                    report::evict(&newest, &pod.object, &node, &causes, world);
                }
                self.release_nominations(pod, &node, &causes, world);
                Some(node)
            }
            Outcome::Refuse(_) => self.cache.nominated.get(pod.key()).map(|(node, _)| node.clone()),
        };
        report::unschedulable(&pod.object, &message, nominated.as_deref(), causes, world);
        message
    }

    /// Pods of lower priority that were to get room on that node must look for another one.
    fn release_nominations(&mut self, pod: &PodInfo, node: &Name, causes: &Causes, world: &mut World) {
        let lower =
            |(_, (name, other)): &(&Key, &(Name, Arc<PodInfo>))| name == node && other.ask.priority < pod.ask.priority;
        let released: Vec<Object> =
            self.cache.nominated.iter().filter(lower).map(|(_, (_, other))| other.object.clone()).collect();
        for other in released {
            self.cache.nominated.remove(&other.key);
            report::release_nomination(&other, causes, world);
        }
    }
}

/// A node with the most points, and these; which one of several is drawn evenly.
fn choose(evaluation: &Evaluation, random: &mut Random) -> Option<(usize, i64)> {
    let mut best: Option<(usize, i64)> = None;
    let mut equals = 0;
    for (position, total) in evaluation.passed.iter().copied().zip(evaluation.totals()) {
        match best {
            Some((_, most)) if total < most => {}
            Some((_, most)) if total == most => {
                equals += 1;
                if random.below(equals) == 0 {
                    best = Some((position, total));
                }
            }
            _ => {
                best = Some((position, total));
                equals = 1;
            }
        }
    }
    best
}

fn told(node: &Name, points: i64, evaluation: &Evaluation) -> String {
    match evaluation.passed.len() {
        1 => format!("{node} is the only node of {} that fits", evaluation.nodes),
        passed => format!("{node} has the most points, {points}, of {passed} nodes that fit"),
    }
}
