//! The API's nouns: objects and their kinds, requests and responses, selectors, quantities. No behaviour of any kind.

pub mod cause;
pub mod event;
pub mod field_set;
pub mod kind;
pub mod kinds;
pub mod managed;
pub mod merge_keys;
pub mod object;
pub mod quantity;
pub mod request;
pub mod schema;
pub mod selector;
pub mod status;
pub mod user;
pub mod wire;
pub mod zero_values;

use std::cmp::Ordering;
use std::sync::Arc;

/// A name or a word that many things share.
pub type Name = Arc<str>;

/// Where an object is: namespace (empty for cluster-scoped kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub namespace: Name,
    pub name: Name,
}

impl Key {
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }

    pub fn cluster(name: impl Into<Name>) -> Key {
        Key::new(Name::default(), name)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        // Most keys that meet share their namespace.
        let namespaces = if Arc::ptr_eq(&self.namespace, &other.namespace) {
            Ordering::Equal
        } else {
            self.namespace.cmp(&other.namespace)
        };
        namespaces.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `default/web`, `node-1`.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}
