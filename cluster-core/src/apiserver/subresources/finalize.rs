//! `namespaces/finalize`: the namespace controller takes `kubernetes` out of `spec.finalizers`.

use crate::api::request::{Request, Response};
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::strategy;
use crate::apiserver::write::{self, Managers};
use crate::apiserver::{ApiServer, Moment, decode, patch, read};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let (mut namespace, warnings) = decode::body(request)?;
    patch::check_place(&namespace, request)?;
    let old = read::existing(server, request)?;
    let causes: Vec<Cause> = strategy(&old.kind).validate(&namespace);
    if !causes.is_empty() {
        return Err(Status::invalid(&old.kind, &old.key.name, causes));
    }
    namespace.set_status_part(old.status_part().clone());
    write::replace(server, request, old, namespace, Managers::Writer, warnings, moment)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::{Value, json};

    use crate::api::request::Verb;
    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn finalize_changes_what_holds_a_namespace_and_its_metadata_but_not_its_status() {
        let mut api = Api::new::<Namespace>();
        api.create(json!({"metadata": {"name": "x"}})).unwrap();
        let mut finalize = |body: Value| api.send(Verb::Update, "x", "finalize", body);
        let body = |finalizers: Value| {
            let metadata = json!({"name": "x", "labels": {"a": "b"}});
            json!({"metadata": metadata, "spec": {"finalizers": finalizers}, "status": {"phase": "Odd"}})
        };
        assert_eq!(
            told(finalize(body(json!(["odd"])))),
            [
                "spec.finalizers[0]: Invalid value: \"odd\": name is neither a standard finalizer name nor is it fully qualified"
            ]
        );
        let changed = finalize(body(json!(["x.io/a"]))).unwrap();
        assert_eq!(changed["spec"]["finalizers"], json!(["x.io/a"]));
        assert_eq!((&changed["metadata"]["labels"]["a"], &changed["status"]["phase"]), (&json!("b"), &json!("Active")));
        let other = told(finalize(json!({"metadata": {"name": "y"}})));
        assert_eq!(other, ["the name of the object (y) does not match the name on the URL (x)"]);
    }
}
