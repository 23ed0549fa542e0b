//! `kubectl create quota`, `create poddisruptionbudget` and `create priorityclass`

use cluster_core::api::quantity;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Map, Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::{integer, switch, text};
use super::super::super::resources::label_selector;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, integer_or_text, name_of};

pub const QUOTA: Verb = Verb {
    name: "create quota",
    aliases: &["resourcequota"],
    flags: create_flags![text("hard"), text("scopes")],
    run: quota,
};

pub const DISRUPTION_BUDGET: Verb = Verb {
    name: "create poddisruptionbudget",
    aliases: &["pdb"],
    flags: create_flags![text("min-available"), text("max-unavailable"), text("selector")],
    run: disruption_budget,
};

pub const PRIORITY_CLASS: Verb = Verb {
    name: "create priorityclass",
    aliases: &["pc"],
    flags: create_flags![integer("value"), switch("global-default"), text("description"), text("preemption-policy")],
    run: priority_class,
};

fn quota(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let mut spec = Map::new();
    if let Some(text) = call.parsed.text("hard").filter(|text| !text.is_empty()) {
        spec.insert("hard".into(), amounts(text)?);
    }
    if let Some(text) = call.parsed.text("scopes").filter(|text| !text.is_empty()) {
        let scopes: Vec<&str> = text.split(',').collect();
        if scopes.contains(&"") {
            return message("invalid resource quota scope \"\"");
        }
        spec.insert("scopes".into(), json!(scopes));
    }
    let quota = json!({"metadata": {"name": name}, "spec": spec, "status": {}});
    generated::<ResourceQuota>(call, quota, "failed to create quota: ")
}

/// `pods=3,requests.cpu=1`
pub fn amounts(text: &str) -> Result<Value, Failure> {
    let mut amounts = Map::new();
    for statement in text.split(',') {
        let [resource, amount] = statement.split('=').collect::<Vec<_>>()[..] else {
            return message(format!("Invalid argument syntax {statement}, expected <resource>=<value>"));
        };
        let amount = quantity::canonical(amount).map_err(|problem| Failure::Message(problem.to_owned()))?;
        amounts.insert(resource.to_owned(), amount.into());
    }
    Ok(Value::Object(amounts))
}

fn disruption_budget(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let text = |flag: &str| call.parsed.text(flag).filter(|text| !text.is_empty());
    let Some(selector) = text("selector") else { return message("a selector must be specified") };
    let (field, flag, amount) = match (text("min-available"), text("max-unavailable")) {
        (None, None) => return message("one of min-available or max-unavailable must be specified"),
        (Some(_), Some(_)) => return message("min-available and max-unavailable cannot be both specified"),
        (Some(amount), None) => ("minAvailable", "min-available", amount),
        (None, Some(amount)) => ("maxUnavailable", "max-unavailable", amount),
    };
    let digits = amount.strip_suffix('%').unwrap_or(amount);
    if digits.is_empty() || !digits.bytes().all(|letter| letter.is_ascii_digit()) {
        return message(format!("invalid format specified for {flag}"));
    }
    let budget = json!({
        "metadata": {"name": name},
        "spec": {"selector": label_selector(selector)?, field: integer_or_text(amount)},
        "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    });
    generated::<PodDisruptionBudget>(call, budget, "failed to create poddisruptionbudgets: ")
}

fn priority_class(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let mut class = json!({
        "metadata": {"name": name},
        "value": call.parsed.integer("value").unwrap_or(0),
        "preemptionPolicy": call.parsed.text("preemption-policy").unwrap_or("PreemptLowerPriority"),
    });
    if let Some(description) = call.parsed.text("description").filter(|text| !text.is_empty()) {
        class["description"] = description.into();
    }
    if call.parsed.switch("global-default") {
        class["globalDefault"] = true.into();
    }
    generated::<PriorityClass>(call, class, "failed to create priorityclass: ")
}
