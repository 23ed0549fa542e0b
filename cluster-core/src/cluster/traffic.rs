//! Requests that come to Services all the time, so many a second. They are not opened one by one: every second the CPU
//! time that they cost is dealt out to whoever is ready.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::Cluster;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::Class;
use crate::network::addresses;
use crate::runtime::container::Handle;
use crate::world::Event;

const PERIOD: Duration = Duration::from_secs(1);
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// Requests a second, by Service.
    streams: imbl::OrdMap<Key, u64>,
    /// Who got a share last time.
    loaded: imbl::OrdSet<(Name, Handle)>,
}

impl Cluster {
    /// Lets so many requests a second come to a Service from now on; 0 ends that. False if there is no such Service.
    pub fn set_traffic(&mut self, service: &Key, per_second: u64) -> bool {
        if self.get::<Service>(&service.namespace, &service.name).is_none() {
            return false;
        }
        let was_quiet = self.traffic.streams.is_empty() && self.traffic.loaded.is_empty();
        match per_second {
            0 => self.traffic.streams.remove(service),
            _ => self.traffic.streams.insert(service.clone(), per_second),
        };
        self.record_fault(format!(
            "service {}/{} gets {per_second} requests a second",
            service.namespace, service.name
        ));
        if was_quiet && per_second > 0 {
            self.deal_out_traffic();
        }
        true
    }

    /// How many requests a second come to each Service.
    pub fn traffic(&self) -> impl Iterator<Item = (&Key, u64)> {
        self.traffic.streams.iter().map(|(service, per_second)| (service, *per_second))
    }

    pub(super) fn deal_out_traffic(&mut self) {
        let now = self.now();
        let mut shares: BTreeMap<(Name, Handle), u64> = BTreeMap::new();
        for (service, per_second) in &self.traffic.streams {
            let backends = self.backends(service);
            for backend in &backends {
                let (machine, handle) = backend;
                let cost = self.machines.get(machine).and_then(|machine| machine.runtime.container(*handle));
                let cost = cost.map_or(0, |container| container.request_nanos());
                *shares.entry(backend.clone()).or_default() += per_second.saturating_mul(cost) / backends.len() as u64;
            }
        }
        let quiet = self.traffic.loaded.iter().filter(|known| !shares.contains_key(known));
        let quiet: Vec<((Name, Handle), u64)> = quiet.map(|known| (known.clone(), 0)).collect();
        self.traffic.loaded = shares.keys().cloned().collect();
        for ((machine, handle), nanos) in shares.into_iter().chain(quiet) {
            if let Some(machine) = self.machines.get_mut(&machine) {
                machine.runtime.load_requests(handle, nanos, now);
            }
        }
        if !self.traffic.streams.is_empty() || !self.traffic.loaded.is_empty() {
            self.world.after(PERIOD, Class::Background, Event::Traffic);
        }
    }

    /// The containers that listen at the ready endpoints of a Service.
    fn backends(&self, service: &Key) -> Vec<(Name, Handle)> {
        let is_of = |slice: &&Object| slice.label(SERVICE_NAME_LABEL) == Some(&*service.name);
        let slices = self.world.apiserver.store.list(EndpointSlice::kind(), &service.namespace).filter(is_of);
        let ready = |endpoint: &&Endpoint| endpoint.conditions.as_ref().is_none_or(|known| known.ready != Some(false));
        let mut found = Vec::new();
        for slice in slices.map(|slice| slice.spec::<EndpointSlice>()) {
            let port = slice.ports.iter().flatten().find_map(|port| u16::try_from(port.port?).ok());
            let Some(port) = port else { continue };
            for address in slice.endpoints.iter().flatten().filter(ready).filter_map(|known| known.addresses.first()) {
                found.extend(self.listener(address, port));
            }
        }
        found
    }

    fn listener(&self, address: &str, port: u16) -> Option<(Name, Handle)> {
        let ip: Ipv4Addr = address.parse().ok()?;
        let is_home = |name: &Name| addresses::is_pod_of(ip, name) || addresses::machine_address(name) == ip;
        let (name, machine) = self.machines.iter().find(|(name, machine)| machine.powered && is_home(name))?;
        machine.runtime.listener(address, port).map(|(handle, _)| (name.clone(), handle))
    }
}
