//! One line a grade.

use crate::grading::verdict::{Grade, Verdict};
use crate::settings::Language;
use crate::text;

/// The table, each line in the language of its notebook; the headings in the first one's.
pub fn table(grades: &[Grade]) -> String {
    let language = grades.first().map(|grade| grade.language).unwrap_or_default();
    let columns = match language {
        Language::Ja => ["ノートブック", "演習", "判定", "検査", "説明"],
        Language::En => ["NOTEBOOK", "EXERCISE", "VERDICT", "CHECK", "WHY"],
    };
    let rows: Vec<Vec<String>> = grades.iter().map(row).collect();
    let table = text::table(&columns.map(str::to_owned), &rows);
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn row(grade: &Grade) -> Vec<String> {
    let check = grade.verdict.failed().map(|failed| failed.check.clone()).unwrap_or_default();
    let why = grade.verdict.words().say(grade.language).split_whitespace().collect::<Vec<_>>().join(" ");
    let notebook = grade.notebook.display().to_string();
    vec![notebook, grade.exercise.clone(), name(&grade.verdict, grade.language).to_owned(), check, why]
}

fn name(verdict: &Verdict, language: Language) -> &'static str {
    if !language.is_japanese() {
        return verdict.name();
    }
    match verdict {
        Verdict::Passed => "合格",
        Verdict::NotStarted => "未着手",
        Verdict::Wrong(_) => "不正解",
        Verdict::NotConverged(_) => "未収束",
        Verdict::Unreadable(_) => "読めない",
        Verdict::Broken(_) => "採点側の故障",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grading::reports::testing::grades;

    #[test]
    fn a_line_says_who_what_and_why() {
        let table = table(&grades());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1], "ami.ipynb      01-keep-three   不正解   heals   戻りません。 見つかったもの: Pod 2個");
        assert_eq!(lines[2], "ben.ipynb      01-keep-three   passed");
        assert!(lines[3].ends_with("broken           a fault of the grader: index out of bounds"), "{table}");
    }
}
