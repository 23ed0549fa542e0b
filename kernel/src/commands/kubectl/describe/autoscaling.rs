//! Horizontal pod autoscalers.

use serde_json::Value;

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, list, name_and_labels, number, shown, text, time};

pub fn horizontal_pod_autoscaler(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let scaler = &item.value;
    name_and_labels(item, page);
    page.field(0, "CreationTimestamp", time(text(scaler, "/metadata/creationTimestamp")));
    let target = &scaler["spec"]["scaleTargetRef"];
    page.field(0, "Reference", format!("{}/{}", text(target, "/kind"), text(target, "/name")));
    page.field(0, "Metrics", "( current / target )");
    for (place, metric) in list(scaler, "/spec/metrics").iter().enumerate() {
        metric_line(page, metric, scaler.pointer(&format!("/status/currentMetrics/{place}")));
    }
    page.field(0, "Min replicas", shown(scaler, "/spec/minReplicas", "<unset>"));
    page.field(0, "Max replicas", number(scaler, "/spec/maxReplicas"));
    if let Some(behavior) = scaler.pointer("/spec/behavior") {
        page.line(0, "Behavior:");
        direction(page, "Scale Up", behavior.get("scaleUp"));
        direction(page, "Scale Down", behavior.get("scaleDown"));
    }
    let (current, desired) = (number(scaler, "/status/currentReplicas"), number(scaler, "/status/desiredReplicas"));
    page.field(0, &format!("{} pods", text(target, "/kind")), format!("{current} current / {desired} desired"));
    let conditions = list(scaler, "/status/conditions");
    if !conditions.is_empty() {
        let row = |condition: &Value| {
            ["/type", "/status", "/reason", "/message"].map(|field| text(condition, field)).join("\t")
        };
        page.line(0, "Conditions:");
        page.table(1, &["Type", "Status", "Reason", "Message"], conditions.iter().map(row));
    }
    Ok(())
}

/// What one metric is, and how much of it there is now.
fn metric_line(page: &mut Page, metric: &Value, current: Option<&Value>) {
    let sort = text(metric, "/type");
    let field = match sort {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        other => return page.line(1, format!("<unknown metric type {other:?}>")),
    };
    let source = &metric[field];
    let now = current.and_then(|current| current.get(field)).and_then(|source| source.get("current"));
    let name = text(source, "/metric/name");
    let averages = source.pointer("/target/averageValue").is_some();
    let amount = |path: &str| {
        let now = now.map_or("<unknown>".to_owned(), |now| shown(now, path, "0"));
        format!("{now} / {}", shown(source, &format!("/target{path}"), "0"))
    };
    match sort {
        "External" if averages => page.field(1, &format!("{name:?} (target average value)"), amount("/averageValue")),
        "External" => page.field(1, &format!("{name:?} (target value)"), amount("/value")),
        "Pods" => page.field(1, &format!("{name:?} on pods"), amount("/averageValue")),
        "Object" => {
            let object = &source["describedObject"];
            let about = format!("{name:?} on {}/{}", text(object, "/kind"), text(object, "/name"));
            match text(source, "/target/type") {
                "AverageValue" => page.field(1, &format!("{about} (target average value)"), amount("/averageValue")),
                _ => page.field(1, &format!("{about} (target value)"), amount("/value")),
            }
        }
        _ => {
            let of = match text(source, "/container") {
                "" => String::new(),
                container => format!(" of container \"{container}\""),
            };
            let about = format!("resource {}{of} on pods", text(source, "/name"));
            if averages {
                return page.field(1, &about, amount("/averageValue"));
            }
            let now = now.filter(|now| now.get("averageUtilization").is_some()).map_or("<unknown>".to_owned(), |now| {
                format!("{}% ({})", number(now, "/averageUtilization"), shown(now, "/averageValue", "0"))
            });
            let target = match source.pointer("/target/averageUtilization") {
                Some(_) => format!("{}%", number(source, "/target/averageUtilization")),
                None => "<auto>".into(),
            };
            page.field(1, &format!("{about}  (as a percentage of request)"), format!("{now} / {target}"));
        }
    }
}

fn direction(page: &mut Page, heading: &str, rules: Option<&Value>) {
    let Some(rules) = rules else { return };
    page.line(1, format!("{heading}:"));
    if rules.get("stabilizationWindowSeconds").is_some() {
        let seconds = number(rules, "/stabilizationWindowSeconds");
        page.line(2, format!("Stabilization Window: {seconds} seconds"));
    }
    let policies = list(rules, "/policies");
    if !policies.is_empty() {
        page.line(2, format!("Select Policy: {}", shown(rules, "/selectPolicy", "Max")));
        page.line(2, "Policies:");
    }
    for policy in policies {
        let (value, period) = (number(policy, "/value"), number(policy, "/periodSeconds"));
        page.line(3, format!("- Type: {}\tValue: {value}\tPeriod: {period} seconds", text(policy, "/type")));
    }
}
