//! What a verb is: its name, its flags, and what it does with a call.

use super::super::Context;
use super::failure::Outcome;
use super::flags::{Flag, Parsed, Takes};

/// One verb, or one word under a verb: `get`, `rollout status`.
pub struct Verb {
    pub name: &'static str,
    /// Other names of its last word.
    pub aliases: &'static [&'static str],
    /// One sentence, as the overview of verbs has it.
    pub about: &'static str,
    /// The command line after `kubectl`.
    pub usage: &'static str,
    pub flags: &'static [Flag],
    pub run: fn(&mut Call<'_, '_>) -> Outcome,
}

impl Verb {
    /// What `-h` prints.
    pub fn help(&self) -> String {
        let mut text = format!("{}.\n", self.about);
        if !self.flags.is_empty() {
            text.push_str("\nOptions:\n");
            let mut flags: Vec<&Flag> = self.flags.iter().collect();
            flags.sort_by_key(|flag| flag.long);
            for flag in flags {
                let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
                let value = match flag.takes {
                    Takes::Switch => "=false".to_owned(),
                    Takes::Text => "=''".to_owned(),
                    Takes::Integer => "=0".to_owned(),
                    Takes::Duration => "=0s".to_owned(),
                    Takes::Optional(value) => format!("='{value}'"),
                };
                text.push_str(&format!("    {short}--{}{value}\n", flag.long));
            }
        }
        text.push_str(&format!("\nUsage:\n  kubectl {}\n\n", self.usage));
        text.push_str("Use \"kubectl options\" for a list of global command-line options (applies to all commands).\n");
        text
    }
}

/// One call of a verb.
pub struct Call<'c, 'a> {
    pub context: &'c mut Context<'a>,
    pub parsed: Parsed,
    pub namespace: String,
    /// `-n` was given.
    pub explicit_namespace: bool,
    /// `kubectl get`
    pub command: String,
}

impl Call<'_, '_> {
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.context.line(text);
    }

    pub fn warn(&mut self, text: impl AsRef<str>) {
        self.context.error_line(format!("Warning: {}", text.as_ref()));
    }
}
