//! What a volume holds that is made of API objects: ConfigMaps, Secrets, fields of the pod, tokens.
//! <https://kubernetes.io/docs/concepts/storage/projected-volumes/>

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccount, ServiceAccountTokenProjection, Volume,
};
use serde_json::json;

use super::{Turn, fields};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{Body, Request, Verb};
use crate::clock::Time;
use crate::runtime::files::{Files, Node};

const DEFAULT_MODE: i32 = 0o644;

/// One file: its path in the volume, its text, its permissions.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub path: String,
    pub text: String,
    pub mode: u16,
}

/// Names and values of a ConfigMap or a Secret.
pub type Data = Vec<(String, String)>;

/// The files of a volume, or what they lack, in the kubelet's words; `None` for a volume that is made of other things.
pub fn of_volume(volume: &Volume, pod: &Object, turn: &mut Turn<'_>) -> Option<Result<Vec<Entry>, String>> {
    if let Some(source) = &volume.config_map {
        let (items, optional) = (source.items.as_deref(), source.optional == Some(true));
        let mode = mode(source.default_mode);
        let data = config_map(pod, &source.name, optional, turn);
        return Some(data.and_then(|data| pick(data, items, optional, mode, "config")));
    }
    if let Some(source) = &volume.secret {
        let (items, optional) = (source.items.as_deref(), source.optional == Some(true));
        let mode = mode(source.default_mode);
        let data = secret(pod, source.secret_name.as_deref().unwrap_or_default(), optional, turn);
        return Some(data.and_then(|data| pick(data, items, optional, mode, "secret")));
    }
    if let Some(source) = &volume.downward_api {
        return Some(downward(source.items.as_deref().unwrap_or_default(), mode(source.default_mode), pod, turn));
    }
    let projected = volume.projected.as_ref()?;
    let mode = mode(projected.default_mode);
    let mut all = Vec::new();
    for source in projected.sources.iter().flatten() {
        let part = if let Some(source) = &source.config_map {
            let optional = source.optional == Some(true);
            config_map(pod, &source.name, optional, turn)
                .and_then(|data| pick(data, source.items.as_deref(), optional, mode, "config"))
        } else if let Some(source) = &source.secret {
            let optional = source.optional == Some(true);
            secret(pod, &source.name, optional, turn)
                .and_then(|data| pick(data, source.items.as_deref(), optional, mode, "secret"))
        } else if let Some(source) = &source.downward_api {
            downward(source.items.as_deref().unwrap_or_default(), mode, pod, turn)
        } else if let Some(source) = &source.service_account_token {
            token(source, pod, turn).map(|text| {
                let entry = |text| Entry { path: source.path.clone(), text, mode };
                text.map(entry).into_iter().collect()
            })
        } else {
            Ok(Vec::new())
        };
        match part {
            Ok(part) => all.extend(part),
            Err(message) => return Some(Err(message)),
        }
    }
    Some(Ok(all))
}

fn mode(given: Option<i32>) -> u16 {
    (given.unwrap_or(DEFAULT_MODE) & 0o777) as u16
}

/// All of it, or what the items name.
fn pick(data: Data, items: Option<&[KeyToPath]>, optional: bool, mode: u16, word: &str) -> Result<Vec<Entry>, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(data.into_iter().map(|(path, text)| Entry { path, text, mode }).collect());
    };
    let mut picked = Vec::new();
    for item in items {
        let mode = item.mode.map_or(mode, |given| self::mode(Some(given)));
        match data.iter().find(|(name, _)| *name == item.key) {
            Some((_, text)) => picked.push(Entry { path: item.path.clone(), text: text.clone(), mode }),
            None if optional => {}
            None => return Err(format!("references non-existent {word} key: {}", item.key)),
        }
    }
    Ok(picked)
}

fn downward(
    items: &[DownwardAPIVolumeFile],
    default_mode: u16,
    pod: &Object,
    turn: &Turn<'_>,
) -> Result<Vec<Entry>, String> {
    let entry = |item: &DownwardAPIVolumeFile| {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => fields::of_pod(pod, &field.field_path, turn),
            (None, Some(selector)) => {
                let spec = pod.spec::<Pod>();
                let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
                let name = selector.container_name.as_deref().unwrap_or_default();
                let Some(container) = all.find(|container| container.name == name) else {
                    return Err(format!("container {name} not found"));
                };
                Some(fields::of_container(container, selector, turn))
            }
            (None, None) => None,
        };
        let mode = item.mode.map_or(default_mode, |given| mode(Some(given)));
        Ok(Entry { path: item.path.clone(), text: text.unwrap_or_default(), mode })
    };
    items.iter().map(entry).collect()
}

/// A token for the pod's account; `None` in a cluster that signs none.
/// <https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken>
fn token(source: &ServiceAccountTokenProjection, pod: &Object, turn: &mut Turn<'_>) -> Result<Option<String>, String> {
    if turn.world.apiserver.signer.is_none() {
        return Ok(None);
    }
    let name = pod.spec::<Pod>().service_account_name.clone().unwrap_or_default();
    let audiences = source.audience.clone().filter(|audience| !audience.is_empty()).map(|audience| vec![audience]);
    let body = json!({"spec": {
        "audiences": audiences.unwrap_or_default(),
        "expirationSeconds": source.expiration_seconds.unwrap_or(3600),
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": &*pod.key.name, "uid": pod.uid()},
    }});
    let key = Key::new(pod.key.namespace.clone(), name);
    let request = Request::new(turn.actor, Verb::Create, ServiceAccount::kind(), key);
    let request = Request { subresource: "token", body: Body::Json(body), ..request };
    let answer = turn.world.request(request.because("a container reads its token"));
    let issued = answer.map_err(|status| format!("failed to fetch token: {}", status.message))?.object();
    Ok(issued.and_then(|issued| issued.status::<TokenRequest>().token.clone()))
}

pub fn config_map(pod: &Object, name: &str, optional: bool, turn: &mut Turn<'_>) -> Result<Data, String> {
    let found = turn.world.request(Request::get::<ConfigMap>(turn.actor, &pod.key.namespace, name));
    match found.map(|answer| answer.object()) {
        Ok(object) => {
            let Some(object) = object else { return Ok(Vec::new()) };
            let map = object.spec::<ConfigMap>();
            let texts = map.data.iter().flatten().map(|(name, text)| (name.clone(), text.clone()));
            let binary = map.binary_data.iter().flatten();
            let binary = binary.map(|(name, bytes)| (name.clone(), String::from_utf8_lossy(&bytes.0).into_owned()));
            let mut all: Data = texts.chain(binary).collect();
            all.sort();
            Ok(all)
        }
        Err(status) if optional && status.is_not_found() => Ok(Vec::new()),
        Err(status) if status.is_not_found() => Err(format!("configmap \"{name}\" not found")),
        Err(status) => Err(status.message),
    }
}

pub fn secret(pod: &Object, name: &str, optional: bool, turn: &mut Turn<'_>) -> Result<Data, String> {
    let found = turn.world.request(Request::get::<Secret>(turn.actor, &pod.key.namespace, name));
    match found.map(|answer| answer.object()) {
        Ok(object) => {
            let data = object.as_ref().and_then(|object| object.spec::<Secret>().data.as_ref()).into_iter().flatten();
            Ok(data.map(|(name, bytes)| (name.clone(), String::from_utf8_lossy(&bytes.0).into_owned())).collect())
        }
        Err(status) if optional && status.is_not_found() => Ok(Vec::new()),
        Err(status) if status.is_not_found() => Err(format!("secret \"{name}\" not found")),
        Err(status) => Err(status.message),
    }
}

/// The tree in which a kubelet lays out such files: they lie in a folder of the moment, `..data` leads to it, and what a
/// program opens leads through `..data`, so that all of them change at once.
pub fn tree(entries: &[Entry], now: Time, group: Option<i64>) -> Files {
    let moment = format!("{}.{:09}", now.timestamp().strftime("..%Y_%m_%d_%H_%M_%S"), now.as_micros() % 1_000_000_000);
    let mut nodes = vec![
        (String::new(), Node { mode: 0o777, ..Node::folder(now) }),
        (format!("/{moment}"), Node::folder(now)),
        ("/..data".to_owned(), Node::link(moment.as_str(), now)),
    ];
    for Entry { path, text, mode } in entries {
        nodes.push((format!("/{moment}/{path}"), Node::file(text.as_str(), *mode, now)));
        let first = path.split('/').next().unwrap_or(path);
        nodes.push((format!("/{first}"), Node::link(format!("..data/{first}"), now)));
    }
    let mut files: Files = nodes.into_iter().collect();
    if let Some(group) = group {
        files.give_to(group, false);
    }
    files
}

/// True if a volume holds just this.
pub fn is_held(entries: &[Entry], held: &Files) -> bool {
    let data = held.below(&held.resolve("/..data"));
    data.file_count() == entries.len()
        && entries.iter().all(|entry| held.read(&entry.path) == Some(entry.text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_behind_links_that_change_at_once() {
        let entry = |path: &str, text: &str| Entry { path: path.into(), text: text.into(), mode: 0o600 };
        let entries = [entry("a", "1"), entry("deep/b", "2")];
        let files = tree(&entries, Time::from_secs(1), Some(2000));
        assert_eq!((files.read("/a"), files.read("/deep/b")), (Some("1"), Some("2")));
        assert_eq!(files.target("/a").map(|node| (node.mode, node.group)), Some((0o640, 2000)));
        let names: Vec<String> = files.list("").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["..2026_01_01_00_00_01.001000000", "..data", "a", "deep"]);
        assert!(is_held(&entries, &files));
        assert!(!is_held(&entries[..1], &files));
        assert!(!is_held(&[entry("a", "1"), entry("deep/b", "3")], &files));
    }

    #[test]
    fn items_that_are_missing_are_named() {
        let data = vec![("a".to_owned(), "1".to_owned())];
        let item = |key: &str| KeyToPath { key: key.into(), path: "x".into(), mode: Some(0o400) };
        let picked = pick(data.clone(), Some(&[item("a")]), false, 0o644, "config").unwrap();
        assert_eq!(picked, [Entry { path: "x".into(), text: "1".into(), mode: 0o400 }]);
        let lacks = pick(data.clone(), Some(&[item("b")]), false, 0o644, "config");
        assert_eq!(lacks, Err("references non-existent config key: b".into()));
        assert_eq!(pick(data, Some(&[item("b")]), true, 0o644, "config"), Ok(Vec::new()));
    }
}
