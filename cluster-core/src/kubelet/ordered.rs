//! What has to wait for the network: somebody who knows all machines does it, and tells the kubelet.

use std::time::Duration;

use super::probes::ProbeKind;
use super::worker::Worker;
use super::{Kubelet, Turn};
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::network::question::Question;
use crate::runtime::Runtime;
use crate::runtime::container::Handle;
use crate::runtime::shell::exec::{Exec, Running};
use crate::world::{Event, World};

/// A command on its way that a kubelet has ordered.
#[derive(Clone, Debug)]
pub struct Ordered {
    pod_uid: Name,
    pub pod: Key,
    index: usize,
    pub handle: Handle,
    purpose: Purpose,
    pub what: Order,
    pub began: Time,
    /// The kubelet gives up then.
    pub deadline: Time,
    pub class: Class,
}

/// What a kubelet has done by somebody else.
#[derive(Clone, Debug)]
pub enum Order {
    Run(Box<Running>),
    /// A GET, from its node.
    Get(Question),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Purpose {
    Probe(ProbeKind),
    PostStart,
    /// With the grace period that it is a part of.
    PreStop(Duration),
}

impl Worker {
    /// Has something done for one of the pod's containers.
    pub(super) fn order(
        &self,
        (index, handle): (usize, Handle),
        what: Order,
        (purpose, patience): (Purpose, Duration),
        turn: &mut Turn<'_>,
    ) {
        let class = if purpose == Purpose::Probe(ProbeKind::Liveness) { Class::Background } else { Class::Work };
        let (pod_uid, pod, began) = (self.uid.clone(), self.pod.key.clone(), turn.world.now);
        let deadline = began + patience;
        let ordered = Ordered { pod_uid, pod, index, handle, purpose, what, began, deadline, class };
        turn.world.after(Duration::ZERO, class, Event::Exec(turn.node.clone(), ordered.into()));
    }
}

impl Kubelet {
    /// A command that was ordered has ended.
    pub fn executed(&mut self, ordered: &Ordered, exec: Exec, runtime: &mut Runtime, world: &mut World) {
        let place = (ordered.index, ordered.handle);
        self.with_worker(&ordered.pod_uid, runtime, world, |worker, turn| match ordered.purpose {
            Purpose::Probe(kind) => worker.probe_ended(place, kind, &exec, turn),
            Purpose::PostStart => worker.post_start_ran(place, &exec, turn),
            Purpose::PreStop(grace) => worker.pre_stop_ran(place, grace, &exec, turn),
        });
    }
}
