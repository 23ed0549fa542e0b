//! Label and field selectors, as text in requests and as `LabelSelector` in specs.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>

mod parse;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

pub type Labels = BTreeMap<String, String>;

/// A conjunction of requirements on labels. The empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Selector {
    pub fn everything() -> Selector {
        Selector::default()
    }

    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// `app=web,tier!=db,env in (a, b),!legacy`. The error says what was found where something else was expected.
    pub fn parse(text: &str) -> Result<Selector, String> {
        parse::requirements(text).map(Selector)
    }

    pub fn of_labels(labels: &Labels) -> Selector {
        let equals = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.clone()],
        };
        Selector(labels.iter().map(equals).collect())
    }

    /// A spec's selector. One of an unknown operator matches nothing.
    pub fn of(selector: &meta::LabelSelector) -> Selector {
        let mut all = selector.match_labels.as_ref().map(Selector::of_labels).unwrap_or_default();
        for expression in selector.match_expressions.iter().flatten() {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                "Gt" => Operator::GreaterThan,
                "Lt" => Operator::LessThan,
                _ => Operator::In,
            };
            let values = expression.values.clone().unwrap_or_default();
            all.0.push(Requirement { key: expression.key.clone(), operator, values });
        }
        all
    }

    /// As a spec has it. An error for what a spec's selector can't say: `>` and `<`.
    pub fn to_label_selector(&self) -> Result<meta::LabelSelector, String> {
        let mut selector = meta::LabelSelector::default();
        for Requirement { key, operator, values } in &self.0 {
            let operator = match operator {
                Operator::In if values.len() == 1 => {
                    selector.match_labels.get_or_insert_default().insert(key.clone(), values[0].clone());
                    continue;
                }
                Operator::In => "In",
                Operator::NotIn => "NotIn",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                Operator::GreaterThan => return Err("\"gt\" isn't supported in label selectors".into()),
                Operator::LessThan => return Err("\"lt\" isn't supported in label selectors".into()),
            };
            selector.match_expressions.get_or_insert_default().push(meta::LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.into(),
                values: (!values.is_empty()).then(|| values.clone()),
            });
        }
        Ok(selector)
    }

    /// Each key with the values that it is compared with, and whether these must be integers.
    pub fn terms(&self) -> impl Iterator<Item = (&str, &[String], bool)> {
        self.0.iter().map(|requirement| {
            let compares = matches!(requirement.operator, Operator::GreaterThan | Operator::LessThan);
            (requirement.key.as_str(), requirement.values.as_slice(), compares)
        })
    }

    pub fn matches(&self, labels: Option<&Labels>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: Option<&Labels>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key));
        let among = |value: &String| self.values.contains(value);
        let compare = |value: &String| Some(value.parse::<i64>().ok()?.cmp(&self.values.first()?.parse::<i64>().ok()?));
        match self.operator {
            Operator::In => value.is_some_and(among),
            Operator::NotIn => !value.is_some_and(among),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => value.and_then(compare) == Some(std::cmp::Ordering::Greater),
            Operator::LessThan => value.and_then(compare) == Some(std::cmp::Ordering::Less),
        }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let Requirement { key, operator, values } = requirement;
            let list = values.join(",");
            match operator {
                Operator::In if values.len() == 1 => write!(f, "{key}={list}")?,
                Operator::In => write!(f, "{key} in ({list})")?,
                Operator::NotIn if values.len() == 1 => write!(f, "{key}!={list}")?,
                Operator::NotIn => write!(f, "{key} notin ({list})")?,
                Operator::Exists => write!(f, "{key}")?,
                Operator::DoesNotExist => write!(f, "!{key}")?,
                Operator::GreaterThan => write!(f, "{key}>{list}")?,
                Operator::LessThan => write!(f, "{key}<{list}")?,
            }
        }
        Ok(())
    }
}

/// `metadata.name=web,spec.nodeName!=node-1`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSelector(pub Vec<FieldTerm>);

#[derive(Clone, Debug, PartialEq)]
pub struct FieldTerm {
    pub path: String,
    pub equals: bool,
    pub value: String,
}

impl FieldSelector {
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut terms = Vec::new();
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let (path, equals, value) = if let Some((path, value)) = term.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = term.split_once("==") {
                (path, true, value)
            } else if let Some((path, value)) = term.split_once('=') {
                (path, true, value)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            terms.push(FieldTerm { path: path.into(), equals, value: value.into() });
        }
        Ok(FieldSelector(terms))
    }

    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that `path` must have, if the selector pins it down.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equals && term.path == path).map(|term| term.value.as_str())
    }

    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<std::borrow::Cow<'a, str>>) -> bool {
        self.0.iter().all(|term| (field(&term.path).unwrap_or_default() == term.value) == term.equals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn all_operators() {
        let web = labels(&[("app", "web"), ("tier", "front"), ("size", "3")]);
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("tier", true),
            ("!tier", false),
            ("!gone", true),
            ("size>2", true),
            ("size<3", false),
        ] {
            assert_eq!(Selector::parse(text).unwrap().matches(Some(&web)), expected, "{text}");
        }
        assert!(Selector::parse("a b=c").is_err());
        assert!(Selector::parse("a in (b").is_err());
    }

    #[test]
    fn fields_are_compared_as_text() {
        let selector = FieldSelector::parse("spec.nodeName=node-1,status.phase!=Failed").unwrap();
        let field = |path: &str| match path {
            "spec.nodeName" => Some("node-1".into()),
            _ => Some("Running".into()),
        };
        assert!(selector.matches(field));
        assert_eq!(selector.exact("spec.nodeName"), Some("node-1"));
    }
}
