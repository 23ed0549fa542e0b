//! ConfigMaps and Secrets: keys, types, immutability, how much they hold.
//! <https://kubernetes.io/docs/concepts/configuration/configmap/#motivation>

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::decode::text;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

/// All values of an object's data together.
const DATA_BYTES_MAX: usize = 1 << 20;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (map, mut causes) = (object.spec::<ConfigMap>(), Causes::new());
        for key in map.data.iter().flatten().map(|(key, _)| key) {
            let path = Path::new("data").key(key);
            causes.invalid_each(&path, key, names::config_map_key(key));
            if map.binary_data.as_ref().is_some_and(|binary| binary.contains_key(key)) {
                causes.invalid(&path, key.as_str(), "duplicate of key present in binaryData");
            }
        }
        for key in map.binary_data.iter().flatten().map(|(key, _)| key) {
            causes.invalid_each(&Path::new("binaryData").key(key), key, names::config_map_key(key));
        }
        let texts = map.data.iter().flatten().map(|(_, text)| text.len());
        let bytes = map.binary_data.iter().flatten().map(|(_, bytes)| bytes.0.len());
        // The API names no field here.
        too_long(&mut causes, "[]", texts.chain(bytes));
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, after, mut causes) = (old.spec::<ConfigMap>(), new.spec::<ConfigMap>(), Causes::new());
        if before.immutable == Some(true) {
            let changed = [
                ("immutable", after.immutable != Some(true)),
                ("data", before.data != after.data),
                ("binaryData", before.binary_data != after.binary_data),
            ];
            forbid_changes(&mut causes, &changed);
        }
        causes.extend(self.validate(new));
        causes.into()
    }
}

/// <https://kubernetes.io/docs/concepts/configuration/secret/#secret-types>
pub struct Secrets;

impl Strategy for Secrets {
    fn default(&self, object: &mut Object) {
        let secret = object.spec_mut::<Secret>();
        secret.type_.take_if(|kind| kind.is_empty());
        secret.type_.get_or_insert_with(|| "Opaque".into());
        if let Some(texts) = secret.string_data.take().filter(|texts| !texts.is_empty()) {
            let data = secret.data.get_or_insert_default();
            data.extend(texts.into_iter().map(|(key, text)| (key, ByteString(text.into_bytes()))));
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (secret, path, mut causes) = (object.spec::<Secret>(), Path::new("data"), Causes::new());
        for key in secret.data.iter().flatten().map(|(key, _)| key) {
            causes.invalid_each(&path.key(key), key, names::config_map_key(key));
        }
        too_long(&mut causes, "data", secret.data.iter().flatten().map(|(_, bytes)| bytes.0.len()));
        let value = |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice());
        match secret.type_.as_deref().unwrap_or_default() {
            "kubernetes.io/service-account-token" => {
                let account = "kubernetes.io/service-account.name";
                if object.annotation(account).unwrap_or_default().is_empty() {
                    causes.required(&Path::new("metadata.annotations").key(account), "");
                }
            }
            "kubernetes.io/dockercfg" => docker_config(&mut causes, &path.key(".dockercfg"), value(".dockercfg")),
            "kubernetes.io/dockerconfigjson" => {
                docker_config(&mut causes, &path.key(".dockerconfigjson"), value(".dockerconfigjson"));
            }
            "kubernetes.io/basic-auth" => {
                // Either may be left out, but not both.
                let keys = ["username", "password"];
                if keys.iter().all(|key| value(key).is_none()) {
                    keys.iter().for_each(|key| causes.required(&path.key(key), ""));
                }
            }
            "kubernetes.io/ssh-auth" if value("ssh-privatekey").is_none_or(<[u8]>::is_empty) => {
                causes.required(&path.key("ssh-privatekey"), "");
            }
            "kubernetes.io/tls" => {
                for key in ["tls.crt", "tls.key"].iter().filter(|key| value(key).is_none()) {
                    causes.required(&path.key(key), "");
                }
            }
            _ => {}
        }
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, after, mut causes) = (old.spec::<Secret>(), new.spec::<Secret>(), Causes::new());
        causes.immutable(&Path::new("type"), &before.type_, &after.type_);
        if before.immutable == Some(true) {
            let changed = [("immutable", after.immutable != Some(true)), ("data", before.data != after.data)];
            forbid_changes(&mut causes, &changed);
        }
        causes.extend(self.validate(new));
        causes.into()
    }
}

fn forbid_changes(causes: &mut Causes, changed: &[(&str, bool)]) {
    for (field, _) in changed.iter().filter(|(_, changed)| *changed) {
        causes.forbidden(&Path::new(field), IMMUTABLE);
    }
}

fn docker_config(causes: &mut Causes, path: &Path, content: Option<&[u8]>) {
    let Some(content) = content else { return causes.required(path, "") };
    let problem = match text::parse(content) {
        Ok(parsed) if parsed.value.is_object() => return,
        Ok(parsed) => text::misfit(text::json_type(&parsed.value), "map[string]interface {}"),
        Err(problem) => problem,
    };
    causes.invalid(path, "<secret contents redacted>", problem);
}

fn too_long(causes: &mut Causes, field: &str, sizes: impl Iterator<Item = usize>) {
    if sizes.sum::<usize>() > DATA_BYTES_MAX {
        causes.too_long(&Path::new(field), DATA_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kind::{KindRef, Resource};
    use crate::api::request::Request;
    use crate::apiserver::strategies::testing::Api;
    use crate::{Cluster, Config};

    fn refusal(kind: &KindRef, object: serde_json::Value) -> String {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let object = Object::from_json(kind, object).unwrap();
        cluster.request(Request::create(&"kubectl".into(), object)).unwrap_err().message
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let value = "x".repeat(DATA_BYTES_MAX + 1);
        assert_eq!(
            refusal(
                ConfigMap::kind(),
                json!({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": value}})
            ),
            "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes"
        );
        let annotations = json!({"k": &value[..300_000]});
        assert_eq!(
            refusal(
                Secret::kind(),
                json!({"metadata": {"name": "a", "namespace": "default", "annotations": annotations}})
            ),
            "Secret \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"
        );
    }

    #[test]
    fn an_immutable_map_keeps_its_data() {
        let mut api = Api::new::<ConfigMap>();
        let map = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": "x"}});
        api.create(map).unwrap();
        let change = json!({"immutable": null, "data": {"k": "y"}});
        assert_eq!(
            api.merge_refusal("a", change),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
        assert_eq!(api.merge_refusal("a", json!({"metadata": {"labels": {"a": "b"}}})), [""; 0]);
    }

    #[test]
    fn string_data_wins_and_is_not_read_back() {
        let mut api = Api::new::<Secret>();
        let secret = json!({"metadata": {"name": "a"}, "data": {"x": "b2xk"}, "stringData": {"x": "new", "z": ""}});
        let made = api.create(secret).unwrap();
        assert_eq!((&made["data"], &made["type"]), (&json!({"x": "bmV3", "z": ""}), &json!("Opaque")));
        assert_eq!(made.get("stringData"), None);
    }

    #[test]
    fn types_of_secrets_have_their_keys() {
        let mut api = Api::new::<Secret>();
        let mut told = |kind: &str| api.refusal(json!({"metadata": {"name": "a"}, "type": kind}));
        assert_eq!(told("kubernetes.io/tls"), ["data[tls.crt]: Required value", "data[tls.key]: Required value"]);
        assert_eq!(told("kubernetes.io/dockerconfigjson"), ["data[.dockerconfigjson]: Required value"]);
        assert_eq!(
            told("kubernetes.io/service-account-token"),
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"]
        );
        assert_eq!(told("example.com/own"), [""; 0]);
    }
}
