//! Values in messages that Go shows as structs of its own: fields in the order of their declaration, by their Go names.

use serde_json::Value;

use super::field::{Causes, Path};
use crate::api::status::Cause;

/// A struct as Go's JSON shows it.
pub struct Struct<'a>(pub &'a [(&'a str, Value)]);

impl std::fmt::Display for Struct<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}\"{name}\":{value}", if index == 0 { "{" } else { "," })?;
        }
        f.write_str("}")
    }
}

impl Causes {
    pub fn invalid_struct(&mut self, path: &Path, value: Struct<'_>, detail: &str) {
        let message = format!("Invalid value: {value}: {detail}");
        self.push(Cause { reason: "FieldValueInvalid", message, field: path.into() });
    }

    /// An empty `detail` says no more than that.
    pub fn duplicate_struct(&mut self, path: &Path, value: Struct<'_>, detail: &str) {
        let tail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let message = format!("Duplicate value: {value}{tail}");
        self.push(Cause { reason: "FieldValueDuplicate", message, field: path.into() });
    }
}
