//! The one source of a lesson: a Markdown file with the prose in two languages and each code cell once.
//!
//! ````text
//! ---
//! minutes: 40
//! …
//! ---
//! <!-- ja -->
//! # 望ましい状態
//! Podが3つあることを望みます。
//! <!-- en 1f0c2a9b -->
//! # Desired state
//! We wish for three Pods.
//!
//! ```cell tags=raises-exception
//! kubectl get pods
//! ```
//! ````
//!
//! What the lesson says of itself stands between `---` (see `front_matter.rs`). A prose unit is Japanese text and, below it, the English text with the hash of the Japanese that it translates. A cell
//! is a fence with the word `cell`, or a longer fence where the cell itself has backticks; other fences belong to the prose.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use kernetes::grading::words::Words;
use kernetes::notebook::Language;
use sha2::{Digest, Sha256};

use crate::front_matter::{self, FrontMatter};

/// A lesson as its source states it.
#[derive(Debug, PartialEq)]
pub struct Lesson {
    /// None for what is no lesson: the index, the glossary.
    pub front_matter: Option<FrontMatter>,
    pub units: Vec<Unit>,
}

impl Lesson {
    /// The heading that it begins with.
    pub fn title(&self) -> Words {
        let prose = self.units.iter().find(|unit| matches!(unit.content, Content::Prose { .. }));
        let heading = |language| {
            let text = prose.map_or("", |unit| unit.content.text(language));
            text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
        };
        Words::new(heading(Language::Ja), heading(Language::En))
    }

    /// Whether it has cells that a Rust compiler is needed for.
    pub fn has_rust_cells(&self) -> bool {
        let rust = |unit: &Unit| matches!(&unit.content, Content::Code { code, .. } if code.starts_with("%%rust"));
        self.units.iter().any(rust)
    }
}

/// What becomes one cell of each notebook.
#[derive(Debug, PartialEq)]
pub struct Unit {
    /// The same in all languages; it changes only when the Japanese text or the code does.
    pub id: String,
    /// The line of the source at which the unit begins, from 1.
    pub line: usize,
    pub content: Content,
}

#[derive(Debug, PartialEq)]
pub enum Content {
    Prose { japanese: String, english: English },
    Code { code: String, tags: Vec<String> },
}

#[derive(Debug, PartialEq)]
pub struct English {
    pub text: String,
    /// The hash of the Japanese text at the time of the translation; empty if none has been noted.
    pub translates: String,
    pub line: usize,
}

impl Content {
    /// The text of a cell in a language; code is the same in each.
    pub fn text(&self, language: Language) -> &str {
        match (self, language) {
            (Content::Prose { japanese, .. }, Language::Ja) => japanese,
            (Content::Prose { english, .. }, Language::En) => &english.text,
            (Content::Code { code, .. }, _) => code,
        }
    }
}

/// Something in a source that keeps its notebooks from being made.
#[derive(Debug, PartialEq)]
pub struct Problem {
    pub place: String,
    pub line: usize,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.place, self.line, self.text)
    }
}

/// The short hash by which an English text knows its Japanese one.
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a source whose form is right; whether its translations are up to date is told by [`drift`].
pub fn parse(place: &Path, text: &str) -> Result<Lesson, Vec<Problem>> {
    let mut parser = Parser::default();
    let (front_matter, skipped) = front_matter::read(text).unwrap_or_else(|(line, text)| {
        parser.problem(line, text);
        (None, 0)
    });
    for (index, line) in text.lines().enumerate().skip(skipped) {
        parser.line(index + 1, line);
    }
    parser.end();
    let problems: Vec<Problem> = parser
        .problems
        .into_iter()
        .map(|(line, text)| Problem { place: place.display().to_string(), line, text })
        .collect();
    if problems.is_empty() { Ok(Lesson { front_matter, units: parser.units }) } else { Err(problems) }
}

/// The English texts whose Japanese has changed since they were translated.
pub fn drift(place: &Path, lesson: &Lesson) -> Vec<Problem> {
    let drifted = |unit: &Unit| {
        let Content::Prose { japanese, english } = &unit.content else {
            return None;
        };
        let now = hash(japanese);
        (english.translates != now).then(|| Problem {
            place: place.display().to_string(),
            line: english.line,
            text: format!(
                "the Japanese text above has the hash {now}, the English one translates {}; bring the English up to \
                 date, then run `cargo run -p lessons -- --accept`",
                if english.translates.is_empty() { "nothing yet" } else { &english.translates },
            ),
        })
    };
    lesson.units.iter().filter_map(drifted).collect()
}

/// The source with each English text marked as a translation of the Japanese that now stands above it.
pub fn accept(text: &str, lesson: &Lesson) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for unit in &lesson.units {
        if let Content::Prose { japanese, english } = &unit.content {
            lines[english.line - 1] = format!("<!-- en {} -->", hash(japanese));
        }
    }
    lines.join("\n") + "\n"
}

/// Where the parser stands.
#[derive(Default)]
enum Place {
    #[default]
    Between,
    Japanese {
        line: usize,
    },
    English {
        line: usize,
        japanese: String,
        english_line: usize,
        translates: String,
    },
    Cell {
        line: usize,
        fence: String,
        tags: Vec<String>,
    },
}

#[derive(Default)]
struct Parser {
    place: Place,
    /// The text of the current place so far.
    text: String,
    /// The fence that is open within prose.
    prose_fence: Option<String>,
    units: Vec<Unit>,
    ids: BTreeMap<String, usize>,
    problems: Vec<(usize, String)>,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) {
        if let Place::Cell { fence, .. } = &self.place {
            if closes(line, fence) {
                self.close()
            } else {
                self.keep(line)
            }
            return;
        }
        if let Some(fence) = &self.prose_fence {
            if closes(line, fence) {
                self.prose_fence = None;
            }
            return self.keep(line);
        }
        if let Some(marker) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            match marker.split_whitespace().collect::<Vec<_>>()[..] {
                ["ja"] => {
                    self.finish();
                    self.place = Place::Japanese { line: number };
                    return;
                }
                ["en"] => return self.english(number, ""),
                ["en", hash] => return self.english(number, hash),
                _ => {}
            }
        }
        let fence = open_fence(line);
        match fence {
            Some((fence, info)) if info.split_whitespace().next() == Some("cell") => {
                self.finish();
                let tags = self.tags(number, info);
                self.place = Place::Cell { line: number, fence: fence.to_owned(), tags };
            }
            _ => {
                if let Some((fence, _)) = fence {
                    self.prose_fence = Some(fence.to_owned());
                }
                self.prose(number, line);
            }
        }
    }

    fn prose(&mut self, number: usize, line: &str) {
        match self.place {
            Place::Between if !line.trim().is_empty() => self.problem(
                number,
                "text outside of a unit; expected `<!-- ja -->` before Japanese prose or a fence with the word `cell`",
            ),
            Place::Japanese { .. } if continues_after_full_stop(line) => {
                self.problem(number, "a Japanese line breaks after 「。」; put the next sentence on a line of its own");
            }
            _ => {}
        }
        self.keep(line);
    }

    fn english(&mut self, number: usize, translates: &str) {
        match std::mem::take(&mut self.place) {
            Place::Japanese { line } => {
                let japanese = self.take_text();
                let translates = translates.to_owned();
                self.place = Place::English { line, japanese, english_line: number, translates };
            }
            place => {
                self.place = place;
                self.problem(
                    number,
                    "English prose without the Japanese that it translates; expected `<!-- ja -->` first",
                );
            }
        }
    }

    fn tags(&mut self, number: usize, info: &str) -> Vec<String> {
        let mut tags = Vec::new();
        for attribute in info.split_whitespace().skip(1) {
            match attribute.split_once('=') {
                Some(("tags", list)) => tags.extend(list.split(',').map(str::to_owned)),
                _ => self.problem(number, format!("`{attribute}` is no attribute of a cell; expected `tags=ONE,TWO`")),
            }
        }
        tags
    }

    /// Ends the prose, where something new begins.
    fn finish(&mut self) {
        match std::mem::take(&mut self.place) {
            Place::English { line, japanese, english_line, translates } => {
                let english = English { text: self.take_text(), translates, line: english_line };
                if japanese.is_empty() || english.text.is_empty() {
                    self.problem(line, "prose without a text in both languages");
                }
                self.unit(line, hash(&japanese), Content::Prose { japanese, english });
            }
            Place::Japanese { line } => {
                self.problem(
                    line,
                    "Japanese prose without English; expected `<!-- en -->` and the English text below it",
                );
            }
            Place::Between | Place::Cell { .. } => {}
        }
        self.text.clear();
    }

    fn close(&mut self) {
        if let Place::Cell { line, tags, .. } = std::mem::take(&mut self.place) {
            let code = self.take_text();
            self.unit(line, hash(&code), Content::Code { code, tags });
        }
    }

    fn end(&mut self) {
        if let Place::Cell { line, ref fence, .. } = self.place {
            let text = format!("the cell that begins here has no end; expected a line `{fence}`");
            self.problem(line, text);
        }
        self.finish();
    }

    fn unit(&mut self, line: usize, hash: String, content: Content) {
        let times = self.ids.entry(hash.clone()).or_default();
        *times += 1;
        let id = if *times == 1 { hash } else { format!("{hash}-{times}") };
        self.units.push(Unit { id, line, content });
    }

    fn keep(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text).trim_matches('\n').to_owned()
    }

    fn problem(&mut self, line: usize, text: impl Into<String>) {
        self.problems.push((line, text.into()));
    }
}

/// The backticks and the info string of a line that opens a fence.
fn open_fence(line: &str) -> Option<(&str, &str)> {
    let info = line.trim_start_matches('`');
    let (fence, info) = line.split_at(line.len() - info.len());
    (fence.len() >= 3 && !info.contains('`')).then_some((fence, info))
}

fn closes(line: &str, fence: &str) -> bool {
    let line = line.trim_end();
    line.len() >= fence.len() && line.chars().all(|char| char == '`')
}

/// Headings and table rows can't be broken; what closes a quotation belongs to the sentence.
fn continues_after_full_stop(line: &str) -> bool {
    if line.starts_with(['#', '|']) {
        return false;
    }
    let closing = ['」', '』', '）', '】', '》', ')', '*', '_', '`', '"'];
    line.split('。').skip(1).any(|rest| !rest.trim_end().is_empty() && !rest.starts_with(closing))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
<!-- ja -->
# 望ましい状態
Podを3つ望みます。
<!-- en 00000000 -->
# Desired state
We wish for three Pods.

```cell tags=raises-exception,hide-input
kubectl get pods
```

```cell
kubectl get pods
```
";

    fn problems(text: &str) -> Vec<String> {
        parse(Path::new("a.md"), text).unwrap_err().iter().map(Problem::to_string).collect()
    }

    #[test]
    fn prose_stands_in_two_languages_and_code_once() {
        let lesson = parse(Path::new("a.md"), SOURCE).unwrap();
        let [prose, first, second] = &lesson.units[..] else { panic!("three units") };
        assert_eq!(prose.content.text(Language::Ja), "# 望ましい状態\nPodを3つ望みます。");
        assert_eq!(prose.content.text(Language::En), "# Desired state\nWe wish for three Pods.");
        let tags = vec!["raises-exception".to_owned(), "hide-input".to_owned()];
        assert_eq!(first.content, Content::Code { code: "kubectl get pods".into(), tags });
        assert_eq!(second.id, format!("{}-2", first.id));
        assert_eq!(second.line, 12);
    }

    #[test]
    fn a_changed_japanese_text_is_drift_until_it_is_accepted() {
        let place = Path::new("a.md");
        let lesson = parse(place, SOURCE).unwrap();
        let told = drift(place, &lesson);
        assert_eq!(told.len(), 1);
        assert!(told[0].to_string().starts_with("a.md:4: the Japanese text above has the hash "));
        let accepted = accept(SOURCE, &lesson);
        let lesson = parse(place, &accepted).unwrap();
        assert_eq!(drift(place, &lesson), []);
        let edited = parse(place, &accepted.replace("3つ望み", "5つ望み")).unwrap();
        assert_eq!(drift(place, &edited).len(), 1);
    }

    #[test]
    fn fences_within_prose_and_longer_fences_around_cells_are_kept() {
        let text = "<!-- ja -->\n```yaml\n<!-- en -->\n```\n<!-- en -->\nE\n````cell\n```cell\n```\n````\n";
        let lesson = parse(Path::new("a.md"), text).unwrap();
        assert_eq!(lesson.units[0].content.text(Language::Ja), "```yaml\n<!-- en -->\n```");
        assert_eq!(lesson.units[1].content.text(Language::En), "```cell\n```");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let outside = "a.md:1: text outside of a unit; expected `<!-- ja -->` before Japanese prose or a fence with the word `cell`";
        assert_eq!(problems("text\n"), [outside]);
        assert!(problems("<!-- ja -->\n文。\n```cell\n```\n")[0].starts_with("a.md:1: Japanese prose without English"));
        assert!(problems("<!-- en -->\n")[0].starts_with("a.md:1: English prose without the Japanese"));
        assert!(problems("```cell\nls\n")[0].starts_with("a.md:1: the cell that begins here has no end"));
        assert!(problems("```cell id=x\n```\n")[0].starts_with("a.md:1: `id=x` is no attribute of a cell"));
        assert!(
            problems("<!-- ja -->\n一。二。\n<!-- en -->\nx\n")[0].starts_with("a.md:2: a Japanese line breaks after")
        );
        assert!(problems("<!-- ja -->\n一。\n<!-- en -->\n")[0].starts_with("a.md:1: prose without a text in both"));
    }

    #[test]
    fn quotations_headings_and_tables_may_go_on_after_a_full_stop() {
        assert!(!continues_after_full_stop("「動く。」と言う。"));
        assert!(!continues_after_full_stop("# 一。二"));
        assert!(!continues_after_full_stop("| 一。 | 二。 |"));
        assert!(continues_after_full_stop("一。二"));
    }
}
