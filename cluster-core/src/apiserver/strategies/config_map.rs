//! ConfigMaps and Secrets: how much they hold.
//! <https://kubernetes.io/docs/concepts/configuration/configmap/#motivation>

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;

/// All values of an object's data together.
const DATA_BYTES_MAX: usize = 1 << 20;

pub struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let map = object.spec::<ConfigMap>();
        let texts = map.data.iter().flatten().map(|(_, text)| text.len());
        let bytes = map.binary_data.iter().flatten().map(|(_, bytes)| bytes.0.len());
        // The API names no field here.
        too_long("[]", texts.chain(bytes))
    }
}

pub struct Secrets;

impl Strategy for Secrets {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        too_long("data", object.spec::<Secret>().data.iter().flatten().map(|(_, bytes)| bytes.0.len()))
    }
}

fn too_long(field: &str, sizes: impl Iterator<Item = usize>) -> Vec<Cause> {
    let fits = sizes.sum::<usize>() <= DATA_BYTES_MAX;
    if fits { Vec::new() } else { vec![Cause::too_long(field, DATA_BYTES_MAX)] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kind::{KindRef, Resource};
    use crate::api::request::Request;
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
}
