//! IPAddresses and ServiceCIDRs.
//! <https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/>

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR, ServiceCIDRSpec};
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::addresses;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;
use crate::apiserver::validation::shown::Struct;

pub struct Addresses;

impl Strategy for Addresses {
    /// An IPAddress is called by its address.
    fn check_name(&self, name: &str) -> Vec<String> {
        match name.parse::<IpAddr>() {
            Err(_) => vec![format!("ParseAddr(\"{name}\"): unable to parse IP")],
            Ok(address) if address.to_string() != name => vec!["must be a canonical format IP address".into()],
            Ok(_) => Vec::new(),
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec.parentRef"));
        let parent = &object.spec::<IPAddress>().parent_ref;
        if let Some(group) = parent.group.as_deref().filter(|group| !group.is_empty()) {
            causes.invalid_each(&path.child("group"), group, names::dns_subdomain(group));
        }
        for (field, text) in [("resource", &parent.resource), ("name", &parent.name)] {
            let text = text.as_str();
            if text.is_empty() {
                causes.required(&path.child(field), "");
            } else {
                causes.invalid_each(&path.child(field), text, names::path_segment(text));
            }
        }
        if let Some(namespace) = &parent.namespace {
            causes.invalid_each(&path.child("namespace"), namespace, names::path_segment(namespace));
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let parent = |address: &Object| address.spec::<IPAddress>().parent_ref.clone();
        causes.immutable(&Path::new("spec.parentRef"), &parent(old), &parent(new));
        causes.into()
    }
}

pub struct Networks;

impl Strategy for Networks {
    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<ServiceCIDR>(), Path::new("spec.cidrs"), Causes::new());
        let list = spec.cidrs.as_deref().unwrap_or_default();
        let shown = Struct(&[("CIDRs", json!(list))]);
        match list.len() {
            0 => causes.required(&path, "at least one CIDR required"),
            1 | 2 => networks(&mut causes, &path, spec, shown),
            _ => causes.invalid_struct(&path, shown, "may only hold up to 2 values"),
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let (before, after) = (old.spec::<ServiceCIDR>(), new.spec::<ServiceCIDR>());
        let extends = |before: &[String], after: &[String]| before.len() == 1 && after.first() == before.first();
        let (had, has) = (before.cidrs.as_deref().unwrap_or_default(), after.cidrs.as_deref().unwrap_or_default());
        // A second family may come later.
        if !extends(had, has) {
            causes.immutable(&Path::new("spec.cidrs"), &before.cidrs, &after.cidrs);
        }
        causes.into()
    }
}

fn networks(causes: &mut Causes, path: &Path, spec: &ServiceCIDRSpec, shown: Struct<'_>) {
    let list = spec.cidrs.as_deref().unwrap_or_default();
    let parsed: Vec<_> = list.iter().map(|text| addresses::Cidr::parse(text)).collect();
    if list.len() == 2 && !addresses::is_dual_stack(&parsed) {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96";
        return causes.invalid_struct(path, shown, detail);
    }
    for (index, text) in list.iter().enumerate() {
        addresses::cidr(causes, &path.index(index), text);
    }
}
