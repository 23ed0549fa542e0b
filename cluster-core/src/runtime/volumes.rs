//! Volumes: what one container writes below its mount, the others that have the volume find below theirs.
//! <https://kubernetes.io/docs/concepts/storage/volumes/>

use super::Runtime;
use super::container::{Container, Handle};
use super::files::{Files, Node, rest};
use crate::api::Name;
use crate::clock::Time;

/// Which volume: one of a pod, by the pod's uid and its own name, or the disk of the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeId {
    pub pod_uid: Name,
    pub name: Name,
}

impl VolumeId {
    pub fn of_pod(pod_uid: &Name, name: &str) -> VolumeId {
        VolumeId { pod_uid: pod_uid.clone(), name: name.into() }
    }

    pub fn disk() -> VolumeId {
        VolumeId { pod_uid: "".into(), name: "disk".into() }
    }
}

/// A volume, and where a container has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    pub volume: VolumeId,
    /// The part of the volume that is mounted; empty for all of it. Both paths are without a slash at their end.
    pub sub_path: String,
    pub path: String,
    pub read_only: bool,
    /// It shows what changes in the volume. A part of a volume that is written anew as a whole does not.
    pub follows: bool,
    /// It lies in memory.
    pub in_memory: bool,
}

/// What volumes hold. Paths begin at the root of the volume, with a slash; the root itself is the empty path.
pub type Volumes = imbl::OrdMap<VolumeId, Files>;

/// Folders that every machine has.
const FOLDERS: [&str; 18] = [
    "",
    "/dev",
    "/etc",
    "/etc/kubernetes",
    "/etc/kubernetes/manifests",
    "/home",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/var/lib",
    "/var/log",
];

/// What a new machine has on its disk.
pub fn new_disk() -> Files {
    FOLDERS.iter().map(|path| ((*path).to_owned(), Node::folder(Time::ZERO))).collect()
}

impl Mount {
    /// Puts what a volume holds where a container has it.
    fn show(&self, held: &Files, container: &mut Container) {
        let inner = nested(self, &container.mounts);
        let mut part = held.below(&held.resolve(&self.sub_path));
        part.set_root(Node::folder(container.created_at));
        container.files.graft(&self.path, &part, |path| inner.iter().any(|inner| rest(path, inner).is_some()));
    }
}

/// Places within a mount at which other mounts lie.
fn nested(mount: &Mount, all: &[Mount]) -> Vec<String> {
    let inner = all.iter().filter(|other| other.path != mount.path && rest(&other.path, &mount.path).is_some());
    inner.map(|other| other.path.clone()).collect()
}

impl Runtime {
    pub fn volume(&self, id: &VolumeId) -> Option<&Files> {
        self.volumes.get(id)
    }

    /// Makes a volume hold this, and shows it to the containers that have it already.
    pub fn set_volume(&mut self, id: VolumeId, held: Files) {
        self.show_volume(&id, &held, None);
        self.volumes.insert(id, held);
    }

    fn show_volume(&mut self, id: &VolumeId, held: &Files, writer: Option<Handle>) {
        let mounted = |mount: &&Mount| mount.volume == *id && mount.follows;
        let of_pod = |c: &Container| id.pod_uid.is_empty() || c.identity.pod_uid == id.pod_uid;
        let theirs = self.containers().filter(|(handle, c)| Some(*handle) != writer && of_pod(c));
        let theirs = theirs.flat_map(|(handle, c)| c.mounts.iter().filter(mounted).map(move |m| (handle, m.clone())));
        for (handle, mount) in theirs.collect::<Vec<_>>() {
            if let Some(container) = self.container_mut(handle) {
                mount.show(held, container);
            }
        }
    }

    /// Gives a new container what its volumes hold already.
    pub(super) fn fill_volumes(&self, container: &mut Container) {
        if container.mounts.is_empty() && !container.read_only_root {
            return;
        }
        for mount in container.mounts.clone().iter() {
            let empty = Files::default();
            mount.show(self.volumes.get(&mount.volume).unwrap_or(&empty), container);
        }
        let root = (String::new(), container.read_only_root);
        let mounts = container.mounts.iter().map(|mount| (mount.path.clone(), mount.read_only));
        container.files.set_read_only(mounts.chain([root]));
    }

    /// Takes over what a container has written into its volumes since it had these files, and shows it to the other
    /// containers that have them.
    pub(super) fn share_volumes(&mut self, handle: Handle, before: &Files) {
        let Some(writer) = self.containers.get(&handle).filter(|c| !c.mounts.is_empty()).cloned() else { return };
        if writer.files.is_same_version(before) {
            return;
        }
        for mount in writer.mounts.iter().filter(|mount| !mount.read_only && mount.follows) {
            let inner = nested(mount, &writer.mounts);
            let inner: Vec<&str> = inner.iter().map(|path| &path[mount.path.len()..]).collect();
            let part = writer.files.below(&mount.path).without(&inner);
            let mut held = self.volumes.get(&mount.volume).cloned().unwrap_or_default();
            if held.below(&mount.sub_path).same(&part) {
                continue;
            }
            held.graft(&mount.sub_path, &part, |_| false);
            self.show_volume(&mount.volume, &held, Some(handle));
            self.volumes.insert(mount.volume.clone(), held);
        }
    }

    /// What a pod has in its own volumes.
    pub fn volumes_of<'a>(&'a self, pod_uid: &'a Name) -> impl Iterator<Item = (&'a VolumeId, &'a Files)> {
        self.volumes.range(VolumeId::of_pod(pod_uid, "")..).take_while(move |(id, _)| id.pod_uid == *pod_uid)
    }

    /// Forgets the volumes of a pod.
    pub(super) fn remove_volumes(&mut self, pod_uid: &Name) {
        let gone: Vec<_> = self.volumes_of(pod_uid).map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.volumes.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;
    use crate::runtime::container::{Config, Identity};
    use crate::runtime::shell::exec::Ran;

    fn mount(path: &str, sub_path: &str) -> Mount {
        let volume = VolumeId::of_pod(&"uid".into(), "shared");
        Mount {
            volume,
            sub_path: sub_path.into(),
            path: path.into(),
            read_only: false,
            follows: true,
            in_memory: false,
        }
    }

    /// A runtime with two running containers of one pod that have these mounts.
    fn two(first: Vec<Mount>, second: Vec<Mount>) -> (Runtime, [Handle; 2]) {
        let mut cluster = Cluster::new(crate::Config { nodes: 0, ..crate::Config::default() });
        let (_, world) = cluster.host_mut();
        let mut runtime = Runtime::new("node-1".into());
        let handles = [("a", first), ("b", second)].map(|(name, mounts)| {
            let pod = crate::api::Key::new("default", "p");
            let identity = Identity { pod, pod_uid: "uid".into(), name: name.into(), image: "busybox".into() };
            let (handle, _) = runtime.create(Config { mounts, ..Config::new(identity) }, Default::default(), world);
            if let Some(container) = runtime.container_mut(handle) {
                container.state = crate::runtime::container::State::Running;
            }
            handle
        });
        (runtime, handles)
    }

    fn sh(runtime: &mut Runtime, handle: Handle, text: &str) -> String {
        let command = ["sh", "-c", text].map(str::to_owned);
        match runtime.exec(handle, &command, Time::ZERO) {
            Some(Ran::Ended(exec)) => exec.output,
            _ => String::new(),
        }
    }

    #[test]
    fn containers_see_what_others_write_into_their_volume() {
        let (mut runtime, [a, b]) = two(vec![mount("/in", "")], vec![mount("/out", ""), mount("/part", "/sub")]);
        sh(&mut runtime, a, "echo 1 > /in/x; mkdir /in/sub; echo 2 > /in/sub/y; echo 3 > /inside");
        assert_eq!(sh(&mut runtime, b, "cat /out/x; cat /part/y; ls /out"), "1\n2\nsub\nx\n");
        sh(&mut runtime, b, "echo 4 > /part/z; rm /out/x");
        assert_eq!(sh(&mut runtime, a, "ls /in; ls /in/sub"), "sub\ny\nz\n");
    }

    #[test]
    fn a_part_that_does_not_follow_stays_as_it_was() {
        let shown = Mount { read_only: true, ..mount("/all", "") };
        let fixed = Mount { follows: false, ..mount("/one", "/key") };
        let file = |text: &str| [("/key".to_owned(), Node::file(text, 0o644, Time::ZERO))].into_iter().collect();
        let (mut runtime, _) = two(Vec::new(), Vec::new());
        runtime.set_volume(shown.volume.clone(), file("old"));
        let mut cluster = Cluster::new(crate::Config { nodes: 0, ..crate::Config::default() });
        let identity = runtime.containers().next().map(|(_, c)| c.identity.clone()).unwrap();
        let config = Config { mounts: vec![shown.clone(), fixed], ..Config::new(identity) };
        let (handle, _) = runtime.create(config, Default::default(), cluster.host_mut().1);
        runtime.set_volume(shown.volume, file("new"));
        let files = &runtime.container(handle).unwrap().files;
        assert_eq!((files.read("/all/key"), files.read("/one")), (Some("new"), Some("old")));
    }
}
