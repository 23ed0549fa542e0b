//! The objects of `-f`: files, folders, standard input.

use cluster_core::api::kind::KindRef;
use serde_json::Value;

use super::failure::{Failure, message};
use super::flags::{Flag, switch, text};
use super::resources::Item;
use super::verb::Call;
use crate::yaml;

pub const FILENAME: Flag = text("filename").short('f');
pub const RECURSIVE: Flag = switch("recursive").short('R');
pub const KUSTOMIZE: Flag = text("kustomize").short('k');

const STDIN: &str = "STDIN";

impl Call<'_, '_> {
    /// The objects of all files of `-f`, in order; nothing if one of them can't be read.
    pub fn manifests(&mut self) -> Result<Vec<Item>, Failure> {
        let (items, failures) = self.manifests_so_far()?;
        super::failure::all_of(failures)?;
        Ok(items)
    }

    /// The objects that can be read, and what is wrong with the rest.
    pub fn manifests_so_far(&mut self) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        let mut sources = Vec::new();
        let filenames: Vec<String> = self.parsed.list("filename").map(str::to_owned).collect();
        for filename in &filenames {
            self.open(filename, &mut sources)?;
        }
        let kinds = self.context.api.kinds()?;
        let (mut items, mut failures) = (Vec::new(), Vec::new());
        for (source, content) in sources {
            let (documents, broken) = documents(&source, &content);
            failures.extend(broken);
            for document in documents {
                match self.item(&kinds, &source, document) {
                    Ok(more) => items.extend(more),
                    Err(failure) => failures.push(failure),
                }
            }
        }
        let selector = self.parsed.text("selector").unwrap_or_default();
        if !selector.is_empty() {
            let selector = cluster_core::api::selector::Selector::parse(selector).map_err(Failure::Message)?;
            items.retain(|item| {
                let labels = item.value.pointer("/metadata/labels").cloned().unwrap_or_default();
                selector.matches(serde_json::from_value(labels).ok().as_ref())
            });
        }
        Ok((items, failures))
    }

    fn open(&mut self, filename: &str, sources: &mut Vec<(String, String)>) -> Result<(), Failure> {
        if filename == "-" {
            sources.push((STDIN.into(), self.context.stdin.clone()));
            return Ok(());
        }
        if filename.starts_with("http://") || filename.starts_with("https://") {
            return message(format!("unable to read URL {filename:?}: there is no network here"));
        }
        if let Some(names) = self.context.files.list(filename) {
            let wanted = |name: &String| [".json", ".yaml", ".yml"].iter().any(|end| name.ends_with(end));
            for name in names.into_iter().filter(wanted) {
                let path = format!("{}/{name}", filename.trim_end_matches('/'));
                sources.push((path.clone(), self.read_file(&path)?));
            }
            return Ok(());
        }
        sources.push((filename.to_owned(), self.read_file(filename)?));
        Ok(())
    }

    /// The text of the file of `-f`, or of standard input, as it stands; nothing without `-f`.
    pub fn text_of_file(&self) -> Result<String, Failure> {
        match self.parsed.text("filename") {
            None => Ok(String::new()),
            Some("-") => Ok(self.context.stdin.clone()),
            Some(path) => self.read_file(path),
        }
    }

    fn read_file(&self, path: &str) -> Result<String, Failure> {
        self.context.files.read(path).map_err(|trouble| match trouble {
            super::super::files::Trouble::Missing => Failure::Message(format!("the path {path:?} does not exist")),
            other => Failure::Message(format!("the path {path:?} cannot be accessed: {other}")),
        })
    }

    /// The objects of one document; a List is several.
    fn item(&self, kinds: &[KindRef], source: &str, mut document: Value) -> Result<Vec<Item>, Failure> {
        let lacks = |what: &str| {
            Failure::Message(format!(
                "error validating {source:?}: error validating data: {what}; if you choose to ignore these errors, turn validation off with --validate=false"
            ))
        };
        if !document.is_object() {
            return Err(lacks("invalid object to validate"));
        }
        let text = |document: &Value, path: &str| {
            document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (api_version, kind) = (text(&document, "/apiVersion"), text(&document, "/kind"));
        if api_version.is_empty() && kind.is_empty() {
            return Err(lacks("[apiVersion not set, kind not set]"));
        }
        if api_version.is_empty() {
            return Err(lacks("apiVersion not set"));
        }
        if kind.is_empty() {
            return Err(lacks("kind not set"));
        }
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = document.get_mut("items").map(Value::take)
        {
            let mut all = Vec::new();
            for item in items {
                all.extend(self.item(kinds, source, item)?);
            }
            return Ok(all);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let found =
            kinds.iter().find(|known| *known.group == *group && *known.version == *version && *known.kind == *kind);
        let Some(found) = found else {
            let (name, namespace) = (text(&document, "/metadata/name"), text(&document, "/metadata/namespace"));
            return message(format!(
                "resource mapping not found for name: {name:?} namespace: {namespace:?} from {source:?}: no matches for kind {kind:?} in version {api_version:?}\nensure CRDs are installed first"
            ));
        };
        let item = Item { source: Some(source.to_owned()), ..Item::new(found, document) };
        Ok(vec![self.in_namespace(item)?])
    }

    /// Puts an object into the namespace that is meant.
    fn in_namespace(&self, mut item: Item) -> Result<Item, Failure> {
        if !item.kind.namespaced {
            item.namespace.clear();
            return Ok(item);
        }
        if item.namespace.is_empty() {
            item.namespace.clone_from(&self.namespace);
            if let Some(document) = item.value.as_object_mut()
                && let Some(metadata) =
                    document.entry("metadata").or_insert_with(|| serde_json::json!({})).as_object_mut()
            {
                metadata.insert("namespace".into(), self.namespace.as_str().into());
            }
        } else if self.explicit_namespace && item.namespace != self.namespace {
            return message(format!(
                "the namespace from the provided object {:?} does not match the namespace {:?}. You must pass '--namespace={}' to perform this operation.",
                item.namespace, self.namespace, item.namespace
            ));
        }
        Ok(item)
    }
}

/// The documents of a text that can be read, up to the first that can't.
fn documents(source: &str, content: &str) -> (Vec<Value>, Option<Failure>) {
    match yaml::read(content) {
        Ok(documents) => (documents.into_iter().map(|document| document.value).collect(), None),
        Err(error) => {
            let failure =
                Failure::Message(format!("error parsing {source}: error converting YAML to JSON: yaml: {error}"));
            let lines: Vec<&str> = content.lines().take((error.span.line as usize).saturating_sub(1)).collect();
            let before = lines.iter().rposition(|line| line.starts_with("---")).unwrap_or(0);
            let readable = yaml::read(&lines[..before].join("\n")).unwrap_or_default();
            (readable.into_iter().map(|document| document.value).collect(), Some(failure))
        }
    }
}
