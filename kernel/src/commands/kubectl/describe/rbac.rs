//! Roles and their bindings.

use serde_json::Value;

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, labels_and_annotations, list, text};

/// What one row of a role allows: verbs on one resource, perhaps of one name, or one verb on a URL.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rule {
    verbs: Vec<String>,
    group: Option<String>,
    resource: Option<String>,
    resource_name: Option<String>,
    url: Option<String>,
}

pub fn role(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    page.field(0, "Name", &item.name);
    labels_and_annotations(item, page);
    page.line(0, "PolicyRule:");
    let rows = compact(list(&item.value, "/rules")).into_iter().map(|rule| {
        let bracketed = |text: &Option<String>| format!("[{}]", text.as_deref().unwrap_or_default());
        let names = bracketed(&rule.resource_name);
        format!("{}\t{}\t{names}\t[{}]", full_resource(&rule), bracketed(&rule.url), rule.verbs.join(" "))
    });
    page.table(1, &["Resources", "Non-Resource URLs", "Resource Names", "Verbs"], rows);
    Ok(())
}

/// `deployments.apps/scale`
fn full_resource(rule: &Rule) -> String {
    let resource = rule.resource.as_deref().unwrap_or_default();
    let (resource, subresource) = resource.split_once('/').map_or((resource, None), |(name, sub)| (name, Some(sub)));
    let group = rule.group.as_deref().filter(|group| !group.is_empty());
    let group = group.map_or(String::new(), |group| format!(".{group}"));
    let subresource = subresource.map_or(String::new(), |subresource| format!("/{subresource}"));
    format!("{resource}{group}{subresource}")
}

/// Rules cut into the smallest, those that differ only in verbs put together again, in the order of their Go text.
fn compact(rules: &[Value]) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for smallest in rules.iter().flat_map(broken_down) {
        let same = |known: &&mut Rule| {
            smallest.url.is_none()
                && (&known.group, &known.resource, &known.resource_name, &known.url)
                    == (&smallest.group, &smallest.resource, &smallest.resource_name, &None)
        };
        match compacted.iter_mut().find(same) {
            Some(known) => {
                let fresh = smallest.verbs.into_iter().filter(|verb| !known.verbs.contains(verb));
                let fresh: Vec<String> = fresh.collect();
                known.verbs.extend(fresh);
            }
            None => compacted.push(smallest),
        }
    }
    compacted.sort_by_key(go_text);
    compacted
}

fn broken_down(rule: &Value) -> Vec<Rule> {
    let texts = |field: &str| list(rule, field).iter().filter_map(Value::as_str).map(str::to_owned);
    let names: Vec<Option<String>> = match texts("/resourceNames").collect::<Vec<_>>() {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut smallest = Vec::new();
    for group in texts("/apiGroups") {
        for resource in texts("/resources") {
            for verb in texts("/verbs") {
                smallest.extend(names.iter().map(|name| Rule {
                    verbs: vec![verb.clone()],
                    group: Some(group.clone()),
                    resource: Some(resource.clone()),
                    resource_name: name.clone(),
                    url: None,
                }));
            }
        }
    }
    for url in texts("/nonResourceURLs") {
        smallest.extend(texts("/verbs").map(|verb| Rule {
            verbs: vec![verb],
            url: Some(url.clone()),
            ..Rule::default()
        }));
    }
    smallest
}

fn go_text(rule: &Rule) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        "&PolicyRule{{Verbs:[{}],APIGroups:[{}],Resources:[{}],ResourceNames:[{}],NonResourceURLs:[{}],}}",
        rule.verbs.join(" "),
        of(&rule.group),
        of(&rule.resource),
        of(&rule.resource_name),
        of(&rule.url)
    )
}

pub fn binding(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let binding = &item.value;
    page.field(0, "Name", &item.name);
    labels_and_annotations(item, page);
    page.line(0, "Role:");
    page.field(1, "Kind", text(binding, "/roleRef/kind"));
    page.field(1, "Name", text(binding, "/roleRef/name"));
    page.line(0, "Subjects:");
    let subject =
        |subject: &Value| [text(subject, "/kind"), text(subject, "/name"), text(subject, "/namespace")].join("\t");
    page.table(1, &["Kind", "Name", "Namespace"], list(binding, "/subjects").iter().map(subject));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_told_a_resource_a_row() {
        let rules = [
            json!({"apiGroups": ["", "apps"], "resources": ["pods", "deployments/scale"], "verbs": ["get", "list"]}),
            json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}),
            json!({"nonResourceURLs": ["/healthz"], "verbs": ["get"]}),
        ];
        let told: Vec<String> = compact(&rules)
            .iter()
            .map(|rule| {
                format!("{} {} {}", full_resource(rule), rule.verbs.join(","), rule.url.as_deref().unwrap_or("-"))
            })
            .collect();
        assert_eq!(
            told,
            [
                "pods get,list,watch -",
                "deployments/scale get,list -",
                "deployments.apps/scale get,list -",
                "pods.apps get,list -",
                " get /healthz",
            ]
        );
    }
}
