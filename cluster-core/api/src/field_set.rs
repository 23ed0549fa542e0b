//! Sets of field paths, as `metadata.managedFields` keeps them.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object, or a key of a map: `f:replicas`.
    Field(String),
    /// The element of a list that has these values in its key fields: `k:{"name":"web"}`.
    Key(Vec<(String, Literal)>),
    /// An element of a list of scalars: `v:"example.com/finalizer"`.
    Value(Literal),
    /// An element by its place: `i:0`.
    Index(i64),
}

/// A JSON value with an order: numbers, then texts, then booleans, then the rest.
#[derive(Clone, Debug)]
pub struct Literal(pub Value);

pub type Path = Vec<PathElement>;

/// A set of paths. A path can be in it without those above it or below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet(BTreeMap<PathElement, Node>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    /// The path that ends here is in the set.
    member: bool,
    below: FieldSet,
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.0.entry(first.clone()).or_default();
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// The path that is only this element is in the set.
    pub fn has(&self, element: &PathElement) -> bool {
        self.0.get(element).is_some_and(|node| node.member)
    }

    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.contains(rest)),
        }
    }

    /// The paths below an element, if there are any.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.0.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// First elements of all paths, and whether they are paths themselves.
    pub fn elements(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.0.iter().map(|(element, node)| (element, node.member, &node.below))
    }

    pub fn union(mut self, other: &FieldSet) -> FieldSet {
        self.extend(other);
        self
    }

    fn extend(&mut self, other: &FieldSet) {
        for (element, node) in &other.0 {
            let known = self.0.entry(element.clone()).or_default();
            known.member |= node.member;
            known.below.extend(&node.below);
        }
    }

    /// The paths that `other` does not have.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.select(other, |node, theirs| match theirs {
            Some(theirs) => Node { member: node.member && !theirs.member, below: node.below.difference(&theirs.below) },
            None => node.clone(),
        })
    }

    /// The paths that are neither in `other` nor below one of its paths.
    pub fn without(&self, other: &FieldSet) -> FieldSet {
        self.select(other, |node, theirs| match theirs {
            Some(theirs) if theirs.member => Node::default(),
            Some(theirs) => Node { member: node.member, below: node.below.without(&theirs.below) },
            None => node.clone(),
        })
    }

    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.select(other, |node, theirs| match theirs {
            Some(theirs) => {
                Node { member: node.member && theirs.member, below: node.below.intersection(&theirs.below) }
            }
            None => Node::default(),
        })
    }

    fn select(&self, other: &FieldSet, keep: impl Fn(&Node, Option<&Node>) -> Node) -> FieldSet {
        let kept = |(element, node)| {
            let node = keep(node, other.0.get(element));
            (node.member || !node.below.is_empty()).then(|| (PathElement::clone(element), node))
        };
        FieldSet(self.0.iter().filter_map(kept).collect())
    }

    /// All paths; those that end at a place come before those that lead on from there.
    pub fn paths(&self) -> Vec<Path> {
        fn walk(set: &FieldSet, above: &mut Path, paths: &mut Vec<Path>) {
            for element in set.0.iter().filter(|(_, node)| node.member).map(|(element, _)| element) {
                paths.push(above.iter().chain([element]).cloned().collect());
            }
            for (element, node) in set.0.iter().filter(|(_, node)| !node.below.is_empty()) {
                above.push(element.clone());
                walk(&node.below, above, paths);
                above.pop();
            }
        }
        let mut paths = Vec::new();
        walk(self, &mut Vec::new(), &mut paths);
        paths
    }

    /// `FieldsV1`.
    pub fn to_json(&self) -> Value {
        let field = |(element, node): (&PathElement, &Node)| {
            let mut below = node.below.to_json();
            if let (true, false, Value::Object(fields)) = (node.member, node.below.is_empty(), &mut below) {
                fields.insert(".".into(), Value::Object(Map::new()));
            }
            (element.to_json_key(), below)
        };
        Value::Object(self.0.iter().map(field).collect())
    }

    /// Reads `FieldsV1`; the error says what is wrong with it.
    pub fn from_json(fields: &Value) -> Result<FieldSet, String> {
        let Value::Object(fields) = fields else { return Err(format!("expected an object of fields, got {fields}")) };
        let mut set = FieldSet::default();
        for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
            let below_set = FieldSet::from_json(below)?;
            let member = below_set.is_empty() || below.get(".").is_some();
            set.0.insert(PathElement::from_json_key(key)?, Node { member, below: below_set });
        }
        Ok(set)
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> FieldSet {
        let mut set = FieldSet::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}

impl PathElement {
    pub fn field(name: &str) -> PathElement {
        PathElement::Field(name.to_owned())
    }

    fn to_json_key(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => {
                let object: Map<String, Value> =
                    fields.iter().map(|(name, Literal(v))| (name.clone(), v.clone())).collect();
                format!("k:{}", Value::Object(object))
            }
            PathElement::Value(Literal(value)) => format!("v:{value}"),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    fn from_json_key(key: &str) -> Result<PathElement, String> {
        let wrong = || format!("{key:?} is not a path element: expected f:, k:, v: or i:");
        let (sort, text) = key.split_once(':').ok_or_else(wrong)?;
        let value = || serde_json::from_str::<Value>(text).map_err(|error| format!("{key:?}: {error}"));
        match sort {
            "f" => Ok(PathElement::field(text)),
            "v" => Ok(PathElement::Value(Literal(value()?))),
            "i" => text.parse().map(PathElement::Index).map_err(|_| wrong()),
            "k" => match value()? {
                Value::Object(fields) => Ok(PathElement::key(fields)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    /// The element of a list with these key fields.
    pub fn key(fields: impl IntoIterator<Item = (String, Value)>) -> PathElement {
        let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, Literal(value))).collect();
        fields.sort();
        PathElement::Key(fields)
    }
}

/// `.replicas`, `[name="web"]`, `[="example.com/finalizer"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", fields.join(","))
            }
            PathElement::Value(value) => write!(f, "[={}]", value.0),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// `.spec.containers[name="web"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

impl Literal {
    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Literal) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
            },
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) => self.rank().cmp(&other.rank()).then_with(|| a.to_string().cmp(&b.to_string())),
        }
    }
}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Literal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: Value) -> FieldSet {
        FieldSet::from_json(&fields).unwrap()
    }

    #[test]
    fn fields_come_back_as_they_went_in() {
        let fields = json!({
            "f:metadata": {"f:finalizers": {".": {}, "v:\"x.io/a\"": {}}},
            "f:spec": {"f:ports": {"k:{\"containerPort\":53,\"protocol\":\"UDP\"}": {".": {}, "f:name": {}}}, "i:0": {}},
        });
        let read = set(fields.clone());
        assert_eq!(read.to_json(), fields);
        let paths: Vec<String> = read.paths().iter().map(|path| path_text(path)).collect();
        assert_eq!(paths[0], ".metadata.finalizers");
        assert!(paths.contains(&".spec.ports[containerPort=53,protocol=\"UDP\"].name".to_owned()), "{paths:?}");
        assert!(FieldSet::from_json(&json!({"data": {}})).unwrap_err().contains("expected f:"));
    }

    #[test]
    fn sets_add_and_take_away() {
        let (a, b) =
            (set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}})), set(json!({"f:a": {"f:x": {}}, "f:c": {}})));
        assert_eq!(a.difference(&b).to_json(), json!({"f:a": {}, "f:b": {}}));
        assert_eq!(a.intersection(&b).to_json(), json!({"f:a": {"f:x": {}}}));
        assert_eq!(b.clone().union(&a).to_json(), json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}, "f:c": {}}));
        assert_eq!(a.without(&set(json!({"f:a": {}}))).to_json(), json!({"f:b": {}}));
    }
}
