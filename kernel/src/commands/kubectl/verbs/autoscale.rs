//! `kubectl autoscale`

use cluster_core::api::kind::KindRef;
use cluster_core::api::quantity;
use cluster_core::api::request::Options;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{integer, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::apply::with_last_applied;
use super::create::{SAVE_CONFIG, tell};

pub const VERB: Verb = Verb {
    name: "autoscale",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        DRY_RUN,
        FIELD_MANAGER,
        SAVE_CONFIG,
        integer("min"),
        integer("max"),
        integer("cpu-percent").deprecated(
            "Use --cpu with percentage or resource quantity format (e.g., '70%' for utilization or '500m' for milliCPU).",
        ),
        text("cpu"),
        text("memory"),
        text("name"),
        switch("record").deprecated("--record will be removed in the future"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.require(&["max"])?;
    let dry_run = call.dry_run()?;
    let (min, max) = (call.parsed.integer("min").unwrap_or(-1), call.parsed.integer("max").unwrap_or(-1));
    if max < 1 {
        return message(format!("--max=MAXPODS is required and must be at least 1, max: {max}"));
    }
    if max < min {
        return message(format!("--max=MAXPODS must be larger or equal to --min=MINPODS, max: {max}, min: {min}"));
    }
    let metrics = metrics(call)?;
    let (items, mut failures) = call.items()?;
    if !failures.is_empty() {
        return Err(failures.remove(0));
    }
    if items.is_empty() {
        return message("no objects passed to autoscale");
    }
    for item in items {
        autoscale(call, &item, &metrics, dry_run)?;
    }
    Ok(())
}

fn autoscale(call: &mut Call<'_, '_>, item: &Item, metrics: &[Value], dry_run: DryRun) -> Outcome {
    let kind = &item.kind;
    if !kind.has_subresource("scale") {
        return message(format!(
            "cannot autoscale a {}: could not find scale subresource for {}/{}, Resource={} in discovery information",
            kind.kind, kind.group, kind.version, kind.resource
        ));
    }
    let autoscaler = autoscaler(call, item, metrics);
    let of = KindRef::of::<HorizontalPodAutoscaler>();
    if dry_run == DryRun::Client {
        return tell(call, &Item::new(of, autoscaler), "created", dry_run);
    }
    let body = if call.parsed.switch("save-config") { with_last_applied(&autoscaler) } else { autoscaler };
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-autoscale").to_owned(),
        ..Options::default()
    };
    let namespace = call.namespace.clone();
    let created = call.create(of, &namespace, body, options).map_err(|failure| {
        // kubectl looks whether the first version, which knows only a percentage of CPU, could say the same.
        let why = match call.parsed.text("cpu") {
            None => "empty input",
            Some(cpu) if !cpu.ends_with('%') || call.parsed.has("memory") => "%!w(<nil>)",
            Some(_) => return failure,
        };
        Failure::Message(format!(
            "failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1: {why}"
        ))
    })?;
    tell(call, &Item::new(of, created), "autoscaled", dry_run)
}

fn autoscaler(call: &Call<'_, '_>, item: &Item, metrics: &[Value]) -> Value {
    let parsed = &call.parsed;
    let kind = &item.kind;
    let name = parsed.text("name").filter(|name| !name.is_empty()).unwrap_or(&item.name);
    let mut autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": kind.api_version(), "kind": &*kind.kind, "name": item.name},
            "maxReplicas": parsed.integer("max"),
        },
        "status": {"currentMetrics": null, "desiredReplicas": 0},
    });
    if call.explicit_namespace {
        autoscaler["metadata"]["namespace"] = call.namespace.as_str().into();
    }
    if let Some(min) = parsed.integer("min").filter(|min| *min > 0) {
        autoscaler["spec"]["minReplicas"] = min.into();
    }
    if !metrics.is_empty() {
        autoscaler["spec"]["metrics"] = metrics.into();
    }
    autoscaler
}

/// What is to be measured, from the flags.
fn metrics(call: &Call<'_, '_>) -> Result<Vec<Value>, Failure> {
    let parsed = &call.parsed;
    let percent = parsed.integer("cpu-percent").filter(|percent| *percent > 0);
    let amount = |flag: &str| parsed.text(flag).filter(|text| !text.is_empty());
    if percent.is_some() && amount("cpu").is_some() {
        return message("--cpu-percent and --cpu are mutually exclusive");
    }
    let resource =
        |name: &str, target: Value| json!({"type": "Resource", "resource": {"name": name, "target": target}});
    let mut metrics = Vec::new();
    if let Some(percent) = percent {
        metrics.push(resource("cpu", json!({"type": "Utilization", "averageUtilization": percent})));
    }
    for (name, unit) in [("cpu", "m"), ("memory", "Mi")] {
        if let Some(text) = amount(name) {
            metrics.push(resource(name, target(text.trim(), name, unit)?));
        }
    }
    Ok(metrics)
}

/// `70%`, `500m`, or a number alone, which counts in `unit`.
fn target(text: &str, resource: &str, unit: &str) -> Result<Value, Failure> {
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.parse::<i32>() {
            Ok(percent) if percent >= 0 => Ok(json!({"type": "Utilization", "averageUtilization": percent})),
            _ => message(format!("invalid percentage value: {percent}")),
        };
    }
    let quantity = match text.parse::<f64>() {
        Ok(number) => quantity::canonical(&format!("{number}{unit}")).map_err(str::to_owned),
        Err(_) => quantity::canonical(text).map_err(|_| format!("invalid resource {resource} value: {text}")),
    };
    Ok(json!({"type": "AverageValue", "averageValue": quantity.map_err(Failure::Message)?}))
}
