//! What is wrong with which field: paths such as `spec.containers[0].name`, and the list of causes in the order in which
//! they were found.

use std::fmt::{self, Write};

use k8s_openapi::serde::Serialize;
use serde_json::Value;
use smallvec::SmallVec;

use crate::api::status::Cause;

/// The place of a field, as the API writes it: `spec.volumes[2].emptyDir.sizeLimit`, `data[key]`. Every check of every
/// write makes some and hardly any is ever read, so those of usual length need no memory of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(SmallVec<[u8; 62]>);

impl Path {
    /// A path from the root of the object. It may have several steps: `metadata.labels`.
    pub fn new(path: &str) -> Path {
        Path(path.as_bytes().into())
    }

    /// A field of the object here; `field` may have several steps.
    pub fn child(&self, field: &str) -> Path {
        let dot = if self.0.is_empty() { "" } else { "." };
        self.with([dot, field, ""])
    }

    /// An item of the list here.
    pub fn index(&self, index: usize) -> Path {
        let mut path = self.clone();
        // Writing to memory can't fail.
        let _ = write!(path, "[{index}]");
        path
    }

    /// An entry of the map here.
    pub fn key(&self, key: &str) -> Path {
        self.with(["[", key, "]"])
    }

    fn with(&self, texts: [&str; 3]) -> Path {
        let mut path = self.clone();
        texts.iter().for_each(|text| path.0.extend_from_slice(text.as_bytes()));
        path
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = str::from_utf8(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(if path.is_empty() { "<nil>" } else { path })
    }
}

impl From<&Path> for String {
    fn from(path: &Path) -> String {
        path.to_string()
    }
}

impl From<Path> for String {
    fn from(path: Path) -> String {
        path.to_string()
    }
}

/// All that is wrong with an object, in the order of the checks. Validation goes on after the first fault, so that the
/// writer hears of all of them at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Causes(Vec<Cause>);

impl Causes {
    pub fn new() -> Causes {
        Causes::default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn push(&mut self, cause: Cause) {
        self.0.push(cause);
    }

    pub fn extend(&mut self, causes: impl IntoIterator<Item = Cause>) {
        self.0.extend(causes);
    }

    /// The field must be there; an empty `detail` says no more than that.
    pub fn required(&mut self, path: &Path, detail: &str) {
        self.push(Cause::required(path, detail));
    }

    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl AsRef<str>) {
        self.push(Cause::invalid(path, value, detail));
    }

    /// Like [`Causes::invalid`], for a value whose fields have an order.
    pub fn invalid_shown(&mut self, path: &Path, shown: &str, detail: impl AsRef<str>) {
        let mut cause = Cause::invalid(path, Value::Null, detail.as_ref());
        cause.message = format!("Invalid value: {shown}: {}", detail.as_ref());
        self.push(cause);
    }

    /// One cause for each detail, as the checks of names give them.
    pub fn invalid_each(&mut self, path: &Path, value: &str, details: Vec<String>) {
        self.extend(details.into_iter().map(|detail| Cause::invalid(path, value, detail)));
    }

    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(Cause::duplicate(path, value));
    }

    pub fn forbidden(&mut self, path: &Path, detail: &str) {
        self.push(Cause::forbidden(path, detail));
    }

    pub fn not_found(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(Cause::not_found(path, value));
    }

    /// The field has none of the values that it may have.
    pub fn not_supported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        self.push(Cause::unsupported(path, value, supported));
    }

    pub fn too_long(&mut self, path: &Path, bytes_max: usize) {
        self.push(Cause::too_long(path, bytes_max));
    }

    pub fn too_many(&mut self, path: &Path, items: usize, items_max: usize) {
        self.push(Cause::too_many(path, items, items_max));
    }

    /// The value is one of `supported`. A field that is not there is taken for the empty text.
    pub fn one_of(&mut self, path: &Path, value: Option<&str>, supported: &[&str]) {
        let value = value.unwrap_or_default();
        if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    /// Like [`Causes::one_of`], but the field has to be there.
    pub fn required_one_of(&mut self, path: &Path, value: Option<&str>, supported: &[&str]) {
        match value {
            None | Some("") => self.required(path, ""),
            Some(_) => self.one_of(path, value, supported),
        }
    }

    /// A field that is not there is taken for 0.
    pub fn non_negative(&mut self, path: &Path, value: Option<impl Into<i64>>) {
        let value = value.map_or(0, Into::into);
        if value < 0 {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    pub fn in_range(&mut self, path: &Path, value: impl Into<i64>, min: i64, max: i64) {
        let value = value.into();
        if !(min..=max).contains(&value) {
            self.invalid(path, value, format!("must be between {min} and {max}, inclusive"));
        }
    }

    /// The field is as it was.
    pub fn immutable<T: PartialEq + Serialize>(&mut self, path: &Path, old: &T, new: &T) {
        if old != new {
            self.invalid(path, serde_json::to_value(new).unwrap_or_default(), "field is immutable");
        }
    }
}

impl From<Causes> for Vec<Cause> {
    fn from(causes: Causes) -> Vec<Cause> {
        causes.0
    }
}

impl IntoIterator for Causes {
    type Item = Cause;
    type IntoIter = std::vec::IntoIter<Cause>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_name_the_field_and_what_it_may_be() {
        let container = Path::new("spec").child("containers").index(1);
        let mut causes = Causes::new();
        causes.required(&container.child("name"), "");
        causes.one_of(&container.child("imagePullPolicy"), Some("Sometimes"), &["Always", "Never"]);
        causes.in_range(&container.child("ports").index(0).child("hostPort"), 70000, 1, 65535);
        causes.non_negative(&Path::new("spec.replicas"), Some(-1));
        causes.immutable(&Path::new("data").key("a"), &"x", &"y\n");
        let texts: Vec<String> =
            causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(
            texts,
            [
                "spec.containers[1].name: Required value",
                "spec.containers[1].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"Never\"",
                "spec.containers[1].ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "data[a]: Invalid value: \"y\\n\": field is immutable",
            ]
        );
    }
}
