//! What can be written at a cursor in a line of kubectl: verbs, flags and their values, kinds, names.

use cluster_core::api::kind::KindRef;
use cluster_core::api::kinds;
use k8s_openapi::api::core::v1::{Namespace, Node};

use super::resources::find_kind;
use super::{FlagWord, flag_words, plain, verb_names, words_below};
use crate::output::Match;

/// What there is to name, wherever it is known from.
pub trait Stock {
    /// The kinds that are served.
    fn kinds(&mut self) -> Vec<KindRef>;

    /// Names of objects of a kind that begin so.
    fn names(&mut self, kind: &KindRef, namespace: &str, typed: &str) -> Vec<String>;

    fn containers(&mut self, namespace: &str, pod: &str) -> Vec<String>;

    /// Contexts of the kubeconfig.
    fn contexts(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Images that pods could have.
    fn images(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn files(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Objects that begin as what has been typed, `deployment/web`.
    fn objects(&mut self, namespace: &str, typed: &str) -> Vec<String> {
        let Some((word, name)) = typed.split_once('/') else { return Vec::new() };
        let kinds = self.kinds();
        let Some(kind) = find_kind(&kinds, word) else { return Vec::new() };
        self.names(kind, namespace, name).into_iter().map(|name| format!("{word}/{name}")).collect()
    }
}

/// What a verb takes first, where that is not a kind.
pub enum Takes {
    /// Names of a kind, or `kind/name`.
    Names(&'static str),
    Kinds,
    Contexts,
    Shells,
    Nothing,
}

const FIRST: &[(&str, Takes)] = &[
    ("logs", Takes::Names("pods")),
    ("exec", Takes::Names("pods")),
    ("attach", Takes::Names("pods")),
    ("port-forward", Takes::Names("pods")),
    ("debug", Takes::Names("pods")),
    ("cp", Takes::Names("pods")),
    ("cordon", Takes::Names("nodes")),
    ("uncordon", Takes::Names("nodes")),
    ("drain", Takes::Names("nodes")),
    ("top pod", Takes::Names("pods")),
    ("top node", Takes::Names("nodes")),
    ("certificate approve", Takes::Names("certificatesigningrequests")),
    ("certificate deny", Takes::Names("certificatesigningrequests")),
    ("create token", Takes::Names("serviceaccounts")),
    ("explain", Takes::Kinds),
    ("config use-context", Takes::Contexts),
    ("config delete-context", Takes::Contexts),
    ("config rename-context", Takes::Contexts),
    ("completion", Takes::Shells),
    ("run", Takes::Nothing),
    ("apply", Takes::Nothing),
    ("diff", Takes::Nothing),
    ("version", Takes::Nothing),
    ("api-resources", Takes::Nothing),
    ("api-versions", Takes::Nothing),
    ("cluster-info", Takes::Nothing),
];

/// Values of flags that have only a few.
const VALUES: &[(&str, &[&str])] = &[
    ("output", &["json", "yaml", "wide", "name", "jsonpath=", "custom-columns=", "go-template=", "kyaml"]),
    ("dry-run", &["none", "client", "server"]),
    ("cascade", &["background", "foreground", "orphan"]),
    ("restart", &["Always", "OnFailure", "Never"]),
    ("for", &["condition=Ready", "condition=Available", "delete", "create", "jsonpath="]),
    ("type", &["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "strategic", "merge", "json"]),
    ("protocol", &["TCP", "UDP", "SCTP"]),
    ("subresource", &["status", "scale", "resize"]),
];

/// What can follow these words. `namespace` is meant where none is named.
pub fn words(before: &[String], typed: &str, namespace: &str, stock: &mut dyn Stock) -> Vec<Match> {
    let flags = flag_words(before);
    let namespace = namespace_of(before).unwrap_or(namespace);
    if let Some((flag, _)) = typed.split_once('=').filter(|_| typed.starts_with('-')) {
        return offered(values(flag, &flags, before, namespace, stock), "value");
    }
    if let Some(flag) = awaiting(before, &flags) {
        return offered(values(flag, &flags, before, namespace, stock), "value");
    }
    if typed.starts_with('-') {
        return offered(flags.iter().map(|flag| format!("--{}", flag.long)).collect(), "flag");
    }
    let plain = plain(before);
    let (verb, rest) = verb_of(&plain);
    if verb.is_empty() {
        return offered(verb_names().map(str::to_owned).collect(), "verb");
    }
    let below: Vec<String> = words_below(&verb).map(str::to_owned).collect();
    if !below.is_empty() && rest.is_empty() {
        return offered(below, "verb");
    }
    match (takes(&verb), rest.as_slice()) {
        (Some(Takes::Nothing), _) => Vec::new(),
        (Some(Takes::Kinds), []) => kinds_of(stock),
        (Some(Takes::Contexts), []) => offered(stock.contexts(), "value"),
        (Some(Takes::Shells), []) => offered(super::SHELLS.map(str::to_owned).into(), "value"),
        (Some(Takes::Names("nodes")), _) => offered(stock.names(KindRef::of::<Node>(), "", typed), "object"),
        (Some(Takes::Names(word)), []) => {
            let names = find_kind(kinds::built_in(), word).map(|kind| stock.names(kind, namespace, typed));
            let mut all = offered(names.unwrap_or_default(), "object");
            if typed.contains('/') {
                all.extend(offered(stock.objects(namespace, typed), "object"));
            }
            all
        }
        (Some(_), _) => Vec::new(),
        (None, []) => {
            let mut all = kinds_of(stock);
            all.extend(offered(stock.objects(namespace, typed), "object"));
            all
        }
        (None, [resource, ..]) => {
            let kinds = stock.kinds();
            let names = find_kind(&kinds, resource).map(|kind| stock.names(kind, namespace, typed));
            offered(names.unwrap_or_default(), "object")
        }
    }
}

fn offered(texts: Vec<String>, kind: &str) -> Vec<Match> {
    texts.into_iter().map(|text| Match { text, kind: kind.to_owned() }).collect()
}

fn kinds_of(stock: &mut dyn Stock) -> Vec<Match> {
    let listed = stock.kinds().into_iter().filter(|kind| kind.allows("list"));
    let mut names: Vec<String> = listed.map(|kind| kind.resource.to_string()).collect();
    // Of a kind with several versions, and of events, there is one.
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    offered(names, "kind")
}

/// The flag that ends the words and still lacks its value.
pub fn awaiting<'a>(before: &'a [String], flags: &[FlagWord]) -> Option<&'a str> {
    let last = before.last().filter(|last| last.starts_with('-') && !last.contains('='))?;
    named(last, flags).is_some_and(|flag| flag.takes_value).then_some(last.as_str())
}

/// What a verb takes first, if that is not a kind.
pub fn takes(verb: &str) -> Option<&'static Takes> {
    FIRST.iter().find(|(known, _)| *known == verb).map(|(_, takes)| takes)
}

/// The verb that the words begin with, `rollout status`, and what follows it.
pub fn verb_of<'a>(plain: &[&'a str]) -> (String, Vec<&'a str>) {
    let Some((first, rest)) = plain.split_first() else { return (String::new(), Vec::new()) };
    let (mut verb, mut used) = ((*first).to_owned(), 0);
    while let Some(word) = rest.get(used).filter(|word| words_below(&verb).any(|below| below == **word)) {
        verb = format!("{verb} {word}");
        used += 1;
    }
    (verb, rest[used..].to_vec())
}

/// The namespace that the words name.
pub fn namespace_of(args: &[String]) -> Option<&str> {
    let after = args.windows(2).find(|pair| matches!(pair[0].as_str(), "-n" | "--namespace")).map(|pair| &pair[1]);
    let joined = || args.iter().find_map(|word| word.strip_prefix("--namespace="));
    after.map(String::as_str).or_else(joined)
}

/// The flag that a word is.
pub fn named<'a>(word: &str, flags: &'a [FlagWord]) -> Option<&'a FlagWord> {
    flags.iter().find(|flag| match word.strip_prefix("--") {
        Some(long) => flag.long == long,
        None => flag.short.is_some() && word.strip_prefix('-').is_some_and(|rest| rest.chars().eq(flag.short)),
    })
}

/// What can stand behind a flag.
fn values(word: &str, flags: &[FlagWord], args: &[String], namespace: &str, stock: &mut dyn Stock) -> Vec<String> {
    let Some(flag) = named(word, flags) else { return Vec::new() };
    match flag.long {
        "namespace" => stock.names(KindRef::of::<Namespace>(), "", ""),
        "context" => stock.contexts(),
        "image" => stock.images(),
        "filename" => stock.files(),
        "container" => {
            let pods: Vec<String> = plain(args).into_iter().map(str::to_owned).collect();
            pods.iter().flat_map(|pod| stock.containers(namespace, pod)).collect()
        }
        long => {
            let known = VALUES.iter().find(|(known, _)| *known == long).map(|(_, values)| *values);
            known.unwrap_or_default().iter().map(|value| (*value).to_owned()).collect()
        }
    }
}
