//! From words to kinds and objects: `pods`, `deploy/web`, `po,svc`, `all`, `-f file`, `-l app=web`.

use cluster_core::api::kind::KindRef;
use cluster_core::api::selector::Selector;
use serde_json::Value;

use super::failure::{Failure, message};
use super::verb::Call;

pub const NOT_SPECIFIED: &str = "You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'";

pub const FILES_OR_ARGUMENTS: &str =
    "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well";

/// The `LabelSelector` of a text: `app=web,tier in (a,b)`.
pub fn label_selector(text: &str) -> Result<Value, Failure> {
    let requirements = Selector::parse(text)
        .map_err(|problem| Failure::Message(format!("couldn't parse the selector string {text:?}: {problem}")))?;
    let selector = requirements.to_label_selector().map_err(Failure::Message)?;
    serde_json::to_value(selector).map_err(|error| Failure::Message(error.to_string()))
}

/// What the arguments name: an object, or all of a kind.
#[derive(Clone, Debug)]
pub struct Target {
    pub kind: KindRef,
    pub name: Option<String>,
}

/// An object that a verb is to work on.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: KindRef,
    pub namespace: String,
    pub name: String,
    /// As the server has it, or as the file has it.
    pub value: Value,
    /// The file that it comes from.
    pub source: Option<String>,
}

impl Item {
    pub fn new(kind: &KindRef, value: Value) -> Item {
        let text = |field: &str| {
            value.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Item { kind: kind.clone(), namespace: text("namespace"), name: text("name"), value, source: None }
    }

    /// `deployment.apps/web`
    pub fn title(&self) -> String {
        self.kind.qualified_name(&self.name)
    }
}

/// The kind that a word means: a plural, singular or short name, perhaps with group or version and group behind it.
pub fn find_kind<'a>(kinds: &'a [KindRef], word: &str) -> Option<&'a KindRef> {
    let word = word.to_lowercase();
    let called = |kind: &&KindRef, name: &str| {
        *kind.resource == *name || *kind.singular == *name || kind.kind.to_lowercase() == name
    };
    let short = |kind: &&KindRef, name: &str| kind.short_names.iter().any(|short| **short == *name);
    let (name, rest) = word.split_once('.').map_or((word.as_str(), None), |(name, rest)| (name, Some(rest)));
    let in_group = |kind: &&KindRef| match rest {
        None => true,
        Some(rest) => {
            let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
            *kind.group == *rest
                || (*kind.version == *version && *kind.group == *group)
                || (!rest.is_empty() && kind.group.starts_with(&format!("{rest}.")))
        }
    };
    let found = kinds.iter().find(|kind| called(kind, name) && in_group(kind));
    found.or_else(|| {
        let short = kinds.iter().find(|kind| short(kind, name) && in_group(kind))?;
        // Behind a short name the version does not count.
        kinds.iter().find(|kind| kind.group == short.group && kind.resource == short.resource)
    })
}

/// The kinds that one word of types means: several with commas between them, or a category.
fn find_kinds(kinds: &[KindRef], words: &str) -> Result<Vec<KindRef>, Failure> {
    let mut found: Vec<KindRef> = Vec::new();
    for word in words.split(',').filter(|word| !word.is_empty()) {
        if let Some(kind) = find_kind(kinds, word) {
            found.push(kind.clone());
            continue;
        }
        let before = found.len();
        for kind in kinds.iter().filter(|kind| kind.categories.iter().any(|category| **category == *word)) {
            let known = |known: &KindRef| known.group == kind.group && known.resource == kind.resource;
            if !found.iter().any(known) {
                found.push(kind.clone());
            }
        }
        if found.len() == before {
            let name = word.split_once('.').map_or(word, |(name, _)| name);
            return message(format!("the server doesn't have a resource type {name:?}"));
        }
    }
    Ok(found)
}

/// The kinds that a short name means besides the one that is taken.
fn others<'a>(kinds: &'a [KindRef], word: &str) -> Vec<&'a KindRef> {
    let Some(taken) = find_kind(kinds, word) else { return Vec::new() };
    let short = |kind: &&KindRef| kind.short_names.iter().any(|short| **short == *word);
    if !short(&taken) {
        return Vec::new();
    }
    let mut others: Vec<&KindRef> = kinds.iter().filter(short).filter(|kind| kind.group != taken.group).collect();
    others.dedup_by_key(|kind| kind.group.clone());
    others
}

/// What arguments name: `pods`, `pods web db`, `pod/web svc/web`.
pub fn targets(call: &mut Call<'_, '_>, args: &[String]) -> Result<Vec<Target>, Failure> {
    let kinds = call.context.api.kinds()?;
    let types = args.iter().enumerate().filter_map(|(index, arg)| match arg.split_once('/') {
        Some((types, _)) => Some(types),
        None => (index == 0).then_some(arg.as_str()),
    });
    for word in types.flat_map(|types| types.split(',')) {
        for other in others(&kinds, word) {
            call.warn(format!(
                "short name {word:?} could also match lower priority resource {}",
                other.qualified_resource()
            ));
        }
    }
    let target = |kind: KindRef, name: Option<&str>| Target { kind, name: name.map(str::to_owned) };
    if args.iter().any(|arg| arg.contains('/')) {
        let mut targets = Vec::new();
        for arg in args {
            let Some((types, name)) = arg.split_once('/') else {
                return message(
                    "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'",
                );
            };
            if name.contains('/') {
                return message("arguments in resource/name form may not have more than one slash");
            }
            if name.is_empty() || types.is_empty() || types.contains(',') {
                return message("arguments in resource/name form must have a single resource and name");
            }
            targets.extend(find_kinds(&kinds, types)?.into_iter().map(|kind| target(kind, Some(name))));
        }
        return Ok(targets);
    }
    let Some((types, names)) = args.split_first() else { return Ok(Vec::new()) };
    let found = find_kinds(&kinds, types)?;
    if names.is_empty() {
        return Ok(found.into_iter().map(|kind| target(kind, None)).collect());
    }
    if found.len() > 1 && names.len() > 1 {
        return message("you may only specify a single resource type when names are given");
    }
    let pairs = found.iter().flat_map(|kind| names.iter().map(move |name| (kind, name)));
    Ok(pairs.map(|(kind, name)| target(kind.clone(), Some(name))).collect())
}

/// The arguments before the first of the form `key=value` or `key-`, and those. `sort` is what the pairs are.
pub fn split_pairs(args: &[String], sort: &str) -> Result<(Vec<String>, Vec<String>), Failure> {
    let is_pair = |arg: &String| arg.find('=').is_some_and(|place| place > 0) || arg.ends_with('-') && arg.len() > 1;
    let start = args.iter().position(is_pair).unwrap_or(args.len());
    let (resources, pairs) = args.split_at(start);
    match pairs.iter().find(|arg| !is_pair(arg)) {
        Some(arg) => message(format!("all resources must be specified before {sort} changes: {arg}")),
        None => Ok((resources.to_vec(), pairs.to_vec())),
    }
}

impl Call<'_, '_> {
    /// The objects that files and arguments name, as the server has them, and what went wrong with others.
    pub fn items(&mut self) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        let args = self.parsed.args.clone();
        self.items_of(&args)
    }

    /// As [`Call::items`]; with --local the objects of files as they stand there, or this refusal.
    pub fn objects(&mut self, refusal: &str) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        match (self.parsed.switch("local"), self.parsed.names_files()) {
            (false, _) => self.items(),
            (true, true) => self.manifests_as_they_stand(),
            (true, false) => message(refusal),
        }
    }

    /// As [`Call::items`], of these arguments and the files.
    pub fn items_of(&mut self, args: &[String]) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        self.items_or_all_of(args, self.parsed.switch("all") || self.parsed.switch("all-namespaces"))
    }

    /// As [`Call::items_of`]; `everything` is meant by a kind without a name.
    pub fn items_or_all_of(&mut self, args: &[String], everything: bool) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
        let (mut items, mut failures) = (Vec::new(), Vec::new());
        if self.parsed.names_files() {
            if !args.is_empty() {
                return message(FILES_OR_ARGUMENTS);
            }
            for manifest in self.manifests()? {
                match self.get(&manifest.kind, &manifest.namespace, &manifest.name) {
                    Ok(value) => items.push(Item { source: manifest.source, ..Item::new(&manifest.kind, value) }),
                    Err(failure) => failures.push(failure),
                }
            }
            return Ok((items, failures));
        }
        let targets = targets(self, args)?;
        if targets.is_empty() {
            return message(NOT_SPECIFIED);
        }
        let selected = self.parsed.has("selector") || self.parsed.has("field-selector");
        let everywhere = self.parsed.switch("all-namespaces");
        for target in targets {
            let Target { kind, name } = target;
            match name {
                Some(_) if selected => {
                    return message("name cannot be provided when a selector is specified");
                }
                Some(_) if everywhere && kind.namespaced => {
                    return message("a resource cannot be retrieved by name across all namespaces");
                }
                Some(name) => {
                    let namespace = self.namespace.clone();
                    match self.get_in_namespace(&kind, &namespace, &name) {
                        Ok(value) => items.push(Item::new(&kind, value)),
                        Err(failure) => failures.push(failure),
                    }
                }
                None if everything || selected => {
                    let namespace = if everywhere { String::new() } else { self.namespace.clone() };
                    let options = self.list_options(&kind)?;
                    items.extend(
                        self.list(&kind, &namespace, options)?.into_iter().map(|value| Item::new(&kind, value)),
                    );
                }
                None => return message("resource(s) were provided, but no name was specified"),
            }
        }
        Ok((items, failures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_go_by_many_names() {
        let kinds = cluster_core::api::kinds::built_in();
        for (word, resource) in [
            ("po", "pods"),
            ("Pod", "pods"),
            ("pods.v1.", "pods"),
            ("deploy", "deployments"),
            ("deployments.apps", "deployments"),
            ("deployments.v1.apps", "deployments"),
            ("hpa.v1.autoscaling", "horizontalpodautoscalers"),
            ("netpol", "networkpolicies"),
            ("ingresses.networking", "ingresses"),
            ("events", "events"),
        ] {
            assert_eq!(find_kind(kinds, word).map(|kind| &*kind.resource), Some(resource), "{word}");
        }
        assert!(find_kind(kinds, "podz").is_none());
        let all: Vec<String> = find_kinds(kinds, "all").unwrap().iter().map(|kind| kind.resource.to_string()).collect();
        assert_eq!(all[..4], ["pods", "replicationcontrollers", "services", "daemonsets"]);
    }
}
