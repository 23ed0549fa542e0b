//! certificatesigningrequest-cleaner-controller: requests for certificates that are answered, or that nobody answers, go
//! after a while.
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#request-signing-process>

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;

/// How long an answered request is kept.
const ANSWERED: Duration = Duration::from_secs(3600);
/// How long one without an answer is kept.
const PENDING: Duration = Duration::from_secs(24 * 3600);

pub struct CertificateCleaner;

impl Controller for CertificateCleaner {
    fn name(&self) -> &str {
        "certificatesigningrequest-cleaner-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(CertificateSigningRequest::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(request) = view.get::<CertificateSigningRequest>(key) else { return plan };
        match due(request).map(|due| due.since(view.now)) {
            None => {}
            Some(wait) if wait.is_zero() => {
                plan.delete(request, "it has been kept for long enough");
            }
            Some(wait) => plan.requeue_after(wait),
        }
        plan
    }
}

/// When it may go. A request that was approved waits for its certificate, however long that takes.
fn due(request: &Object) -> Option<Time> {
    let status = request.status::<CertificateSigningRequest>();
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if conditions.is_empty() {
        let created = request.metadata().creation_timestamp.as_ref().map(Time::from)?;
        return Some(created + PENDING);
    }
    let ends =
        |kind: &str| kind == "Denied" || kind == "Failed" || (kind == "Approved" && status.certificate.is_some());
    let ended = conditions.iter().filter(|condition| ends(&condition.type_));
    ended.filter_map(|condition| Some(Time::from(condition.last_update_time.as_ref()?) + ANSWERED)).min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::request::{PatchType, Request};
    use crate::controllers::testing::*;

    #[test]
    fn answered_requests_go_sooner_than_those_without_an_answer() {
        let mut cluster = control_plane();
        let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUk=";
        let spec = json!({"signerName": "example.com/x", "usages": ["client auth"], "request": pem});
        for name in ["denied", "approved", "open"] {
            create::<CertificateSigningRequest>(&mut cluster, json!({"metadata": {"name": name}, "spec": spec}));
        }
        for (name, verdict) in [("denied", "Denied"), ("approved", "Approved")] {
            let body = json!({"status": {"conditions": [{"type": verdict, "status": "True", "reason": "r"}]}});
            let kind = CertificateSigningRequest::kind();
            let patch = Request::patch(&user(), kind, Key::cluster(name), PatchType::Merge, body);
            cluster.request(Request { subresource: "approval", ..patch }).unwrap();
        }
        let names = |cluster: &crate::Cluster| {
            cluster.list::<CertificateSigningRequest>("").map(|csr| csr.key.name.to_string()).collect::<Vec<_>>()
        };
        cluster.advance(ANSWERED + Duration::from_secs(10), |_| true);
        assert_eq!(names(&cluster), ["approved", "open"]);
        cluster.advance(PENDING, |_| true);
        assert_eq!(names(&cluster), ["approved"]);
    }
}
