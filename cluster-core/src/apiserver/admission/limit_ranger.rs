//! LimitRanger: what the LimitRanges of a namespace give to containers that ask for nothing, and what they refuse.
//! <https://kubernetes.io/docs/concepts/policy/limit-range/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Attributes, Operation, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Status;
use crate::quota::pods;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

type Amounts = BTreeMap<String, Quantity>;

pub struct LimitRanger;

impl Plugin for LimitRanger {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind(), PersistentVolumeClaim::kind()])
    }

    fn shapes_pod_specs(&self) -> bool {
        true
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if object.is::<Pod>() && attributes.creates() {
            for range in attributes.server.store.list(LimitRange::kind(), &object.key.namespace.clone()) {
                give_defaults(&range.spec::<LimitRange>().limits, object);
            }
        }
        Ok(())
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let resizes = attributes.operation == Operation::Update && attributes.request.subresource == "resize";
        let is_concerned = match object.is::<Pod>() {
            true => attributes.creates() || resizes,
            false => attributes.creates() || attributes.updates(),
        };
        if !is_concerned || attributes.old.is_some_and(Object::is_terminating) {
            return Ok(());
        }
        for range in attributes.server.store.list(LimitRange::kind(), &object.key.namespace) {
            let items = &range.spec::<LimitRange>().limits;
            let errors =
                if object.is::<Pod>() { pod_errors(items, object.spec::<Pod>()) } else { claim_errors(items, object) };
            match errors.as_slice() {
                [] => {}
                [one] => return Err(Status::forbidden(&object.kind, &object.key.name, one)),
                many => {
                    return Err(Status::forbidden(&object.kind, &object.key.name, &format!("[{}]", many.join(", "))));
                }
            }
        }
        Ok(())
    }
}

/// Fills in what containers leave out, and notes that in an annotation.
fn give_defaults(items: &[LimitRangeItem], pod: &mut Object) {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    for item in items.iter().filter(|item| item.type_ == "Container") {
        requests.extend(item.default_request.clone().unwrap_or_default());
        limits.extend(item.default.clone().unwrap_or_default());
    }
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let mut notes = Vec::new();
    let spec = pod.spec_mut::<Pod>();
    let containers = spec.containers.iter_mut().map(|container| ("container", container));
    let init_containers = spec.init_containers.iter_mut().flatten().map(|container| ("init container", container));
    for (role, container) in containers.chain(init_containers) {
        let resources = container.resources.get_or_insert_default();
        let name = &container.name;
        for (what, defaults, known) in
            [("request", &requests, &mut resources.requests), ("limit", &limits, &mut resources.limits)]
        {
            let added = add_missing(defaults, known);
            if !added.is_empty() {
                notes.push(format!("{} {what} for {role} {name}", added.join(", ")));
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        pod.metadata_mut().annotations.get_or_insert_default().insert(ANNOTATION.into(), note);
    }
}

fn add_missing<'a>(defaults: &'a Amounts, known: &mut Option<Amounts>) -> Vec<&'a str> {
    let is_missing = |name: &str| known.as_ref().is_none_or(|known| !known.contains_key(name));
    let missing: Vec<_> = defaults.iter().filter(|(name, _)| is_missing(name)).collect();
    for (name, amount) in &missing {
        known.get_or_insert_default().insert((*name).clone(), (*amount).clone());
    }
    missing.into_iter().map(|(name, _)| name.as_str()).collect()
}

fn pod_errors(items: &[LimitRangeItem], spec: &PodSpec) -> Vec<String> {
    let mut errors = Vec::new();
    let containers: Vec<&Container> = spec.containers.iter().chain(spec.init_containers.iter().flatten()).collect();
    for item in items {
        match item.type_.as_str() {
            "Container" => {
                for container in &containers {
                    let resources = container.resources.clone().unwrap_or_default();
                    let (requests, limits) =
                        (resources.requests.unwrap_or_default(), resources.limits.unwrap_or_default());
                    errors.extend(Bounds { item, requests: &requests, limits: &limits }.errors());
                }
            }
            "Pod" => {
                let (requests, limits) = (pods::requests_without_overhead(spec), pods::limits_without_overhead(spec));
                errors.extend(Bounds { item, requests: &requests, limits: &limits }.errors());
            }
            _ => {}
        }
    }
    errors
}

fn claim_errors(items: &[LimitRangeItem], claim: &Object) -> Vec<String> {
    let resources = claim.spec::<PersistentVolumeClaim>().resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.clone()).unwrap_or_default();
    let mut errors = Vec::new();
    for item in items.iter().filter(|item| item.type_ == "PersistentVolumeClaim") {
        let bounds = Bounds { item, requests: &requests, limits: &Amounts::new() };
        errors.extend(item.min.iter().flatten().filter_map(|(name, least)| bounds.below_minimum(name, least)));
        // A claim has no limit: what it requests is what it gets.
        errors.extend(item.max.iter().flatten().filter_map(|(name, most)| bounds.request_above_maximum(name, most)));
    }
    errors
}

/// One item of a LimitRange beside what something requests and is limited to.
struct Bounds<'a> {
    item: &'a LimitRangeItem,
    requests: &'a Amounts,
    limits: &'a Amounts,
}

impl Bounds<'_> {
    fn errors(&self) -> Vec<String> {
        let item = self.item;
        let mut errors = Vec::new();
        errors.extend(item.min.iter().flatten().filter_map(|(name, least)| self.below_minimum(name, least)));
        errors.extend(item.max.iter().flatten().filter_map(|(name, most)| self.above_maximum(name, most)));
        let ratios = item.max_limit_request_ratio.iter().flatten();
        errors.extend(ratios.filter_map(|(name, most)| self.above_ratio(name, most)));
        errors
    }

    fn below_minimum(&self, name: &str, least: &Quantity) -> Option<String> {
        let rule = format!("minimum {name} usage per {} is {}", self.item.type_, least.0);
        let below = |amount: &&Quantity| millis(amount) < millis(least);
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{rule}.  No request is specified")),
            (Some(request), _) if below(&request) => Some(format!("{rule}, but request is {}", request.0)),
            (_, limit) => limit.filter(below).map(|limit| format!("{rule}, but limit is {}", limit.0)),
        }
    }

    fn above_maximum(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {}", self.item.type_, most.0);
        let above = |amount: &&Quantity| millis(amount) > millis(most);
        match (self.limits.get(name), self.requests.get(name)) {
            (None, _) => Some(format!("{rule}.  No limit is specified")),
            (Some(limit), _) if above(&limit) => Some(format!("{rule}, but limit is {}", limit.0)),
            (_, request) => request.filter(above).map(|request| format!("{rule}, but request is {}", request.0)),
        }
    }

    fn request_above_maximum(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {}", self.item.type_, most.0);
        match self.requests.get(name) {
            None => Some(format!("{rule}.  No request is specified")),
            Some(request) if millis(request) > millis(most) => Some(format!("{rule}, but request is {}", request.0)),
            Some(_) => None,
        }
    }

    fn above_ratio(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("{name} max limit to request ratio per {} is {}", self.item.type_, most.0);
        let amount = |all: &Amounts| all.get(name).map(millis).filter(|amount| *amount != 0);
        let Some(request) = amount(self.requests) else {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        };
        let Some(limit) = amount(self.limits) else {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        };
        let ratio = limit as f64 / request as f64;
        (ratio * 1000.0 > millis(most) as f64).then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}

fn millis(quantity: &Quantity) -> quantity::Millis {
    quantity::parse(&quantity.0).unwrap_or(0)
}
