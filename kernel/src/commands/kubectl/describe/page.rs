//! The text of a description: lines with tabs in them, which become columns in the end.

use serde_json::Value;

use super::super::jsonpath::go_text;
use super::super::verbs::LAST_APPLIED;

/// A longer annotation stands below its key, and is cut there.
const ANNOTATION_LENGTH_MAX: usize = 140;

#[derive(Default)]
pub struct Page(pub String);

impl Page {
    /// A line, indented by two spaces a level.
    pub fn line(&mut self, level: usize, text: impl AsRef<str>) {
        self.0.push_str(&"  ".repeat(level));
        self.0.push_str(text.as_ref());
        self.0.push('\n');
    }

    /// `Name:  web`
    pub fn field(&mut self, level: usize, name: &str, value: impl std::fmt::Display) {
        self.line(level, format!("{name}:\t{value}"));
    }

    /// A field of several lines, which stand below each other; `<none>` if there are none.
    pub fn lines(&mut self, level: usize, name: &str, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter();
        self.field(level, name, lines.next().as_deref().unwrap_or("<none>"));
        lines.for_each(|line| self.line(0, format!("\t{line}")));
    }

    /// `app=web`, one a line.
    pub fn labels(&mut self, level: usize, name: &str, labels: Option<&Value>) {
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        self.lines(level, name, labels.map(|(key, value)| format!("{key}={}", go_text(value))));
    }

    /// `note: mine`, one a line; what is long or of several lines stands below its key.
    pub fn annotations(&mut self, level: usize, name: &str, annotations: Option<&Value>) {
        let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
        let shown = annotations.filter(|(key, _)| *key != LAST_APPLIED).flat_map(|(key, value)| {
            let value = go_text(value);
            let value = value.strip_suffix('\n').unwrap_or(&value);
            if !value.contains('\n') && key.len() + value.len() + 2 <= ANNOTATION_LENGTH_MAX {
                return vec![format!("{key}: {value}")];
            }
            let below = value.split('\n').map(|line| format!("  {}", shortened(line, ANNOTATION_LENGTH_MAX - 2)));
            std::iter::once(format!("{key}:")).chain(below).collect()
        });
        self.lines(level, name, shown);
    }

    /// A header, dashes below each word of it, and rows of cells with tabs between them.
    pub fn table(&mut self, level: usize, header: &[&str], rows: impl IntoIterator<Item = String>) {
        let dashes: Vec<String> = header.iter().map(|name| "-".repeat(name.len())).collect();
        self.line(level, header.join("\t"));
        self.line(level, dashes.join("\t"));
        rows.into_iter().for_each(|row| self.line(level, row));
    }

    /// The text with its tabs as columns two spaces apart.
    pub fn finish(self) -> String {
        use std::io::Write;
        let text = self.0.replace('\u{1b}', "^[").replace('\r', "\\r");
        let mut writer = tabwriter::TabWriter::new(Vec::new()).minwidth(0).padding(2);
        // Writing into memory does not fail.
        let _ = writer.write_all(text.as_bytes());
        match writer.into_inner() {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => text,
        }
    }
}

/// A text cut after so many bytes, at a letter's end.
pub fn shortened(text: &str, length_max: usize) -> String {
    if text.len() <= length_max {
        return text.to_owned();
    }
    let end = (0..=length_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_below_each_other() {
        let mut page = Page::default();
        page.labels(0, "Labels", Some(&json!({"a": "1", "b": "2"})));
        page.annotations(0, "Annotations", Some(&json!({"note": "one\ntwo\n", LAST_APPLIED: "{}"})));
        page.labels(0, "Node-Selectors", None);
        let expected = "Labels:          a=1\n                 b=2\nAnnotations:     note:\n                   one\n                   two\nNode-Selectors:  <none>\n";
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let mut page = Page::default();
        page.table(1, &["Type", "Status"], ["PodScheduled\tTrue".to_owned()]);
        assert_eq!(page.finish(), "  Type          Status\n  ----          ------\n  PodScheduled  True\n");
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("aあい", 3), "a...");
    }
}
