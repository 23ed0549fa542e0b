//! A map while it is being read: duplicates and merges.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::place::{Inner, Places, Span};
use super::{SyntaxError, Warning};

/// A key, and whether it is text to YAML, not a number or the like.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) key: String,
    pub(super) is_text: bool,
}

/// What there is to say of a document beside its value.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    pub(super) warnings: Vec<Warning>,
    pub(super) repeated: Vec<String>,
}

/// The fields of a map while it is being read.
#[derive(Debug, Default)]
pub(super) struct Fields {
    map: Map<String, Value>,
    places: BTreeMap<String, Places>,
    /// Those that came by `<<`, which may be overridden.
    merged: BTreeSet<String>,
}

impl Fields {
    /// Sets a field. Of two with the same name the last counts, as for kubectl, with a warning that names both.
    pub(super) fn insert(
        &mut self,
        Name { key, is_text }: Name,
        key_span: Span,
        value: Value,
        places: Places,
        remarks: &mut Remarks,
    ) {
        if self.map.contains_key(&key) {
            let shown = if is_text { format!("{key:?}") } else { key.clone() };
            remarks.repeated.push(format!("line {}: key {shown} already set in map", places.value.line));
        }
        let earlier = self.places.get(&key).and_then(|places| places.key);
        if let Some(earlier) = earlier
            && !self.merged.remove(&key)
        {
            let message = format!("`{key}` stands here and in line {}: only this one counts", earlier.line);
            remarks.warnings.push(Warning { span: key_span, message });
        }
        self.places.insert(key.clone(), Places { key: Some(key_span), ..places });
        self.map.insert(key, value);
    }

    /// Takes over the fields of a map, or of a list of maps of which the first counts most. As go-yaml has it, they win over fields
    /// that stand before the `<<`.
    pub(super) fn merge(&mut self, value: Value, places: Places, span: Span) -> Result<(), SyntaxError> {
        let refuse = || {
            SyntaxError::new(span, "`<<` merges a map, or a list of maps")
                .go_yaml("map merge requires map or sequence of maps as the value")
        };
        let maps = match (value, places.inner) {
            (Value::Object(map), Inner::Fields(places)) => vec![(map, places)],
            (Value::Array(items), Inner::Items(places)) => items
                .into_iter()
                .zip(places.iter())
                .rev()
                .map(|(item, places)| match (item, &places.inner) {
                    (Value::Object(map), Inner::Fields(places)) => Ok((map, places.clone())),
                    _ => Err(refuse()),
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(refuse()),
        };
        for (map, places) in maps {
            self.merged.extend(map.keys().cloned());
            self.map.extend(map);
            self.places.extend(places.iter().map(|(key, places)| (key.clone(), places.clone())));
        }
        Ok(())
    }

    pub(super) fn finish(self) -> (Map<String, Value>, Inner) {
        (self.map, Inner::Fields(self.places.into()))
    }
}
