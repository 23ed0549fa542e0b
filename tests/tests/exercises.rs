//! Each exercise's own proof, at many seeds: the start alone does not pass, right answers do, and each wrong answer fails
//! at the check that it names. `EXERCISE=01-keep-three` proves that one alone; with `-- --nocapture` it also tells what those
//! who give each wrong answer will read, and how long it took.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

use kernetes::grading::exercise::{self, Exercise};
use kernetes::grading::replay::{Replay, begin, judge, replay};
use kernetes::grading::verdict::Verdict;
use kernetes::grading::words::Words;
use kernetes::settings::{Language, Settings};
use lessons::answers::{is_rust, type_in};

const SEEDS: RangeInclusive<u64> = 1..=20;
/// The seeds at which an answer is also replayed on a fresh cluster.
const REPLAYED: RangeInclusive<u64> = 1..=4;

#[test]
fn every_exercise_proves_itself() {
    let exercises = asked();
    let told: Vec<String> = std::thread::scope(|scope| {
        let proofs: Vec<_> = exercises.iter().map(|exercise| scope.spawn(|| prove(exercise))).collect();
        proofs.into_iter().flat_map(|proof| proof.join().unwrap()).collect()
    });
    assert!(told.is_empty(), "\n{}\n", told.join("\n"));
}

/// Those that `EXERCISE` lists, read from their folders so that nothing is compiled for an edit; else all.
fn asked() -> Vec<Exercise> {
    let Ok(ids) = std::env::var("EXERCISE") else {
        return exercise::SOURCES.iter().map(|(id, text)| exercise::read(id, text).unwrap()).collect();
    };
    let read = |id: &str| {
        let file = Path::new(lessons::ROOT).join("exercises").join(id).join("exercise.yaml");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        exercise::read(id, &text).unwrap_or_else(|error| panic!("{error}"))
    };
    ids.split(',').map(read).collect()
}

fn prove(exercise: &Exercise) -> Vec<String> {
    let begun = Instant::now();
    let mut told = Vec::new();
    let mut expect = |answer: &str, seed: u64, verdict: &Verdict, is_so: bool| {
        if !is_so {
            told.push(format!("{}, {answer}, seed {seed}: {verdict}", exercise.id));
        }
    };
    for seed in SEEDS {
        let Replay { verdict, .. } = replay(exercise, &[], seed, Language::Ja);
        expect("no answer", seed, &verdict, verdict == Verdict::NotStarted);
        for (name, cells) in exercise.answers.right.iter().filter(|(_, cells)| !are_rust(cells)) {
            let verdict = answer(exercise, cells, seed).unwrap_or_else(Verdict::Broken);
            expect(name, seed, &verdict, verdict == Verdict::Passed);
        }
        for (name, wrong) in exercise.answers.wrong.iter().filter(|(_, wrong)| !are_rust(&wrong.cells)) {
            let verdict = answer(exercise, &wrong.cells, seed).unwrap_or_else(Verdict::Broken);
            let fails_as_named = matches!(&verdict, Verdict::Wrong(failed) if failed.check == wrong.fails);
            if seed == *SEEDS.start() {
                let Words { ja, en } = verdict.words();
                println!("{}, {name}:\n  {ja}\n  {en}", exercise.id);
            }
            expect(name, seed, &verdict, fails_as_named);
        }
    }
    println!("{}: {:.1} s", exercise.id, begun.elapsed().as_secs_f64());
    told
}

/// Controllers are proved in `kernel/src/search/answers.rs`, where they are compiled.
fn are_rust(cells: &[String]) -> bool {
    cells.iter().any(|cell| is_rust(cell))
}

/// Answers as a learner does, in Japanese, who reads things off outputs; then grades the cells that were typed on a fresh
/// cluster, in English: the verdict must be the same. The error names a cell that cannot be run, or how the replay ended.
fn answer(exercise: &Exercise, cells: &[String], seed: u64) -> Result<Verdict, String> {
    let settings = Settings { seed, language: Language::Ja, ..Settings::default() };
    let mut session = begin(exercise, settings).unwrap();
    let start = session.cluster.clone();
    let typed = type_in(&mut session, exercise, cells)?;
    let verdict = judge(exercise, &start, &session.cluster);
    if !REPLAYED.contains(&seed) {
        return Ok(verdict);
    }
    let replayed = replay(exercise, &typed, seed, Language::En);
    if replayed.verdict == verdict && replayed.errors.is_empty() {
        return Ok(verdict);
    }
    let ended = replayed.errors.into_iter().chain([replayed.verdict.to_string()]).collect::<Vec<_>>().join("; ");
    Err(format!("a replay ends otherwise ({ended}) than the answer itself ({verdict}): {typed:#?}"))
}

#[test]
fn exercises_speak_both_languages_and_name_at_least_two_right_and_three_wrong_answers() {
    for exercise in exercise::all().unwrap() {
        let Exercise { id, title, task, hints, checks, answers, .. } = exercise;
        let texts = [title, task].into_iter().chain(hints).chain(checks.iter().map(|check| &check.message));
        for text in texts {
            assert!(!text.ja.trim().is_empty() && !text.en.trim().is_empty(), "{id}: {text:?}");
            assert!(text.en.is_ascii() && !text.ja.is_ascii(), "{id}: {text:?}");
        }
        assert!(answers.right.len() >= 2, "{id}");
        assert!(answers.wrong.len() >= 3, "{id}");
        for check in checks {
            let same = checks.iter().filter(|other| other.id == check.id || other.message == check.message);
            assert_eq!(same.count(), 1, "{id}: {} has another's id or message", check.id);
        }
    }
}

#[test]
fn committed_notebooks_of_exercises_are_made_from_them() {
    let root = Path::new(lessons::ROOT);
    let built = lessons::exercises::build(root).unwrap();
    let differences = lessons::compare(root, &built).unwrap();
    let told: String = differences.iter().map(|difference| format!("\n{difference}")).collect();
    assert!(told.is_empty(), "{told}\n`cargo run -p lessons` makes them");
}

#[test]
fn every_folder_of_an_exercise_is_in_the_table() {
    let folders = std::fs::read_dir(Path::new(lessons::ROOT).join("exercises")).unwrap();
    let folders = folders.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let mut found: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    found.sort();
    let known: Vec<&str> = exercise::SOURCES.iter().map(|(id, _)| *id).collect();
    assert_eq!(found, known);
}

#[test]
fn an_answer_that_is_only_late_is_not_called_wrong() {
    let exercise = exercise::find("01-keep-three").unwrap();
    let slow = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        readinessProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 900}
";
    let Replay { verdict, .. } = replay(exercise, &[("a".to_owned(), slow.to_owned())], 1, Language::En);
    assert!(matches!(&verdict, Verdict::NotConverged(failed) if failed.check == "three-ready"), "{verdict}");
}

#[test]
fn an_internal_fault_is_no_verdict_about_the_answer() {
    let Ok(mut exercise) = exercise::read("01-keep-three", exercise::SOURCES[0].1) else { panic!("it can be read") };
    exercise.start = vec!["kubectl nonsense".to_owned()];
    let Replay { verdict, .. } = replay(&exercise, &[], 1, Language::En);
    assert!(matches!(&verdict, Verdict::Broken(why) if why.contains("the start of 01-keep-three")), "{verdict}");
}
