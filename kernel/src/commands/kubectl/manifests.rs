//! The objects of `-f`: files, folders, standard input.

use cluster_core::api::kind::KindRef;
use cluster_core::apiserver::decode::text as json_text;
use serde_json::Value;

use super::failure::{Failure, message};
use super::flags::{Flag, switch, text};
use super::kustomize;
use super::resources::Item;
use super::verb::Call;
use crate::yaml;

pub const FILENAME: Flag = text("filename").short('f');
pub const RECURSIVE: Flag = switch("recursive").short('R');
pub const KUSTOMIZE: Flag = text("kustomize").short('k');

const STDIN: &str = "STDIN";

impl Call<'_, '_> {
    /// That files are named.
    pub fn require_files(&self) -> super::failure::Outcome {
        match (self.parsed.has("filename"), self.parsed.has("kustomize")) {
            (true, false) | (false, true) => Ok(()),
            (true, true) => message("only one of -f or -k can be specified"),
            (false, false) => message("must specify one of -f and -k"),
        }
    }

    /// The objects of all files of `-f`, in order; nothing if one of them can't be read.
    pub fn manifests(&mut self) -> Result<Vec<Item>, Failure> {
        let (items, failures) = self.manifests_so_far()?;
        super::failure::all_of(failures)?;
        Ok(items)
    }

    /// The objects that can be read, and what is wrong with the rest.
    pub fn manifests_so_far(&mut self) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        let (items, mut failures) = self.manifests_as_they_stand()?;
        let (mut placed, mut misplaced) = (Vec::new(), Vec::new());
        for item in items {
            match self.in_namespace(item) {
                Ok(item) => placed.push(item),
                Err(failure) => misplaced.push(failure),
            }
        }
        failures.extend(misplaced);
        Ok((placed, failures))
    }

    /// As [`Call::manifests_so_far`], but not put into a namespace: no server is to see them.
    pub fn manifests_as_they_stand(&mut self) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        let mut sources = Vec::new();
        let filenames: Vec<String> = self.parsed.list("filename").map(str::to_owned).collect();
        for filename in &filenames {
            self.open(filename, &mut sources)?;
        }
        let kinds = self.context.api.kinds()?;
        let (mut items, mut failures) = (Vec::new(), Vec::new());
        if let Some(folder) = self.parsed.text("kustomize").map(str::to_owned) {
            let built = kustomize::build(&*self.context.files, &folder).map_err(Failure::Message)?;
            built.warnings.iter().for_each(|warning| self.context.error_line(warning));
            let mut objects = built.objects;
            kustomize::legacy(&mut objects);
            for object in objects {
                items.extend(self.item(&kinds, &folder, object)?);
            }
        }
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
            if !names.iter().any(wanted) {
                return message(format!(
                    "error reading [{filename}]: recognized file extensions are [.json .yaml .yml]"
                ));
            }
            for name in names.into_iter().filter(wanted) {
                let path = match filename.trim_end_matches('/') {
                    "." => name,
                    folder => format!("{folder}/{name}"),
                };
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
        if let Some(problem) = misfit(&document["metadata"]) {
            return message(format!("unable to decode {source:?}: {problem}"));
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
        Ok(vec![Item { source: Some(source.to_owned()), ..Item::new(found, document) }])
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
            let failure = Failure::Message(format!("error parsing {source}: {}", broken(content, &error)));
            let lines: Vec<&str> = content.lines().take((error.span.line as usize).saturating_sub(1)).collect();
            let before = lines.iter().rposition(|line| line.starts_with("---")).unwrap_or(0);
            let readable = yaml::read(&lines[..before].join("\n")).unwrap_or_default();
            (readable.into_iter().map(|document| document.value).collect(), Some(failure))
        }
    }
}

/// What is wrong with a text, in the words of Go's readers. One that begins as JSON is called broken JSON, though it
/// was tried as YAML too.
fn broken(content: &str, error: &yaml::SyntaxError) -> String {
    let fault = content.trim_start().starts_with('{').then(|| json_text::fault(content.as_bytes())).flatten();
    match fault {
        Some((_, problem)) if problem.starts_with("unexpected end") => "unexpected EOF".to_owned(),
        Some((offset, problem)) => format!("json: offset {offset}: {problem}"),
        None => format!("error converting YAML to JSON: {}", error.in_go_words()),
    }
}

/// The first field of an object's metadata that has another type than Go's, which a client sees without the server.
fn misfit(metadata: &Value) -> Option<String> {
    const TEXTS: &[&str] = &["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
    const MAPS: &[&str] = &["labels", "annotations"];
    let problem = |found: &Value, field: &str, wanted: &str| {
        format!(
            "json: cannot unmarshal {} into Go struct field ObjectMeta.metadata.{field} of type {wanted}",
            json_text::json_type(found)
        )
    };
    let text =
        |found: &Value, field: &str| (!found.is_string() && !found.is_null()).then(|| problem(found, field, "string"));
    metadata.as_object()?.iter().find_map(|(field, found)| match (field.as_str(), found) {
        (name, found) if TEXTS.contains(&name) => text(found, name),
        (name, Value::Object(pairs)) if MAPS.contains(&name) => pairs.values().find_map(|value| text(value, name)),
        (name, found) if MAPS.contains(&name) && !found.is_null() => Some(problem(found, name, "map[string]string")),
        ("finalizers", Value::Array(names)) => names.iter().find_map(|name| text(name, "finalizers")),
        ("finalizers", found) if !found.is_null() => Some(problem(found, "finalizers", "[]string")),
        ("generation" | "deletionGracePeriodSeconds", found) if !found.is_number() && !found.is_null() => {
            Some(problem(found, field, "int64"))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_texts_are_told_in_the_words_of_go() {
        let told = |text: &str| documents("a.yaml", text).1.map(|failure| failure.text("")).unwrap_or_default();
        assert_eq!(told("{\"a\": {\"b\": 1}"), "error: error parsing a.yaml: unexpected EOF\n");
        assert_eq!(
            told("{\n  \"a\": \"b\"\n  \"c\": 1\n}\n"),
            "error: error parsing a.yaml: json: offset 16: invalid character '\"' after object key:value pair\n"
        );
        assert_eq!(
            told("a: 1\n---\nb:\n\tc: 2\n"),
            "error: error parsing a.yaml: error converting YAML to JSON: yaml: line 2: found character that cannot start any token\n"
        );
        assert_eq!(told("{\"a\": 1,}"), "");
    }

    #[test]
    fn metadata_have_their_types() {
        assert_eq!(
            misfit(&json!({"name": "a", "labels": {"on": true}})).unwrap(),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"
        );
        assert_eq!(misfit(&json!({"name": "a", "labels": null, "generation": 3})), None);
    }
}
