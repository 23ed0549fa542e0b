//! `kubectl certificate approve` and `deny`
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, Request, Verb as ApiVerb};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Outcome, all_of, message};
use super::super::flags::{Flag, switch};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DryRun, OUTPUT};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::group;

pub const CERTIFICATE: Verb = Verb { name: "certificate", aliases: &[], flags: &[], run: group::as_help };

const FLAGS: &[Flag] = &[FILENAME, RECURSIVE, KUSTOMIZE, OUTPUT, switch("force")];

pub const APPROVE: Verb =
    Verb { name: "certificate approve", aliases: &[], flags: FLAGS, run: |call| decide(call, &APPROVED) };

pub const DENY: Verb = Verb { name: "certificate deny", aliases: &[], flags: FLAGS, run: |call| decide(call, &DENIED) };

struct Decision {
    condition: &'static str,
    other: &'static str,
    reason: &'static str,
    message: &'static str,
    done: &'static str,
}

const APPROVED: Decision = Decision {
    condition: "Approved",
    other: "Denied",
    reason: "KubectlApprove",
    message: "This CSR was approved by kubectl certificate approve.",
    done: "approved",
};

const DENIED: Decision = Decision {
    condition: "Denied",
    other: "Approved",
    reason: "KubectlDeny",
    message: "This CSR was denied by kubectl certificate deny.",
    done: "denied",
};

fn decide(call: &mut Call<'_, '_>, decision: &Decision) -> Outcome {
    call.format()?;
    let names = call.parsed.args.clone();
    if names.is_empty() && !call.parsed.has("filename") {
        return message("one or more CSRs must be specified as <name> or -f <filename>");
    }
    let kind = KindRef::of::<CertificateSigningRequest>();
    let mut found: Vec<String> = names;
    if call.parsed.has("filename") {
        found.extend(call.manifests()?.into_iter().map(|item| item.name));
    }
    let mut failures = Vec::new();
    for name in found {
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        if let Err(failure) = decide_one(call, kind, &name, decision) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

fn decide_one(call: &mut Call<'_, '_>, kind: &KindRef, name: &str, decision: &Decision) -> Outcome {
    let mut request = call.get(kind, "", name)?;
    let conditions = request.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = |wanted: &str| conditions.iter().any(|condition| condition["type"] == wanted);
    if has(decision.other) {
        return message(format!("certificate signing request {name:?} is already {}", decision.other));
    }
    if !has(decision.condition) || call.parsed.switch("force") {
        let mut conditions = conditions;
        conditions.retain(|condition| condition["type"] != decision.condition);
        conditions.push(json!({
            "type": decision.condition, "status": "True", "reason": decision.reason, "message": decision.message,
            "lastUpdateTime": call.context.api.now().to_meta(),
        }));
        request["status"]["conditions"] = conditions.into();
        let update = client::request(ApiVerb::Update, kind, "", name);
        request = call.send_for_object(Request { subresource: "approval", body: Body::Json(request), ..update })?;
    }
    call.changed(&Item::new(kind, request), decision.done, DryRun::None)
}
