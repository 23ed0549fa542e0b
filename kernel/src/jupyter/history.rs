//! What was run in this session, for the frontends that ask.

use serde::Deserialize;
use serde_json::{Value, json};
use wildmatch::WildMatch;

/// Kernels number their sessions; this one remembers only its own.
const SESSION: i64 = 1;

#[derive(Default)]
pub struct History {
    entries: Vec<Entry>,
}

struct Entry {
    line: usize,
    input: String,
    output: Option<String>,
}

/// A `history_request` with all that clients leave out.
#[derive(Deserialize)]
#[serde(tag = "hist_access_type", rename_all = "lowercase")]
pub enum Query {
    Range {
        /// 0 and negative numbers count back from the current session.
        session: Option<i64>,
        start: Option<usize>,
        stop: Option<usize>,
        #[serde(default)]
        output: bool,
    },
    Tail {
        n: Option<usize>,
        #[serde(default)]
        output: bool,
    },
    Search {
        /// With `*` and `?`.
        pattern: Option<String>,
        n: Option<usize>,
        unique: Option<bool>,
        #[serde(default)]
        output: bool,
    },
}

impl History {
    pub fn record(&mut self, line: usize, input: &str, output: Option<String>) {
        self.entries.push(Entry { line, input: input.to_owned(), output });
    }

    /// The content of a `history_reply`: oldest first.
    pub fn answer(&self, query: &Query) -> Value {
        let (entries, with_output) = match query {
            Query::Range { session, start, stop, output } => (self.range(*session, *start, *stop), output),
            Query::Tail { n, output } => (last(self.entries.iter().collect(), *n), output),
            Query::Search { pattern, n, unique, output } => {
                (last(self.search(pattern.as_deref().unwrap_or("*"), unique.unwrap_or(false)), *n), output)
            }
        };
        let shown = |entry: &Entry| match with_output {
            true => json!([SESSION, entry.line, [entry.input, entry.output]]),
            false => json!([SESSION, entry.line, entry.input]),
        };
        json!({"status": "ok", "history": entries.into_iter().map(shown).collect::<Vec<_>>()})
    }

    fn range(&self, session: Option<i64>, start: Option<usize>, stop: Option<usize>) -> Vec<&Entry> {
        if !matches!(session, None | Some(0 | SESSION)) {
            return Vec::new();
        }
        let wanted = start.unwrap_or(0)..stop.unwrap_or(usize::MAX);
        self.entries.iter().filter(|entry| wanted.contains(&entry.line)).collect()
    }

    fn search(&self, pattern: &str, unique: bool) -> Vec<&Entry> {
        let pattern = WildMatch::new(pattern);
        let mut found: Vec<&Entry> = self.entries.iter().filter(|entry| pattern.matches(&entry.input)).collect();
        if unique {
            let mut seen = std::collections::BTreeSet::new();
            found.reverse();
            found.retain(|entry| seen.insert(&entry.input));
            found.reverse();
        }
        found
    }
}

fn last(entries: Vec<&Entry>, n: Option<usize>) -> Vec<&Entry> {
    let skipped = entries.len().saturating_sub(n.unwrap_or(usize::MAX));
    entries.into_iter().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(query: Value) -> Vec<String> {
        let mut history = History::default();
        for (line, input) in ["kubectl get pods", "%plot", "kubectl get pods", "kubectl get nodes"].iter().enumerate() {
            history.record(line + 1, input, None);
        }
        let query: Query = serde_json::from_value(query).unwrap();
        let reply = history.answer(&query);
        reply["history"].as_array().unwrap().iter().map(|entry| format!("{} {}", entry[1], entry[2])).collect()
    }

    #[test]
    fn tail_range_and_search_as_clients_ask() {
        assert_eq!(inputs(json!({"hist_access_type": "tail", "n": 1})), [r#"4 "kubectl get nodes""#]);
        assert_eq!(inputs(json!({"hist_access_type": "range", "session": 0, "start": 2, "stop": 3})), [r#"2 "%plot""#]);
        assert_eq!(inputs(json!({"hist_access_type": "range", "start": 4})), [r#"4 "kubectl get nodes""#]);
        assert_eq!(inputs(json!({"hist_access_type": "range", "session": 7, "start": 0})), [""; 0]);
        let search = |more: Value| {
            let mut query = json!({"hist_access_type": "search", "pattern": "kubectl*"});
            query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            inputs(query)
        };
        assert_eq!(search(json!({})).len(), 3);
        assert_eq!(search(json!({"unique": true})), [r#"3 "kubectl get pods""#, r#"4 "kubectl get nodes""#]);
        assert_eq!(search(json!({"n": 2})).len(), 2);
    }

    #[test]
    fn outputs_come_when_asked_for() {
        let mut history = History::default();
        history.record(1, "%score", Some("3".into()));
        let query: Query = serde_json::from_value(json!({"hist_access_type": "tail", "output": true})).unwrap();
        assert_eq!(history.answer(&query)["history"], json!([[1, 1, ["%score", "3"]]]));
    }
}
