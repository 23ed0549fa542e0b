//! kubectl: verbs that speak to an API server in requests, and print what kubectl 1.36 prints.
//! <https://kubernetes.io/docs/reference/kubectl/>

mod client;
mod columns;
mod custom_columns;
pub mod declare;
mod describe;
mod failure;
mod flags;
mod go_template;
mod jsonpath;
mod kyaml;
mod manifests;
mod output;
mod raw;
mod resources;
mod verb;
mod verbs;

use super::{Context, Program};
use failure::Failure;
pub use flags::{Parsed, global as global_flags};
use verb::{Call, Verb};
pub use verbs::LAST_APPLIED;

/// The first words that kubectl understands.
pub fn verb_names() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    verbs::ALL.iter().filter_map(move |verb| {
        let word = verb.name.split(' ').next().unwrap_or_default();
        (word != std::mem::replace(&mut last, word)).then_some(word)
    })
}

pub struct Kubectl;

impl Program for Kubectl {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn about(&self) -> &'static str {
        "controls the Kubernetes cluster"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let (command, outcome) = run(args, context);
        match outcome {
            Ok(()) => 0,
            Err(failure) => {
                let text = failure.text(&command);
                if !text.is_empty() {
                    context.error_line(text.strip_suffix('\n').unwrap_or(&text));
                }
                if let Failure::Command(code) = failure { code } else { 1 }
            }
        }
    }
}

/// Runs a command line; also returns how the command is called, for the help that an error points to.
fn run(args: &[String], context: &mut Context<'_>) -> (String, failure::Outcome) {
    let (found, words) = match find_verb(args) {
        Ok(found) => found,
        Err(failure) => return ("kubectl".into(), Err(failure)),
    };
    let command = format!("kubectl {}", found.name);
    let parsed = match flags::parse(&words, found.flags) {
        Ok(parsed) => parsed,
        Err(problem) => return (command, Err(Failure::Flags(problem))),
    };
    if parsed.switch("help") {
        context.print(found.help());
        return (command, Ok(()));
    }
    let namespace = parsed.text("namespace").map_or_else(|| context.namespace.clone(), str::to_owned);
    let explicit_namespace = parsed.has("namespace");
    let mut call = Call { context, parsed, namespace, explicit_namespace, command: command.clone() };
    let outcome = (found.run)(&mut call);
    (command, outcome)
}

/// The verb that is meant, and the words without it. Verbs of two words come first: `rollout status`.
fn find_verb(args: &[String]) -> Result<(&'static Verb, Vec<String>), Failure> {
    let places = plain_words(args);
    let Some(&first) = places.first() else {
        return if args.iter().any(|word| word == "-h" || word == "--help") || args.is_empty() {
            Err(Failure::Raw(verbs::overview()))
        } else {
            match flags::parse(args, &[]) {
                Err(problem) => Err(Failure::Message(format!("{problem}\nSee 'kubectl --help' for usage."))),
                Ok(_) => Err(Failure::Raw(verbs::overview())),
            }
        };
    };
    let without = |skipped: &[usize]| -> Vec<String> {
        let kept = args.iter().enumerate().filter(|(index, _)| !skipped.contains(index));
        kept.map(|(_, word)| word.clone()).collect()
    };
    if let Some(&second) = places.get(1)
        && let Some(verb) = verbs::find(&[&args[first], &args[second]])
    {
        return Ok((verb, without(&[first, second])));
    }
    match verbs::find(&[&args[first]]) {
        Some(verb) => Ok((verb, without(&[first]))),
        None => Err(Failure::Message(verbs::unknown(&args[first]))),
    }
}

/// The places of the words that are neither flags nor, as far as can be told before the verb is known, their values.
fn plain_words(args: &[String]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut index = 0;
    while index < args.len() && args[index] != "--" {
        let word = &args[index];
        if !word.starts_with('-') {
            places.push(index);
        } else if !word.contains('=') && takes_value(word) {
            index += 1;
        }
        index += 1;
    }
    places
}

fn takes_value(word: &str) -> bool {
    let is = |flag: &&flags::Flag| match word.strip_prefix("--") {
        Some(long) => flag.long == long,
        None => word.chars().count() == 2 && flag.short == word.chars().nth(1),
    };
    let known = flags::GLOBAL.iter().find(is).or_else(|| verbs::ALL.iter().flat_map(|verb| verb.flags).find(is));
    known.is_some_and(|flag| !matches!(flag.takes, flags::Takes::Switch | flags::Takes::Optional(_)))
}

#[cfg(test)]
mod tests;
