//! `kubectl help`, `-h`, and what stands where a word below a verb is missing. The texts are data; this file lays them
//! out. (`templater` of k8s.io/kubectl/pkg/util/templates.)

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::flags::{Flag, Takes};
use crate::yaml;

#[derive(Debug, Default, Deserialize)]
struct Texts {
    groups: Vec<Group>,
    commands: Vec<Command>,
    options: BTreeMap<String, Meaning>,
}

/// Commands that the overview puts together.
#[derive(Debug, Deserialize)]
struct Group {
    title: String,
    commands: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Command {
    /// The words after `kubectl`; none for kubectl itself.
    name: String,
    aliases: Vec<String>,
    short: String,
    long: String,
    examples: String,
    usage: String,
    /// Keys of `Texts::options`.
    options: Vec<String>,
}

/// What an option means to some commands.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meaning {
    short: Option<char>,
    r#type: String,
    default: String,
    /// What it means without a value.
    bare: Option<String>,
    hidden: bool,
    deprecated: Option<String>,
    usage: String,
}

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    let document = yaml::read(include_str!("commands.yaml")).ok().and_then(|documents| documents.into_iter().next());
    document.and_then(|document| serde_json::from_value(document.value).ok()).unwrap_or_default()
});

/// The most specific command that the words name, and how many of them do.
fn find(words: &[&str]) -> Option<(&'static Command, usize)> {
    let mut found = TEXTS.commands.iter().find(|command| command.name.is_empty())?;
    for (index, word) in words.iter().enumerate() {
        match children(&found.name).find(|child| last_word(child) == *word || child.aliases.iter().any(|a| a == word)) {
            Some(child) => found = child,
            None => return Some((found, index)),
        }
    }
    Some((found, words.len()))
}

/// The commands right below one.
fn children(parent: &'static str) -> impl Iterator<Item = &'static Command> {
    TEXTS.commands.iter().filter(move |command| match parent {
        "" => !command.name.is_empty() && !command.name.contains(' '),
        parent => command.name.rsplit_once(' ').is_some_and(|(above, _)| above == parent),
    })
}

fn last_word(command: &'static Command) -> &'static str {
    command.name.rsplit(' ').next().unwrap_or_default()
}

/// The names of the commands right below kubectl.
pub fn names() -> impl Iterator<Item = &'static str> {
    children("").map(|command| command.name.as_str())
}

/// What a command is for, in a line.
pub fn short(name: &str) -> String {
    TEXTS.commands.iter().find(|command| command.name == name).map(|command| command.short.clone()).unwrap_or_default()
}

/// What a flag of a command means, or one of all commands.
pub fn option_usage(name: &str, flag: &str) -> String {
    let commands = [name, ""].into_iter().filter_map(|name| TEXTS.commands.iter().find(|known| known.name == name));
    let key = commands.flat_map(|command| &command.options).find(|key| long(key) == flag);
    key.and_then(|key| TEXTS.options.get(key)).map(|meaning| meaning.usage.clone()).unwrap_or_default()
}

/// The help of the command that these words begin with; `None` if the first word is none.
pub fn of(words: &[&str]) -> Option<String> {
    let (command, used) = find(words)?;
    (used > 0 || words.is_empty()).then(|| text(command))
}

/// The options that kubectl has for a command of this name.
pub fn flags(name: &str) -> Vec<Flag> {
    let words: Vec<&str> = name.split(' ').collect();
    let Some((command, _)) = find(&words) else { return Vec::new() };
    let meanings = command.options.iter().filter_map(|key| TEXTS.options.get_key_value(key));
    meanings
        .map(|(key, meaning)| Flag {
            long: long(key),
            short: meaning.short,
            takes: match (meaning.r#type.as_str(), &meaning.bare) {
                ("bool", _) => Takes::Switch,
                (_, Some(bare)) => Takes::Optional(bare),
                ("int" | "int32" | "int64", None) => Takes::Integer,
                ("duration", None) => Takes::Duration,
                _ => Takes::Text,
            },
            deprecated: None,
        })
        .collect()
}

/// `filename/2` is the second meaning of `--filename`.
fn long(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}

const PADDING_MIN: usize = 11;

fn text(command: &'static Command) -> String {
    // What it prints is all that there is to say of it.
    if command.name == "options" {
        return String::new();
    }
    let Command { name, aliases, short, long, examples, usage, options } = command;
    let mut sections = vec![if long.is_empty() { short } else { long }.trim().to_owned()];
    if !aliases.is_empty() {
        sections.push(format!("Aliases:\n{}, {}", last_word(command), aliases.join(", ")));
    }
    if !examples.is_empty() {
        let lines: Vec<String> = examples.lines().map(|line| format!("  {line}")).collect();
        sections.push(format!("Examples:\n{}", lines.join("\n")));
    }
    let below: Vec<&Command> = children(name).collect();
    if !below.is_empty() {
        sections.push(overview(name, &below));
    }
    if !name.is_empty() {
        let shown: Vec<String> = options.iter().filter_map(|key| option(key)).collect();
        if !shown.is_empty() {
            sections.push(format!("Options:\n{}", shown.join("\n\n")));
        }
    }
    sections.push(format!("Usage:\n  kubectl {usage}"));
    let mut text = sections.join("\n\n") + "\n\n";
    if !below.is_empty() {
        let path = if name.is_empty() { "kubectl".to_owned() } else { format!("kubectl {name}") };
        text.push_str(&format!("Use \"{path} <command> --help\" for more information about a given command.\n"));
    }
    text.push_str("Use \"kubectl options\" for a list of global command-line options (applies to all commands).\n");
    text
}

/// The commands below one, a line each: those of kubectl in groups.
fn overview(name: &str, below: &[&'static Command]) -> String {
    let width = below.iter().map(|child| last_word(child).len()).max().unwrap_or(0).max(PADDING_MIN);
    let line =
        |child: &&Command| format!("\n  {:width$}   {}", child.name.rsplit(' ').next().unwrap_or(""), child.short);
    if !name.is_empty() {
        let lines: String = below.iter().map(line).collect();
        return format!("Available Commands:{lines}");
    }
    let group = |group: &Group| {
        let members = group.commands.iter().filter_map(|name| below.iter().find(|child| child.name == *name));
        let lines: String = members.map(line).collect();
        format!("{}{lines}", group.title)
    };
    TEXTS.groups.iter().map(group).collect::<Vec<_>>().join("\n\n")
}

/// An option with its default and its meaning; `None` for one that is not shown.
fn option(key: &str) -> Option<String> {
    let meaning = TEXTS.options.get(key).filter(|meaning| !meaning.hidden && meaning.deprecated.is_none())?;
    let short = meaning.short.map_or(String::new(), |short| format!("-{short}, "));
    let quote = if meaning.r#type == "string" { "'" } else { "" };
    let usage = meaning.usage.replace('\n', " ");
    Some(format!("    {short}--{}={quote}{}{quote}:\n\t{usage}", long(key), meaning.default))
}

/// `kubectl options`: what every command takes.
pub fn global_options() -> String {
    let mut text = String::from("The following options can be passed to any command:\n\n");
    let root = TEXTS.commands.iter().find(|command| command.name.is_empty());
    for shown in root.into_iter().flat_map(|root| &root.options).filter_map(|key| option(key)) {
        text.push_str(&format!("{shown}\n\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::verbs;
    use super::*;

    #[test]
    fn every_verb_has_its_texts() {
        for verb in verbs::ALL {
            let command = TEXTS.commands.iter().find(|command| command.name == verb.name);
            let command = command.unwrap_or_else(|| panic!("{} is no command of kubectl", verb.name));
            let known = flags(&command.name);
            for flag in verb.flags {
                let found = known.iter().find(|known| known.long == flag.long);
                let found = found.unwrap_or_else(|| panic!("kubectl {} has no --{}", verb.name, flag.long));
                assert_eq!(
                    (found.short, found.takes),
                    (flag.short, flag.takes),
                    "kubectl {} --{}",
                    verb.name,
                    flag.long
                );
            }
            let mut aliases: Vec<&str> = command.aliases.iter().map(String::as_str).collect();
            aliases.sort_unstable();
            let mut own = verb.aliases.to_vec();
            own.sort_unstable();
            assert_eq!(own, aliases, "other names of kubectl {}", verb.name);
        }
    }

    #[test]
    fn a_command_is_told_as_kubectl_tells_it() {
        let help = of(&["rollout", "undo"]).unwrap();
        assert!(help.starts_with("Roll back to a previous rollout.\n\nExamples:\n  # Roll back to"), "{help}");
        assert!(help.contains(
            "\n    --to-revision=0:\n\tThe revision to rollback to. Default to 0 (last revision).\n\nUsage:\n"
        ));
        assert!(help.contains("  kubectl rollout undo deployment/abc\n  \n  # Roll back to daemonset"), "{help}");
        assert!(of(&["set"]).unwrap().contains("\nAvailable Commands:\n  env              Update environment"));
        assert!(of(&[]).unwrap().contains("\nDeploy Commands:\n  rollout         Manage the rollout"));
        assert!(of(&["frobnicate"]).is_none());
    }
}
