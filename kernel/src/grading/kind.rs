//! Things that an exercise names by one key, `{pods: {labels: app=web, ready: 3}}`: a table of kinds, and how one is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

/// One line of a table: the key, and how what stands behind it becomes a `T`.
pub struct Kind<T: ?Sized> {
    pub name: &'static str,
    pub read: fn(Value) -> Result<Box<T>, String>,
}

/// Parameters of a kind; the error begins with the path of what is wrong.
pub fn parameters<P: DeserializeOwned>(value: Value) -> Result<P, String> {
    serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
}

/// Reads a map with one key, which names a kind of the table.
pub fn one_of<'de, T: ?Sized + 'static, D: Deserializer<'de>>(
    table: &'static [Kind<T>],
    deserializer: D,
) -> Result<Box<T>, D::Error> {
    deserializer.deserialize_map(OneOf { table, of: PhantomData })
}

struct OneOf<T: ?Sized + 'static> {
    table: &'static [Kind<T>],
    of: PhantomData<T>,
}

impl<'de, T: ?Sized + 'static> Visitor<'de> for OneOf<T> {
    type Value = Box<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.table.iter().map(|kind| kind.name).collect();
        write!(formatter, "a map with one key of: {}", names.join(", "))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Box<T>, M::Error> {
        let Some((name, value)) = map.next_entry::<String, Value>()? else {
            return Err(M::Error::invalid_length(0, &self));
        };
        if map.next_key::<String>()?.is_some() {
            return Err(M::Error::invalid_length(2, &self));
        }
        match self.table.iter().find(|kind| kind.name == name) {
            Some(kind) => (kind.read)(value).map_err(|error| M::Error::custom(format!("{name}: {error}"))),
            None => {
                let known: Vec<String> = self.table.iter().map(|kind| format!("`{}`", kind.name)).collect();
                Err(M::Error::custom(format!("`{name}` is not known, expected one of {}", known.join(", "))))
            }
        }
    }
}
