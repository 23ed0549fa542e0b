//! ResourceQuota: an object that would use more than its namespace has is refused; what is admitted is charged at once.
//! <https://kubernetes.io/docs/concepts/policy/resource-quotas/>

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};

use super::{Attributes, Operation, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::quota::{self, Amounts, pods};

pub struct ResourceQuotaPlugin;

impl Plugin for ResourceQuotaPlugin {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        if !object.kind.namespaced || !is_counted(attributes, object) {
            return Ok(());
        }
        let mut quotas = attributes.server.store.list(ResourceQuota::kind(), &object.key.namespace).peekable();
        if quotas.peek().is_none() {
            return Ok(());
        }
        let covering: Vec<(&Object, Vec<&str>)> = quotas.filter_map(|quota| covered(quota, object)).collect();
        for (quota, resources) in &covering {
            check_stated(quota, resources, object)?;
            check_known(quota, resources, object)?;
        }
        let delta = delta(attributes.old, object);
        for (quota, _) in covering {
            if let Some(charged) = charge(quota, &delta, object)? {
                attributes.charges.push(charged);
            }
        }
        Ok(())
    }
}

/// Pods are counted when they come and when they are resized, Services and claims also when they change, all else when
/// it comes.
fn is_counted(attributes: &Attributes<'_>, object: &Object) -> bool {
    let resizes = attributes.operation == Operation::Update && attributes.request.subresource == "resize";
    let grows = object.is::<Service>() || object.is::<PersistentVolumeClaim>();
    attributes.creates() || resizes || attributes.updates() && grows
}

/// The resources by which a quota counts an object, if it does.
fn covered<'a>(quota: &'a Object, object: &Object) -> Option<(&'a Object, Vec<&'a str>)> {
    let hard = quota.status::<ResourceQuota>().hard.as_ref()?;
    let resources: Vec<&str> =
        hard.keys().map(String::as_str).filter(|name| quota::counts(&object.kind, name)).collect();
    let is_covered = !resources.is_empty() && quota::is_in_scopes(quota.spec::<ResourceQuota>(), object);
    is_covered.then_some((quota, resources))
}

fn refused(object: &Object, detail: &str) -> Status {
    Status::forbidden(&object.kind, &object.key.name, detail)
}

fn check_stated(quota: &Object, resources: &[&str], object: &Object) -> Result<(), Status> {
    if !object.is::<Pod>() {
        return Ok(());
    }
    let unstated = pods::unstated(object.spec::<Pod>(), resources);
    if unstated.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = unstated
        .into_iter()
        .map(|(resource, containers)| {
            format!("{resource} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        })
        .collect();
    Err(refused(object, &format!("failed quota: {}: must specify {}", quota.key.name, told.join("; "))))
}

/// Nothing can be admitted against numbers that nobody has counted yet.
fn check_known(quota: &Object, resources: &[&str], object: &Object) -> Result<(), Status> {
    let used = quota.status::<ResourceQuota>().used.as_ref();
    if resources.iter().all(|resource| used.is_some_and(|used| used.contains_key(*resource))) {
        return Ok(());
    }
    let detail = format!("status unknown for quota: {}, resources: {}", quota.key.name, resources.join(","));
    Err(refused(object, &detail))
}

/// What the write adds to what is used.
fn delta(old: Option<&Object>, object: &Object) -> Amounts {
    let mut delta = quota::usage(object);
    if let Some(old) = old {
        delta = quota::subtract(&delta, &quota::usage(old));
    }
    delta.retain(|_, amount| !quota::is_zero(amount));
    delta
}

/// The quota with the object charged to it; `None` if it does not count what is added.
fn charge(quota: &Object, delta: &Amounts, object: &Object) -> Result<Option<Object>, Status> {
    let status = quota.status::<ResourceQuota>();
    let (hard, used) = (status.hard.clone().unwrap_or_default(), status.used.clone().unwrap_or_default());
    let requested = quota::mask(delta, &hard);
    if requested.is_empty() {
        return Ok(None);
    }
    let after = quota::add(&used, &requested);
    let mut exceeded = quota::mask(&after, &requested);
    exceeded.retain(|name, amount| quota::compare(amount, &hard[name]).is_gt());
    if !exceeded.is_empty() {
        let shown = |amounts: &Amounts| {
            let amounts = quota::mask(amounts, &exceeded);
            amounts.iter().map(|(name, amount)| format!("{name}={}", amount.0)).collect::<Vec<_>>().join(",")
        };
        let detail = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.key.name,
            shown(&requested),
            shown(&used),
            shown(&hard)
        );
        return Err(refused(object, &detail));
    }
    let mut charged = quota.clone();
    charged.status_mut::<ResourceQuota>().used = Some(after);
    Ok(Some(charged))
}
