//! YAML: the events of libyaml, which go-yaml descends from, put together into values and their places.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Event, EventData, Mark, Parser, ScalarStyle};
use serde_json::Value;

use super::complain::{complain, control_character};
use super::fields::{Fields, Name, Remarks};
use super::place::{Inner, Places, Span};
use super::resolve::{Scalar, Unfit, resolve, short_tag};
use super::source::Source;
use super::{Document, SyntaxError, Warning};

/// Lists and maps within each other. serde_json, and so every client and server built on it, reads no more.
pub(super) const DEPTH_MAX: usize = 127;
/// What anchors and aliases may copy in one text, in bytes. A manifest is refused by the API from 3 MiB on.
const COPIED_BYTES_MAX: usize = 32 << 20;
/// About the bytes that a value takes besides its text.
const NODE_BYTES: usize = 64;

/// Reads the YAML documents in the text and appends them. `origin` is the place of the text's first character.
pub(super) fn documents(text: &str, origin: Span, documents: &mut Vec<Document>) -> Result<(), SyntaxError> {
    read(Source { text, origin }, |document| {
        documents.push(document);
        ControlFlow::Continue(())
    })
}

/// Reads no further than the end of the first document.
pub(super) fn first(text: &str, origin: Span) -> Result<Option<Document>, SyntaxError> {
    let mut first = None;
    read(Source { text, origin }, |document| {
        first = Some(document);
        ControlFlow::Break(())
    })?;
    Ok(first)
}

fn read(source: Source, mut take: impl FnMut(Document) -> ControlFlow<()>) -> Result<(), SyntaxError> {
    if let Some(error) = control_character(source) {
        return Err(error);
    }
    let mut parser = Parser::new();
    // kubectl's reader ends every line with a newline, the last one too.
    let newline = if source.text.ends_with('\n') { "" } else { "\n" };
    parser.set_input(source.text.as_bytes().chain(newline.as_bytes()));
    let mut composer = Composer::new(source);
    let mut last = Mark::default();
    loop {
        let event = next_event(&mut parser, source, last)?;
        last = event.end_mark;
        if matches!(event.data, EventData::StreamEnd) {
            return Ok(());
        }
        if let Some(document) = composer.take(event)?
            && take(document).is_break()
        {
            return Ok(());
        }
    }
}

/// The parser panics on a few broken tags, where libyaml has an error; that is an error here, too.
fn next_event<R: BufRead>(parser: &mut Parser<R>, source: Source, last: Mark) -> Result<Event, SyntaxError> {
    match catch_unwind(AssertUnwindSafe(|| parser.parse())) {
        Ok(Ok(event)) => Ok(event),
        Ok(Err(error)) => Err(complain(&error, source)),
        Err(_) => Err(SyntaxError::new(source.rest_of_line(last), "a tag (`!name`) is not followed by a space")
            .hint("put text that starts with `!` in quotes")
            .go_yaml("did not find expected whitespace or line break")),
    }
}

/// How much a value holds: what copying it costs.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    /// Levels of lists and maps.
    height: usize,
}

impl Size {
    fn add(&mut self, inner: Size) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.height = self.height.max(inner.height + 1);
    }
}

#[derive(Debug, Clone)]
struct Node {
    value: Value,
    places: Places,
    size: Size,
}

#[derive(Debug)]
enum Anchor {
    /// The collection at this depth, not yet at its end.
    Open(usize),
    Closed(Node),
}

#[derive(Debug)]
enum Key {
    Field(Name, Span),
    /// `<<`, which takes over the fields of another map: <https://yaml.org/type/merge.html>.
    Merge(Span),
}

/// A list or a map of which the end has not been seen.
#[derive(Debug)]
struct Frame {
    anchor: Option<String>,
    span: Span,
    size: Size,
    body: Body,
}

#[derive(Debug)]
enum Body {
    List(Vec<Value>, Vec<Places>),
    Map(Fields, Option<Key>),
}

struct Composer<'a> {
    source: Source<'a>,
    /// The words after a `*` anywhere in the text: other anchors need not be kept.
    aliases: HashSet<&'a str>,
    frames: Vec<Frame>,
    anchors: HashMap<String, Anchor>,
    remarks: Remarks,
    root: Option<Node>,
    /// Of the scalar at hand: a later line of it looks like a list item.
    has_item_below: bool,
    nodes: usize,
    aliased_nodes: usize,
    copied_bytes: usize,
}

impl<'a> Composer<'a> {
    fn new(source: Source<'a>) -> Self {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = |text: &'a str| &text[..text.find(|c| !is_name(c)).unwrap_or(text.len())];
        Self {
            source,
            aliases: source.text.match_indices('*').map(|(at, _)| name(&source.text[at + 1..])).collect(),
            frames: Vec::new(),
            anchors: HashMap::new(),
            remarks: Remarks::default(),
            root: None,
            has_item_below: false,
            nodes: 0,
            aliased_nodes: 0,
            copied_bytes: 0,
        }
    }

    /// Takes the next event; the last one of a document gives the document.
    fn take(&mut self, event: Event) -> Result<Option<Document>, SyntaxError> {
        let span = self.source.event_span(&event);
        let plain = matches!(event.data, EventData::Scalar { style: ScalarStyle::Plain, .. });
        self.has_item_below = plain && event.end_mark.line > event.start_mark.line && {
            let text = self.source.after(event.start_mark);
            let lines = (event.end_mark.line - event.start_mark.line) as usize;
            text.lines().skip(1).take(lines).any(|line| line.trim_start().starts_with("- "))
        };
        match event.data {
            EventData::DocumentStart { .. } => {
                self.anchors.clear();
                self.nodes = 1;
                self.aliased_nodes = 0;
            }
            EventData::DocumentEnd { .. } => {
                let Remarks { warnings, repeated } = std::mem::take(&mut self.remarks);
                return Ok(self.root.take().map(|root| Document {
                    value: root.value,
                    line: root.places.value.line,
                    warnings,
                    repeated,
                    places: root.places,
                }));
            }
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                self.scalar(anchor, tag.as_deref(), value, plain && plain_implicit, span)?;
            }
            EventData::Alias { anchor } => self.alias(&anchor, span)?,
            EventData::SequenceStart { anchor, .. } => self.open(anchor, span, Body::List(Vec::new(), Vec::new()))?,
            EventData::MappingStart { anchor, .. } => self.open(anchor, span, Body::Map(Fields::default(), None))?,
            EventData::SequenceEnd | EventData::MappingEnd => self.close()?,
            EventData::StreamStart { .. } | EventData::StreamEnd => {}
        }
        Ok(None)
    }

    fn expects_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { body: Body::Map(_, None), .. }))
    }

    fn set_key(&mut self, key: Key) {
        if let Some(Frame { body: Body::Map(_, pending), .. }) = self.frames.last_mut() {
            *pending = Some(key);
        }
    }

    fn scalar(
        &mut self,
        anchor: Option<String>,
        tag: Option<&str>,
        text: String,
        plain: bool,
        span: Span,
    ) -> Result<(), SyntaxError> {
        let is_merge =
            text == "<<" && if tag.is_some() { tag.map(short_tag).as_deref() == Some("!!merge") } else { plain };
        if is_merge && self.expects_key() {
            self.set_key(Key::Merge(span));
            return Ok(());
        }
        if plain {
            self.warn_of_mistaken_text(&text, span);
        }
        let size = Size { nodes: 1, bytes: text.len() + NODE_BYTES, height: 0 };
        self.nodes += 1;
        let scalar = match tag {
            None if !plain => Scalar::Text(text),
            tag => resolve(tag, &text).map_err(|Unfit { found, wanted }| {
                SyntaxError::new(span, format!("`{text}` cannot be read as {wanted}"))
                    .go_yaml(format_args!("cannot decode {found} `{text}` as a {wanted}"))
            })?,
        };
        if self.expects_key() {
            if let (Some(anchor), Some(value)) = (anchor, scalar.clone().into_value()) {
                let places = Places { key: None, value: span, inner: Inner::Scalar };
                self.keep(anchor, &Node { value, places, size }, span)?;
            }
            return self.key(scalar, span);
        }
        let infinity = match scalar {
            Scalar::Float(float) if float.is_nan() => "NaN",
            Scalar::Float(float) if float < 0.0 => "-Inf",
            _ => "+Inf",
        };
        let Some(value) = scalar.into_value() else {
            return Err(SyntaxError::new(span, "JSON has no infinity and no NaN: a finite number was expected")
                .hint("put it in quotes if text is meant")
                .go(format!("json: unsupported value: {infinity}")));
        };
        let node = Node { value, places: Places { key: None, value: span, inner: Inner::Scalar }, size };
        if let Some(anchor) = anchor {
            self.keep(anchor, &node, span)?;
        }
        self.add(node)
    }

    fn key(&mut self, scalar: Scalar, span: Span) -> Result<(), SyntaxError> {
        let is_text = matches!(scalar, Scalar::Text(_));
        match scalar.into_key() {
            Some(key) => {
                self.set_key(Key::Field(Name { key, is_text }, span));
                Ok(())
            }
            None => Err(SyntaxError::new(span, "a field name was expected, not null or a huge number")),
        }
    }

    fn alias(&mut self, name: &str, span: Span) -> Result<(), SyntaxError> {
        let node = match self.anchors.get(name) {
            Some(Anchor::Closed(node)) => node,
            Some(Anchor::Open(_)) => {
                return Err(SyntaxError::new(span, format!("`&{name}` would contain itself"))
                    .go_yaml(format_args!("anchor '{name}' value contains itself")));
            }
            None => {
                return Err(SyntaxError::new(span, format!("no `&{name}` stands before `*{name}`"))
                    .hint("put text that starts with `*` in quotes")
                    .go_yaml(format_args!("unknown anchor '{name}' referenced")));
            }
        };
        let size = node.size;
        if self.frames.len() + size.height > DEPTH_MAX {
            return Err(SyntaxError::too_deep(span));
        }
        self.nodes += 1 + size.nodes;
        self.aliased_nodes += size.nodes;
        self.copied_bytes += size.bytes;
        if self.copied_bytes > COPIED_BYTES_MAX || has_too_many_aliases(self.aliased_nodes, self.nodes) {
            return Err(too_much_copying(span));
        }
        if self.expects_key() {
            let Some(scalar) = Scalar::of_value(&node.value) else {
                return Err(complex_key(span));
            };
            return self.key(scalar, span);
        }
        let mut node = node.clone();
        node.size.nodes += 1;
        node.places.key = None;
        node.places.value = span;
        self.add(node)
    }

    fn open(&mut self, anchor: Option<String>, span: Span, body: Body) -> Result<(), SyntaxError> {
        if self.expects_key() {
            return Err(complex_key(span));
        }
        if self.frames.len() >= DEPTH_MAX {
            return Err(SyntaxError::too_deep(span));
        }
        if let Some(anchor) = &anchor {
            self.anchors.insert(anchor.clone(), Anchor::Open(self.frames.len()));
        }
        self.nodes += 1;
        let size = Size { nodes: 1, bytes: NODE_BYTES, height: 1 };
        self.frames.push(Frame { anchor, span, size, body });
        Ok(())
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let (value, inner) = match frame.body {
            Body::List(items, places) => (Value::Array(items), Inner::Items(places.into())),
            Body::Map(fields, _) => {
                let (map, inner) = fields.finish();
                (Value::Object(map), inner)
            }
        };
        let node = Node { value, places: Places { key: None, value: frame.span, inner }, size: frame.size };
        if let Some(anchor) = frame.anchor {
            // A second anchor of that name within this one has taken its place.
            let depth = self.frames.len();
            if matches!(self.anchors.get(&anchor), Some(Anchor::Open(open)) if *open == depth) {
                self.keep(anchor, &node, frame.span)?;
            }
        }
        self.add(node)
    }

    fn keep(&mut self, anchor: String, node: &Node, span: Span) -> Result<(), SyntaxError> {
        if self.aliases.contains(anchor.as_str()) {
            self.copied_bytes += node.size.bytes;
            if self.copied_bytes > COPIED_BYTES_MAX {
                return Err(too_much_copying(span));
            }
            self.anchors.insert(anchor, Anchor::Closed(node.clone()));
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), SyntaxError> {
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.size.add(node.size);
        match &mut frame.body {
            Body::List(items, places) => {
                items.push(node.value);
                places.push(node.places);
            }
            Body::Map(fields, pending) => match pending.take() {
                Some(Key::Field(name, span)) => {
                    frame.size.bytes += name.key.len();
                    fields.insert(name, span, node.value, node.places, &mut self.remarks);
                }
                Some(Key::Merge(span)) => fields.merge(node.value, node.places, span)?,
                None => {}
            },
        }
        Ok(())
    }

    /// Text to YAML, and something else to the one who wrote it: `name:web` on a line of its own, or a list item below
    /// a key that has a value already.
    fn warn_of_mistaken_text(&mut self, text: &str, span: Span) {
        let Some(Frame { body: Body::Map(_, Some(Key::Field(_, key))), .. }) = self.frames.last() else {
            return;
        };
        let name =
            text.split_once(':').filter(|(_, rest)| !rest.starts_with('/')).map(|(name, _)| name).filter(|name| {
                name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
            });
        let message = match name {
            Some(name) if key.line < span.line => {
                format!("`{name}:` is part of a text here: a space after the colon would make it a field")
            }
            _ if self.has_item_below => {
                "the lines below start with `- ` and are part of this text: no list begins there".to_owned()
            }
            _ => return,
        };
        self.remarks.warnings.push(Warning { span, message });
    }
}

/// go-yaml's own measure: of a small document 99 of 100 values may come from aliases, of a large one 10.
fn has_too_many_aliases(aliased: usize, nodes: usize) -> bool {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let progress = ((nodes as f64 - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    aliased > 100 && nodes > 1000 && aliased as f64 / nodes as f64 > 0.99 - 0.89 * progress
}

fn too_much_copying(span: Span) -> SyntaxError {
    SyntaxError::new(span, "aliases (`*name`) make the document grow out of all proportion")
        .go_yaml("document contains excessive aliasing")
}

fn complex_key(span: Span) -> SyntaxError {
    SyntaxError::new(span, "a field name was expected, not a list or a map")
        .hint("`{{ … }}` of a template must be filled in, or put in quotes")
        .go_yaml("invalid map key")
}
