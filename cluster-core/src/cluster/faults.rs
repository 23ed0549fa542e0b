//! What can be broken and repaired from outside: each is one method, and one entry in the trace.

use std::sync::Arc;

use serde_json::Value;

use super::{Cluster, Machine, controllers};
use crate::api::{Key, Name};
use crate::controllers::controller::Controller;
use crate::controllers::metrics_server;
use crate::faults::{Rule, node_of};
use crate::kubelet::static_pods;
use crate::registry;
use crate::runtime::Runtime;
use crate::runtime::container::Handle;
use crate::runtime::shell::Exec;
use crate::runtime::tar;
use crate::runtime::usage::CORE_NANOS;
use crate::world::World;

/// What runs on every machine.
const NODE_COMPONENTS: [&str; 3] = ["kubelet", "kube-proxy", "kube-network-policies"];

impl Cluster {
    /// Stops a component: `kube-apiserver`, `etcd`, `kube-scheduler`, `kube-controller-manager`, one of its
    /// controllers, a joined controller, `kubelet/node-1`, `kube-proxy/node-1`,
    /// `kube-network-policies/node-1`. False if there is none of that name.
    pub fn stop(&mut self, component: &str) -> bool {
        self.set_running(component, false)
    }

    pub fn start(&mut self, component: &str) -> bool {
        self.set_running(component, true)
    }

    pub fn is_stopped(&self, component: &str) -> bool {
        self.world.faults.is_stopped(component) || self.not_there_yet(component).is_some()
    }

    /// It is optional, and nobody has started it yet.
    pub fn is_off_from_the_start(&self, component: &str) -> bool {
        self.not_there_yet(component).is_some()
    }

    /// An optional controller of this name, if nobody has started it before.
    fn not_there_yet(&self, component: &str) -> Option<Arc<dyn Controller>> {
        let is_there = self.clients.contains_key(component);
        controllers::optional().into_iter().find(|known| !is_there && known.name() == component)
    }

    fn set_running(&mut self, component: &str, run: bool) -> bool {
        let stopped = self.is_stopped(component);
        if !self.knows(component) {
            return false;
        }
        if stopped != run {
            return true;
        }
        self.world.faults.set_stopped(component, !run);
        self.record_fault(format!("{component} {}", if run { "started" } else { "stopped" }));
        self.switch(component, run);
        if component == metrics_server::NAME {
            self.switch_metrics(run);
        }
        true
    }

    /// Starts or ends a component's process.
    fn switch(&mut self, component: &str, run: bool) {
        if run && let Some(controller) = self.not_there_yet(component) {
            return self.join(controller);
        }
        let world = &mut self.world;
        let node = node_of(component).map(Name::from);
        match (component.split('/').next().unwrap_or_default(), node) {
            ("kube-apiserver" | "etcd", None) if run => world.resume_watches(),
            ("kube-apiserver" | "etcd", None) => {}
            ("kube-scheduler", None) if run => self.scheduler.start(world),
            ("kube-scheduler", None) => self.scheduler.stop(world),
            ("kube-controller-manager", None) if run => self.manager.start(world),
            ("kube-controller-manager", None) => self.manager.stop(world),
            ("kubelet", Some(node)) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    if run && machine.powered {
                        machine.kubelet.start(&mut machine.runtime, world);
                    } else {
                        machine.kubelet.stop(world);
                    }
                }
            }
            ("kube-proxy", Some(node)) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    if run && machine.powered { machine.proxy.start(world) } else { machine.proxy.stop(world) }
                }
            }
            ("kube-network-policies", Some(node)) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    if run && machine.powered { machine.policies.start(world) } else { machine.policies.stop(world) }
                }
            }
            (name, None) => {
                if let Some(runner) = self.clients.get_mut(&Name::from(name)) {
                    if run { runner.start(world) } else { runner.stop(world) }
                } else {
                    self.manager.set_enabled(name, run, world);
                }
            }
            _ => {}
        }
    }

    /// etcd is put back to what it held in another moment of this cluster, at a revision that nobody has seen yet; all
    /// components that run start anew, for what they know is no longer so. Machines stay as they are.
    /// <https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster>
    pub fn restore_etcd(&mut self, snapshot: &Cluster, name: &str) {
        self.record_fault(format!("etcd restored from {name}"));
        let is_process = |component: &Name| self.process_of(component) == &**component;
        let running: Vec<Name> = self
            .components()
            .into_iter()
            .filter(|component| is_process(component) && !self.is_stopped(component))
            .collect();
        for component in &running {
            self.switch(component, false);
        }
        let revision = self.revision();
        self.world.apiserver = snapshot.world.apiserver.clone();
        self.world.apiserver.store.begin_above(revision);
        registry::follow(&mut self.world);
        for component in &running {
            self.switch(component, true);
        }
    }

    fn knows(&self, component: &str) -> bool {
        match component.split_once('/') {
            Some((process, node)) if NODE_COMPONENTS.contains(&process) => {
                self.machines.contains_key(&Name::from(node))
            }
            Some(_) => false,
            None => {
                matches!(component, "kube-apiserver" | "etcd" | "kube-scheduler" | "kube-controller-manager")
                    || self.controllers().any(|(name, _)| **name == *component)
                    || self.not_there_yet(component).is_some()
            }
        }
    }

    /// Every component that can be stopped.
    pub fn components(&self) -> Vec<Name> {
        let control_plane = ["kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"].map(Name::from);
        let per_node = |node: &Name| NODE_COMPONENTS.map(|process| Name::from(format!("{process}/{node}")));
        let nodes = self.machines.keys().flat_map(per_node);
        let controllers = self.controllers().map(|(name, _)| name.clone());
        let optional = controllers::optional().map(|known| Name::from(known.name()));
        let optional = optional.into_iter().filter(|name| self.not_there_yet(name).is_some());
        control_plane.into_iter().chain(nodes).chain(controllers).chain(optional).collect()
    }

    /// A machine loses power: its processes are gone, the API hears nothing.
    pub fn power_off(&mut self, node: &str) -> bool {
        let Some(machine) = self.machines.get_mut(&Name::from(node)) else { return false };
        if machine.powered {
            machine.powered = false;
            machine.kubelet.stop(&mut self.world);
            machine.proxy.power_off(&mut self.world);
            machine.policies.power_off(&mut self.world);
            machine.runtime.power_off();
            self.world.listeners().power_off(&machine.runtime.machine);
            self.record_fault(format!("{node} lost power"));
        }
        true
    }

    pub fn power_on(&mut self, node: &str) -> bool {
        let Some(machine) = self.machines.get_mut(&Name::from(node)) else { return false };
        if !machine.powered {
            machine.powered = true;
            self.world.listeners().power_on(&machine.runtime.machine);
            if !self.world.faults.is_stopped(&format!("kubelet/{node}")) {
                machine.kubelet.start(&mut machine.runtime, &mut self.world);
            }
            if !self.world.faults.is_stopped(&format!("kube-proxy/{node}")) {
                machine.proxy.start(&mut self.world);
            }
            if !self.world.faults.is_stopped(&format!("kube-network-policies/{node}")) {
                machine.policies.start(&mut self.world);
            }
            self.record_fault(format!("{node} got power again"));
        }
        true
    }

    /// Kills the process of a pod's container, as an error of its own would: exit code 137. False if it does not run.
    pub fn kill_container(&mut self, namespace: &str, pod: &str, container: &str) -> bool {
        self.end_container(namespace, pod, container, "Error")
    }

    /// The kernel kills the process of a pod's container for want of memory.
    pub fn oom_kill(&mut self, namespace: &str, pod: &str, container: &str) -> bool {
        self.end_container(namespace, pod, container, "OOMKilled")
    }

    fn end_container(&mut self, namespace: &str, pod: &str, container: &str, reason: &'static str) -> bool {
        let Some((machine, handle)) = find_container(&mut self.machines, namespace, pod, container) else {
            return false;
        };
        let events = machine.runtime.kill(handle, reason, &mut self.world);
        machine.kubelet.on_runtime(&events, &mut machine.runtime, &mut self.world);
        !events.is_empty()
    }

    /// Makes a container's program take so many bytes of memory more. False if it does not run.
    pub fn fill_memory(&mut self, namespace: &str, pod: &str, container: &str, bytes: u64) -> bool {
        let Some((machine, handle)) = find_container(&mut self.machines, namespace, pod, container) else {
            return false;
        };
        let done = machine.runtime.fill_container(handle, bytes, &mut self.world);
        machine.kubelet.watch_pressure(&mut machine.runtime, &mut self.world);
        done
    }

    /// Makes a container's program burn so many thousandths of a CPU. False if it does not run.
    pub fn fill_cpu(&mut self, namespace: &str, pod: &str, container: &str, millicores: u64) -> bool {
        let now = self.now();
        let found = find_container(&mut self.machines, namespace, pod, container);
        found.is_some_and(|(machine, handle)| {
            machine.runtime.fill_cpu(handle, millicores.saturating_mul(CORE_NANOS / 1000), now)
        })
    }

    /// Makes a machine's own processes take so many bytes of memory. False if there is no such machine.
    pub fn fill_node_memory(&mut self, node: &str, bytes: u64) -> bool {
        self.fill(node, |runtime, _| runtime.fill_memory(bytes))
    }

    /// Puts a file of so many bytes on a machine's disk.
    pub fn fill_disk(&mut self, node: &str, bytes: u64) -> bool {
        self.fill(node, |runtime, world| runtime.fill_disk(bytes, world))
    }

    /// Has a machine run so many processes beside its containers.
    pub fn fill_processes(&mut self, node: &str, count: u64) -> bool {
        self.fill(node, |runtime, _| runtime.fill_processes(count))
    }

    fn fill(&mut self, node: &str, how: impl FnOnce(&mut Runtime, &World)) -> bool {
        let Some(machine) = self.machines.get_mut(&Name::from(node)) else { return false };
        how(&mut machine.runtime, &self.world);
        machine.kubelet.watch_pressure(&mut machine.runtime, &mut self.world);
        true
    }

    /// Puts a manifest into the folder of static pods of a machine, or takes it away.
    ///
    /// # Errors
    /// If there is no such machine, or the manifest is no Pod.
    pub fn put_manifest(&mut self, node: &str, file: &str, manifest: Option<Value>) -> Result<(), String> {
        let name = Name::from(node);
        let Some(machine) = self.machines.get_mut(&name) else { return Err(format!("there is no node {node}")) };
        if let Some(manifest) = &manifest {
            static_pods::read(&manifest.to_string(), file, &name, "")?;
        }
        static_pods::put_manifest(&mut machine.runtime, file, manifest.as_ref(), &self.world);
        machine.kubelet.read_manifests(&mut machine.runtime, &mut self.world);
        Ok(())
    }

    /// Runs `tar` in a pod's container, which reads `input`. `None` if the container does not run.
    pub fn tar(&mut self, pod: &Key, container: &str, args: &[String], input: &[u8]) -> Option<Exec> {
        let now = self.now();
        let (machine, handle) = find_container(&mut self.machines, &pod.namespace, &pod.name, container)?;
        machine.kubelet.furnish(handle, &mut machine.runtime, &mut self.world);
        machine.runtime.with_files(handle, |folder, files| tar::run(args, input, folder, files, now))
    }

    /// Makes the service of a container fail, or work again, while its process lives on. False if there is none.
    pub fn set_healthy(&mut self, namespace: &str, pod: &str, container: &str, healthy: bool) -> bool {
        let found = find_container(&mut self.machines, namespace, pod, container);
        let done = found.is_some_and(|(machine, handle)| machine.runtime.set_healthy(handle, healthy));
        if done {
            let state = if healthy { "healthy" } else { "unhealthy" };
            self.record_fault(format!("container {container} of pod {namespace}/{pod} made {state}"));
        }
        done
    }

    /// Cuts a node off from the control plane; its containers run on.
    pub fn partition(&mut self, node: &str) -> bool {
        if !self.machines.contains_key(&Name::from(node)) {
            return false;
        }
        self.world.faults.cut_off(node);
        self.record_fault(format!("{node} cut off from the control plane"));
        true
    }

    pub fn heal(&mut self, node: &str) -> bool {
        if !self.machines.contains_key(&Name::from(node)) {
            return false;
        }
        if self.world.faults.is_cut_off(node) {
            self.world.faults.heal(node);
            self.world.resume_watches();
            self.record_fault(format!("{node} reaches the control plane again"));
        }
        true
    }

    pub fn add_rule(&mut self, rule: Rule, text: impl Into<Name>) {
        self.world.faults.add(rule);
        self.record_fault(text);
    }

    /// Takes away all rules that drop, delay or duplicate.
    pub fn clear_rules(&mut self) -> usize {
        let count = self.world.faults.clear();
        self.world.resume_watches();
        self.record_fault("all fault rules taken away");
        count
    }
}

/// The machine that has a pod's container, and the newest of that name there. An empty name means the first one.
pub(super) fn find_container<'a>(
    machines: &'a mut imbl::OrdMap<Name, Machine>,
    namespace: &str,
    pod: &str,
    container: &str,
) -> Option<(&'a mut Machine, Handle)> {
    let key = Key::new(namespace, pod);
    let (node, handle) = machines
        .iter()
        .find_map(|(node, machine)| machine.runtime.find(&key, container).map(|(handle, _)| (node.clone(), handle)))?;
    Some((machines.get_mut(&node)?, handle))
}
