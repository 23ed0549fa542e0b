//! What a PersistentVolumeClaim uses: itself and its storage, in all and of its class.
//! <https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-for-storage>

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ScopedResourceSelectorRequirement};

use super::{Amounts, compare, one, selects};
use crate::api::object::Object;

const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// How claims named their class before there was a field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub fn counts(resource: &str) -> bool {
    let of_class = resource.split_once(OF_CLASS).map(|(_, resource)| resource);
    [CLAIMS, STORAGE].contains(&of_class.unwrap_or(resource))
}

pub fn usage(claim: &Object) -> Amounts {
    let spec = claim.spec::<PersistentVolumeClaim>();
    let class = claim.annotation(CLASS).or(spec.storage_class_name.as_deref()).filter(|class| !class.is_empty());
    let mut used = Amounts::from([(CLAIMS.into(), one())]);
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let Some(requested) = requests.and_then(|requests| requests.get("storage")) {
        let allocated = claim.status::<PersistentVolumeClaim>().allocated_resources.as_ref();
        let allocated = allocated.and_then(|all| all.get("storage")).filter(|more| compare(more, requested).is_gt());
        used.insert(STORAGE.into(), allocated.unwrap_or(requested).clone());
    }
    if let Some(class) = class {
        let of_class: Vec<_> =
            used.iter().map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), amount.clone())).collect();
        used.extend(of_class);
    }
    used
}

pub fn is_in_scope(scope: &ScopedResourceSelectorRequirement, claim: &Object) -> bool {
    if scope.scope_name != "VolumeAttributesClass" {
        return false;
    }
    let (spec, status) = (claim.spec::<PersistentVolumeClaim>(), claim.status::<PersistentVolumeClaim>());
    let target =
        status.modify_volume_status.as_ref().and_then(|modify| modify.target_volume_attributes_class_name.as_ref());
    let names = [&spec.volume_attributes_class_name, &status.current_volume_attributes_class_name];
    let names: Vec<&str> =
        names.into_iter().flatten().chain(target).map(String::as_str).filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] => selects(scope, None),
        names => names.iter().any(|name| selects(scope, Some(name))),
    }
}
