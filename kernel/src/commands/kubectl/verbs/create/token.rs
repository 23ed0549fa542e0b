//! `kubectl create token`: a token of a service account.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_create/kubectl_create_token/>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, Request, Verb as ApiVerb};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};

use super::super::super::client;
use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::{duration, text};
use super::super::super::output::OUTPUT;
use super::super::super::verb::{Call, Verb};
use super::name_of;

pub const VERB: Verb = Verb {
    name: "create token",
    aliases: &[],
    flags: &[
        OUTPUT,
        text("audience"),
        duration("duration"),
        text("bound-object-kind"),
        text("bound-object-name"),
        text("bound-object-uid"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    if call.parsed.text("duration").is_some_and(|duration| duration.starts_with('-')) {
        return message("--duration must be greater than or equal to 0");
    }
    let mut spec = json!({});
    let audiences: Vec<&str> = call.parsed.list("audience").collect();
    if !audiences.is_empty() {
        spec["audiences"] = json!(audiences);
    }
    if let Some(duration) = call.parsed.duration("duration").filter(|duration| !duration.is_zero()) {
        spec["expirationSeconds"] = duration.as_secs().into();
    }
    if let Some(bound) = bound_object(call)? {
        spec["boundObjectRef"] = bound;
    }
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let kind = KindRef::of::<ServiceAccount>();
    let request = client::request(ApiVerb::Create, kind, &call.namespace, &name);
    let answer = call.send_for_object(Request { subresource: "token", body: Body::Json(body), ..request }).map_err(
        |failure| match failure {
            Failure::Server(status) => Failure::Message(format!("failed to create token: {}", status.message)),
            other => other,
        },
    )?;
    match call.parsed.text("output") {
        Some("json") => call.line(format!("{answer:#}")),
        Some("yaml") => call.context.print(crate::yaml::print(&answer)),
        _ => call.context.print(answer["status"]["token"].as_str().unwrap_or_default()),
    }
    Ok(())
}

fn bound_object(call: &Call<'_, '_>) -> Result<Option<Value>, Failure> {
    let flag = |name: &str| call.parsed.text(name).unwrap_or_default().to_owned();
    let (kind, name, uid) = (flag("bound-object-kind"), flag("bound-object-name"), flag("bound-object-uid"));
    if kind.is_empty() {
        return match (name.as_str(), uid.as_str()) {
            ("", "") => Ok(None),
            ("", _) => message("--bound-object-uid can only be set if --bound-object-kind is provided"),
            _ => message("--bound-object-name can only be set if --bound-object-kind is provided"),
        };
    }
    if !matches!(kind.as_str(), "Node" | "Pod" | "Secret") {
        return message("supported --bound-object-kind values are Node, Pod, Secret");
    }
    if name.is_empty() {
        return message("--bound-object-name is required if --bound-object-kind is provided");
    }
    let mut bound = json!({"apiVersion": "v1", "kind": kind, "name": name});
    if !uid.is_empty() {
        bound["uid"] = uid.into();
    }
    Ok(Some(bound))
}
