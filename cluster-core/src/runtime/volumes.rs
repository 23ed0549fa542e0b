//! Volumes that the containers of a pod share: what one writes below its mount, the others find below theirs.
//! <https://kubernetes.io/docs/concepts/storage/volumes/#emptydir>

use super::Runtime;
use super::container::{Container, Handle};
use super::shell::Files;
use crate::api::Name;

/// A volume of the pod, and where a container has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    pub volume: Name,
    /// Without a slash at its end.
    pub path: String,
}

/// What volumes hold, by the pod's uid and the volume's name. Paths begin at the mount, with a slash.
pub type Volumes = imbl::OrdMap<(Name, Name), Files>;

impl Mount {
    /// What a container has below this mount.
    fn read(&self, files: &Files) -> Files {
        let below = |(path, text): (&String, &String)| {
            let rest = path.strip_prefix(&self.path)?;
            rest.starts_with('/').then(|| (rest.to_owned(), text.clone()))
        };
        files.iter().filter_map(below).collect()
    }

    /// Puts what a volume holds in the place of what a container has below this mount.
    fn write(&self, held: &Files, files: &mut Files) {
        let old: Vec<String> = self.read(files).keys().map(|rest| format!("{}{rest}", self.path)).collect();
        for path in old {
            files.remove(&path);
        }
        files.extend(held.iter().map(|(rest, text)| (format!("{}{rest}", self.path), text.clone())));
    }
}

impl Runtime {
    /// Gives a new container what its volumes hold already.
    pub(super) fn fill_volumes(&self, container: &mut Container) {
        for mount in container.mounts.iter() {
            if let Some(held) = self.volumes.get(&(container.identity.pod_uid.clone(), mount.volume.clone())) {
                mount.write(held, &mut container.files);
            }
        }
    }

    /// Takes over what a container has written into its volumes, and shows it to the other containers of its pod.
    pub(super) fn share_volumes(&mut self, handle: Handle) {
        let Some(writer) = self.containers.get(&handle).filter(|container| !container.mounts.is_empty()).cloned()
        else {
            return;
        };
        for mount in writer.mounts.iter() {
            let held = mount.read(&writer.files);
            let key = (writer.identity.pod_uid.clone(), mount.volume.clone());
            if self.volumes.get(&key) == Some(&held) {
                continue;
            }
            let others = self.containers().filter(|(other, c)| *other != handle && c.identity.pod_uid == key.0);
            let theirs = others.filter_map(|(other, container)| {
                Some((other, container.mounts.iter().find(|theirs| theirs.volume == mount.volume)?.clone()))
            });
            for (other, theirs) in theirs.collect::<Vec<_>>() {
                if let Some(container) = self.container_mut(other) {
                    theirs.write(&held, &mut container.files);
                }
            }
            self.volumes.insert(key, held);
        }
    }

    /// Forgets the volumes of a pod.
    pub(super) fn remove_volumes(&mut self, pod_uid: &Name) {
        let of_pod = (pod_uid.clone(), Name::from(""))..;
        let gone: Vec<_> =
            self.volumes.range(of_pod).map(|(key, _)| key.clone()).take_while(|key| key.0 == *pod_uid).collect();
        for key in gone {
            self.volumes.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> Files {
        all.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    }

    #[test]
    fn a_mount_shows_what_the_volume_holds_and_nothing_beside_it() {
        let mount = Mount { volume: "shared".into(), path: "/data".into() };
        let mut own = files(&[("/data/a", "1"), ("/data/b/c", "2"), ("/database", "3")]);
        assert_eq!(mount.read(&own), files(&[("/a", "1"), ("/b/c", "2")]));
        mount.write(&files(&[("/a", "4")]), &mut own);
        assert_eq!(own, files(&[("/data/a", "4"), ("/database", "3")]));
    }
}
