//! Grades told: a table for people, JUnit for continuous integration, JSON for programs.

pub mod json;
pub mod junit;
pub mod table;

#[cfg(test)]
pub mod testing {
    use super::super::verdict::{Failed, Grade, Outcome, Verdict};
    use super::super::words::Words;
    use crate::settings::Language;

    /// A wrong answer in Japanese, one that passes, and one on which the grader broke.
    pub fn grades() -> Vec<Grade> {
        let failed = Failed {
            check: "heals".into(),
            message: Words::new("戻りません。", "They don't come back."),
            found: Words::new("Pod 2個", "2 Pods"),
        };
        let grade = |notebook: &str, verdict, seed, outcomes: [Outcome; 2], language| Grade {
            notebook: notebook.into(),
            exercise: "01-keep-three".into(),
            verdict,
            seed,
            checks: ["three-ready", "heals"].map(str::to_owned).into_iter().zip(outcomes).collect(),
            errors: Vec::new(),
            language,
        };
        let mut wrong =
            grade("ami.ipynb", Verdict::Wrong(failed), Some(2), [Outcome::Passed, Outcome::Failed], Language::Ja);
        wrong.errors = vec!["c1: exit code 1".into()];
        let passed = grade("ben.ipynb", Verdict::Passed, None, [Outcome::Passed; 2], Language::En);
        let broken = Verdict::Broken("index out of bounds".into());
        let broken = grade("cho.ipynb", broken, Some(1), [Outcome::NotRun; 2], Language::En);
        vec![wrong, passed, broken]
    }
}
