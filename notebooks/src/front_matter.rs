//! What a lesson says of itself, in YAML between `---` lines at the top of its source. The learning path is made of it.
//!
//! ````text
//! ---
//! minutes: 40
//! after:
//!   ja: Podがどのノードに置かれるかを説明できる
//!   en: explain on which node a Pod is placed
//! exercises: [10, 11]
//! known: {"https://kubernetes.io/…, the default": [300]}
//! ---
//! ````

use std::collections::BTreeMap;

use kernetes::grading::words::Words;
use kernetes::yaml;
use serde::{Deserialize, Deserializer};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontMatter {
    pub minutes: u32,
    /// What one can do after the lesson; completes "you can …".
    pub after: Words,
    /// The numbers of exercises to go on with.
    #[serde(default)]
    pub exercises: Vec<u32>,
    /// Numbers that its prose states and no cell of it shows, by where they are known from.
    #[serde(default, deserialize_with = "numbers")]
    pub known: BTreeMap<String, Vec<String>>,
}

/// Numbers as they are written in prose.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let known: BTreeMap<String, Vec<serde_json::Number>> = BTreeMap::deserialize(deserializer)?;
    let written = |numbers: Vec<serde_json::Number>| numbers.iter().map(ToString::to_string).collect();
    Ok(known.into_iter().map(|(source, numbers)| (source, written(numbers))).collect())
}

/// The front matter of a source, if it has any, and the number of lines that it takes. An error comes with its line.
pub fn read(text: &str) -> Result<(Option<FrontMatter>, usize), (usize, String)> {
    let mut lines = text.lines();
    if lines.next() != Some("---") {
        return Ok((None, 0));
    }
    let inner: Vec<&str> = lines.take_while(|line| *line != "---").collect();
    let end = inner.len() + 2;
    if text.lines().nth(end - 1) != Some("---") {
        return Err((1, "the front matter that begins here has no end; expected a line `---`".to_owned()));
    }
    let documents =
        yaml::read(&inner.join("\n")).map_err(|error| (error.span.line as usize + 1, error.message.clone()))?;
    let [document] = documents.as_slice() else {
        return Err((1, "the front matter is empty; expected `minutes` and `after`".to_owned()));
    };
    match FrontMatter::deserialize(&document.value) {
        Ok(front_matter) => Ok((Some(front_matter), end)),
        Err(error) => Err((1, format!("front matter: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nminutes: 40\nafter:\n  ja: 話せる\n  en: tell\nexercises: [1, 2]\n---\n<!-- ja -->\n";

    #[test]
    fn a_source_says_what_one_can_do_after_it() {
        let (front_matter, lines) = read(TEXT).unwrap();
        let expected = FrontMatter {
            minutes: 40,
            after: Words::new("話せる", "tell"),
            exercises: vec![1, 2],
            known: BTreeMap::new(),
        };
        assert_eq!((front_matter, lines), (Some(expected), 7));
        assert_eq!(read("<!-- ja -->\n"), Ok((None, 0)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(read("---\nminutes: 40\n").unwrap_err().0, 1);
        assert!(read(&TEXT.replace("minutes", "hours")).unwrap_err().1.contains("unknown field `hours`"));
        assert!(read(&TEXT.replace("ja: 話", "ja: [話")).unwrap_err().0 > 1);
    }
}
