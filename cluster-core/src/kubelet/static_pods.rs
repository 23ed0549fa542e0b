//! Static pods: made from manifests in a folder of the machine, by its kubelet alone. The API shows a mirror of each.
//! <https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/>

use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use super::worker::Worker;
use super::{Kubelet, Turn};
use crate::api::Name;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::Request;
use crate::apiserver::defaults;
use crate::runtime::files::Node as File;
use crate::runtime::volumes::VolumeId;
use crate::runtime::{Runtime, images};
use crate::trace::Causes;
use crate::world::World;

/// The folder on the machine's disk (`staticPodPath`). Here its manifests are JSON.
pub const FOLDER: &str = "/etc/kubernetes/manifests";

const SOURCE: &str = "kubernetes.io/config.source";
const HASH: &str = "kubernetes.io/config.hash";
const SEEN: &str = "kubernetes.io/config.seen";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The uid of the static pod that an object of the API is the mirror of.
pub fn mirrored(pod: &Object) -> Option<Name> {
    pod.annotation(MIRROR).map(Name::from)
}

/// Puts a manifest into the folder, in the place of one of that name, or takes it away.
pub fn put_manifest(runtime: &mut Runtime, file: &str, manifest: Option<&Value>, world: &World) {
    let mut disk = runtime.volume(&VolumeId::disk()).cloned().unwrap_or_default();
    let path = format!("{FOLDER}/{file}");
    match manifest {
        Some(manifest) => disk.set(path, File::file(format!("{manifest:#}\n"), 0o600, world.now)),
        // It may not be there.
        None => drop(disk.remove(&path)),
    }
    runtime.set_volume(VolumeId::disk(), disk);
}

/// The manifests in the folder.
pub fn files(runtime: &Runtime) -> Vec<String> {
    let listed = runtime.volume(&VolumeId::disk()).map(|disk| disk.list(FOLDER)).unwrap_or_default();
    listed.into_iter().map(|(name, _)| name).filter(|name| !name.starts_with('.')).collect()
}

/// The pod of a manifest, as a node's kubelet completes it. The error says what the manifest lacks.
pub fn read(text: &str, file: &str, node: &Name, seen: &str) -> Result<Object, String> {
    let manifest: Value = serde_json::from_str(text).map_err(|error| format!("{file}: {error}"))?;
    if manifest.get("kind").and_then(Value::as_str) != Some("Pod") {
        return Err(format!("{file}: expected a Pod"));
    }
    let mut pod = Object::from_json(KindRef::of::<Pod>(), manifest)
        .map_err(|error| format!("{file}: {}: {}", error.path, error.message))?;
    if pod.key.name.is_empty() {
        return Err(format!("{file}: metadata.name is missing"));
    }
    let namespace = if pod.key.namespace.is_empty() { "default" } else { &*pod.key.namespace };
    pod.rename(crate::api::Key::new(namespace, format!("{}-{node}", pod.key.name).to_lowercase()));
    let hash = images::digest(&format!("{text}{FOLDER}/{file}{node}"))[..32].to_owned();
    let metadata = pod.metadata_mut();
    metadata.uid = Some(hash.clone());
    let annotations = metadata.annotations.get_or_insert_default();
    for (name, value) in [(SOURCE, "file"), (HASH, hash.as_str()), (SEEN, seen)] {
        annotations.insert(name.to_owned(), value.to_owned());
    }
    let spec = pod.spec_mut::<Pod>();
    spec.node_name = Some(node.to_string());
    spec.tolerations.get_or_insert_default().push(Toleration {
        operator: Some("Exists".into()),
        effect: Some("NoExecute".into()),
        ..Toleration::default()
    });
    defaults::pod_spec(spec);
    defaults::pod(spec);
    Ok(pod)
}

impl Kubelet {
    /// Compares the static pods that run with the manifests in the folder.
    pub fn read_manifests(&mut self, runtime: &mut Runtime, world: &mut World) {
        if !self.running || self.hollow {
            return;
        }
        let disk = runtime.volume(&VolumeId::disk()).cloned().unwrap_or_default();
        let files = files(runtime).into_iter();
        let seen = world.now.timestamp().to_string();
        let read = |name: &str| read(disk.read(&format!("{FOLDER}/{name}"))?, name, &self.node, &seen).ok();
        let wanted: Vec<Object> = files.filter_map(|name| read(&name)).collect();
        let is_wanted = |uid: &Name| wanted.iter().any(|pod| pod.uid() == &**uid);
        let gone = self.workers.iter().filter(|(uid, worker)| worker.is_static() && !is_wanted(uid));
        for uid in gone.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
            self.with_worker(&uid, runtime, world, |worker, turn| worker.pod_gone(Causes::None, turn));
        }
        for pod in wanted {
            let uid = Name::from(pod.uid());
            // A pod of the same name has to end first; the folder is looked at again then.
            if self.workers.contains_key(&uid) || self.workers.values().any(|worker| worker.pod.key == pod.key) {
                continue;
            }
            let worker = Worker::new(pod, uid.clone(), Causes::None, Some(runtime), world.now);
            self.workers.insert(uid.clone(), worker.into());
            self.with_worker(&uid, runtime, world, |worker, turn| worker.begin(turn));
        }
    }

    /// The API has, or had, the mirror of this static pod.
    pub(super) fn mirror_changed(&mut self, uid: &Name, mirror: &Object, runtime: &mut Runtime, world: &mut World) {
        if self.workers.contains_key(uid) {
            return self.with_worker(uid, runtime, world, |worker, turn| worker.status_changed(0, turn));
        }
        delete(mirror, &mut self.turn(runtime, world));
    }
}

/// Takes a mirror out of the API at once.
fn delete(mirror: &Object, turn: &mut Turn<'_>) {
    let mut request = Request::delete(turn.actor, Pod::kind(), mirror.key.clone());
    request.options.grace_period_seconds = Some(0);
    request.options.precondition_uid = Some(mirror.uid().to_owned());
    // If nobody answers, whoever finds the mirror later takes it away.
    let _ = turn.world.request(request.because("no static pod has this mirror"));
}

impl Worker {
    pub(super) fn is_static(&self) -> bool {
        self.pod.annotation(SOURCE) == Some("file")
    }

    /// The mirror of this pod, made if there is none. `known` is what the API has under its name.
    pub(super) fn mirror(&self, known: Option<Object>, turn: &mut Turn<'_>) -> Option<Object> {
        if let Some(known) = known {
            if mirrored(&known).as_ref() == Some(&self.uid) && !known.is_terminating() {
                return Some(known);
            }
            // A pod of that name that is no mirror is somebody else's.
            mirrored(&known)?;
            delete(&known, turn);
        }
        let mut mirror = Object::new::<Pod>(&self.pod.key.namespace, &self.pod.key.name, self.spec().clone());
        let metadata = mirror.metadata_mut();
        metadata.labels = self.pod.metadata().labels.clone();
        metadata.annotations = self.pod.metadata().annotations.clone();
        metadata.annotations.get_or_insert_default().insert(MIRROR.into(), self.uid.to_string());
        let node = turn.world.request(Request::get::<Node>(turn.actor, "", turn.node)).ok()?.object()?;
        let owner = OwnerReference { block_owner_deletion: None, ..node.controller_reference() };
        mirror.metadata_mut().owner_references = Some(vec![owner]);
        let request = Request::create(turn.actor, mirror).because("shows a static pod in the API");
        turn.world.request(request).ok()?.object()
    }

    /// The static pod has ended for good: so does its mirror.
    pub(super) fn delete_mirror(&self, turn: &mut Turn<'_>) {
        let key = &self.pod.key;
        let found = turn.world.request(Request::get::<Pod>(turn.actor, &key.namespace, &key.name));
        if let Ok(Some(mirror)) = found.map(|answer| answer.object())
            && mirrored(&mirror).as_ref() == Some(&self.uid)
        {
            delete(&mirror, turn);
        }
    }
}
