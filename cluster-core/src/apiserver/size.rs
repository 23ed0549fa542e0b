//! How large an object may be: etcd takes no request of more than 1.5 MiB, and its client sends none of more than 2 MiB.
//! <https://etcd.io/docs/v3.6/dev-guide/limit/>

use serde_json::Value;

use crate::api::object::Object;
use crate::api::request::{Body, Request, Verb};
use crate::api::status::Status;

const REQUEST_BYTES_MAX: usize = 1536 * 1024;
const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// What the server adds to the object of a request is small beside this.
const ADDED_BYTES_MAX: usize = 256 * 1024;

/// Refuses what etcd would refuse. Components of this process send nothing as large.
pub fn check(object: &Object, request: &Request) -> Result<(), Status> {
    let may_be_large = match (&request.body, request.verb) {
        // A small patch can be the last straw.
        (Body::Json(_), Verb::Patch(_)) => true,
        (Body::Json(sent), _) => bytes(sent) > REQUEST_BYTES_MAX - ADDED_BYTES_MAX,
        _ => false,
    };
    if !may_be_large {
        return Ok(());
    }
    match bytes(&object.to_json()) {
        size if size > MESSAGE_BYTES_MAX => Err(Status::unexplained(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {MESSAGE_BYTES_MAX})"
        ))),
        size if size > REQUEST_BYTES_MAX => Err(Status::unexplained("etcdserver: request is too large")),
        _ => Ok(()),
    }
}

/// About the length of a value as text, without writing it.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes(value) + 4).sum::<usize>() + 2,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ControllerRevision;
    use serde_json::json;

    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn what_etcd_does_not_take_is_refused() {
        let mut api = Api::new::<ControllerRevision>();
        let revision = |kib: usize| {
            let lines: Vec<String> = vec!["x".repeat(1021); kib];
            json!({"metadata": {"name": "a"}, "revision": 1, "data": {"lines": lines}})
        };
        let refused = api.create(revision(1800)).unwrap_err();
        assert_eq!((refused.code, &*refused.message, refused.reason), (500, "etcdserver: request is too large", ""));
        let refused = api.create(revision(2100)).unwrap_err().message;
        assert!(
            refused.starts_with("rpc error: code = ResourceExhausted desc = trying to send message larger"),
            "{refused}"
        );
        api.create(revision(1400)).unwrap();
        let patch = json!({"metadata": {"annotations": {"note": "y".repeat(150_000)}}});
        assert_eq!(api.merge("a", patch).unwrap_err().message, "etcdserver: request is too large");
        api.merge("a", json!({"metadata": {"annotations": {"note": "y"}}})).unwrap();
    }
}
