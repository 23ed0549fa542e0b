//! `namespaces/finalize`: the namespace controller takes `kubernetes` out of `spec.finalizers`.

use k8s_openapi::api::core::v1::Namespace;

use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::{ApiServer, Moment, decode, read, write};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let (wanted, _) = decode::body(request)?;
    let mut namespace = old.clone();
    namespace.spec_mut::<Namespace>().finalizers = wanted.spec::<Namespace>().finalizers.clone();
    let whole = Request { subresource: "", ..request.clone() };
    write::replace(server, &whole, old, namespace, Vec::new(), moment)
}
