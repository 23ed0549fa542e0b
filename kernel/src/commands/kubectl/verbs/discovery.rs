//! `kubectl api-resources`, `api-versions` and `cluster-info`

use cluster_core::api::kind::KindRef;
use cluster_core::api::schema::Schema;
use serde_json::{Value, json};

use super::super::columns;
use super::super::failure::{Outcome, message, usage};
use super::super::flags::{switch, text};
use super::super::output::OUTPUT;
use super::super::typed;
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const API_RESOURCES: Verb = Verb {
    name: "api-resources",
    aliases: &[],
    flags: &[
        OUTPUT,
        switch("namespaced"),
        switch("no-headers"),
        switch("cached"),
        text("api-group"),
        text("verbs"),
        text("categories"),
        text("sort-by"),
    ],
    run: api_resources,
};

pub const API_VERSIONS: Verb = Verb {
    name: "api-versions",
    aliases: &[],
    flags: &[],
    run: |call| {
        if !call.parsed.args.is_empty() {
            return usage(format!("unexpected arguments: [{}]", call.parsed.args.join(" ")));
        }
        let mut versions: Vec<String> = call.context.api.kinds()?.iter().map(|kind| kind.api_version()).collect();
        versions.sort();
        versions.dedup();
        versions.iter().for_each(|version| call.line(version));
        Ok(())
    },
};

pub const CLUSTER_INFO: Verb = Verb {
    name: "cluster-info",
    aliases: &[],
    flags: &[],
    run: |call| {
        let address = call.context.api.address();
        call.line(format!("Kubernetes control plane is running at {address}"));
        call.line("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.");
        Ok(())
    },
};

fn api_resources(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return usage(format!("unexpected arguments: [{}]", call.parsed.args.join(" ")));
    }
    let sort = call.parsed.text("sort-by").unwrap_or_default().to_owned();
    if !matches!(sort.as_str(), "" | "name" | "kind") {
        return message("--sort-by accepts only name or kind");
    }
    let output = call.parsed.text("output").unwrap_or_default().to_owned();
    if !matches!(output.as_str(), "" | "wide" | "name") {
        call.format()?;
    }
    let mut kinds = preferred(call.context.api.kinds()?);
    kinds.retain(|kind| wanted(call, kind));
    kinds.sort_by_key(|kind| (kind.group.clone(), kind.resource.clone()));
    match sort.as_str() {
        "name" => kinds.sort_by_key(|kind| kind.resource.clone()),
        "kind" => kinds.sort_by_key(|kind| kind.kind.clone()),
        _ => {}
    }
    if output == "name" {
        kinds.iter().for_each(|kind| call.line(kind.qualified_resource()));
        return Ok(());
    }
    if matches!(output.as_str(), "json" | "yaml") {
        let list = json!({
            "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "",
            "resources": kinds.iter().map(resource).collect::<Vec<_>>(),
        });
        match output.as_str() {
            "yaml" => call.context.print(yaml::print(&list)),
            _ => call.line(typed::json(&list, Schema::named(RESOURCE_LIST))),
        }
        return Ok(());
    }
    let wide = output == "wide";
    let mut rows: Vec<Vec<String>> = Vec::new();
    if !call.parsed.switch("no-headers") {
        let mut header = vec!["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
        if wide {
            header.extend(["VERBS", "CATEGORIES"]);
        }
        rows.push(header.into_iter().map(str::to_owned).collect());
    }
    for kind in &kinds {
        let mut row = vec![
            kind.resource.to_string(),
            kind.short_names.join(","),
            kind.api_version(),
            kind.namespaced.to_string(),
            kind.kind.to_string(),
        ];
        if wide {
            row.extend([kind.verbs.join(","), kind.categories.join(",")]);
        }
        rows.push(row);
    }
    call.context.print(columns::align(&rows));
    Ok(())
}

const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";

/// A kind as discovery describes it.
fn resource(kind: &KindRef) -> Value {
    let mut resource = json!({
        "name": &*kind.resource, "singularName": &*kind.singular, "namespaced": kind.namespaced,
        "version": &*kind.version, "kind": &*kind.kind,
    });
    if !kind.group.is_empty() {
        resource["group"] = Value::from(&*kind.group);
    }
    let lists = [("verbs", &kind.verbs), ("shortNames", &kind.short_names), ("categories", &kind.categories)];
    for (field, texts) in lists {
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        if !texts.is_empty() {
            resource[field] = json!(texts);
        }
    }
    resource
}

/// Of each resource the version that the server prefers, which it lists first.
fn preferred(kinds: Vec<KindRef>) -> Vec<KindRef> {
    let mut kept: Vec<KindRef> = Vec::new();
    for kind in kinds {
        if !kept.iter().any(|known| known.group == kind.group && known.resource == kind.resource) {
            kept.push(kind);
        }
    }
    kept
}

fn wanted(call: &Call<'_, '_>, kind: &KindRef) -> bool {
    let parsed = &call.parsed;
    parsed.text("api-group").is_none_or(|group| *kind.group == *group)
        && (!parsed.has("namespaced") || parsed.switch("namespaced") == kind.namespaced)
        && parsed.list("verbs").all(|verb| kind.allows(verb))
        && parsed.list("categories").all(|category| kind.categories.iter().any(|known| **known == *category))
}
