//! CertificateApproval, CertificateSigning, CertificateSubjectRestriction: who may decide about requests of a signer, who
//! may sign them, and which subject nobody gets.
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization>

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::{Attributes, Operation, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::api::user::MASTERS;
use crate::apiserver::access::{self, Decision, Target};
use crate::certificates;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub struct CertificateApproval;
pub struct CertificateSigning;
pub struct CertificateSubjectRestriction;

impl Plugin for CertificateApproval {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![CertificateSigningRequest::kind()])
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        match attributes.request.subresource {
            "approval" if attributes.operation == Operation::Update => require(attributes, object, "approve"),
            _ => Ok(()),
        }
    }
}

impl Plugin for CertificateSigning {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![CertificateSigningRequest::kind()])
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let told = |object: &Object| {
            let status = object.status::<CertificateSigningRequest>();
            (status.certificate.clone(), status.conditions.clone())
        };
        let is_answer =
            attributes.request.subresource == "status" && attributes.old.is_some_and(|old| told(old) != told(object));
        if is_answer { require(attributes, object, "sign") } else { Ok(()) }
    }
}

impl Plugin for CertificateSubjectRestriction {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![CertificateSigningRequest::kind()])
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let spec = object.spec::<CertificateSigningRequest>();
        if !attributes.creates() || spec.signer_name != CLIENT_SIGNER {
            return Ok(());
        }
        // A request that can't be read names nobody.
        let asked = certificates::read(&spec.request.0).unwrap_or_default();
        if asked.organizations.iter().any(|group| group == MASTERS) {
            let detail = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(Status::forbidden(&object.kind, &object.key.name, &detail));
        }
        Ok(())
    }
}

/// The user may do this with the signer, or with all signers of its domain.
fn require(attributes: &Attributes<'_>, object: &Object, verb: &str) -> Result<(), Status> {
    let Some(user) = &attributes.request.user else { return Ok(()) };
    let signer = object.spec::<CertificateSigningRequest>().signer_name.as_str();
    let domain = signer.split('/').next().unwrap_or_default();
    let may = |name: &str| {
        let asked = access::Attributes {
            verb: verb.to_owned(),
            target: Target::resource("certificates.k8s.io", "signers", "", "", name),
        };
        matches!(access::authorize(attributes.server, user, &asked), Decision::Allowed(_))
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let detail = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(Status::forbidden(&object.kind, &object.key.name, &detail))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;
    use crate::api::Key;
    use crate::api::request::{PatchType, Request};
    use crate::api::user::User;
    use crate::certificates::testing::{JANE, MASTER};
    use crate::controllers::testing::{control_plane, create, user};

    #[test]
    fn who_decides_about_a_signers_requests_must_be_allowed_to() {
        let mut cluster = control_plane();
        let spec = |pem: &str| {
            let request = ByteString(pem.as_bytes().to_vec());
            json!({"signerName": CLIENT_SIGNER, "usages": ["client auth"], "request": request})
        };
        let kind = CertificateSigningRequest::kind();
        create::<CertificateSigningRequest>(&mut cluster, json!({"metadata": {"name": "jane"}, "spec": spec(JANE)}));
        let master = Object::from_json(kind, json!({"metadata": {"name": "m"}, "spec": spec(MASTER)})).unwrap();
        let refused = cluster.request(Request::create(&user(), master)).unwrap_err();
        let expected = "certificatesigningrequests.certificates.k8s.io \"m\" is forbidden: use of \
                        kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
        assert_eq!(refused.message, expected);

        let role = |name: &str, resource: &str, verb: &str| json!({"metadata": {"name": name}, "rules": [{"apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": [verb]}]});
        let grant = |cluster: &mut crate::Cluster, role: serde_json::Value| {
            let name = role["metadata"]["name"].clone();
            create::<k8s_openapi::api::rbac::v1::ClusterRole>(cluster, role);
            let group = "rbac.authorization.k8s.io";
            let binding = json!({"metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "bob"}]});
            create::<k8s_openapi::api::rbac::v1::ClusterRoleBinding>(cluster, binding);
        };
        grant(&mut cluster, role("updates", "certificatesigningrequests/approval", "patch"));
        let body = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}});
        let approve = || {
            let patch = Request::patch(&user(), kind, Key::cluster("jane"), PatchType::Merge, body.clone());
            Request { subresource: "approval", user: Some(Arc::new(User::authenticated("bob", []))), ..patch }
        };
        let refused = cluster.request(approve()).unwrap_err();
        let expected = "certificatesigningrequests.certificates.k8s.io \"jane\" is forbidden: user not permitted to approve \
                        requests with signerName \"kubernetes.io/kube-apiserver-client\"";
        assert_eq!(refused.message, expected);
        grant(&mut cluster, role("approves", "signers", "approve"));
        cluster.request(approve()).unwrap();
    }
}
