//! ServiceAccount: a pod runs as an account of its namespace, with a token that its containers find in a volume.
//! <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#serviceaccount-admission-controller>

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, DownwardAPIProjection, DownwardAPIVolumeFile, KeyToPath, Namespace,
    ObjectFieldSelector, Pod, PodSpec, ProjectedVolumeSource, ServiceAccount, ServiceAccountTokenProjection, Volume,
    VolumeMount, VolumeProjection,
};

use super::{Attributes, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::clock::Time;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour, and seven seconds by which clients recognize a token that they got by themselves.
const TOKEN_SECONDS: i64 = 3607;
/// kube-apiserver holds a pod back for about so long until the account `default` of a new namespace is there. Here no
/// time can pass within a request: such a pod gets what that account will say.
const DEFAULT_ACCOUNT_WAIT: Duration = Duration::from_secs(2);

pub struct ServiceAccountPlugin;

impl Plugin for ServiceAccountPlugin {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind()])
    }

    fn shapes_pod_specs(&self) -> bool {
        true
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.creates() {
            return Ok(());
        }
        if is_mirror(object) {
            return check_mirror(object);
        }
        let spec = object.spec::<Pod>();
        let given = [&spec.service_account_name, &spec.service_account];
        let name = given.into_iter().flatten().find(|name| !name.is_empty()).map_or(DEFAULT, String::as_str).to_owned();
        let Some(account) = account_of(attributes.server, object, &name, attributes.now) else {
            let detail = format!(
                "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
                object.key.namespace
            );
            return Err(Status::forbidden(&object.kind, &object.key.name, &detail));
        };
        let spec = object.spec_mut::<Pod>();
        spec.service_account_name = Some(name.clone());
        spec.service_account = Some(name);
        let automount = spec.automount_service_account_token.or(account.automount_service_account_token);
        if automount.unwrap_or(true) {
            mount_token(spec, || format!("{VOLUME_PREFIX}{}", attributes.random.suffix()));
        }
        if spec.image_pull_secrets.as_ref().is_none_or(Vec::is_empty) {
            spec.image_pull_secrets = account.image_pull_secrets.filter(|secrets| !secrets.is_empty());
        }
        Ok(())
    }
}

/// The picture of a static pod, which a kubelet puts into the API.
pub fn is_mirror(pod: &Object) -> bool {
    pod.annotation(MIRROR).is_some()
}

fn check_mirror(pod: &Object) -> Result<(), Status> {
    let spec = pod.spec::<Pod>();
    let has_token = |volume: &Volume| {
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        sources.into_iter().any(|source| source.service_account_token.is_some())
    };
    let detail = if spec.service_account_name.as_deref().is_some_and(|name| !name.is_empty()) {
        "a mirror pod may not reference service accounts"
    } else if has_secrets(spec) {
        "a mirror pod may not reference secrets"
    } else if spec.volumes.iter().flatten().any(has_token) {
        "a mirror pod may not use service account token volume projections"
    } else {
        return Ok(());
    };
    Err(Status::forbidden(&pod.kind, &pod.key.name, detail))
}

fn has_secrets(spec: &PodSpec) -> bool {
    let in_env = |container: &Container| {
        let keys = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
        keys.into_iter().any(|source| source.secret_key_ref.is_some())
            || container.env_from.iter().flatten().any(|source| source.secret_ref.is_some())
    };
    let in_volume = |volume: &Volume| {
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        volume.secret.is_some() || sources.into_iter().any(|source| source.secret.is_some())
    };
    spec.image_pull_secrets.as_ref().is_some_and(|secrets| !secrets.is_empty())
        || spec.containers.iter().chain(spec.init_containers.iter().flatten()).any(in_env)
        || spec.volumes.iter().flatten().any(in_volume)
}

fn account_of(server: &ApiServer, pod: &Object, name: &str, now: Time) -> Option<ServiceAccount> {
    let namespace = &pod.key.namespace;
    let known = server.store.get(ServiceAccount::kind(), &Key::new(namespace.clone(), name));
    if let Some(account) = known {
        return Some(account.spec::<ServiceAccount>().clone());
    }
    let namespace = server.store.get(Namespace::kind(), &Key::cluster(namespace.clone()))?;
    let created = Time::from(namespace.metadata().creation_timestamp.as_ref()?);
    (name == DEFAULT && now.since(created) < DEFAULT_ACCOUNT_WAIT).then(ServiceAccount::default)
}

/// Mounts the token into every container that has nothing at its place.
fn mount_token(spec: &mut PodSpec, new_name: impl FnOnce() -> String) {
    let known = spec.volumes.iter().flatten().find(|volume| volume.name.starts_with(VOLUME_PREFIX));
    let has_volume = known.is_some();
    let name = known.map_or_else(new_name, |volume| volume.name.clone());
    let mut is_mounted = false;
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        let mounts = container.volume_mounts.get_or_insert_default();
        if mounts.iter().all(|mount| mount.mount_path != MOUNT_PATH) {
            is_mounted = true;
            mounts.push(VolumeMount {
                name: name.clone(),
                mount_path: MOUNT_PATH.into(),
                read_only: Some(true),
                ..VolumeMount::default()
            });
        }
    }
    if is_mounted && !has_volume {
        let projected = Some(token_source());
        spec.volumes.get_or_insert_default().push(Volume { name, projected, ..Volume::default() });
    }
}

/// The token, the certificate by which the API server is known, and the namespace.
fn token_source() -> ProjectedVolumeSource {
    let token = ServiceAccountTokenProjection {
        expiration_seconds: Some(TOKEN_SECONDS),
        path: "token".into(),
        ..ServiceAccountTokenProjection::default()
    };
    let certificate = ConfigMapProjection {
        name: "kube-root-ca.crt".into(),
        items: Some(vec![KeyToPath { key: "ca.crt".into(), path: "ca.crt".into(), mode: None }]),
        optional: None,
    };
    let field = ObjectFieldSelector { api_version: Some("v1".into()), field_path: "metadata.namespace".into() };
    let namespace =
        DownwardAPIVolumeFile { path: "namespace".into(), field_ref: Some(field), ..DownwardAPIVolumeFile::default() };
    ProjectedVolumeSource {
        default_mode: Some(0o644),
        sources: Some(vec![
            VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() },
            VolumeProjection { config_map: Some(certificate), ..VolumeProjection::default() },
            VolumeProjection {
                downward_api: Some(DownwardAPIProjection { items: Some(vec![namespace]) }),
                ..VolumeProjection::default()
            },
        ]),
    }
}
