//! Manifests: read the way kubectl reads them, with everything's place, and printed the way `kubectl get -o yaml` prints.
//!
//! kubectl cuts its input at `---` lines, takes what looks like JSON as JSON and the rest as YAML 1.1 (`yes` is a boolean,
//! `0644` is octal), all by way of sigs.k8s.io/yaml and go-yaml v2. The text goes through this room in this order:
//! [`read`] cuts → `json` or `compose` builds the value and its places → `resolve` settles the types of words →
//! `complain` puts errors into plain words. The way back is [`print`].

mod complain;
mod compose;
mod fields;
mod json;
mod place;
mod print;
mod resolve;
mod source;

use std::fmt;

use serde_json::Value;

pub use place::{Span, underline};
pub use print::print;

/// One document of a manifest that says anything.
#[derive(Debug, Clone)]
pub struct Document {
    pub value: Value,
    /// The line on which the document's content starts, from 1.
    pub line: u32,
    /// What kubectl takes without a word, but nobody writes on purpose.
    pub warnings: Vec<Warning>,
    /// Keys that a map gives twice, as a strict go-yaml tells of them: `line 5: key "data" already set in map`.
    pub repeated: Vec<String>,
    places: place::Places,
}

impl Document {
    /// Where the value of a field stands, for a path as the API's errors write it: `spec.containers[0].image`,
    /// `metadata.labels[app.kubernetes.io/name]`. Lists and maps are shown by their key. Of a path that is not there, the
    /// nearest parent that is.
    pub fn place(&self, path: &str) -> Span {
        place::shown(&self.places, &self.value, path)
    }

    /// Where the key of a field stands; `None` for items of lists and for the document itself.
    pub fn key_place(&self, path: &str) -> Option<Span> {
        place::nearest(&self.places, &self.value, path).key
    }
}

/// Something in a document that is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub span: Span,
    pub message: String,
}

/// Why a text is no manifest: the place, what was expected there, and what may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
    /// The text ends too early: typing on may make it right.
    pub unfinished: bool,
    /// The same in the words of Go's libraries, which clients of the API know.
    go: Option<String>,
}

impl SyntaxError {
    fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None, unfinished: false, go: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    fn go_yaml(self, words: impl fmt::Display) -> Self {
        self.go(format!("yaml: {words}"))
    }

    fn go(self, words: String) -> Self {
        Self { go: Some(words), ..self }
    }

    /// What kube-apiserver says: `yaml: line 3: mapping values are not allowed in this context`.
    pub fn in_go_words(&self) -> String {
        self.go.clone().unwrap_or_else(|| format!("yaml: line {}: {}", self.span.line, self.message))
    }

    fn too_deep(span: Span) -> Self {
        Self::new(span, format!("nested deeper than {} levels", compose::DEPTH_MAX))
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.span.line, self.span.column, self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// Reads the documents of a manifest; those that are empty, comments alone or `null` are left out, as kubectl does.
pub fn read(text: &str) -> Result<Vec<Document>, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let parts = cut(text);
    let last = parts.len() - 1;
    for (index, (chunk, line)) in parts.into_iter().enumerate() {
        let mut cursor = json::Cursor::new(chunk, line);
        let (values, end) = json::values(chunk);
        for value in values {
            cursor.advance_to(value.start);
            documents.push(json::read(&mut cursor)?);
        }
        cursor.advance_to(end);
        compose::documents(&chunk[end..], cursor.span(0), &mut documents).map_err(|error| {
            // A break that the next document cannot mend is no matter of typing on.
            SyntaxError { unfinished: error.unfinished && index == last, ..error }
        })?;
    }
    documents.retain(|document| !document.value.is_null());
    Ok(documents)
}

/// Reads the first document of a text as the API reads a body: what follows it is not looked at.
pub fn first(text: &str) -> Result<Option<Document>, SyntaxError> {
    let origin = Span { line: 1, column: 1, length: 0 };
    compose::first(text.strip_prefix('\u{feff}').unwrap_or(text), origin)
}

/// How far a text that is being typed has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    /// A quote, a bracket or a brace is still open, or the last key still lacks its colon.
    Incomplete,
    /// More text will not mend it.
    Invalid,
}

/// Whether a manifest could be run as it stands, for Jupyter's `is_complete_request`.
pub fn completeness(text: &str) -> Completeness {
    match read(text) {
        Ok(_) => Completeness::Complete,
        Err(error) if error.unfinished => Completeness::Incomplete,
        Err(_) => Completeness::Invalid,
    }
}

/// Cuts the text at its `---` lines, as the stream reader of apimachinery does, each part with the number of its first line.
fn cut(text: &str) -> Vec<(&str, u32)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut end) = (0, 1, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let after = end + line.len();
        let separator = line.strip_prefix("---").map(str::trim);
        if separator.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
            parts.push((&text[start..end], start_line));
            (start, start_line) = (after, number + 1);
        }
        end = after;
    }
    parts.push((&text[start..], start_line));
    parts
}

#[cfg(test)]
mod tests;
