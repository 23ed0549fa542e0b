//! Network policies: who may speak with whom, in sentences.

use serde_json::Value;

use super::super::failure::Outcome;
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, joined, labels_and_annotations, list, name, number, or, or_none, selector, text};

/// The words of one direction.
struct Direction {
    type_: &'static str,
    word: &'static str,
    rules: &'static str,
    peers: &'static str,
    heading: &'static str,
    any: &'static str,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        type_: "Ingress",
        word: "ingress",
        rules: "/spec/ingress",
        peers: "/from",
        heading: "From",
        any: "source",
    },
    Direction {
        type_: "Egress",
        word: "egress",
        rules: "/spec/egress",
        peers: "/to",
        heading: "To",
        any: "destination",
    },
];

pub fn network_policy(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let policy = &item.value;
    name(item, page);
    page.field(0, "Created on", created(text(policy, "/metadata/creationTimestamp")));
    labels_and_annotations(item, page);
    page.line(0, "Spec:");
    let pods = match selector(policy.pointer("/spec/podSelector")) {
        all if all.is_empty() => "<none> (Allowing the specific traffic to all pods in this namespace)".to_owned(),
        selected => selected,
    };
    page.line(1, format!("PodSelector:     {pods}"));
    for direction in &DIRECTIONS {
        let Direction { type_, word, rules, .. } = direction;
        if !list(policy, "/spec/policyTypes").iter().any(|wanted| wanted == type_) {
            page.line(1, format!("Not affecting {word} traffic"));
            continue;
        }
        page.line(1, format!("Allowing {word} traffic:"));
        let rules = list(policy, rules);
        if rules.is_empty() {
            page.line(2, format!("<none> (Selected pods are isolated for {word} connectivity)"));
        }
        for (place, rule) in rules.iter().enumerate() {
            if place > 0 {
                page.line(2, "----------");
            }
            ports(page, list(rule, "/ports"));
            peers(page, direction, list(rule, direction.peers));
        }
    }
    page.line(1, format!("Policy Types: {}", or_none(&joined(policy, "/spec/policyTypes", ", "))));
    Ok(())
}

fn created(timestamp: &str) -> String {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string(),
        Err(_) => "<nil>".into(),
    }
}

fn ports(page: &mut Page, ports: &[Value]) {
    if ports.is_empty() {
        page.line(2, "To Port: <any> (traffic allowed to all ports)");
    }
    for port in ports {
        let first = port.get("port").map_or("<nil>".to_owned(), go_text);
        let protocol = or(text(port, "/protocol"), "TCP");
        page.line(
            2,
            match number(port, "/endPort") {
                0 => format!("To Port: {first}/{protocol}"),
                last => format!("To Port Range: {first}-{last}/{protocol}"),
            },
        );
    }
}

fn peers(page: &mut Page, direction: &Direction, peers: &[Value]) {
    let Direction { heading, any, .. } = direction;
    if peers.is_empty() {
        page.line(2, format!("{heading}: <any> (traffic not restricted by {any})"));
    }
    for peer in peers {
        page.line(2, format!("{heading}:"));
        for (name, field) in [("NamespaceSelector", "namespaceSelector"), ("PodSelector", "podSelector")] {
            if let Some(labels) = peer.get(field) {
                page.line(3, format!("{name}: {}", or_none(&selector(Some(labels)))));
            }
        }
        if let Some(block) = peer.get("ipBlock") {
            page.line(3, "IPBlock:");
            page.line(4, format!("CIDR: {}", text(block, "/cidr")));
            page.line(4, format!("Except: {}", joined(block, "/except", ", ")));
        }
    }
}
