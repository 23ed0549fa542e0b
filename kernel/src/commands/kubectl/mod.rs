//! kubectl: verbs that speak to an API server in requests, and print what kubectl 1.36 prints.
//! <https://kubernetes.io/docs/reference/kubectl/>

mod client;
mod columns;
pub mod complete;
mod custom_columns;
pub mod declare;
mod describe;
mod failure;
mod flags;
mod go_template;
mod help;
mod jsonpath;
mod kustomize;
mod kyaml;
mod manifests;
mod output;
mod raw;
mod resources;
mod typed;
mod unified;
mod verb;
mod verbs;

use super::{Context, Program};
use failure::{Failure, message};
pub use flags::Parsed;
use verb::{Call, Verb};
pub use verbs::completion::{SHELLS, is_question};
pub use verbs::{LAST_APPLIED, config, schema_in, with_common_fields};

/// The first words that kubectl understands.
pub fn verb_names() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    verbs::ALL.iter().filter_map(move |verb| {
        let word = verb.name.split(' ').next().unwrap_or_default();
        (word != std::mem::replace(&mut last, word)).then_some(word)
    })
}

/// The words that can follow a verb, or the words that lead below it: `status` behind `rollout`.
pub fn words_below(parent: &str) -> impl Iterator<Item = &'static str> {
    let below =
        move |name: &'static str| name.strip_prefix(parent)?.strip_prefix(' ').filter(|word| !word.contains(' '));
    verbs::ALL.iter().filter_map(move |verb| below(verb.name))
}

/// A flag as it is typed, and whether a value follows.
pub struct FlagWord {
    pub long: &'static str,
    pub short: Option<char>,
    pub takes_value: bool,
}

/// The flags that can stand in a command line: those of its verb, then those of every verb.
pub fn flag_words(args: &[String]) -> Vec<FlagWord> {
    let own = find_verb(args).map_or(&[][..], |(verb, _)| verb.flags);
    let word = |flag: &flags::Flag| FlagWord {
        long: flag.long,
        short: flag.short,
        takes_value: !matches!(flag.takes, flags::Takes::Switch | flags::Takes::Optional(_)),
    };
    own.iter().chain(flags::GLOBAL).map(word).collect()
}

/// The words that are neither flags nor their values.
pub fn plain(args: &[String]) -> Vec<&str> {
    plain_words(args).into_iter().map(|place| args[place].as_str()).collect()
}

/// The flags of a command line that say which server is meant.
pub fn global_flags(args: &[String]) -> Parsed {
    let own = find_verb(args).map_or(&[][..], |(verb, _)| verb.flags);
    flags::global(args, own)
}

/// Whether a command line is one that no server is asked for.
pub fn is_local(args: &[String]) -> bool {
    find_verb(args)
        .is_ok_and(|(verb, _)| verb.name.starts_with("config") || matches!(verb.name, "kustomize" | "completion"))
}

/// The program that a verb is which is none of kubectl's own, and how many words name it.
pub fn plugin(args: &[String]) -> Option<(std::path::PathBuf, usize)> {
    let first = args.first().filter(|first| !first.starts_with('-') && !is_question(args))?;
    if help::of(&[first]).is_some() { None } else { verbs::plugin::find(args) }
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
        if is_question(args) {
            return verbs::completion::answer(args, context);
        }
        let (command, outcome) = run(args, context);
        match outcome {
            Ok(()) => 0,
            Err(failure) => {
                let text = failure.text(&command);
                if !text.is_empty() {
                    context.error_line(text.strip_suffix('\n').unwrap_or(&text));
                }
                failure.code()
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
    let parsed = match parse(found, &words) {
        Ok(parsed) => parsed,
        Err(failure) => return (command, Err(failure)),
    };
    if parsed.switch("help") {
        let names: Vec<&str> = plain_words(args).into_iter().map(|place| args[place].as_str()).collect();
        context.print(help::of(&names).unwrap_or_default());
        return (command, Ok(()));
    }
    parsed.deprecations(found.flags).for_each(|warning| context.error_line(warning));
    let namespace = parsed.text("namespace").map_or_else(|| context.namespace.clone(), str::to_owned);
    let explicit_namespace = parsed.has("namespace");
    let mut call = Call { context, parsed, namespace, explicit_namespace, command: command.clone() };
    let outcome = (found.run)(&mut call);
    (command, outcome)
}

/// Flags of kubectl's that change nothing which a verb here does or shows.
const INERT: &[&str] = &[
    "allow-missing-template-keys",
    "chunk-size",
    "concurrency",
    "record",
    "show-managed-fields",
    "template",
    "use-protocol-buffers",
];

/// Takes the words apart by the verb's flags. A flag that kubectl has and the verb has not is told as such.
fn parse(verb: &Verb, words: &[String]) -> Result<Parsed, Failure> {
    flags::parse(words, verb.flags).or_else(|problem| {
        let known = help::flags(verb.name);
        let Ok(parsed) = flags::parse(words, &known) else {
            return Err(match verb.name {
                // What diff ends with otherwise says that there are differences.
                "diff" => Failure::Coded(2, Box::new(Failure::Usage(problem))),
                _ => Failure::Flags(problem),
            });
        };
        let lacks = |flag: &&flags::Flag| {
            parsed.has(flag.long) && !verb.flags.iter().any(|own| own.long == flag.long) && !INERT.contains(&flag.long)
        };
        match known.iter().find(lacks) {
            Some(flag) => message(format!("kubectl's flag --{} is not built here", flag.long)),
            None => Ok(parsed),
        }
    })
}

/// The verb that is meant, and the words without its name: as many as lead from one verb to one below it.
fn find_verb(args: &[String]) -> Result<(&'static Verb, Vec<String>), Failure> {
    let places = plain_words(args);
    let Some(&first) = places.first() else {
        let parsed = flags::parse(args, &[]).map_err(Failure::Flags);
        return parsed.map(|_| (&verbs::help::HELP, Vec::new()));
    };
    let (mut found, mut used): (Option<&'static Verb>, usize) = (None, 0);
    for place in &places {
        let Some(verb) = verbs::below(found.map_or("", |verb| verb.name), &args[*place]) else { break };
        (found, used) = (Some(verb), used + 1);
    }
    let Some(found) = found else {
        return match help::of(&[&args[first]]) {
            Some(_) if args.iter().any(|word| word == "-h" || word == "--help") => {
                Ok((&verbs::help::HELP, places.iter().map(|place| args[*place].clone()).collect()))
            }
            Some(_) => message(format!("kubectl's command {:?} is not built here", args[first])),
            None => message(verbs::unknown(&args[first])),
        };
    };
    let rest = args.iter().enumerate().filter(|(index, _)| !places[..used].contains(index));
    Ok((found, rest.map(|(_, word)| word.clone()).collect()))
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
