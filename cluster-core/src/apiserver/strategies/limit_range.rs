//! LimitRanges. <https://kubernetes.io/docs/concepts/policy/limit-range/>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::Key;
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, resources};
use crate::apiserver::{ApiServer, Moment};

type Amounts = BTreeMap<String, Quantity>;

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

pub struct Rules;

impl Strategy for Rules {
    /// For containers: a default limit is the maximum, a default request is the default limit, or else the minimum.
    fn default(&self, object: &mut Object) {
        for item in object.spec_mut::<LimitRange>().limits.iter_mut().filter(|item| item.type_ == "Container") {
            let (mut limits, mut requests) =
                (item.default.take().unwrap_or_default(), item.default_request.take().unwrap_or_default());
            fill(&mut limits, item.max.as_ref());
            fill(&mut requests, Some(&limits));
            fill(&mut requests, item.min.as_ref());
            item.default = (!limits.is_empty()).then_some(limits);
            item.default_request = (!requests.is_empty()).then_some(requests);
        }
    }

    /// One that has no name is called by a uuid.
    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        if object.key.name.is_empty() {
            object.rename(Key::new(object.key.namespace.clone(), moment.random.uuid()));
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let mut types = BTreeSet::new();
        for (index, item) in object.spec::<LimitRange>().limits.iter().enumerate() {
            let path = Path::new("spec.limits").index(index);
            let (type_path, name) = (path.child("type"), item.type_.as_str());
            causes.invalid_each(&type_path, name, names::qualified_name(name));
            if !name.contains('/') && !TYPES.contains(&name) {
                causes.invalid(&type_path, name, "must be a standard limit type or fully qualified");
            }
            if !types.insert(name) {
                causes.duplicate(&type_path, name);
            }
            limits(&mut causes, &path, item);
        }
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

fn fill(amounts: &mut Amounts, from: Option<&Amounts>) {
    for (name, amount) in from.into_iter().flatten() {
        amounts.entry(name.clone()).or_insert_with(|| amount.clone());
    }
}

fn limits(causes: &mut Causes, path: &Path, item: &LimitRangeItem) {
    let is_pod = item.type_ == "Pod";
    let mut keys = BTreeSet::new();
    for (field, amounts) in [
        ("max", &item.max),
        ("min", &item.min),
        ("default", &item.default),
        ("defaultRequest", &item.default_request),
        ("maxLimitRequestRatio", &item.max_limit_request_ratio),
    ] {
        let names = amounts.iter().flatten().map(|(name, _)| name.as_str());
        if is_pod && field.starts_with("default") {
            if names.count() > 0 {
                causes.forbidden(&path.child(field), "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for name in names {
            resources::resource_name(causes, &path.child(field).key(name), name);
            keys.insert(name);
        }
        let has_storage = |amounts: &Option<Amounts>| amounts.as_ref().is_some_and(|map| map.contains_key("storage"));
        if field == "defaultRequest"
            && item.type_ == "PersistentVolumeClaim"
            && !has_storage(&item.min)
            && !has_storage(&item.max)
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            causes.required(&path.child("limits"), detail);
        }
    }
    for key in keys {
        compare(causes, path, item, key);
    }
}

/// The amounts of one resource against each other.
fn compare(causes: &mut Causes, path: &Path, item: &LimitRangeItem, key: &str) {
    let get = |amounts: &Option<Amounts>| {
        let amount = amounts.as_ref()?.get(key)?.0.clone();
        Some((quantity::parse(&amount)?, amount))
    };
    let pod = item.type_ == "Pod";
    let (min, max, ratio) = (get(&item.min), get(&item.max), get(&item.max_limit_request_ratio));
    let (default, request) = if pod { (None, None) } else { (get(&item.default), get(&item.default_request)) };
    // Each: the smaller, the greater, what to call them, and which is shown at which field.
    let rules = [
        (&min, &max, "min value", "max value", "min", &min),
        (&min, &request, "min value", "default request value", "defaultRequest", &request),
        (&request, &max, "default request value", "max value", "defaultRequest", &request),
        (&request, &default, "default request value", "default limit value", "defaultRequest", &request),
        (&min, &default, "min value", "default value", "default", &min),
        (&default, &max, "default value", "max value", "default", &max),
    ];
    for (less, more, less_name, more_name, field, shown) in rules {
        if let (Some(less), Some(more), Some((_, shown))) = (less, more, shown)
            && less.0 > more.0
        {
            let detail = format!("{less_name} {} is greater than {more_name} {}", less.1, more.1);
            causes.invalid(&path.child(field).key(key), shown.as_str(), detail);
        }
    }
    if let Some((ratio, text)) = ratio {
        let path = path.child("maxLimitRequestRatio").key(key);
        if ratio < 1000 {
            causes.invalid(&path, text.as_str(), format!("ratio {text} is less than 1"));
        }
        if let (Some((min, _)), Some((max, _))) = (min, max)
            && min > 0
            && ratio * min > max * 1000
        {
            let limit = max as f64 / min as f64;
            causes.invalid(&path, text.as_str(), format!("ratio {text} is greater than max/min = {limit:.6}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn defaults_follow_from_the_limits() {
        let mut api = Api::new::<LimitRange>();
        let item = json!({
            "type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"ephemeral-storage": "1Mi"},
            "default": {"cpu": "500m"},
        });
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": {"limits": [item]}})).unwrap();
        let item = &made["spec"]["limits"][0];
        assert_eq!(item["default"], json!({"cpu": "500m", "memory": "1Gi"}));
        assert_eq!(item["defaultRequest"], json!({"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Mi"}));
    }

    #[test]
    fn amounts_fit_each_other() {
        let mut api = Api::new::<LimitRange>();
        let item = json!({"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"}});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": {"limits": [item]}})),
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            ]
        );
        let claim = json!({"type": "PersistentVolumeClaim", "min": {"cpu": "2"}});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": {"limits": [claim]}})),
            [
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was \
              provided"
            ]
        );
    }
}
