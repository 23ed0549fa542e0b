//! What can be written at a cursor in a line of kubectl, and what is told of what stands there.

use cluster_core::api::kind::KindRef;

use super::offers;
use crate::commands::kubectl;
use crate::commands::kubectl::complete::{self, Stock, Takes, namespace_of, takes, verb_of};
use crate::output::{Match, MimeBundle, text};
use crate::session::Session;

/// What a notebook knows of its cluster.
struct Notebook<'s>(&'s Session);

impl Stock for Notebook<'_> {
    fn kinds(&mut self) -> Vec<KindRef> {
        self.0.cluster.kinds().cloned().collect()
    }

    fn names(&mut self, kind: &KindRef, namespace: &str, typed: &str) -> Vec<String> {
        offers::names(&self.0.cluster, kind, namespace, typed)
    }

    fn containers(&mut self, namespace: &str, pod: &str) -> Vec<String> {
        offers::containers(&self.0.cluster, namespace, pod)
    }

    fn images(&mut self) -> Vec<String> {
        offers::images(&self.0.cluster)
    }

    fn files(&mut self) -> Vec<String> {
        self.0.files.list("").unwrap_or_default()
    }

    fn objects(&mut self, _: &str, typed: &str) -> Vec<String> {
        self.0.object_names(typed)
    }
}

/// Verbs, flags, kinds and names that can follow these words.
pub fn words(before: &[&str], typed: &str, session: &Session) -> Vec<Match> {
    let args: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
    complete::words(&args, typed, "default", &mut Notebook(session))
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
    let kind = match (takes(&verb), place) {
        (Some(Takes::Names(kind)), _) => session.kind_named(kind),
        (_, 0) => {
            let kind = session.kind_named(word.split(',').next()?)?;
            let version = format!("--api-version={}", kind.api_version());
            return offers::told(&session.cluster, &["explain", &kind.resource, &version]).map(text);
        }
        _ => session.kind_named(rest[0]),
    };
    offers::described(&session.cluster, kind?, namespace_of(&args).unwrap_or("default"), word)
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
