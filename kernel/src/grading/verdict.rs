//! What a grade says.

use std::fmt;
use std::path::PathBuf;

use super::exercise::Exercise;
use super::words::Words;
use crate::settings::Language;

/// The judgement of one answer. The kinds are never mixed up.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Passed,
    /// The answer changed nothing.
    NotStarted,
    Wrong(Failed),
    /// The check would hold, but later than the exercise allows: the cluster is still on its way.
    NotConverged(Failed),
    /// The notebook, or the exercise that it names, can't be read.
    Unreadable(String),
    /// The grader itself failed; this says nothing about the answer.
    Broken(String),
}

/// The check that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    pub check: String,
    pub message: Words,
    /// What is there instead.
    pub found: Words,
}

/// One answer's line in the reports.
#[derive(Clone, Debug)]
pub struct Grade {
    pub notebook: PathBuf,
    pub exercise: String,
    pub verdict: Verdict,
    /// The seed at which it was found; with a pass, none.
    pub seed: Option<u64>,
    /// The exercise's checks by id.
    pub checks: Vec<(String, Outcome)>,
    /// Cells of the answer that ended with an error, which alone is no reason to fail.
    pub errors: Vec<String>,
    /// The language that the notebook is written in.
    pub language: Language,
}

/// What became of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// One before it did not pass.
    NotRun,
}

impl Verdict {
    /// As the reports spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::NotStarted => "not-started",
            Verdict::Wrong(_) => "wrong",
            Verdict::NotConverged(_) => "not-converged",
            Verdict::Unreadable(_) => "unreadable",
            Verdict::Broken(_) => "broken",
        }
    }

    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Verdict::Wrong(failed) | Verdict::NotConverged(failed) => Some(failed),
            _ => None,
        }
    }

    /// What the learner is told.
    pub fn words(&self) -> Words {
        match self {
            Verdict::Passed => Words::default(),
            Verdict::NotStarted => Words::new("まだ何も変わっていません", "nothing has been changed yet"),
            Verdict::Wrong(failed) => failed.words(),
            Verdict::NotConverged(failed) => {
                let Words { ja, en } = failed.words();
                Words::new(format!("時間内に落ち着きませんでした。{ja}"), format!("It did not settle in time. {en}"))
            }
            Verdict::Unreadable(why) => Words::same(why.clone()),
            Verdict::Broken(why) => {
                Words::new(format!("採点する側の故障です: {why}"), format!("a fault of the grader: {why}"))
            }
        }
    }

    /// The outcome of each check of the exercise.
    pub fn outcomes(&self, exercise: &Exercise) -> Vec<(String, Outcome)> {
        let ids = exercise.checks.iter().map(|check| check.id.clone());
        let failed = self.failed().map(|failed| &failed.check);
        let mut reached = *self == Verdict::Passed || failed.is_some();
        ids.map(|id| {
            let outcome = match reached {
                true if failed == Some(&id) => Outcome::Failed,
                true => Outcome::Passed,
                false => Outcome::NotRun,
            };
            reached &= outcome == Outcome::Passed;
            (id, outcome)
        })
        .collect()
    }
}

impl Failed {
    fn words(&self) -> Words {
        let Words { ja, en } = &self.message;
        Words::new(format!("{ja} 見つかったもの: {}", self.found.ja), format!("{en} Found: {}", self.found.en))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed() {
            Some(failed) => write!(formatter, "{} at {}: {}", self.name(), failed.check, failed.words().en),
            None => write!(formatter, "{}: {}", self.name(), self.words().en),
        }
    }
}
