//! JUnit XML, as continuous integration reads it: a suite an answer, a case a check.
//! <https://github.com/testmoapp/junitxml>

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::exit::Failure;
use crate::grading::verdict::{Grade, Outcome, Verdict};

pub fn junit(grades: &[Grade]) -> Result<String, Failure> {
    let mut report = Report::new("kernetes grade");
    report.add_test_suites(grades.iter().map(suite));
    report.to_string().map_err(|error| Failure::Fault(format!("can't write JUnit: {error}")))
}

fn suite(grade: &Grade) -> TestSuite {
    let notebook = grade.notebook.display().to_string();
    let mut suite = TestSuite::new(format!("{notebook}: {}", grade.exercise));
    let class = format!("{notebook}.{}", grade.exercise);
    let mut told = false;
    let mut cases: Vec<TestCase> = Vec::new();
    for (check, outcome) in &grade.checks {
        let status = match outcome {
            Outcome::Passed => TestCaseStatus::success(),
            // What ended the grade stands at the first check that was not passed.
            _ if !std::mem::replace(&mut told, true) => end(grade),
            _ => TestCaseStatus::skipped(),
        };
        cases.push(TestCase::new(check.as_str(), status));
    }
    if !told && grade.verdict != Verdict::Passed {
        cases.push(TestCase::new(grade.exercise.as_str(), end(grade)));
    }
    for case in &mut cases {
        case.set_classname(class.as_str());
    }
    suite.add_test_cases(cases);
    suite
}

fn end(grade: &Grade) -> TestCaseStatus {
    let kind = match grade.verdict {
        Verdict::Broken(_) => NonSuccessKind::Error,
        _ => NonSuccessKind::Failure,
    };
    let mut status = TestCaseStatus::non_success(kind);
    let mut text = grade.verdict.words().say(grade.language).to_owned();
    status.set_type(grade.verdict.name()).set_message(text.as_str());
    for error in &grade.errors {
        text += &format!("\n{error}");
    }
    if let Some(seed) = grade.seed {
        text += &format!("\nseed {seed}");
    }
    status.set_description(text);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grading::reports::testing::grades;

    #[test]
    fn a_check_is_a_case_and_a_broken_grader_an_error() {
        let xml = junit(&grades()).unwrap();
        assert!(
            xml.contains(r#"<testsuites name="kernetes grade" tests="6" skipped="1" failures="1" errors="1">"#),
            "{xml}"
        );
        assert!(xml.contains(r#"<testcase name="three-ready" classname="ami.ipynb.01-keep-three"/>"#), "{xml}");
        assert!(xml.contains(r#"<failure message="戻りません。 見つかったもの: Pod 2個" type="wrong">"#), "{xml}");
        assert!(xml.contains("c1: exit code 1\nseed 2"), "{xml}");
        assert!(xml.contains(r#"<error message="a fault of the grader: index out of bounds" type="broken">"#), "{xml}");
    }
}
