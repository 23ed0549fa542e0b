//! Disruption budgets and priority classes.

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, is_true, labels_line, name, number, or_none, selector, shown, text};

pub fn pod_disruption_budget(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let budget = &item.value;
    name(item, page);
    if budget.pointer("/spec/minAvailable").is_some() {
        page.field(0, "Min available", shown(budget, "/spec/minAvailable", ""));
    } else if budget.pointer("/spec/maxUnavailable").is_some() {
        page.field(0, "Max unavailable", shown(budget, "/spec/maxUnavailable", ""));
    }
    let labels = budget.pointer("/spec/selector");
    let labels = labels.map_or("<unset>".to_owned(), |labels| or_none(&selector(Some(labels))).to_owned());
    page.field(0, "Selector", labels);
    page.line(0, "Status:");
    for (name, field) in [
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ] {
        page.field(2, name, number(budget, &format!("/status/{field}")));
    }
    Ok(())
}

pub fn priority_class(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let class = &item.value;
    name(item, page);
    page.field(0, "Value", number(class, "/value"));
    page.field(0, "GlobalDefault", is_true(class, "/globalDefault"));
    page.field(0, "PreemptionPolicy", text(class, "/preemptionPolicy"));
    page.field(0, "Description", text(class, "/description"));
    page.field(0, "Annotations", labels_line(class.pointer("/metadata/annotations")));
    Ok(())
}
