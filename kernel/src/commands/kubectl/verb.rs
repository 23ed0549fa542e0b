//! What a verb is: its name, its flags, and what it does with a call.

use super::super::Context;
use super::failure::{Outcome, message};
use super::flags::{Flag, Parsed};

/// One verb, or one word under a verb: `get`, `rollout status`. What it is for and what its flags mean stands in
/// `help/commands.yaml`.
pub struct Verb {
    pub name: &'static str,
    /// Other names of its last word.
    pub aliases: &'static [&'static str],
    pub flags: &'static [Flag],
    pub run: fn(&mut Call<'_, '_>) -> Outcome,
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

    /// Some flags must be given, of which all that are missing are told at once.
    pub fn require(&self, flags: &[&str]) -> Outcome {
        let missing: Vec<String> =
            flags.iter().filter(|flag| !self.parsed.has(flag)).map(|flag| format!("{flag:?}")).collect();
        if missing.is_empty() { Ok(()) } else { message(format!("required flag(s) {} not set", missing.join(", "))) }
    }
}
