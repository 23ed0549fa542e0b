//! What can be written at a cursor in a line of kubectl, and what is told of what stands there.

use super::offers;
use crate::commands::kubectl::{self, FlagWord};
use crate::output::{Match, MimeBundle, text};
use crate::session::Session;

/// What a verb takes first, where that is not a kind.
enum Takes {
    /// Names of a kind, or `kind/name`.
    Names(&'static str),
    Kinds,
    Nothing,
}

const FIRST: &[(&str, Takes)] = &[
    ("logs", Takes::Names("Pod")),
    ("exec", Takes::Names("Pod")),
    ("attach", Takes::Names("Pod")),
    ("port-forward", Takes::Names("Pod")),
    ("debug", Takes::Names("Pod")),
    ("cp", Takes::Names("Pod")),
    ("cordon", Takes::Names("Node")),
    ("uncordon", Takes::Names("Node")),
    ("drain", Takes::Names("Node")),
    ("top pod", Takes::Names("Pod")),
    ("top node", Takes::Names("Node")),
    ("explain", Takes::Kinds),
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

/// Verbs, flags, kinds and names that can follow these words.
pub fn words(before: &[&str], typed: &str, session: &Session) -> Vec<Match> {
    let offered = |texts: Vec<String>, kind: &str| -> Vec<Match> {
        texts.into_iter().map(|text| Match { text, kind: kind.to_owned() }).collect()
    };
    let args: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
    let flags = kubectl::flag_words(&args);
    if let Some((flag, _)) = typed.split_once('=').filter(|_| typed.starts_with('-')) {
        return offered(values(flag, &flags, &args, session), "value");
    }
    let last = before.last().copied().unwrap_or_default();
    if last.starts_with('-') && !last.contains('=') && named(last, &flags).is_some_and(|flag| flag.takes_value) {
        return offered(values(last, &flags, &args, session), "value");
    }
    if typed.starts_with('-') {
        return offered(flags.iter().map(|flag| format!("--{}", flag.long)).collect(), "flag");
    }
    let plain = kubectl::plain(&args);
    let (verb, rest) = verb_of(&plain);
    if verb.is_empty() {
        return offered(kubectl::verb_names().map(str::to_owned).collect(), "verb");
    }
    let below: Vec<String> = kubectl::words_below(&verb).map(str::to_owned).collect();
    if !below.is_empty() && rest.is_empty() {
        return offered(below, "verb");
    }
    let (cluster, namespace) = (&session.cluster, namespace(&args));
    let takes = FIRST.iter().find(|(known, _)| *known == verb).map(|(_, takes)| takes);
    let kinds = || {
        let listed = cluster.kinds().filter(|kind| kind.allows("list"));
        offered(listed.map(|kind| kind.resource.to_string()).collect(), "kind")
    };
    match (takes, rest.as_slice()) {
        (Some(Takes::Nothing), _) => Vec::new(),
        (Some(Takes::Kinds), []) => kinds(),
        (Some(Takes::Kinds), _) => Vec::new(),
        (Some(Takes::Names(kind)), []) => {
            let names = session.kind_named(kind).map(|kind| offers::names(cluster, kind, namespace, typed));
            let mut all = offered(names.unwrap_or_default(), "object");
            if typed.contains('/') {
                all.extend(offered(session.object_names(typed), "object"));
            }
            all
        }
        (Some(Takes::Names("Node")), _) => offered(session.node_names(), "object"),
        (Some(Takes::Names(_)), _) => Vec::new(),
        (None, []) => {
            let mut all = kinds();
            all.extend(offered(session.object_names(typed), "object"));
            all
        }
        (None, [resource, ..]) => {
            let names = session.kind_named(resource).map(|kind| offers::names(cluster, kind, namespace, typed));
            offered(names.unwrap_or_default(), "object")
        }
    }
}

/// The verb that the words begin with, `rollout status`, and what follows it.
fn verb_of<'a>(plain: &[&'a str]) -> (String, Vec<&'a str>) {
    let Some((first, rest)) = plain.split_first() else { return (String::new(), Vec::new()) };
    let (mut verb, mut used) = ((*first).to_owned(), 0);
    while let Some(word) = rest.get(used).filter(|word| kubectl::words_below(&verb).any(|below| below == **word)) {
        verb = format!("{verb} {word}");
        used += 1;
    }
    (verb, rest[used..].to_vec())
}

fn namespace(args: &[String]) -> &str {
    let after = args.windows(2).find(|pair| matches!(pair[0].as_str(), "-n" | "--namespace")).map(|pair| &pair[1]);
    let joined = || args.iter().find_map(|word| word.strip_prefix("--namespace="));
    after.map(String::as_str).or_else(joined).unwrap_or("default")
}

fn named<'a>(word: &str, flags: &'a [FlagWord]) -> Option<&'a FlagWord> {
    flags.iter().find(|flag| match word.strip_prefix("--") {
        Some(long) => flag.long == long,
        None => flag.short.is_some() && word.strip_prefix('-').is_some_and(|rest| rest.chars().eq(flag.short)),
    })
}

/// What can stand behind a flag.
fn values(word: &str, flags: &[FlagWord], args: &[String], session: &Session) -> Vec<String> {
    let Some(flag) = named(word, flags) else { return Vec::new() };
    let cluster = &session.cluster;
    match flag.long {
        "namespace" => offers::namespaces(cluster),
        "image" => offers::images(cluster),
        "filename" => session.files.list("").unwrap_or_default(),
        "container" => {
            let pods = kubectl::plain(args);
            pods.iter().flat_map(|pod| offers::containers(cluster, namespace(args), pod)).collect()
        }
        long => {
            let known = VALUES.iter().find(|(known, _)| *known == long).map(|(_, values)| *values);
            known.unwrap_or_default().iter().map(|value| (*value).to_owned()).collect()
        }
    }
}

/// Of a flag its help, of a name the object, of a kind what `kubectl explain` says; else nothing.
pub fn inspect(words: &[&str], word: &str, session: &Session) -> Option<MimeBundle> {
    let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let plain = kubectl::plain(&args);
    let (verb, rest) = verb_of(&plain);
    if word.starts_with('-') {
        let name = word.split('=').next().unwrap_or_default();
        let help: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        return [&help[..], &["options"]].into_iter().find_map(|words| {
            let told = offers::told(&session.cluster, words)?;
            let is_it = |line: &&str| line.trim_start().split([',', '=', ' ', ':']).any(|part| part == name);
            let mut lines = told.lines().skip_while(|line| !(line.trim_start().starts_with('-') && is_it(line)));
            let first = lines.next()?.trim();
            Some(text(format!("{first}\n{}", lines.next().unwrap_or_default())))
        });
    }
    if word.contains('/') {
        return offers::object(session, word);
    }
    let place = rest.iter().position(|known| *known == word)?;
    let takes = FIRST.iter().find(|(known, _)| *known == verb).map(|(_, takes)| takes);
    let kind = match (takes, place) {
        (Some(Takes::Names(kind)), _) => session.kind_named(kind),
        (_, 0) => {
            let kind = session.kind_named(word.split(',').next()?)?;
            let version = format!("--api-version={}", kind.api_version());
            return offers::told(&session.cluster, &["explain", &kind.resource, &version]).map(text);
        }
        _ => session.kind_named(rest[0]),
    };
    offers::described(&session.cluster, kind?, namespace(&args), word)
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn words_fit_the_place_in_the_command() {
        let mut session = session();
        run(&mut session, "kubectl create namespace shop\nkubectl create deployment web --image=my-app:1.0");
        run(&mut session, "kubectl create configmap stock -n shop --from-literal=a=b");
        session.files.write("web.yaml", "").unwrap();
        let pod = run(&mut session, "kubectl get pods -o name").trim().trim_start_matches("pod/").to_owned();
        let mut words = |code: &str| -> Vec<String> {
            session.complete(code, code.chars().count()).matches.into_iter().map(|found| found.text).collect()
        };
        assert_eq!(words("kubectl rollout sta"), ["status"]);
        assert_eq!(words("kubectl rollout status deployment/"), ["deployment/web"]);
        assert_eq!(words("kubectl get deployments w"), ["web"]);
        assert_eq!(words("kubectl get configmaps -n shop s"), ["stock"]);
        assert_eq!(words("kubectl get pods -n sh"), ["shop"]);
        assert_eq!(words("kubectl get pods --namespace=sh"), ["shop"]);
        assert_eq!(words("kubectl get pods -o wi"), ["wide"]);
        assert_eq!(words("kubectl get pods --field-s"), ["--field-selector"]);
        assert_eq!(words("kubectl logs web"), [pod.as_str()]);
        assert_eq!(words(&format!("kubectl logs {pod} -c ")), ["my-app"]);
        assert_eq!(words("kubectl apply -f w"), ["web.yaml"]);
        assert_eq!(words("kubectl run x --image=my-"), ["my-app:1.0"]);
        assert_eq!(words("kubectl drain node-1"), ["node-1"]);
        assert_eq!(words("kubectl get pods | gre"), ["grep"]);
        assert_eq!(words("node-1$ crictl pod"), ["pods"]);
    }

    #[test]
    fn help_is_of_what_stands_at_the_cursor() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let mut told = |code: &str, at: &str| -> String {
            let cursor = code.find(at).unwrap() + 1;
            let told = session.inspect(code, cursor).unwrap_or_default();
            told.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
        };
        assert!(told("kubectl get deployments web", "web").contains("StrategyType:"));
        assert!(told("kubectl get deploy/web -o wide", "web").contains("StrategyType:"));
        assert!(told("kubectl get deployments web", "depl").contains("KIND:       Deployment"));
        assert!(told("kubectl get pods --selector=a=b", "--sel").starts_with("-l, --selector="));
        assert!(told("kubectl get pods -n x", "-n").starts_with("-n, --namespace="));
        assert!(told("kubectl get deployments web", "get").starts_with("Display one or many resources."));
    }
}
