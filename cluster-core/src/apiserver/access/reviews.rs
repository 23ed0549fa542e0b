//! Reviews: questions about users and what they may do, asked by creating an object that is answered and never stored.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{
    SelfSubjectReview, SelfSubjectReviewStatus, TokenReview, TokenReviewStatus, UserInfo,
};
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, NonResourceAttributes, NonResourceRule, ResourceAttributes, ResourceRule,
    SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview, SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
};
use serde_json::{Value, json};

use super::{Attributes, Decision, Target, authorize, rbac, tokens};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Answer, Request, Response};
use crate::api::status::{Cause, Status};
use crate::api::user::User;
use crate::apiserver::{ApiServer, Moment, decode};

type Review = fn(&ApiServer, &User, &mut Object, &Moment<'_>) -> Result<(), Status>;

const REVIEWS: &[(&str, Review)] = &[
    ("LocalSubjectAccessReview", local_subject_access),
    ("SelfSubjectAccessReview", self_subject_access),
    ("SelfSubjectReview", self_subject),
    ("SelfSubjectRulesReview", self_subject_rules),
    ("SubjectAccessReview", subject_access),
    ("TokenReview", token),
];

/// What answers a create of this kind, if that is a question.
fn review_of(kind: &KindRef) -> Option<Review> {
    let asks = matches!(&*kind.group, "authentication.k8s.io" | "authorization.k8s.io");
    REVIEWS.iter().find(|(name, _)| asks && *kind.kind == **name).map(|(_, review)| *review)
}

/// Answers a question; `None` if the request creates something that is kept.
pub fn answer(server: &ApiServer, request: &Request, moment: &Moment<'_>) -> Option<Result<Response, Status>> {
    let review = review_of(&request.kind)?;
    let answer = || {
        let (mut object, warnings) = decode::body(request)?;
        place(request, &mut object)?;
        let user = request.user.clone().unwrap_or_else(|| Arc::new(User::administrator()));
        review(server, &user, &mut object, moment)?;
        Ok(Response::Object(Answer { object, created: true, deleted: false, warnings: warnings.into() }))
    };
    Some(answer())
}

/// A namespaced question lies in the namespace of its URL.
fn place(request: &Request, object: &mut Object) -> Result<(), Status> {
    let wanted = &request.key.namespace;
    if request.kind.namespaced && object.key.namespace.is_empty() {
        object.key.namespace = wanted.clone();
        object.metadata_mut().namespace = Some(wanted.to_string());
    }
    if request.kind.namespaced && object.key.namespace != *wanted {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

fn self_subject(_: &ApiServer, user: &User, object: &mut Object, moment: &Moment<'_>) -> Result<(), Status> {
    object.metadata_mut().creation_timestamp = Some(moment.now.to_meta());
    object.spec_mut::<SelfSubjectReview>().status = Some(SelfSubjectReviewStatus { user_info: Some(user_info(user)) });
    Ok(())
}

fn token(server: &ApiServer, _: &User, object: &mut Object, moment: &Moment<'_>) -> Result<(), Status> {
    let spec = object.spec::<TokenReview>();
    let token = spec.token.as_str();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted = spec.audiences.as_deref().unwrap_or_default();
    let answer = match tokens::authenticate(server, token, wanted, moment.now) {
        Ok(bearer) => TokenReviewStatus {
            authenticated: Some(true),
            user: Some(user_info(&bearer.user)),
            audiences: Some(bearer.audiences),
            error: None,
        },
        Err(reason) => {
            TokenReviewStatus { user: Some(UserInfo::default()), error: Some(reason), ..TokenReviewStatus::default() }
        }
    };
    *object.status_mut::<TokenReview>() = answer;
    Ok(())
}

fn user_info(user: &User) -> UserInfo {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    UserInfo {
        username: text(&user.name),
        uid: text(&user.uid),
        groups: (!user.groups.is_empty()).then(|| user.groups.clone()),
        extra: (!user.extra.is_empty()).then(|| user.extra.clone()),
    }
}

fn self_subject_access(server: &ApiServer, user: &User, object: &mut Object, _: &Moment<'_>) -> Result<(), Status> {
    let spec = object.spec::<SelfSubjectAccessReview>();
    let mut causes = Vec::new();
    let asked = attributes(&spec.resource_attributes, &spec.non_resource_attributes, &mut causes);
    check_empty_metadata(object, false, &mut causes);
    let decision = authorize(server, user, &accept(asked, causes)?);
    *object.status_mut::<SelfSubjectAccessReview>() = status(decision);
    Ok(())
}

fn subject_access(server: &ApiServer, _: &User, object: &mut Object, _: &Moment<'_>) -> Result<(), Status> {
    let spec = object.spec::<SubjectAccessReview>();
    let mut causes = Vec::new();
    let asked = attributes(&spec.resource_attributes, &spec.non_resource_attributes, &mut causes);
    let subject = subject(spec, &mut causes);
    check_empty_metadata(object, false, &mut causes);
    let decision = authorize(server, &subject, &accept(asked, causes)?);
    *object.status_mut::<SubjectAccessReview>() = status(decision);
    Ok(())
}

fn local_subject_access(server: &ApiServer, _: &User, object: &mut Object, _: &Moment<'_>) -> Result<(), Status> {
    let spec = object.spec::<LocalSubjectAccessReview>();
    let mut causes = Vec::new();
    let asked = attributes(&spec.resource_attributes, &spec.non_resource_attributes, &mut causes);
    let subject = subject(spec, &mut causes);
    check_empty_metadata(object, true, &mut causes);
    if let Some(resource) = &spec.resource_attributes {
        let namespace = resource.namespace.as_deref().unwrap_or_default();
        if *namespace != *object.key.namespace {
            let field = "spec.resourceAttributes.namespace";
            causes.push(Cause::invalid(field, namespace, "must match metadata.namespace"));
        }
    }
    if let Some(path) = &spec.non_resource_attributes {
        let detail = "disallowed on this kind of request";
        causes.push(Cause::invalid("spec.nonResourceAttributes", path_in_go(path), detail));
    }
    let decision = authorize(server, &subject, &accept(asked, causes)?);
    *object.status_mut::<LocalSubjectAccessReview>() = status(decision);
    Ok(())
}

fn status(decision: Decision) -> SubjectAccessReviewStatus {
    let (allowed, reason) = match decision {
        Decision::Allowed(reason) => (true, reason),
        Decision::NoOpinion(reason) => (false, reason),
    };
    let reason = (!reason.is_empty()).then_some(reason);
    SubjectAccessReviewStatus { allowed, reason, ..SubjectAccessReviewStatus::default() }
}

/// What is asked about: a resource or a path, not both.
fn attributes(
    resource: &Option<ResourceAttributes>,
    path: &Option<NonResourceAttributes>,
    causes: &mut Vec<Cause>,
) -> Option<Attributes> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match (resource, path) {
        (Some(_), Some(path)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            causes.push(Cause::invalid("spec.nonResourceAttributes", path_in_go(path), detail));
            None
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid("spec.resourceAttributes", Value::Null, detail));
            None
        }
        (Some(resource), None) => Some(Attributes {
            verb: text(&resource.verb),
            target: Target::Resource {
                group: text(&resource.group),
                resource: text(&resource.resource),
                subresource: text(&resource.subresource),
                namespace: text(&resource.namespace),
                name: text(&resource.name),
            },
        }),
        (None, Some(path)) => Some(Attributes::path(text(&path.verb), text(&path.path))),
    }
}

/// As Go shows the internal type, whose fields have no JSON names.
fn path_in_go(path: &NonResourceAttributes) -> Value {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    json!({"Path": text(&path.path), "Verb": text(&path.verb)})
}

fn subject(spec: &SubjectAccessReviewSpec, causes: &mut Vec<Cause>) -> User {
    let user = User {
        name: spec.user.clone().unwrap_or_default(),
        uid: spec.uid.clone().unwrap_or_default(),
        groups: spec.groups.clone().unwrap_or_default(),
        extra: spec.extra.clone().unwrap_or_default(),
    };
    if user.name.is_empty() && user.groups.is_empty() {
        causes.push(Cause::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    user
}

fn check_empty_metadata(object: &Object, namespace_allowed: bool, causes: &mut Vec<Cause>) {
    let mut metadata = object.metadata().clone();
    metadata.managed_fields = None;
    if namespace_allowed {
        metadata.namespace = None;
    }
    if metadata != Default::default() {
        let detail = if namespace_allowed { "must be empty except for namespace" } else { "must be empty" };
        causes.push(Cause::invalid("metadata", object.metadata_json(), detail));
    }
}

fn accept(asked: Option<Attributes>, causes: Vec<Cause>) -> Result<Attributes, Status> {
    match asked {
        Some(asked) if causes.is_empty() => Ok(asked),
        _ => Err(Status::invalid_question("authorization.k8s.io", causes)),
    }
}

fn self_subject_rules(server: &ApiServer, user: &User, object: &mut Object, _: &Moment<'_>) -> Result<(), Status> {
    let spec = std::mem::take(object.spec_mut::<SelfSubjectRulesReview>());
    let namespace = spec.namespace.filter(|namespace| !namespace.is_empty());
    let namespace = namespace.ok_or_else(|| Status::bad_request("no namespace on request"))?;
    let (rules, missing) = rbac::rules_of(server, user, &namespace);
    let answer = object.status_mut::<SelfSubjectRulesReview>();
    for rule in rules {
        if rule.resources.as_ref().is_some_and(|resources| !resources.is_empty()) {
            answer.resource_rules.push(ResourceRule {
                api_groups: rule.api_groups,
                resource_names: rule.resource_names,
                resources: rule.resources,
                verbs: rule.verbs,
            });
        } else {
            answer
                .non_resource_rules
                .push(NonResourceRule { non_resource_urls: rule.non_resource_urls, verbs: rule.verbs });
        }
    }
    answer.evaluation_error = (!missing.is_empty()).then(|| missing.join(", "));
    answer.incomplete = !missing.is_empty();
    Ok(())
}
