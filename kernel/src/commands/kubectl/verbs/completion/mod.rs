//! `kubectl completion`: a script for a shell, which asks `kubectl __complete` what can follow; and that hidden command.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_completion/>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Verb as ApiVerb};
use cluster_core::api::{Key, kind::Resource};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::super::{Context, Program};
use super::super::complete::{Stock, awaiting, named, verb_of, words};
use super::super::failure::{Outcome, usage};
use super::super::verb::{Call, Verb};
use super::super::{Kubectl, client, flag_words, help, plain};

pub const VERB: Verb = Verb { name: "completion", aliases: &[], flags: &[], run };

pub const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

fn script(shell: &str) -> Option<&'static str> {
    match shell {
        "bash" => Some(include_str!("script.bash")),
        "zsh" => Some(include_str!("script.zsh")),
        "fish" => Some(include_str!("script.fish")),
        "powershell" => Some(include_str!("script.ps1")),
        _ => None,
    }
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    match call.parsed.args.as_slice() {
        [] => usage("Shell not specified."),
        [shell] => match script(shell) {
            Some(script) => {
                call.context.print(script);
                Ok(())
            }
            None => usage(format!("Unsupported shell type {shell:?}.")),
        },
        _ => usage("Too many arguments. Expected only the shell type."),
    }
}

/// What a shell is to do with what it is told, as bits. (`ShellCompDirective` of github.com/spf13/cobra)
#[derive(Clone, Copy)]
enum Directive {
    /// Files are what can follow.
    Default = 0,
    /// No space behind it, and no files.
    NoSpace = 6,
    /// Nothing else can follow.
    NoFileComp = 4,
    /// What is told are the ends of files that can follow.
    FilterFileExt = 8,
}

impl Directive {
    fn name(self) -> &'static str {
        match self {
            Directive::Default => "ShellCompDirectiveDefault",
            Directive::NoSpace => "ShellCompDirectiveNoSpace, ShellCompDirectiveNoFileComp",
            Directive::NoFileComp => "ShellCompDirectiveNoFileComp",
            Directive::FilterFileExt => "ShellCompDirectiveFilterFileExt",
        }
    }
}

/// Whether a command line is a shell's question what can follow.
pub fn is_question(args: &[String]) -> bool {
    args.first().is_some_and(|word| matches!(word.as_str(), "__complete" | "__completeNoDesc"))
}

/// Answers what can follow `__complete WORD… TYPED`: a line each, perhaps with its meaning behind a tab, then a colon and what
/// the shell is to do.
pub fn answer(args: &[String], context: &mut Context<'_>) -> i32 {
    let Some((typed, before)) = args[1..].split_last() else {
        context.error_line("error: requires at least 1 arg(s), only received 0");
        return 1;
    };
    let with_meaning = args[0] == "__complete";
    let (lines, directive) = told(before, typed, context);
    for (text, meaning) in lines {
        match meaning.lines().next().filter(|line| with_meaning && !line.is_empty()) {
            Some(meaning) => context.line(format!("{text}\t{meaning}")),
            None => context.line(text),
        }
    }
    context.line(format!(":{}", directive as i32));
    context.error_line(format!("Completion ended with directive: {}", directive.name()));
    0
}

fn told(before: &[String], typed: &str, context: &mut Context<'_>) -> (Vec<(String, String)>, Directive) {
    let flags = flag_words(before);
    let flag = typed.split_once('=').filter(|_| typed.starts_with('-')).map(|(flag, _)| flag);
    let flag = flag.or_else(|| awaiting(before, &flags)).and_then(|word| named(word, &flags));
    if flag.is_some_and(|flag| flag.long == "filename") {
        let ends = ["json", "yaml", "yml"].map(|end| (end.to_owned(), String::new()));
        return (ends.into(), Directive::FilterFileExt);
    }
    let namespace = context.namespace.clone();
    let found = words(before, typed, &namespace, &mut Server { context });
    let value = if flag.is_some() { typed.split_once('=').map_or(typed, |(_, value)| value) } else { typed };
    let args = plain(before);
    let (verb, _) = verb_of(&args);
    let meaning = |text: &str, kind: &str| match kind {
        "verb" => help::short(format!("{verb} {text}").trim_start()),
        "flag" => help::option_usage(&verb, text.trim_start_matches('-')),
        _ => String::new(),
    };
    let nothing_known = found.is_empty();
    let found = found.into_iter().filter(|found| found.text.starts_with(value));
    let mut lines: Vec<(String, String)> =
        found.map(|found| (found.text.clone(), meaning(&found.text, &found.kind))).collect();
    lines.sort();
    lines.dedup();
    let open = matches!(&lines[..], [(text, _)] if text.ends_with('='));
    let directive = match flag.is_some() && nothing_known {
        true => Directive::Default,
        false if open => Directive::NoSpace,
        false => Directive::NoFileComp,
    };
    (lines, directive)
}

/// What a server and a kubeconfig know. What they don't answer is not offered.
struct Server<'s, 'a> {
    context: &'s mut Context<'a>,
}

impl Stock for Server<'_, '_> {
    fn kinds(&mut self) -> Vec<KindRef> {
        self.context.api.kinds().unwrap_or_default()
    }

    fn names(&mut self, kind: &KindRef, namespace: &str, typed: &str) -> Vec<String> {
        let request = client::request(ApiVerb::List, kind, namespace, "");
        let listed = self.context.api.request(request).map(|response| response.items()).unwrap_or_default();
        let names = listed.iter().map(|object| object.key.name.to_string());
        names.filter(|name| name.starts_with(typed)).collect()
    }

    fn containers(&mut self, namespace: &str, pod: &str) -> Vec<String> {
        let key = Key::new(namespace, pod);
        let Ok(response) = self.context.api.request(Request::new(&client::actor(), ApiVerb::Get, Pod::kind(), key))
        else {
            return Vec::new();
        };
        let pod = response.object().map(|pod| pod.to_json()).unwrap_or_default();
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect()
    }

    fn contexts(&mut self) -> Vec<String> {
        let words = ["config", "get-contexts", "-o", "name"].map(str::to_owned);
        let mut context = Context::new(&mut *self.context.api, &mut *self.context.files);
        Kubectl.run(&words, &mut context);
        context.take_stdout().lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn every_shell_has_a_script() {
        let mut session = session();
        for shell in super::SHELLS {
            assert!(
                run(&mut session, &format!("kubectl completion {shell}")).contains("kubectl __complete"),
                "{shell}"
            );
        }
        assert!(run(&mut session, "kubectl completion csh").contains("exit code 1"));
        let help = run(&mut session, "kubectl completion -h");
        assert!(help.contains("Output shell completion code for the specified shell"), "{help}");
    }

    #[test]
    fn a_shell_is_told_what_can_follow() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=my-app:1.0\nkubectl create namespace shop");
        let mut told = |line: &str| {
            let told = run(&mut session, &format!("kubectl {line}"));
            told.split_once("Completion ended").map_or(told.clone(), |(told, _)| told.to_owned())
        };
        assert_eq!(told("__complete rollout sta"), "status\tShow the status of the rollout\n:4\n");
        assert_eq!(told("__completeNoDesc rollout sta"), "status\n:4\n");
        assert_eq!(told("__completeNoDesc get deployments w"), "web\n:4\n");
        assert_eq!(told("__completeNoDesc rollout restart deploy/"), "deploy/web\n:4\n");
        assert_eq!(told("__completeNoDesc get pods -n sh"), "shop\n:4\n");
        assert_eq!(told("__completeNoDesc get pods --output=y"), "yaml\n:4\n");
        assert_eq!(told("__completeNoDesc get pods -o jsonp"), "jsonpath=\n:6\n");
        assert_eq!(told("__completeNoDesc apply -f w"), "json\nyaml\nyml\n:8\n");
        assert_eq!(told("__completeNoDesc get pods --selector a"), ":0\n");
        assert!(told("__complete get pods --field-s").starts_with("--field-selector\tSelector (field query)"));
    }
}
