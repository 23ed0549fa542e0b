//! The learning path: the table that stands in a notebook where its source says `<!-- lessons -->`, made from what the
//! lessons and the exercises say of themselves.

use kernetes::exit::Failure;
use kernetes::grading::exercise::{self, Exercise};
use kernetes::grading::words::Words;
use kernetes::notebook::Language;

use crate::Source;
use crate::front_matter::FrontMatter;

/// The line of prose that the table replaces.
const MARK: &str = "<!-- lessons -->";

/// The lessons with front matter, in their order.
#[derive(Debug)]
pub struct Index {
    rows: Vec<Row>,
    others: Vec<&'static Exercise>,
}

#[derive(Debug)]
struct Row {
    file: String,
    title: Words,
    minutes: u32,
    after: Words,
    exercises: Vec<&'static Exercise>,
}

impl Index {
    /// The index of all lessons. An exercise that none of them names is listed by itself.
    pub fn of(sources: &[Source]) -> Result<Index, Failure> {
        let all = exercise::all()?;
        let mut others: Vec<&Exercise> = all.iter().collect();
        let mut rows = Vec::new();
        for source in sources {
            let Some(FrontMatter { minutes, after, exercises, .. }) = &source.lesson.front_matter else { continue };
            let mut named = Vec::new();
            for number in exercises {
                let exercise = exercise::find(&number.to_string())?;
                others.retain(|other| other.id != exercise.id);
                named.push(exercise);
            }
            rows.push(Row {
                file: format!("{}.ipynb", source.name),
                title: source.lesson.title(),
                minutes: *minutes,
                after: after.clone(),
                exercises: named,
            });
        }
        Ok(Index { rows, others })
    }

    /// Prose with the table in the place of its mark.
    pub fn expand(&self, text: &str, language: Language) -> String {
        if text.contains(MARK) { text.replace(MARK, &self.table(language)) } else { text.to_owned() }
    }

    fn table(&self, language: Language) -> String {
        let mut table = language
            .say(
                "| 回 | 分 | できるようになること | 演習 |\n|---|---|---|---|\n",
                "| lesson | minutes | afterwards you can | exercises |\n|---|---|---|---|\n",
            )
            .to_owned();
        for row in &self.rows {
            let exercises: Vec<String> = row.exercises.iter().map(|exercise| link(exercise, language)).collect();
            let (title, after) = (row.title.say(language), row.after.say(language));
            let Row { file, minutes, .. } = row;
            table += &format!("| [{title}]({file}) | {minutes} | {after} | {} |\n", exercises.join("<br>"));
        }
        let sum: u32 = self.rows.iter().map(|row| row.minutes).sum();
        table += &match language {
            Language::Ja => format!("\n全部で{}時間ほどです。", hours(sum)),
            Language::En => format!("\nThat is about {} hours in all.", hours(sum)),
        };
        if !self.others.is_empty() {
            let links: Vec<String> = self.others.iter().map(|exercise| link(exercise, language)).collect();
            table += language.say("\n\nほかの演習: ", "\n\nMore exercises: ");
            table += &links.join(language.say("、", ", "));
        }
        table
    }
}

fn link(exercise: &Exercise, language: Language) -> String {
    format!("[{}](../exercises/{}/{}.ipynb)", exercise.title.say(language), exercise.id, language.code())
}

fn hours(minutes: u32) -> u32 {
    (minutes + 30) / 60
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source;

    #[test]
    fn lessons_are_listed_with_what_they_say_of_themselves() {
        let text = "---\nminutes: 90\nafter:\n  ja: 保てる\n  en: keep three\nexercises: [1]\n---\n\
            <!-- ja -->\n# 題: 副題\n\n<!-- lessons -->\n<!-- en -->\n# Title\n\n<!-- lessons -->\n";
        let lesson = source::parse(Path::new("a.md"), text).expect("a lesson");
        let path = Path::new("source/01-a.md").to_owned();
        let source = Source { name: "01-a".to_owned(), path, text: text.to_owned(), lesson };
        let index = Index::of(&[source]).expect("an index");
        let told = index.expand("before\n<!-- lessons -->", Language::En);
        let row = "| [Title](01-a.ipynb) | 90 | keep three | [Keep three](../exercises/01-keep-three/en.ipynb) |\n";
        assert!(told.starts_with("before\n| lesson |") && told.contains(row), "{told}");
        assert!(told.contains("That is about 2 hours") && told.contains("More exercises: ["), "{told}");
        assert!(index.expand(MARK, Language::Ja).contains("| [題: 副題](01-a.ipynb) | 90 | 保てる |"));
    }
}
