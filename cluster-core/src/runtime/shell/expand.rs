//! What words come to: parameters, sums, outputs of commands, names of files.

use super::arithmetic::{self, Variables};
use super::files::absolute;
use super::pattern;
use super::words::{Piece, Word};
use super::{Script, Surroundings};

/// How deep `$( )` may be nested.
const DEPTH_MAX: usize = 10;

/// Why a word has no text yet.
pub(super) enum Missing {
    /// The output of this script has to be there first.
    Output(String),
    /// It can't be expanded; what the shell says.
    Refused(String),
}

/// A field on its way: as text, and as a pattern in which quoted characters stand behind a backslash.
#[derive(Default)]
struct Field {
    text: String,
    pattern: String,
    is_pattern: bool,
    /// It is there even if it is empty.
    quoted: bool,
}

impl Field {
    fn bare(&mut self, text: &str) {
        self.text.push_str(text);
        self.pattern.push_str(text);
        self.is_pattern |= text.contains(['*', '?', '[']);
    }

    fn quoted(&mut self, text: &str) {
        self.quoted = true;
        self.text.push_str(text);
        for c in text.chars() {
            if "*?[]\\-!".contains(c) {
                self.pattern.push('\\');
            }
            self.pattern.push(c);
        }
    }
}

/// What one piece comes to.
enum Value {
    One(String),
    /// `"$@"`
    Each(Vec<String>),
}

impl Variables for Script {
    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    fn set(&mut self, name: &str, value: i64) {
        self.variables.insert(name.to_owned(), value.to_string());
    }
}

impl Script {
    /// The text of a word that is not split: a value, a file's name.
    pub(super) fn text(&mut self, word: &Word, used: &mut usize) -> Result<String, Missing> {
        self.joined(word, used).map(|field| field.text)
    }

    /// The same as a pattern.
    pub(super) fn pattern(&mut self, word: &Word, used: &mut usize) -> Result<String, Missing> {
        self.joined(word, used).map(|field| field.pattern)
    }

    fn joined(&mut self, word: &Word, used: &mut usize) -> Result<Field, Missing> {
        let mut field = Field::default();
        for (index, piece) in word.0.iter().enumerate() {
            match piece {
                Piece::Text(text) if index == 0 => field.bare(&self.home_for_tilde(text)),
                Piece::Text(text) => field.bare(text),
                Piece::Quoted(text) => field.quoted(text),
                piece => {
                    let text = match self.value(piece, used)? {
                        Value::One(text) => text,
                        Value::Each(texts) => texts.join(" "),
                    };
                    if is_quoted(piece) { field.quoted(&text) } else { field.bare(&text) }
                }
            }
        }
        Ok(field)
    }

    fn home_for_tilde(&self, text: &str) -> String {
        let home = self.variables.get("HOME").map_or("/", String::as_str);
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => text.to_owned(),
        }
    }

    /// A word's fields: what is not quoted is split at blanks, and patterns become the names of files.
    pub(super) fn fields(
        &mut self,
        word: &Word,
        used: &mut usize,
        around: &Surroundings<'_>,
    ) -> Result<Vec<String>, Missing> {
        let mut done: Vec<Field> = Vec::new();
        let mut field = Field::default();
        let separators = self.variables.get("IFS").cloned().unwrap_or_else(|| " \t\n".into());
        for (index, piece) in word.0.iter().enumerate() {
            match piece {
                Piece::Text(text) if index == 0 => field.bare(&self.home_for_tilde(text)),
                Piece::Text(text) => field.bare(text),
                Piece::Quoted(text) => field.quoted(text),
                piece => match self.value(piece, used)? {
                    Value::One(text) if is_quoted(piece) => field.quoted(&text),
                    Value::One(text) => {
                        for (index, part) in text.split(|c| separators.contains(c)).enumerate() {
                            if index > 0 && (field.quoted || !field.text.is_empty()) {
                                done.push(std::mem::take(&mut field));
                            }
                            field.bare(part);
                        }
                    }
                    Value::Each(texts) => {
                        for (index, text) in texts.iter().enumerate() {
                            if index > 0 {
                                done.push(std::mem::take(&mut field));
                            }
                            field.quoted(text);
                        }
                    }
                },
            }
        }
        if field.quoted || !field.text.is_empty() {
            done.push(field);
        }
        Ok(done.into_iter().flat_map(|field| self.names(field, around)).collect())
    }

    /// The files that a field means, if it is a pattern that some match.
    fn names(&self, field: Field, around: &Surroundings<'_>) -> Vec<String> {
        if !field.is_pattern {
            return vec![field.text];
        }
        let is_absolute = field.pattern.starts_with('/');
        let mut found = vec![if is_absolute { "/".to_owned() } else { String::new() }];
        for part in field.pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for folder in found {
                for (name, _) in around.files.list(&absolute(&self.folder, &folder)) {
                    if (!name.starts_with('.') || part.starts_with('.')) && pattern::matches(part, &name) {
                        let slash = if folder.is_empty() || folder.ends_with('/') { "" } else { "/" };
                        next.push(format!("{folder}{slash}{name}"));
                    }
                }
            }
            found = next;
        }
        if found.is_empty() { vec![field.text] } else { found }
    }

    fn value(&mut self, piece: &Piece, used: &mut usize) -> Result<Value, Missing> {
        match piece {
            Piece::Text(text) | Piece::Quoted(text) => Ok(Value::One(text.clone())),
            Piece::Sum { sum, .. } => {
                let text = self.text(sum, used)?;
                let value = arithmetic::evaluate(&text, self).map_err(Missing::Refused)?;
                Ok(Value::One(value.to_string()))
            }
            Piece::Output { .. } if self.depth >= DEPTH_MAX => Ok(Value::One(String::new())),
            Piece::Output { script, .. } => {
                *used += 1;
                let output = self.captured.get(*used - 1).ok_or_else(|| Missing::Output(script.clone()))?;
                Ok(Value::One(output.trim_end_matches('\n').to_owned()))
            }
            Piece::Parameter { name, action: None, quoted } if name == "@" && *quoted => {
                Ok(Value::Each(self.arguments.clone()))
            }
            Piece::Parameter { name, action, .. } => self.parameter(name, action.as_ref(), used).map(Value::One),
        }
    }

    fn named(&self, name: &str) -> Option<String> {
        let special = match name {
            "?" => self.status.to_string(),
            "#" => self.arguments.len().to_string(),
            "@" | "*" => self.arguments.join(" "),
            "$" => "1".to_owned(),
            "!" => self.last_job.map(|number| number.to_string()).unwrap_or_default(),
            "-" => String::new(),
            "0" => self.name.clone(),
            name => match name.parse::<usize>() {
                Ok(number) => return self.arguments.get(number.checked_sub(1)?).cloned(),
                Err(_) => return self.variables.get(name).cloned(),
            },
        };
        Some(special)
    }

    fn parameter(
        &mut self,
        name: &str,
        action: Option<&(&'static str, Word)>,
        used: &mut usize,
    ) -> Result<String, Missing> {
        let value = self.named(name);
        let Some((action, word)) = action else {
            return match value {
                None if self.options.contains('u') => Err(Missing::Refused(format!("{name}: parameter not set"))),
                value => Ok(value.unwrap_or_default()),
            };
        };
        let has_text = value.as_ref().is_some_and(|text| !text.is_empty());
        let is_set = if action.starts_with(':') { has_text } else { value.is_some() };
        let value = value.unwrap_or_default();
        match *action {
            "length" => Ok(value.chars().count().to_string()),
            ":-" | "-" if is_set => Ok(value),
            ":-" | "-" => self.text(word, used),
            ":=" | "=" if is_set => Ok(value),
            ":=" | "=" => {
                let text = self.text(word, used)?;
                self.variables.insert(name.to_owned(), text.clone());
                Ok(text)
            }
            ":+" | "+" if is_set => self.text(word, used),
            ":+" | "+" => Ok(String::new()),
            ":?" | "?" if is_set => Ok(value),
            ":?" | "?" => {
                let text = self.text(word, used)?;
                let text = if text.is_empty() { "parameter not set or null".to_owned() } else { text };
                Err(Missing::Refused(format!("{name}: {text}")))
            }
            ":" => {
                let range = self.text(word, used)?;
                let (from, length) = range.split_once(':').map_or((range.as_str(), None), |(a, b)| (a, Some(b)));
                let from = from.trim().parse::<usize>().unwrap_or(0);
                let length = length.map_or(usize::MAX, |length| length.trim().parse().unwrap_or(0));
                Ok(value.chars().skip(from).take(length).collect())
            }
            "/" | "//" => {
                let text = self.pattern(word, used)?;
                let (old, new) = text.split_once('/').unwrap_or((&text, ""));
                let (old, new) = (old.replace('\\', ""), new.replace('\\', ""));
                if old.is_empty() {
                    return Ok(value);
                }
                Ok(if *action == "//" { value.replace(&old, &new) } else { value.replacen(&old, &new, 1) })
            }
            cut => {
                let wanted = self.pattern(word, used)?;
                Ok(trimmed(&value, &wanted, cut).to_owned())
            }
        }
    }
}

fn is_quoted(piece: &Piece) -> bool {
    match piece {
        Piece::Quoted(_) => true,
        Piece::Text(_) => false,
        Piece::Parameter { quoted, .. } | Piece::Sum { quoted, .. } | Piece::Output { quoted, .. } => *quoted,
    }
}

/// A value without what a pattern matches at its beginning (`#`) or end (`%`); doubled, as much as possible.
fn trimmed<'a>(value: &'a str, wanted: &str, cut: &str) -> &'a str {
    let ends = value.char_indices().map(|(at, _)| at).chain([value.len()]);
    let mut ends: Vec<usize> = ends.collect();
    let at_start = cut.starts_with('#');
    if at_start == (cut.len() == 2) {
        ends.reverse();
    }
    let found = ends.into_iter().find(|at| {
        let (start, rest) = value.split_at(*at);
        pattern::matches(wanted, if at_start { start } else { rest })
    });
    match found {
        Some(at) if at_start => &value[at..],
        Some(at) => &value[..at],
        None => value,
    }
}
