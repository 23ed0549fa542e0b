//! The families of addresses of a Service, on a cluster that has IPv4 alone.
//! <https://kubernetes.io/docs/concepts/services-networking/dual-stack/>

use k8s_openapi::api::core::v1::ServiceSpec;
use serde_json::json;

use super::addresses::refused;
use super::{is, is_headless, validation};
use crate::api::status::Status;
use crate::apiserver::validation::field::{Causes, Path};

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";

/// Fills in families and policy from each other and from the addresses asked for.
pub(super) fn initialize(name: &str, old: Option<&ServiceSpec>, spec: &mut ServiceSpec) -> Result<(), Status> {
    if is(spec, "ExternalName") {
        return Ok(());
    }
    let check = |causes: Causes| if causes.is_empty() { Ok(()) } else { Err(refused(name, causes)) };
    let mut causes = Causes::new();
    validation::cluster_ips(&mut causes, spec);
    check(causes)?;
    if let Some(old) = old
        && spec.ip_family_policy.as_deref() == Some("SingleStack")
    {
        narrow(old, spec);
    }
    infer_from_addresses(spec);
    if is_headless(spec) && spec.selector.as_ref().is_none_or(|selector| selector.is_empty()) {
        headless_without_selector(spec);
        return Ok(());
    }
    let count = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
    let several = (count(&spec.cluster_ips) == 2, count(&spec.ip_families) == 2);
    let policy = spec
        .ip_family_policy
        .get_or_insert_with(|| if several.0 || several.1 { "RequireDualStack".into() } else { "SingleStack".into() });
    let (path, mut causes) = (Path::new("spec"), Causes::new());
    let policy_path = path.child("ipFamilyPolicy");
    if policy == "SingleStack" {
        for (field, _) in [("clusterIPs", several.0), ("ipFamilies", several.1)].iter().filter(|(_, two)| *two) {
            let detail = format!("must be RequireDualStack or PreferDualStack when multiple '{field}' are specified");
            causes.invalid(&policy_path, policy.as_str(), detail);
        }
    }
    if policy == "RequireDualStack" {
        causes.invalid(&policy_path, policy.as_str(), "this cluster is not configured for dual-stack services");
    }
    let families = spec.ip_families.get_or_insert_with(|| vec![IPV4.into()]);
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != IPV4) {
        let family_path = path.child("ipFamilies").index(index);
        causes.invalid(&family_path, family.as_str(), "not configured on this cluster");
    }
    check(causes)
}

/// A Service that becomes single-stack gives up its second address and family.
fn narrow(old: &ServiceSpec, spec: &mut ServiceSpec) {
    if spec.cluster_ips == old.cluster_ips
        && let Some(ips) = &mut spec.cluster_ips
    {
        ips.truncate(1);
    }
    if spec.ip_families == old.ip_families
        && let Some(families) = &mut spec.ip_families
    {
        families.truncate(1);
    }
}

fn infer_from_addresses(spec: &mut ServiceSpec) {
    let ips = spec.cluster_ips.clone().unwrap_or_default();
    for (index, ip) in ips.iter().enumerate().take_while(|(_, ip)| *ip != "None") {
        let families = spec.ip_families.get_or_insert_default();
        if index >= families.len() {
            families.push(if ip.contains(':') { IPV6.into() } else { IPV4.into() });
        }
    }
}

/// Its endpoints are written by hand, and may be of either family.
fn headless_without_selector(spec: &mut ServiceSpec) {
    let families = spec.ip_families.get_or_insert_with(|| vec![IPV4.into()]);
    if families.len() < 2 && spec.ip_family_policy.as_deref() != Some("SingleStack") {
        let other = if families[0] == IPV4 { IPV6 } else { IPV4 };
        families.push(other.into());
    }
    spec.ip_family_policy.get_or_insert_with(|| "RequireDualStack".into());
}

/// The addresses as the API shows them in a message.
pub(super) fn shown(ips: Option<&Vec<String>>) -> serde_json::Value {
    json!(ips)
}
