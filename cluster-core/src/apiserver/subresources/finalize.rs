//! `namespaces/finalize`: the namespace controller takes `kubernetes` out of `spec.finalizers`.

use k8s_openapi::api::core::v1::Namespace;

use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::write::{self, Managers};
use crate::apiserver::{ApiServer, Moment, decode, read};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let (wanted, _) = decode::body(request)?;
    let mut namespace = old.clone();
    namespace.spec_mut::<Namespace>().finalizers = wanted.spec::<Namespace>().finalizers.clone();
    namespace.revision = wanted.revision;
    write::replace(server, request, old, namespace, Managers::Known, Vec::new(), moment)
}
