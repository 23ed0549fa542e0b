//! certificatesigningrequest-approving-controller: lets kubelets have the certificates by which they are known, if their
//! roles allow it. Whatever else is asked for waits for a person.
//! <https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/#approval>

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};

use super::cache::View;
use super::certificate_signer::{KUBELET_CLIENT, has_condition, refuse_kubelet_client};
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::certificates::{self, Requested};

/// How long it waits at most before it asks again for a kubelet that may not have a certificate.
const ASK_AGAIN: Duration = Duration::from_secs(1000);

pub struct CertificateApprover;

/// What a kubelet may be allowed, as a subresource of requests, and what is said then. The first is its own renewal.
const ALLOWANCES: [(&str, &str); 2] = [
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
];

impl Controller for CertificateApprover {
    fn name(&self) -> &str {
        "certificatesigningrequest-approving-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(CertificateSigningRequest::kind())]
    }

    /// One review for each allowance that would do.
    fn asks(&self, key: &Key, view: &View<'_>) -> Vec<Request> {
        let allowances = view.get::<CertificateSigningRequest>(key).map(allowances).unwrap_or_default();
        allowances.into_iter().map(|(spec, subresource, _)| self.review(spec, subresource)).collect()
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(request) = view.get::<CertificateSigningRequest>(key) else { return plan };
        let allowances = allowances(request);
        let granted = view.answers().iter().map(|answer| {
            let review = answer.clone().ok().and_then(|answer| answer.object());
            review.is_some_and(|review| review.status::<SubjectAccessReview>().allowed)
        });
        let is_asked = !allowances.is_empty();
        match allowances.into_iter().zip(granted).find(|(_, granted)| *granted) {
            Some(((.., message), _)) => {
                let mut approved = request.clone();
                let status = approved.status_mut::<CertificateSigningRequest>();
                status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                    type_: "Approved".into(),
                    status: "True".into(),
                    reason: Some("AutoApproved".into()),
                    message: Some(message.into()),
                    ..CertificateSigningRequestCondition::default()
                });
                plan.update(approved, "its roles allow the kubelet this certificate").request.subresource = "approval";
            }
            None if is_asked => plan.requeue_after(ASK_AGAIN),
            None => {}
        }
        plan
    }
}

impl CertificateApprover {
    fn review(&self, spec: &CertificateSigningRequestSpec, subresource: &str) -> Request {
        let text = |text: &str| Some(text.to_owned());
        let review = SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: text("certificates.k8s.io"),
                resource: text("certificatesigningrequests"),
                verb: text("create"),
                subresource: text(subresource),
                version: text("*"),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        };
        Request::create(&self.name().into(), Object::new::<SubjectAccessReview>("", "", review))
    }
}

/// What would allow a request that nobody has decided about.
fn allowances(request: &Object) -> Vec<(&CertificateSigningRequestSpec, &'static str, &'static str)> {
    let (spec, status) = (request.spec::<CertificateSigningRequest>(), request.status::<CertificateSigningRequest>());
    let is_open =
        status.certificate.is_none() && !has_condition(request, "Approved") && !has_condition(request, "Denied");
    let asked = if is_open { certificates::read(&spec.request.0).ok() } else { None };
    let is_kubelet = |asked: &Requested| {
        spec.signer_name == KUBELET_CLIENT
            && refuse_kubelet_client(asked, spec.usages.as_deref().unwrap_or_default()).is_none()
    };
    let Some(asked) = asked.filter(is_kubelet) else { return Vec::new() };
    let is_itself = spec.username.as_deref() == Some(asked.common_name.as_str());
    let fitting = ALLOWANCES.into_iter().skip(usize::from(!is_itself));
    fitting.map(|(subresource, message)| (spec, subresource, message)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::ByteString;
    use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
    use serde_json::json;

    use super::*;
    use crate::Cluster;
    use crate::api::user::User;
    use crate::certificates::testing::{JANE, NODE};
    use crate::controllers::testing::*;

    fn ask(cluster: &mut Cluster, name: &str, pem: &str, user: &str, signer: &str) {
        let usages = ["digital signature", "client auth"];
        let request = ByteString(pem.as_bytes().to_vec());
        let spec = json!({"signerName": signer, "usages": usages, "request": request});
        let object =
            Object::from_json(CertificateSigningRequest::kind(), json!({"metadata": {"name": name}, "spec": spec}));
        let user = Some(Arc::new(User {
            groups: vec!["system:nodes".into(), "system:masters".into()],
            name: user.into(),
            ..User::default()
        }));
        cluster.request(Request { user, ..Request::create(&"kubelet".into(), object.unwrap()) }).unwrap();
    }

    fn told(cluster: &Cluster, name: &str) -> Vec<String> {
        let request = cluster.get::<CertificateSigningRequest>("", name).unwrap();
        let conditions = request.status::<CertificateSigningRequest>().conditions.iter().flatten();
        conditions.map(|known| format!("{} {}", known.type_, known.message.clone().unwrap_or_default())).collect()
    }

    #[test]
    fn kubelets_get_certificates_of_their_own_if_roles_allow_it() {
        let mut cluster = control_plane();
        // In place of the group system:masters, which may do all, the name counts.
        let binding = json!({
            "metadata": {"name": "renewal"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
        });
        create::<ClusterRoleBinding>(&mut cluster, binding);
        ask(&mut cluster, "own", NODE, "system:node:node-1", KUBELET_CLIENT);
        ask(&mut cluster, "jane", JANE, "jane", "kubernetes.io/kube-apiserver-client");
        ask(&mut cluster, "no-node", JANE, "jane", KUBELET_CLIENT);
        settle(&mut cluster);
        assert_eq!(
            told(&cluster, "own"),
            ["Approved Auto approving self kubelet client certificate after SubjectAccessReview."]
        );
        assert_eq!(told(&cluster, "jane"), Vec::<String>::new());
        assert_eq!(told(&cluster, "no-node"), Vec::<String>::new());
        let request = cluster.get::<CertificateSigningRequest>("", "own").unwrap();
        assert_eq!(request.spec::<CertificateSigningRequest>().username.as_deref(), Some("system:node:node-1"));
    }
}
