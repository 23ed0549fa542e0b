//! Kustomizations: objects out of files, changed by what a `kustomization.yaml` says, in the order in which kustomize
//! does it: resources, generators, patches, namespace, names, labels, annotations, numbers, images; names that refer to
//! others last of all.
//! <https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/>

mod change;
mod fields;
mod generate;
mod order;
mod patch;
mod refer;

use serde_json::{Value, json};

use super::super::files::Files;
use crate::yaml;
pub use order::legacy;

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What a kustomization can say, as far as it is carried out here.
const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "resources",
    "bases",
    "components",
    "namespace",
    "namePrefix",
    "nameSuffix",
    "labels",
    "commonLabels",
    "commonAnnotations",
    "images",
    "replicas",
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "configMapGenerator",
    "secretGenerator",
    "generatorOptions",
];
/// What it can say in kustomize, and not here.
const NOT_HERE: &[&str] = &[
    "vars",
    "replacements",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "helmCharts",
    "helmGlobals",
    "helmChartInflationGenerator",
    "openapi",
    "buildMetadata",
    "sortOptions",
];
const DEPRECATED: &[(&str, &str)] = &[
    ("bases", "resources"),
    ("commonLabels", "labels"),
    ("patchesStrategicMerge", "patches"),
    ("patchesJson6902", "patches"),
];

/// An object on its way.
#[derive(Clone, Debug)]
pub struct Resource {
    pub value: Value,
    /// What it was called before, first as its file calls it.
    names: Vec<String>,
    /// Prefix and suffix of every kustomization that it passed: what has passed the same ones refers to each other.
    affixes: Vec<(String, String)>,
    /// Its name gets a hash of its content.
    hashed: bool,
}

impl Resource {
    fn new(value: Value) -> Resource {
        let names = vec![text(&value, "/metadata/name").to_owned()];
        Resource { value, names, affixes: Vec::new(), hashed: false }
    }

    fn kind(&self) -> &str {
        text(&self.value, "/kind")
    }

    fn name(&self) -> &str {
        text(&self.value, "/metadata/name")
    }

    fn namespace(&self) -> &str {
        text(&self.value, "/metadata/namespace")
    }

    /// API group and version.
    fn group_version(&self) -> (&str, &str) {
        let api_version = text(&self.value, "/apiVersion");
        api_version.split_once('/').unwrap_or(("", api_version))
    }

    fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.names.iter().any(|known| known == name)
    }

    /// Takes another name, and remembers the one before.
    fn rename(&mut self, name: String) {
        let before = std::mem::replace(&mut self.value["metadata"]["name"], name.into());
        self.names.extend(before.as_str().map(str::to_owned));
    }
}

/// What a folder's kustomization comes to.
#[derive(Debug, Default)]
pub struct Built {
    /// In the order in which they were found.
    pub objects: Vec<Value>,
    pub warnings: Vec<String>,
}

/// # Errors
/// What kubectl says after `error: `.
pub fn build(files: &dyn Files, folder: &str) -> Result<Built, String> {
    let mut builder = Builder { files, warnings: Vec::new(), open: Vec::new() };
    let mut resources = builder.folder(&joined("", folder), Vec::new())?;
    resources.iter_mut().for_each(generate::add_hash);
    refer::mend(&mut resources);
    let objects = resources.into_iter().map(|resource| resource.value).collect();
    Ok(Built { objects, warnings: builder.warnings })
}

struct Builder<'a> {
    files: &'a dyn Files,
    warnings: Vec<String>,
    /// The folders that are being read, to find those that lead back to themselves.
    open: Vec<String>,
}

impl Builder<'_> {
    /// Reads a folder's kustomization and adds to the resources that a component finds before it.
    fn folder(&mut self, folder: &str, before: Vec<Resource>) -> Result<Vec<Resource>, String> {
        if self.open.iter().any(|open| open == folder) {
            return Err(format!("cycle detected: candidate root '{folder}' contains visited root '{folder}'"));
        }
        let kustomization = self.kustomization(folder)?;
        self.open.push(folder.to_owned());
        let resources = self.carry_out(folder, &kustomization, before);
        self.open.pop();
        resources
    }

    fn kustomization(&mut self, folder: &str) -> Result<Value, String> {
        let texts: Vec<String> = NAMES.iter().filter_map(|name| self.files.read(&joined(folder, name)).ok()).collect();
        let content = match texts.as_slice() {
            [content] => content,
            [] if self.files.list(or_here(folder)).is_none() => {
                return Err(format!(
                    "must build at directory: not a valid directory: '{}' doesn't exist",
                    or_here(folder)
                ));
            }
            [] => {
                let [first, second, third] = NAMES;
                return Err(format!(
                    "unable to find one of '{first}', '{second}' or '{third}' in directory '{}'",
                    or_here(folder)
                ));
            }
            _ => return Err(format!("Found multiple kustomization files under: {}\n", or_here(folder))),
        };
        let documents =
            yaml::read(content).map_err(|error| format!("invalid Kustomization: {}", error.in_go_words()))?;
        let value = match documents.into_iter().next() {
            Some(document) if document.value.is_object() => document.value,
            _ => return Err("kustomization.yaml is empty".to_owned()),
        };
        for field in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if NOT_HERE.contains(&field.as_str()) {
                return Err(format!("kustomize's field {field:?} is not built here"));
            }
            if !FIELDS.contains(&field.as_str()) {
                return Err(format!("invalid Kustomization: json: unknown field {field:?}"));
            }
        }
        for (field, instead) in DEPRECATED.iter().filter(|(field, _)| value.get(*field).is_some()) {
            self.warnings.push(format!(
                "# Warning: '{field}' is deprecated. Please use '{instead}' instead. Run 'kustomize edit fix' to update your Kustomization automatically."
            ));
        }
        Ok(value)
    }

    fn carry_out(
        &mut self,
        folder: &str,
        kustomization: &Value,
        mut resources: Vec<Resource>,
    ) -> Result<Vec<Resource>, String> {
        for path in texts(&kustomization["resources"]).chain(texts(&kustomization["bases"])) {
            let found = self.resource(folder, path).map_err(|problem| {
                format!("accumulating resources: accumulation err='accumulating resources from '{path}': {problem}'")
            })?;
            for resource in found {
                add(&mut resources, resource)?;
            }
        }
        for path in texts(&kustomization["components"]) {
            resources = self.folder(&joined(folder, path), resources)?;
        }
        generate::generate(self.files, folder, kustomization, &mut resources)?;
        patch::patch(self.files, folder, kustomization, &mut resources)?;
        change::change(kustomization, &mut resources)?;
        Ok(resources)
    }

    /// The objects of a file, or of a folder with a kustomization of its own.
    fn resource(&mut self, folder: &str, path: &str) -> Result<Vec<Resource>, String> {
        if path.contains("://") {
            return Err("there is no network here".to_owned());
        }
        let place = joined(folder, path);
        if self.files.list(&place).is_some() || self.files.read(&joined(&place, NAMES[0])).is_ok() {
            return self.folder(&place, Vec::new());
        }
        let content = read(self.files, folder, path)?;
        let documents = yaml::read(&content)
            .map_err(|error| format!("MalformedYAMLError: {} in File: {path}", error.in_go_words()))?;
        let mut found = Vec::new();
        for document in documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()) {
            let is_list = text(&document, "/kind").ends_with("List");
            let items = match document["items"].as_array().filter(|_| is_list) {
                Some(items) => items.clone(),
                None => vec![document],
            };
            for item in items {
                if text(&item, "/kind").is_empty() {
                    return Err(format!("missing Resource metadata in {path}: kind"));
                }
                if text(&item, "/metadata/name").is_empty() {
                    return Err(format!("missing metadata.name in object {}", json!({"kind": item["kind"]})));
                }
                found.push(Resource::new(item));
            }
        }
        Ok(found)
    }
}

/// Adds an object, of which there must not be one already.
fn add(resources: &mut Vec<Resource>, resource: Resource) -> Result<(), String> {
    let same = |known: &&Resource| {
        known.kind() == resource.kind()
            && known.group_version().0 == resource.group_version().0
            && known.name() == resource.name()
            && known.namespace() == resource.namespace()
    };
    if resources.iter().any(|known| same(&known)) {
        return Err(format!("may not add resource with an already registered id: {}", id(&resource)));
    }
    resources.push(resource);
    Ok(())
}

/// As kustomize names an object: `Deployment.v1.apps/web.[noNs]`.
fn id(resource: &Resource) -> String {
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    let (group, version) = resource.group_version();
    format!(
        "{}.{}.{}/{}.{}",
        resource.kind(),
        or(version, "[noVer]"),
        or(group, "[noGrp]"),
        resource.name(),
        or(resource.namespace(), "[noNs]")
    )
}

/// A file that a kustomization names: one in its folder or below.
fn read(files: &dyn Files, folder: &str, path: &str) -> Result<String, String> {
    let place = joined(folder, path);
    if !folder.is_empty() && !place.starts_with(&format!("{folder}/")) {
        return Err(format!("security; file '{place}' is not in or below '{folder}'"));
    }
    files.read(&place).map_err(|trouble| format!("open {place}: {trouble}"))
}

/// A path behind a folder, without `.` and `..` where that can be.
fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.trim_end_matches('/').to_owned();
    }
    let root = if folder.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

fn or_here(folder: &str) -> &str {
    if folder.is_empty() { "." } else { folder }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::files::Memory;

    fn folder(files: &[(&str, &str)]) -> Memory {
        Memory(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn a_base_is_changed_by_what_lies_over_it() {
        let files = folder(&[
            ("base/a.yaml", MAP),
            ("base/kustomization.yaml", "resources: [a.yaml]\nnamePrefix: base-\n"),
            ("prod/kustomization.yaml", "resources: [../base]\nnameSuffix: -prod\nnamespace: shop\n"),
        ]);
        let built = build(&files, "prod").unwrap();
        let [object] = built.objects.as_slice() else { panic!("{built:?}") };
        assert_eq!(object["metadata"], json!({"name": "base-a-prod", "namespace": "shop"}));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |files: &[(&str, &str)]| build(&folder(files), "k").unwrap_err();
        assert_eq!(told(&[]), "must build at directory: not a valid directory: 'k' doesn't exist");
        assert_eq!(
            told(&[("k/a.yaml", MAP)]),
            "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory 'k'"
        );
        assert_eq!(
            told(&[("k/kustomization.yaml", "resource: [a.yaml]")]),
            "invalid Kustomization: json: unknown field \"resource\""
        );
        let twice = [("k/kustomization.yaml", "resources: [a.yaml, b.yaml]"), ("k/a.yaml", MAP), ("k/b.yaml", MAP)];
        assert!(
            told(&twice).contains("may not add resource with an already registered id: ConfigMap.v1.[noGrp]/a.[noNs]")
        );
        assert!(told(&[("k/kustomization.yaml", "resources: [../k]")]).contains("cycle detected"));
        assert!(
            told(&[("k/kustomization.yaml", "resources: [../x.yaml]"), ("x.yaml", MAP)]).contains("security; file")
        );
    }
}
