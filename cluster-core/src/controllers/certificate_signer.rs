//! certificatesigningrequest-signing-controller: makes the certificates that were approved, for the signers that are
//! Kubernetes' own.
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers>

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::apiserver::access::tokens::TokenSigner;
use crate::certificates::{self, Requested};
use crate::clock::Time;

pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// `--cluster-signing-duration`
const DURATION_SECONDS: u64 = 365 * 24 * 3600;
const DURATION_SECONDS_MIN: u64 = 600;

/// Why a request is none that a signer takes.
type Refuse = fn(&Requested, &[String]) -> Option<String>;

const SIGNERS: [(&str, Refuse); 3] = [
    ("kubernetes.io/kubelet-serving", refuse_kubelet_serving),
    (KUBELET_CLIENT, refuse_kubelet_client),
    ("kubernetes.io/kube-apiserver-client", refuse_client),
];

pub struct CertificateSigner;

impl Controller for CertificateSigner {
    fn name(&self) -> &str {
        "certificatesigningrequest-signing-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(CertificateSigningRequest::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(request) = view.get::<CertificateSigningRequest>(key) else { return plan };
        let (spec, status) =
            (request.spec::<CertificateSigningRequest>(), request.status::<CertificateSigningRequest>());
        let is_due =
            status.certificate.is_none() && has_condition(request, "Approved") && !has_condition(request, "Denied");
        let signer = SIGNERS.iter().find(|(name, _)| spec.signer_name == *name);
        let Some((_, refuse)) = signer.filter(|_| is_due && !has_condition(request, "Failed")) else { return plan };
        // What can't be read can't be signed, ever.
        let Ok(asked) = certificates::read(&spec.request.0) else { return plan };
        let mut answered = request.clone();
        match refuse(&asked, spec.usages.as_deref().unwrap_or_default()) {
            Some(problem) => {
                let status = answered.status_mut::<CertificateSigningRequest>();
                status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                    type_: "Failed".into(),
                    status: "True".into(),
                    reason: Some("SignerValidationFailure".into()),
                    message: Some(problem),
                    last_update_time: Some(view.now.to_meta()),
                    ..CertificateSigningRequestCondition::default()
                });
                plan.update_status(answered, "it is not what its signer is for");
            }
            None => {
                plan.update_status(answered, "it is approved").sign_with_authority(sign);
            }
        }
        plan
    }
}

pub fn has_condition(request: &Object, name: &str) -> bool {
    let conditions = request.status::<CertificateSigningRequest>().conditions.iter().flatten();
    conditions.into_iter().any(|known| known.type_ == name && known.status == "True")
}

/// Puts the certificate into the status, for as long as was asked for, if that is not too long.
fn sign(request: &mut Object, authority: &dyn TokenSigner, now: Time) {
    let spec = request.spec::<CertificateSigningRequest>();
    let Ok(asked) = certificates::read(&spec.request.0) else { return };
    let wanted = spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(DURATION_SECONDS);
    let lifetime = Duration::from_secs(wanted.clamp(DURATION_SECONDS_MIN, DURATION_SECONDS));
    let usages = spec.usages.clone().unwrap_or_default();
    let certificate = certificates::issue(&asked, &usages, lifetime, authority, now);
    request.status_mut::<CertificateSigningRequest>().certificate = Some(ByteString(certificate.into_bytes()));
}

fn are(usages: &[String], wanted: &[&str]) -> bool {
    wanted.iter().all(|usage| usages.iter().any(|known| known == usage))
        && usages.iter().all(|usage| wanted.contains(&usage.as_str()))
}

/// Key encipherment is what RSA keys are for; others go without.
fn mismatch(usages: &[String], purpose: &str) -> Option<String> {
    let fits = are(usages, &["digital signature", purpose])
        || are(usages, &["digital signature", "key encipherment", purpose]);
    let mut wanted = ["digital signature", "key encipherment", purpose];
    wanted.sort_unstable();
    (!fits).then(|| format!("usages did not match [{}]", wanted.join(" ")))
}

fn refuse_kubelet_serving(asked: &Requested, usages: &[String]) -> Option<String> {
    let told = |text: &str| Some(text.to_owned());
    if asked.organizations != ["system:nodes"] {
        return told("subject organization is not system:nodes");
    }
    if asked.dns_names.is_empty() && !asked.has_addresses {
        return told("DNS or IP subjectAltName is required");
    }
    if asked.has_emails {
        return told("Email subjectAltNames are not allowed");
    }
    if asked.has_uris {
        return told("URI subjectAltNames are not allowed");
    }
    let is_node = asked.common_name.starts_with("system:node:");
    mismatch(usages, "server auth")
        .or_else(|| (!is_node).then(|| "subject common name does not begin with system:node:".to_owned()))
}

pub fn refuse_kubelet_client(asked: &Requested, usages: &[String]) -> Option<String> {
    let told = |text: &str| Some(text.to_owned());
    if asked.organizations != ["system:nodes"] {
        return told("subject organization is not system:nodes");
    }
    for (is_there, name) in [
        (!asked.dns_names.is_empty(), "DNS"),
        (asked.has_emails, "Email"),
        (asked.has_addresses, "IP"),
        (asked.has_uris, "URI"),
    ] {
        if is_there {
            return Some(format!("{name} subjectAltNames are not allowed"));
        }
    }
    if !asked.common_name.starts_with("system:node:") {
        return told("subject common name does not begin with system:node:");
    }
    mismatch(usages, "client auth")
}

fn refuse_client(_: &Requested, usages: &[String]) -> Option<String> {
    let other =
        usages.iter().find(|usage| !matches!(usage.as_str(), "digital signature" | "key encipherment" | "client auth"));
    match other {
        Some(other) => Some(format!("invalid usage for client certificate: {other}")),
        None if usages.iter().any(|usage| usage == "client auth") => None,
        None => Some("missing required usage for client certificate: client auth".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::request::{PatchType, Request};
    use crate::certificates::testing::{JANE, NODE, Plain, SERVING};
    use crate::controllers::testing::*;
    use crate::{Cluster, Config};

    fn cluster() -> Cluster {
        let without = ["kubelet", "kube-proxy", "kube-scheduler"].map(String::from).to_vec();
        Cluster::new(Config { without, authority: Some(Arc::new(Plain)), ..Config::default() })
    }

    /// Asks for a certificate, approves it and waits.
    fn answer(cluster: &mut Cluster, name: &str, pem: &str, signer: &str, usages: Value) -> Object {
        let request = ByteString(pem.as_bytes().to_vec());
        let spec = json!({"signerName": format!("kubernetes.io/{signer}"), "usages": usages, "request": request});
        create::<CertificateSigningRequest>(cluster, json!({"metadata": {"name": name}, "spec": spec}));
        settle(cluster);
        let kind = CertificateSigningRequest::kind();
        let body = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}});
        let patch = Request::patch(&user(), kind, Key::cluster(name), PatchType::Merge, body);
        cluster.request(Request { subresource: "approval", ..patch }).unwrap();
        settle(cluster);
        cluster.get::<CertificateSigningRequest>("", name).unwrap().clone()
    }

    fn failure(request: &Object) -> String {
        let conditions = request.status::<CertificateSigningRequest>().conditions.iter().flatten();
        let failed = conditions.filter(|known| known.type_ == "Failed");
        failed.filter_map(|known| known.message.clone()).collect()
    }

    #[test]
    fn what_is_approved_gets_its_certificate() {
        let mut cluster = cluster();
        let issued = answer(&mut cluster, "jane", JANE, "kube-apiserver-client", json!(["client auth"]));
        let certificate = issued.status::<CertificateSigningRequest>().certificate.clone().unwrap();
        assert!(certificate.0.starts_with(b"-----BEGIN CERTIFICATE-----\n"));
        let usages = json!(["digital signature", "server auth"]);
        let issued = answer(&mut cluster, "serving", SERVING, "kubelet-serving", usages);
        assert!(issued.status::<CertificateSigningRequest>().certificate.is_some());
    }

    #[test]
    fn what_a_signer_is_not_for_fails() {
        let mut cluster = cluster();
        for (name, pem, signer, usage, expected) in [
            ("a", JANE, "kube-apiserver-client", "server auth", "invalid usage for client certificate: server auth"),
            ("b", JANE, "kube-apiserver-client-kubelet", "client auth", "subject organization is not system:nodes"),
            ("c", SERVING, "kube-apiserver-client-kubelet", "client auth", "DNS subjectAltNames are not allowed"),
            ("d", NODE, "kubelet-serving", "server auth", "DNS or IP subjectAltName is required"),
            (
                "e",
                NODE,
                "kube-apiserver-client-kubelet",
                "client auth",
                "usages did not match [client auth digital signature key encipherment]",
            ),
        ] {
            let failed = answer(&mut cluster, name, pem, signer, json!([usage]));
            assert_eq!(failure(&failed), expected, "{name}");
            assert_eq!(failed.status::<CertificateSigningRequest>().certificate, None);
        }
    }
}
