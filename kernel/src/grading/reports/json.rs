//! JSON for programs; texts in both languages.

use serde_json::{Value, json};

use crate::grading::verdict::{Grade, Outcome, Verdict};

pub fn json(grades: &[Grade]) -> Value {
    let passed = grades.iter().all(|grade| grade.verdict == Verdict::Passed);
    json!({"passed": passed, "grades": grades.iter().map(grade).collect::<Vec<_>>()})
}

fn grade(grade: &Grade) -> Value {
    let checks = grade.checks.iter().map(|(id, outcome)| {
        let outcome = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::NotRun => "not-run",
        };
        json!({"id": id, "outcome": outcome})
    });
    let mut object = json!({
        "notebook": grade.notebook.display().to_string(),
        "exercise": grade.exercise,
        "verdict": grade.verdict.name(),
        "checks": checks.collect::<Vec<_>>(),
        "cell_errors": grade.errors,
    });
    if grade.verdict != Verdict::Passed {
        object["message"] = json!(grade.verdict.words());
        object["seed"] = json!(grade.seed);
    }
    if let Some(failed) = grade.verdict.failed() {
        object["check"] = json!(failed.check);
        object["found"] = json!(failed.found);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grading::reports::testing::grades;

    #[test]
    fn programs_read_verdict_check_and_texts() {
        let json = json(&grades());
        assert_eq!(json["passed"], false);
        let wrong = &json["grades"][0];
        assert_eq!((&wrong["verdict"], &wrong["check"], &wrong["seed"]), (&json!("wrong"), &json!("heals"), &json!(2)));
        assert_eq!(wrong["found"], json!({"ja": "Pod 2個", "en": "2 Pods"}));
        assert_eq!(wrong["checks"][1], json!({"id": "heals", "outcome": "failed"}));
        assert_eq!(json["grades"][1]["verdict"], "passed");
        assert_eq!(json["grades"][2]["checks"][0]["outcome"], "not-run");
    }
}
