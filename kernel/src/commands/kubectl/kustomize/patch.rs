//! `patches`: strategic merges and lists of JSON operations, each for the objects that it names.

use cluster_core::api::kinds::built_in;
use cluster_core::api::schema::Schema;
use cluster_core::api::selector::Selector;
use cluster_core::apiserver::patch::{json, strategic};
use regex::Regex;
use serde_json::Value;

use super::{Resource, id, read, text, texts};
use crate::commands::files::Files;
use crate::yaml;

pub fn patch(
    files: &dyn Files,
    folder: &str,
    kustomization: &Value,
    resources: &mut Vec<Resource>,
) -> Result<(), String> {
    for source in texts(&kustomization["patchesStrategicMerge"]) {
        let content = if source.contains('\n') { source.to_owned() } else { read(files, folder, source)? };
        apply(&content, &Value::Null, resources)?;
    }
    let lists = ["patches", "patchesJson6902"].into_iter().filter_map(|field| kustomization[field].as_array());
    for entry in lists.flatten() {
        let content = match (entry["path"].as_str(), entry["patch"].as_str()) {
            (Some(path), None) => read(files, folder, path)?,
            (None, Some(patch)) => patch.to_owned(),
            _ => return Err("must specify one of patch and path in patches".to_owned()),
        };
        apply(&content, &entry["target"], resources)?;
    }
    Ok(())
}

fn apply(content: &str, target: &Value, resources: &mut Vec<Resource>) -> Result<(), String> {
    let documents = yaml::read(content).map_err(|error| {
        format!(
            "trouble configuring builtin PatchTransformer: unable to parse SM or JSON patch: {}",
            error.in_go_words()
        )
    })?;
    for patch in documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()) {
        if patch.is_array() && target.is_null() {
            return Err("must specify a target for JSON patches".to_owned());
        }
        let places = match target.is_null() {
            true => vec![named(&patch, resources)?],
            false => selected(target, resources)?,
        };
        let mut gone = Vec::new();
        for place in places {
            match patch.is_array() {
                true => json::apply(&mut resources[place].value, &patch).map_err(|status| status.message)?,
                false if patch["$patch"] == "delete" => gone.push(place),
                false => merge(&mut resources[place], &patch)?,
            }
        }
        let mut place = 0;
        resources.retain(|_| {
            place += 1;
            !gone.contains(&(place - 1))
        });
    }
    Ok(())
}

/// The object that a patch itself names.
fn named(patch: &Value, resources: &[Resource]) -> Result<usize, String> {
    let wanted = Resource::new(patch.clone());
    let fits = |known: &Resource| {
        known.kind() == wanted.kind()
            && known.group_version().0 == wanted.group_version().0
            && known.is_called(wanted.name())
            && (wanted.namespace().is_empty() || known.namespace() == wanted.namespace())
    };
    let place = resources.iter().position(fits);
    place.ok_or_else(|| format!("no resource matches strategic merge patch {:?}: no matches for Id {}; failed to find unique target for patch {}", id(&wanted), id(&wanted), id(&wanted)))
}

/// The objects that a `target` describes: each field a regular expression for the whole of what it names.
fn selected(target: &Value, resources: &[Resource]) -> Result<Vec<usize>, String> {
    let pattern = |field: &str| match text(target, &format!("/{field}")) {
        "" => Ok(None),
        pattern => Regex::new(&format!("^(?:{pattern})$")).map(Some).map_err(|error| error.to_string()),
    };
    let [group, version, kind, name, namespace] =
        [pattern("group")?, pattern("version")?, pattern("kind")?, pattern("name")?, pattern("namespace")?];
    let selector = |field: &str| Selector::parse(text(target, &format!("/{field}")));
    let (labels, annotations) = (selector("labelSelector")?, selector("annotationSelector")?);
    let matches = |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
    let carries = |resource: &Resource, selector: &Selector, field: &str| {
        let carried = resource.value["metadata"][field].clone();
        selector.matches(serde_json::from_value(carried).ok().as_ref())
    };
    let fits = |resource: &Resource| {
        matches(&group, resource.group_version().0)
            && matches(&version, resource.group_version().1)
            && matches(&kind, resource.kind())
            && (matches(&name, resource.name()) || resource.names.iter().any(|known| matches(&name, known)))
            && matches(&namespace, resource.namespace())
            && carries(resource, &labels, "labels")
            && carries(resource, &annotations, "annotations")
    };
    Ok(resources.iter().enumerate().filter(|(_, resource)| fits(resource)).map(|(place, _)| place).collect())
}

/// A strategic merge, by which an object keeps its name and kind.
fn merge(resource: &mut Resource, patch: &Value) -> Result<(), String> {
    let (group, version) = resource.group_version();
    let known = built_in()
        .iter()
        .find(|kind| *kind.group == *group && *kind.version == *version && *kind.kind == *resource.kind());
    let kept: Vec<Value> = ["apiVersion", "kind"].iter().map(|field| resource.value[*field].clone()).collect();
    let name = resource.value["metadata"]["name"].clone();
    strategic::merge(&mut resource.value, patch, known.and_then(|kind| Schema::of(kind)))
        .map_err(|status| status.message)?;
    for (field, value) in ["apiVersion", "kind"].into_iter().zip(kept) {
        resource.value[field] = value;
    }
    resource.value["metadata"]["name"] = name;
    Ok(())
}
