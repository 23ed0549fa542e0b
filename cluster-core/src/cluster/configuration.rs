//! Files with which components are started: kinds that no API serves.

use std::sync::Arc;

use serde_json::Value;

use super::Cluster;
use crate::api::Name;
use crate::api::kind::KindRef;
use crate::api::status::Status;
use crate::kubelet::configuration as kubelet;
use crate::scheduler::configuration as scheduler;

impl Cluster {
    /// KubeSchedulerConfiguration and KubeletConfiguration.
    pub fn file_kinds() -> [&'static KindRef; 2] {
        [scheduler::kind(), kubelet::kind()]
    }

    /// Has the component that such a file is for start anew with it. Answers the component's name.
    ///
    /// # Errors
    /// What is wrong with the file; the component goes on as before.
    pub fn configure(&mut self, kind: &KindRef, file: &Value) -> Result<&'static str, Status> {
        if kind == kubelet::kind() {
            self.configure_kubelets(file)?;
            return Ok("kubelet");
        }
        self.configure_scheduler(file)?;
        Ok("kube-scheduler")
    }

    /// # Errors
    /// What is wrong with the file.
    pub fn configure_scheduler(&mut self, file: &Value) -> Result<(), Status> {
        let configuration = scheduler::read(file)?;
        let names: Vec<&str> = configuration.profiles.iter().map(|profile| &*profile.scheduler_name).collect();
        self.record_fault(format!("kube-scheduler has a new configuration: {}", names.join(", ")));
        self.scheduler.configure(configuration);
        if !self.is_stopped("kube-scheduler") {
            self.scheduler.stop(&mut self.world);
            self.scheduler.start(&mut self.world);
        }
        Ok(())
    }

    /// # Errors
    /// What is wrong with the file.
    pub fn configure_kubelets(&mut self, file: &Value) -> Result<(), Status> {
        self.kubelet_configuration = Arc::new(kubelet::read(file)?);
        self.record_fault("kubelets have a new configuration");
        let names: Vec<Name> = self.machines.keys().cloned().collect();
        for name in names {
            let stopped = self.is_stopped(&format!("kubelet/{name}"));
            let Some(machine) = self.machines.get_mut(&name) else { continue };
            machine.kubelet.configure(self.kubelet_configuration.clone());
            if machine.powered && !stopped {
                machine.kubelet.stop(&mut self.world);
                machine.kubelet.start(&mut machine.runtime, &mut self.world);
            }
        }
        Ok(())
    }
}
