//! CertificateSigningRequests.
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/>

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::api::user::User;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};

const EXPIRATION_SECONDS_MIN: i32 = 600;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn keep_requestor(&self, object: &mut Object, user: &User) {
        let spec = object.spec_mut::<CertificateSigningRequest>();
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        (spec.username, spec.uid) = (some(&user.name), some(&user.uid));
        spec.groups = (!user.groups.is_empty()).then(|| user.groups.clone());
        spec.extra = (!user.extra.is_empty()).then(|| user.extra.clone());
    }

    /// What was asked for stays; only status and approval change.
    fn prepare_update(&self, old: &Object, new: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        new.set_spec_part(old.spec_part().clone());
        Ok(())
    }

    /// Approval and denial are not the status's to change.
    fn prepare_status_update(&self, old: &Object, new: &mut Object, moment: &Moment<'_>) {
        let kept = conditions(old).iter().filter(|condition| is_verdict(condition)).cloned();
        let written = conditions(new).iter().filter(|condition| !is_verdict(condition)).cloned();
        let list: Vec<_> = kept.chain(written).collect();
        new.status_mut::<CertificateSigningRequest>().conditions = (!list.is_empty()).then_some(list);
        stamp(old, new, moment);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<CertificateSigningRequest>(), Path::new("spec"));
        let mut causes = Causes::new();
        let begins = "-----BEGIN CERTIFICATE REQUEST-----";
        let request = std::str::from_utf8(&spec.request.0).unwrap_or_default();
        if !request.trim_start().starts_with(begins) {
            let detail = "PEM block type must be CERTIFICATE REQUEST";
            causes.invalid(&path.child("request"), json!(spec.request), detail);
        }
        let (usages, usages_path) = (spec.usages.as_deref().unwrap_or_default(), path.child("usages"));
        if usages.is_empty() {
            causes.required(&usages_path, "");
        }
        for (index, usage) in usages.iter().enumerate() {
            causes.one_of(&usages_path.index(index), Some(usage), &USAGES);
        }
        for (index, usage) in usages.iter().enumerate().filter(|(index, usage)| usages[..*index].contains(usage)) {
            causes.duplicate(&usages_path.index(index), usage.as_str());
        }
        signer_name(&mut causes, &path.child("signerName"), &spec.signer_name);
        if let Some(seconds) = spec.expiration_seconds.filter(|seconds| *seconds < EXPIRATION_SECONDS_MIN) {
            let detail = "may not specify a duration less than 600 seconds (10 minutes)";
            causes.invalid(&path.child("expirationSeconds"), seconds, detail);
        }
        causes.into()
    }

    fn validate_replacement(&self, _: &Object, _: &Object) -> Vec<Cause> {
        Vec::new()
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        validate_conditions(&mut causes, new);
        let certificate = |object: &Object| object.status::<CertificateSigningRequest>().certificate.clone();
        if certificate(old).is_some() && certificate(old) != certificate(new) {
            causes.forbidden(
                &Path::new("status.certificate"),
                "updates may not modify a certificate once it has been set",
            );
        }
        causes.into()
    }
}

/// Takes over what an approver writes: the verdicts, and nothing else.
pub fn approve(old: &Object, wanted: &Object, moment: &Moment<'_>) -> Result<Object, Status> {
    let mut new = old.clone();
    new.set_metadata(wanted.metadata_arc().clone());
    let list = conditions(wanted).to_vec();
    new.status_mut::<CertificateSigningRequest>().conditions = (!list.is_empty()).then_some(list);
    stamp(old, &mut new, moment);
    let mut causes = Causes::new();
    validate_conditions(&mut causes, &new);
    if causes.is_empty() { Ok(new) } else { Err(Status::invalid(&new.kind, &new.key.name, causes.into())) }
}

fn conditions(object: &Object) -> &[CertificateSigningRequestCondition] {
    object.status::<CertificateSigningRequest>().conditions.as_deref().unwrap_or_default()
}

fn is_verdict(condition: &CertificateSigningRequestCondition) -> bool {
    matches!(condition.type_.as_str(), "Approved" | "Denied")
}

/// Gives times to conditions that have none.
fn stamp(old: &Object, new: &mut Object, moment: &Moment<'_>) {
    let known = conditions(old).to_vec();
    for condition in new.status_mut::<CertificateSigningRequest>().conditions.iter_mut().flatten() {
        condition.last_update_time.get_or_insert_with(|| moment.now.to_meta());
        let before = known.iter().find(|known| known.type_ == condition.type_ && known.status == condition.status);
        let since = before.and_then(|known| known.last_transition_time.clone());
        condition.last_transition_time.get_or_insert_with(|| since.unwrap_or_else(|| moment.now.to_meta()));
    }
}

fn validate_conditions(causes: &mut Causes, object: &Object) {
    let path = Path::new("status.conditions");
    let list = conditions(object);
    for (index, condition) in list.iter().enumerate() {
        let path = path.index(index);
        if condition.type_.is_empty() {
            causes.required(&path.child("type"), "");
        }
        if is_verdict(condition) || condition.type_ == "Failed" {
            // These are there or not; they are never false.
            match condition.status.as_str() {
                "" => causes.required(&path.child("status"), ""),
                status => causes.one_of(&path.child("status"), Some(status), &["True"]),
            }
        } else {
            causes.required_one_of(&path.child("status"), Some(&condition.status), &["False", "True", "Unknown"]);
        }
        if list[..index].iter().any(|known| known.type_ == condition.type_) {
            causes.duplicate(&path.child("type"), condition.type_.as_str());
        }
    }
    if ["Approved", "Denied"].iter().all(|verdict| list.iter().any(|condition| condition.type_ == *verdict)) {
        let detail = "Approved and Denied conditions are mutually exclusive";
        causes.invalid(&path, "Approved and Denied", detail);
    }
}

fn signer_name(causes: &mut Causes, path: &Path, name: &str) {
    if name == LEGACY_SIGNER {
        return causes.invalid(path, name, "the legacy signerName is not allowed via this API version");
    }
    if name.is_empty() {
        return causes.required(path, "");
    }
    let [domain, rest] = name.split('/').collect::<Vec<_>>()[..] else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return causes.invalid(path, name, detail);
    };
    let labels: Vec<&str> = domain.split('.').collect();
    for label in &labels {
        for detail in names::dns_label(label) {
            causes.invalid(path, domain, format!("validating label {label:?}: {detail}"));
        }
    }
    if labels.len() < 2 {
        causes.invalid(path, domain, "should be a domain with at least two segments separated by dots");
    }
    for label in rest.split('.') {
        for detail in names::dns_label(label) {
            causes.invalid(path, rest, format!("validating label {label:?}: {detail}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::request::{PatchType, Verb};
    use crate::apiserver::strategies::testing::{Api, told};

    fn request(name: &str, signer: &str) -> serde_json::Value {
        let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUk=";
        json!({"metadata": {"name": name}, "spec": {"signerName": signer, "usages": ["client auth"], "request": pem}})
    }

    #[test]
    fn a_request_needs_signer_and_usages() {
        let mut api = Api::new::<CertificateSigningRequest>();
        assert_eq!(api.refusal(request("a", "")), ["spec.signerName: Required value"]);
        assert_eq!(
            api.refusal(request("a", "x")),
            ["spec.signerName: Invalid value: \"x\": must be a fully qualified domain and path of the form \
              'example.com/signer-name'"]
        );
        let made = api.create(request("a", "example.com/x")).unwrap();
        assert_eq!(made["status"], json!({}));
    }

    #[test]
    fn only_the_approval_changes_the_verdict() {
        let mut api = Api::new::<CertificateSigningRequest>();
        api.create(request("a", "example.com/x")).unwrap();
        let verdict = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}});
        let status = api.merge_status("a", verdict("Approved")).unwrap();
        assert_eq!(status["status"], json!({}));
        let patch = Verb::Patch(PatchType::Merge);
        let approved = api.send(patch, "a", "approval", verdict("Approved")).unwrap();
        assert_eq!(approved["status"]["conditions"][0]["type"], "Approved");
        assert!(approved["status"]["conditions"][0]["lastUpdateTime"].is_string());
        let wrong = api.send(
            patch,
            "a",
            "approval",
            json!({"status": {"conditions": [{"type": "Denied", "status": "False"}]}}),
        );
        assert_eq!(
            told(wrong),
            ["status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\""]
        );
    }
}
