//! Dynamic resource allocation: classes, claims and slices of devices.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/>

use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceClass, DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim, ResourceClaimTemplate,
    ResourceSlice,
};
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, selectors};

const EXACT_COUNT: &str = "ExactCount";
const REQUESTS_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const DEVICES_MAX: usize = 128;
const ALTERNATIVES_MAX: usize = 8;

pub struct Classes;

impl Strategy for Classes {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, mut causes) = (object.spec::<DeviceClass>(), Causes::new());
        device_selectors(&mut causes, &Path::new("spec.selectors"), spec.selectors.as_deref());
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

pub struct Claims;

impl Strategy for Claims {
    fn default(&self, object: &mut Object) {
        object.spec_mut::<ResourceClaim>().devices.iter_mut().for_each(default_claim);
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        claim(&mut causes, &Path::new("spec.devices"), object.spec::<ResourceClaim>().devices.as_ref());
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        causes.immutable(&Path::new("spec"), old.spec::<ResourceClaim>(), new.spec::<ResourceClaim>());
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

pub struct Templates;

impl Strategy for Templates {
    fn default(&self, object: &mut Object) {
        object.spec_mut::<ResourceClaimTemplate>().spec.devices.iter_mut().for_each(default_claim);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (template, mut causes) = (object.spec::<ResourceClaimTemplate>(), Causes::new());
        claim(&mut causes, &Path::new("spec.spec.devices"), template.spec.devices.as_ref());
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new) = (old.spec::<ResourceClaimTemplate>(), new.spec::<ResourceClaimTemplate>());
        let mut causes = Causes::new();
        causes.immutable(&Path::new("spec"), old, new);
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

pub struct Slices;

impl Strategy for Slices {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<ResourceSlice>(), Path::new("spec"), Causes::new());
        super::csi::driver_name(&mut causes, &path.child("driver"), &spec.driver);
        if spec.pool.name.is_empty() {
            causes.required(&path.child("pool.name"), "");
        }
        for part in spec.pool.name.split('/').filter(|part| !part.is_empty()) {
            causes.invalid_each(&path.child("pool.name"), part, names::dns_subdomain(part));
        }
        if spec.pool.resource_slice_count <= 0 {
            let detail = "must be greater than zero";
            causes.invalid(&path.child("pool.resourceSliceCount"), spec.pool.resource_slice_count, detail);
        }
        causes.non_negative(&path.child("pool.generation"), Some(spec.pool.generation));
        let chosen = [
            spec.node_name.is_some(),
            spec.node_selector.is_some(),
            spec.all_nodes == Some(true),
            spec.per_device_node_selection == Some(true),
        ];
        if chosen.iter().filter(|chosen| **chosen).count() != 1 {
            let detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
            causes.required(&path, detail);
        }
        if let Some(node) = &spec.node_name {
            causes.invalid_each(&path.child("nodeName"), node, names::dns_subdomain(node));
        }
        if let Some(selector) = &spec.node_selector {
            selectors::node_selector(&mut causes, &path.child("nodeSelector"), selector);
        }
        let devices = spec.devices.as_deref().unwrap_or_default();
        if devices.len() > DEVICES_MAX {
            causes.too_many(&path.child("devices"), devices.len(), DEVICES_MAX);
        }
        for (index, device) in devices.iter().enumerate() {
            let path = path.child("devices").index(index);
            name(&mut causes, &path.child("name"), &device.name);
            if devices[..index].iter().any(|known| known.name == device.name) {
                causes.duplicate(&path, device.name.as_str());
            }
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, path) = (old.spec::<ResourceSlice>(), new.spec::<ResourceSlice>(), Path::new("spec"));
        let mut causes = Causes::new();
        causes.immutable(&path.child("driver"), &old.driver, &new.driver);
        causes.immutable(&path.child("pool.name"), &old.pool.name, &new.pool.name);
        causes.immutable(&path.child("nodeName"), &old.node_name, &new.node_name);
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

/// One device of a class, unless the claim says otherwise.
fn default_claim(claim: &mut DeviceClaim) {
    let count_of = |mode: &mut Option<String>, count: &mut Option<i64>| {
        if mode.get_or_insert_with(|| EXACT_COUNT.into()) == EXACT_COUNT {
            count.take_if(|count| *count == 0);
            count.get_or_insert(1);
        }
    };
    let default_tolerations = |tolerations: &mut Option<Vec<DeviceToleration>>| {
        for toleration in tolerations.iter_mut().flatten() {
            toleration.operator.get_or_insert_with(|| "Equal".into());
        }
    };
    for request in claim.requests.iter_mut().flatten() {
        if let Some(exactly) = &mut request.exactly {
            count_of(&mut exactly.allocation_mode, &mut exactly.count);
            default_tolerations(&mut exactly.tolerations);
        }
        for alternative in request.first_available.iter_mut().flatten() {
            count_of(&mut alternative.allocation_mode, &mut alternative.count);
            default_tolerations(&mut alternative.tolerations);
        }
    }
}

fn claim(causes: &mut Causes, path: &Path, claim: Option<&DeviceClaim>) {
    let Some(claim) = claim else { return };
    let requests = claim.requests.as_deref().unwrap_or_default();
    let requests_path = path.child("requests");
    if requests.len() > REQUESTS_MAX {
        causes.too_many(&requests_path, requests.len(), REQUESTS_MAX);
    }
    for (index, request) in requests.iter().enumerate() {
        device_request(causes, &requests_path.index(index), request);
        if requests[..index].iter().any(|known| known.name == request.name) {
            causes.duplicate(&requests_path.index(index), request.name.as_str());
        }
    }
    for (index, constraint) in claim.constraints.iter().flatten().enumerate() {
        let path = path.child("constraints").index(index);
        for (index, name) in constraint.requests.iter().flatten().enumerate() {
            let main = name.split('/').next().unwrap_or_default();
            if !requests.iter().any(|request| request.name == main) {
                let detail = "must be the name of a request in the claim or the name of a request and a subrequest \
                              separated by '/'";
                causes.invalid(&path.child("requests").index(index), name.as_str(), detail);
            }
        }
        if constraint.match_attribute.is_none() && constraint.distinct_attribute.is_none() {
            causes.required(&path, "exactly one of `matchAttribute`, `distinctAttribute` is required");
        }
    }
}

fn device_request(causes: &mut Causes, path: &Path, request: &DeviceRequest) {
    name(causes, &path.child("name"), &request.name);
    let alternatives = request.first_available.as_deref().unwrap_or_default();
    match (&request.exactly, alternatives.is_empty()) {
        (None, true) => {
            causes.required(path, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (Some(_), false) => {
            let shown = json!(request);
            causes.invalid(
                path,
                shown,
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
            );
        }
        (Some(exactly), true) => {
            let path = path.child("exactly");
            let amount = (exactly.allocation_mode.as_deref(), exactly.count);
            devices_of(causes, &path, &exactly.device_class_name, exactly.selectors.as_deref(), amount);
        }
        (None, false) => {
            let path = path.child("firstAvailable");
            if alternatives.len() > ALTERNATIVES_MAX {
                causes.too_many(&path, alternatives.len(), ALTERNATIVES_MAX);
            }
            for (index, alternative) in alternatives.iter().enumerate() {
                let path = path.index(index);
                name(causes, &path.child("name"), &alternative.name);
                let amount = (alternative.allocation_mode.as_deref(), alternative.count);
                let class = alternative.device_class_name.as_str();
                devices_of(causes, &path, class, alternative.selectors.as_deref(), amount);
            }
        }
    }
}

fn devices_of(
    causes: &mut Causes,
    path: &Path,
    class: &str,
    selectors: Option<&[DeviceSelector]>,
    (mode, count): (Option<&str>, Option<i64>),
) {
    if class.is_empty() {
        causes.required(&path.child("deviceClassName"), "");
    } else {
        causes.invalid_each(&path.child("deviceClassName"), class, names::dns_subdomain(class));
    }
    device_selectors(causes, &path.child("selectors"), selectors);
    let count_path = path.child("count");
    match mode {
        Some(EXACT_COUNT) if count.unwrap_or(0) <= 0 => {
            causes.invalid(&count_path, count.unwrap_or(0), "must be greater than zero");
        }
        Some("All") if count.unwrap_or(0) != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            causes.invalid(&count_path, count.unwrap_or(0), detail);
        }
        Some(EXACT_COUNT | "All") => {}
        other => {
            causes.not_supported(&path.child("allocationMode"), other.unwrap_or_default(), &["All", EXACT_COUNT]);
        }
    }
}

fn device_selectors(causes: &mut Causes, path: &Path, selectors: Option<&[DeviceSelector]>) {
    let selectors = selectors.unwrap_or_default();
    if selectors.len() > SELECTORS_MAX {
        causes.too_many(path, selectors.len(), SELECTORS_MAX);
    }
    for (index, _) in selectors.iter().enumerate().filter(|(_, selector)| selector.cel.is_none()) {
        causes.required(&path.index(index).child("cel"), "");
    }
}

fn name(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        causes.required(path, "");
    } else {
        causes.invalid_each(path, name, names::dns_label(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_claim_asks_for_one_device_and_never_changes() {
        let mut api = Api::new::<ResourceClaim>();
        let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]);
        let spec = json!({"devices": {"requests": requests}});
        let made = api.create(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
        assert_eq!(
            made["spec"]["devices"]["requests"][0]["exactly"],
            json!({"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1})
        );
        let refused = api.merge_refusal("c", json!({"spec": {"devices": {"requests": null}}}));
        assert!(refused[0].starts_with("spec: Invalid value: ") && refused[0].ends_with(": field is immutable"));
        let none = json!({"devices": {"requests": [{"name": "Gpu"}]}});
        assert_eq!(api.refusal(json!({"metadata": {"name": "d"}, "spec": none})).len(), 2);
    }
}
