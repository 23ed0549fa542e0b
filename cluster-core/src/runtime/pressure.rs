//! What a machine's processes and files take of it, and who is killed for it.

use std::time::Duration;

use super::files::{Files, Node, What};
use super::volumes::VolumeId;
use super::{Runtime, Task};
use crate::api::Name;
use crate::clock::Class;
use crate::runtime::container::Handle;
use crate::world::World;

/// From a program's reaching for more memory than it may have to its end.
const OOM_LATENCY: Duration = Duration::from_millis(100);

/// The file on a machine's disk that a fault makes.
const FILL_PATH: &str = "/var/fill";

/// What processes take that are in no container.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    memory_bytes: u64,
    processes: u64,
}

impl Runtime {
    pub fn memory_bytes(&self) -> u64 {
        self.load.memory_bytes + self.containers().map(|(_, container)| container.memory_bytes()).sum::<u64>()
    }

    pub fn processes(&self) -> u64 {
        self.load.processes + self.containers().filter(|(_, container)| container.is_running()).count() as u64
    }

    /// Images, what containers have written, what volumes hold.
    pub fn disk_bytes(&self) -> u64 {
        let images: u64 = self.images().map(|(_, image)| image.size_bytes).sum();
        let written: u64 = self.containers().map(|(_, container)| container.written_bytes()).sum();
        images + written + self.volumes.values().map(Files::size_bytes).sum::<u64>()
    }

    /// Something on the machine takes more than usual.
    pub fn is_filled(&self) -> bool {
        self.load != Load::default()
            || self.volume(&VolumeId::disk()).is_some_and(|disk| disk.exists(FILL_PATH))
            || self.containers().any(|(_, container)| container.takes_much_memory())
    }

    /// Makes processes beside the containers take so much.
    pub fn fill_memory(&mut self, bytes: u64) {
        self.load.memory_bytes = bytes;
    }

    pub fn fill_processes(&mut self, count: u64) {
        self.load.processes = count;
    }

    /// Puts a file of this size on the disk, or takes it away.
    pub fn fill_disk(&mut self, bytes: u64, world: &World) {
        let mut disk = self.volume(&VolumeId::disk()).cloned().unwrap_or_default();
        match bytes {
            // It may not be there.
            0 => drop(disk.remove(FILL_PATH)),
            size_bytes => {
                let what = What::File { text: "".into(), size_bytes };
                disk.set(FILL_PATH.into(), Node { what, ..Node::file("", 0o644, world.now) });
            }
        }
        self.set_volume(VolumeId::disk(), disk);
    }

    /// Makes a container's program take so much more memory. False if it does not run.
    pub fn fill_container(&mut self, handle: Handle, bytes: u64, world: &mut World) -> bool {
        let Some(container) = self.container_mut(handle).filter(|container| container.is_running()) else {
            return false;
        };
        container.filled_bytes = bytes;
        self.check_memory(handle, world);
        true
    }

    /// Sets what a container's processes may take.
    pub fn limit_memory(&mut self, handle: Handle, bytes_max: Option<u64>) {
        if self.container(handle).is_some_and(|container| container.memory_bytes_max != bytes_max)
            && let Some(container) = self.container_mut(handle)
        {
            container.memory_bytes_max = bytes_max;
        }
    }

    /// Has the kernel kill a program that takes more than it may.
    pub(super) fn check_memory(&self, handle: Handle, world: &mut World) {
        let takes_too_much = self.container(handle).is_some_and(|container| {
            container.memory_bytes_max.is_some_and(|bytes_max| container.memory_bytes() > bytes_max)
        });
        if takes_too_much {
            self.after(OOM_LATENCY, Class::Work, Task::Exhausted(handle), world);
        }
    }

    /// Takes away the images that no container is of.
    pub fn remove_unused_images(&mut self) {
        let used: Vec<Name> =
            self.containers().map(|(_, container)| super::images::reference(&container.identity.image)).collect();
        let unused: Vec<Name> =
            self.images().map(|(name, _)| name.clone()).filter(|name| !used.contains(name)).collect();
        for name in unused {
            self.images.remove(&name);
        }
    }

    /// Takes away what a pod's containers have written and what its own volumes hold.
    pub fn discard_files(&mut self, pod_uid: &Name) {
        self.remove_volumes(pod_uid);
        let of_pod: Vec<Handle> =
            self.containers().filter(|(_, c)| c.identity.pod_uid == *pod_uid).map(|(handle, _)| handle).collect();
        for handle in of_pod {
            if let Some(container) = self.container_mut(handle) {
                container.files = Files::default();
            }
        }
    }
}
