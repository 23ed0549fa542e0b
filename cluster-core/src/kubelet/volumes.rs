//! Mounting: before a pod's containers start, its volumes are made ready; later those that are made of API objects
//! follow them.
//! <https://kubernetes.io/docs/concepts/storage/volumes/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, PersistentVolume, PersistentVolumeClaim, Volume, VolumeMount,
};

use super::environment::Variables;
use super::payload;
use super::worker::Worker;
use super::{Task, Turn};
use crate::api::request::Request;
use crate::clock::{Class, Time};
use crate::runtime::files::{Files, Node, plain};
use crate::runtime::volumes::{Mount, VolumeId};

/// The wait after a mount that failed: doubled each time.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LONGEST: Duration = Duration::from_secs(122);
/// After so long without its volumes a pod is told of as a whole.
const PATIENCE: Duration = Duration::from_secs(123);
/// A pod is looked at again this often (`syncFrequency`, with jitter).
const RESYNC: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(90));
/// A token is asked for anew when so much of an hour is over.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(48 * 60);

/// How the mounting of a pod's volumes goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mounting {
    tries: u32,
    since: Option<Time>,
}

/// The volume with the token of the pod's account, which every pod has. Its files are made only when somebody looks.
fn is_token(volume: &Volume) -> bool {
    volume.projected.is_some() && volume.name.starts_with("kube-api-access-")
}

/// It is made of API objects, and changes with them.
fn is_live(volume: &Volume) -> bool {
    let made_of_objects = volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some();
    made_of_objects && !is_token(volume)
}

impl Worker {
    fn has_live_volumes(&self) -> bool {
        self.spec().volumes.iter().flatten().any(is_live)
    }

    /// True if all volumes are there; if not, says why and tries again later.
    pub(super) fn mount_volumes(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut volumes = self.spec().volumes.iter().flatten();
        let failed =
            volumes.find_map(|volume| self.mount(volume, turn).err().map(|message| (volume.name.clone(), message)));
        let Some((volume, message)) = failed else {
            self.mounting = Mounting::default();
            self.follow_volumes(turn);
            return true;
        };
        turn.event(&self.pod, true, "FailedMount", message, &self.causes);
        let now = turn.world.now;
        let since = *self.mounting.since.get_or_insert(now);
        if now.since(since) >= PATIENCE {
            self.mounting.since = Some(now);
            let message = format!(
                "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], failed to \
                 process volumes=[]: context deadline exceeded"
            );
            turn.event(&self.pod, true, "FailedMount", message, &self.causes);
        }
        let wait = (RETRY_FIRST * 2_u32.pow(self.mounting.tries.min(8))).min(RETRY_LONGEST);
        self.mounting.tries += 1;
        turn.after(wait, Class::Background, Task::Sync(self.uid.clone()));
        false
    }

    /// Makes one volume ready; the error is the message of the event.
    fn mount(&self, volume: &Volume, turn: &mut Turn<'_>) -> Result<(), String> {
        let name = &volume.name;
        let set_up = |reason: String| format!("MountVolume.SetUp failed for volume \"{name}\" : {reason}");
        if is_live(volume) {
            return self.refresh(volume, turn).map_err(set_up);
        }
        if let Some(host) = &volume.host_path {
            return check_host_path(&host.path, host.type_.as_deref().unwrap_or_default(), turn).map_err(set_up);
        }
        if volume.empty_dir.is_some() {
            let id = VolumeId::of_pod(&self.uid, name);
            if turn.runtime.volume(&id).is_none() {
                let root = Node { mode: 0o777, ..Node::folder(turn.world.now) };
                let mut files: Files = [(String::new(), root)].into_iter().collect();
                if let Some(group) = self.group() {
                    files.give_to(group, true);
                }
                turn.runtime.set_volume(id, files);
            }
            return Ok(());
        }
        let Some(claim) = self.claim_of(volume) else { return Ok(()) };
        let namespace = self.pod.key.namespace.clone();
        let answer = turn.world.request(Request::get::<PersistentVolumeClaim>(turn.actor, &namespace, &claim));
        let reason = match answer.map(|answer| answer.object()) {
            Err(refusal) => format!("failed to fetch PVC from API server: {}", refusal.message),
            Ok(Some(found)) if found.status::<PersistentVolumeClaim>().phase.as_deref() == Some("Bound") => {
                return Ok(());
            }
            Ok(_) => "PVC is not bound".into(),
        };
        Err(format!(
            "Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], failed to process \
             volumes=[{name}]: error processing PVC {namespace}/{claim}: {reason}"
        ))
    }

    fn group(&self) -> Option<i64> {
        self.spec().security_context.as_ref()?.fs_group
    }

    /// The claim that a volume is of, by its name.
    fn claim_of(&self, volume: &Volume) -> Option<String> {
        let own = volume.ephemeral.as_ref().map(|_| format!("{}-{}", self.pod.key.name, volume.name));
        volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone()).or(own)
    }

    /// Makes a volume of API objects hold what they say now.
    fn refresh(&self, volume: &Volume, turn: &mut Turn<'_>) -> Result<(), String> {
        let Some(entries) = payload::of_volume(volume, &self.pod, turn) else { return Ok(()) };
        let entries = entries?;
        let id = VolumeId::of_pod(&self.uid, &volume.name);
        if turn.runtime.volume(&id).is_none_or(|held| !payload::is_held(&entries, held)) {
            turn.runtime.set_volume(id, payload::tree(&entries, turn.world.now, self.group()));
        }
        Ok(())
    }

    /// Makes the files of the token's volume, if they are not there or about to expire.
    pub(super) fn refresh_token(&self, turn: &mut Turn<'_>) {
        let Some(volume) = self.spec().volumes.iter().flatten().find(|volume| is_token(volume)) else { return };
        let id = VolumeId::of_pod(&self.uid, &volume.name);
        let made_at = turn.runtime.volume(&id).and_then(|held| held.node("/..data")).map(|node| node.modified_at);
        if made_at.is_some_and(|made_at| turn.world.now.since(made_at) < TOKEN_AGE_MAX) {
            return;
        }
        if let Some(Ok(entries)) = payload::of_volume(volume, &self.pod, turn) {
            turn.runtime.set_volume(id, payload::tree(&entries, turn.world.now, self.group()));
        }
    }

    /// Looks at the volumes again later, if there is one that may change.
    pub(super) fn follow_volumes(&self, turn: &mut Turn<'_>) {
        if self.has_live_volumes() {
            let wait = turn.world.random.between(RESYNC.0, RESYNC.1);
            turn.after(wait, Class::Background, Task::Resync(self.uid.clone()));
        }
    }

    /// The time has come to look at the volumes again.
    pub fn resync(&self, turn: &mut Turn<'_>) {
        self.remount(turn);
        self.follow_volumes(turn);
    }

    /// Brings what is mounted up to what the API objects say; what can't be had stays as it was.
    pub(super) fn remount(&self, turn: &mut Turn<'_>) {
        if turn.runtime.sandbox(&self.uid).is_none() || !self.has_live_volumes() {
            return;
        }
        for volume in self.spec().volumes.iter().flatten().filter(|volume| is_live(volume)) {
            if let Err(message) = self.mount(volume, turn) {
                turn.event(&self.pod, true, "FailedMount", message, &self.causes);
            }
        }
    }

    /// Where a container has which volumes. The token's is left out for programs that don't look. The error says which
    /// part of a volume can't be had.
    pub(super) fn mounts(
        &self,
        spec: &ContainerSpec,
        variables: &Variables,
        looks: bool,
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Mount>, String> {
        let mut all = Vec::new();
        for mount in spec.volume_mounts.iter().flatten() {
            let volume = self.spec().volumes.iter().flatten().find(|volume| volume.name == mount.name);
            if let Some(volume) = volume.filter(|volume| looks || !is_token(volume)) {
                all.extend(self.one_mount(volume, mount, sub_path(mount, variables)?, turn));
            }
        }
        Ok(all)
    }

    /// Where a container has the token's volume.
    pub(super) fn token_mount(&self, spec: &ContainerSpec) -> Option<Mount> {
        let volume = self.spec().volumes.iter().flatten().find(|volume| is_token(volume))?;
        let mount = spec.volume_mounts.iter().flatten().find(|mount| mount.name == volume.name)?;
        let (path, volume) = (plain(&mount.mount_path), VolumeId::of_pod(&self.uid, &volume.name));
        Some(Mount { volume, path, sub_path: String::new(), read_only: true, follows: true, in_memory: true })
    }

    fn one_mount(&self, volume: &Volume, mount: &VolumeMount, sub_path: String, turn: &mut Turn<'_>) -> Option<Mount> {
        let of_objects = is_live(volume) || is_token(volume);
        let (id, root) = match (&volume.host_path, self.claim_of(volume)) {
            (Some(host), _) => (VolumeId::disk(), host.path.clone()),
            (None, Some(claim)) => (VolumeId::disk(), self.place_of(&claim, turn)?),
            (None, None) => (VolumeId::of_pod(&self.uid, &volume.name), String::new()),
        };
        Some(Mount {
            volume: id,
            path: plain(&mount.mount_path),
            follows: !of_objects || sub_path.is_empty(),
            sub_path: plain(&format!("{root}/{sub_path}")),
            read_only: of_objects || mount.read_only == Some(true),
            in_memory: volume.empty_dir.as_ref().is_some_and(|folder| folder.medium.as_deref() == Some("Memory")),
        })
    }

    /// Where the machine has what a claim's volume holds.
    fn place_of(&self, claim: &str, turn: &mut Turn<'_>) -> Option<String> {
        let namespace = &self.pod.key.namespace;
        let claim = turn.world.request(Request::get::<PersistentVolumeClaim>(turn.actor, namespace, claim)).ok()?;
        let name = claim.object()?.spec::<PersistentVolumeClaim>().volume_name.clone()?;
        let volume = turn.world.request(Request::get::<PersistentVolume>(turn.actor, "", &name)).ok()?.object()?;
        let spec = volume.spec::<PersistentVolume>();
        let host = spec.host_path.as_ref().map(|source| source.path.clone());
        let local = spec.local.as_ref().map(|source| source.path.clone());
        Some(host.or(local).unwrap_or_else(|| format!("/var/lib/kubelet/plugins/volumes/{name}")))
    }
}

/// <https://kubernetes.io/docs/concepts/storage/volumes/#using-subpath-expanded-environment>
fn sub_path(mount: &VolumeMount, variables: &Variables) -> Result<String, String> {
    let expanded = mount.sub_path_expr.as_deref().map(|expression| variables.expand(expression));
    let path = expanded.or_else(|| mount.sub_path.clone()).unwrap_or_default();
    if path.starts_with('/') {
        return Err(format!("error SubPath `{path}` must not be an absolute path"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("unable to provision SubPath `{path}`: must not contain '..'"));
    }
    Ok(path)
}

/// <https://kubernetes.io/docs/concepts/storage/volumes/#hostpath-volume-types>
fn check_host_path(path: &str, kind: &str, turn: &mut Turn<'_>) -> Result<(), String> {
    let now = turn.world.now;
    let mut disk = turn.runtime.volume(&VolumeId::disk()).cloned().unwrap_or_default();
    let (is_file, is_folder) = (disk.read(path).is_some(), disk.is_folder(path));
    let made = match kind {
        "DirectoryOrCreate" | "" if !is_file && !is_folder => Some(Node::folder(now)),
        "FileOrCreate" if !is_file && !is_folder => Some(Node::file("", 0o644, now)),
        _ => None,
    };
    let word = match kind {
        "Directory" | "DirectoryOrCreate" if made.is_none() && !is_folder => "a directory",
        "File" | "FileOrCreate" if made.is_none() && !is_file => "a file",
        "Socket" => "a socket file",
        "CharDevice" => "a character device",
        "BlockDevice" => "a block device",
        _ => "",
    };
    if !word.is_empty() {
        return Err(format!("hostPath type check failed: {path} is not {word}"));
    }
    if let Some(node) = made {
        disk.put(path, node).map_err(|why| format!("{path}: {why}"))?;
        turn.runtime.set_volume(VolumeId::disk(), disk);
    }
    Ok(())
}
