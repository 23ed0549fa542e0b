//! The proof of exercises whose answers are controllers. A Rust cell takes seconds to compile, so here they are compiled into
//! the test, from the same files; what a cell adds is `run(…)`, which joins them to the cluster.

use std::sync::Mutex;
use std::time::Instant;

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;

use crate::grading::check::Finding;
use crate::grading::exercise::{self, Exercise};
use crate::grading::replay::{begin, judge};
use crate::grading::verdict::Verdict;
use crate::rust_cells::native;
use crate::settings::{Language, Settings};

/// They decide uids, drawn names and the walks by chance.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

struct Proved {
    exercise: &'static str,
    name: &'static str,
    join: fn(&mut Cluster),
}

/// The file of an answer, and what its cell runs.
macro_rules! answer {
    ($exercise:literal, $name:literal, $($controller:literal: $value:expr),+) => {
        Proved {
            exercise: $exercise,
            name: $name,
            join: |cluster| {
                mod answer {
                    include!(concat!("../../../notebooks/exercises/", $exercise, "/answers/", $name, ".rs"));
                }
                use answer::*;
                let kinds: Vec<KindRef> = cluster.kinds().cloned().collect();
                $(cluster.join(native($controller, $value, kinds.iter()).expect("its kinds are served"));)+
            },
        }
    };
}

const ANSWERS: &[Proved] = &[
    answer!("25-own-replica-set", "by-name", "pool-controller": Answer),
    answer!("25-own-replica-set", "drawn-names", "pool-controller": Answer),
    answer!("25-own-replica-set", "one-step-at-a-time", "pool-controller": Answer),
    answer!("25-own-replica-set", "applies", "pool-controller": Answer),
    answer!("25-own-replica-set", "counts-events", "pool-controller": Answer::default()),
    answer!("25-own-replica-set", "only-grows", "pool-controller": Answer),
    answer!("25-own-replica-set", "takes-all-pods", "pool-controller": Answer),
    answer!("25-own-replica-set", "one-too-many", "pool-controller": Answer),
    answer!("25-own-replica-set", "goes-by-labels", "pool-controller": Answer),
    answer!("26-certificates-that-last", "from-the-secret", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "looks-every-minute", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "takes-the-old-one-away", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "patches", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "makes-it-once", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "relies-on-a-timer", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "looks-each-second", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "notes-it-afterwards", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "renews-at-each-look", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "patches-whatever-is-there", "certificate-controller": Answer),
    answer!("26-certificates-that-last", "renews-when-it-has-expired", "certificate-controller": Answer),
    answer!("27-secrets-from-a-vault", "keeps-the-last-good-one", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "applies", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "says-ready-when-it-has-seen-it", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "status-first", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "takes-what-is-there", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "empties-it", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "always-ready", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "asks-all-the-time", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "plain-text", "secret-controller": Answer),
    answer!("27-secrets-from-a-vault", "does-not-watch-the-vault", "secret-controller": Answer),
    answer!("28-after-you-left", "finalizer-first", "shop-controller": Answer),
    answer!("28-after-you-left", "patches", "shop-controller": Answer),
    answer!("28-after-you-left", "deletes-all-of-them", "shop-controller": Answer),
    answer!("28-after-you-left", "applies", "shop-controller": Answer),
    answer!("28-after-you-left", "on-delete-event", "shop-controller": Answer),
    answer!("28-after-you-left", "database-first", "shop-controller": Answer),
    answer!("28-after-you-left", "lets-go-first", "shop-controller": Answer),
    answer!("28-after-you-left", "waits-for-what-is-gone", "shop-controller": Answer),
    answer!("28-after-you-left", "owner-reference", "shop-controller": Answer),
    answer!("28-after-you-left", "trusts-an-old-view", "shop-controller": Answer),
    answer!("29-quiet-loop", "says-what-is-so", "greeting-controller": Answer),
    answer!("29-quiet-loop", "ready-since", "greeting-controller": Answer),
    answer!("29-quiet-loop", "status-alone-once-it-is-so", "greeting-controller": Answer),
    answer!("29-quiet-loop", "condition-of-a-generation", "greeting-controller": Answer),
    answer!("29-quiet-loop", "moment-each-time", "greeting-controller": Answer),
    answer!("29-quiet-loop", "looks-each-second", "greeting-controller": Answer),
    answer!("29-quiet-loop", "ready-in-advance", "greeting-controller": Answer),
    answer!("29-quiet-loop", "only-when-ready-changes", "greeting-controller": Answer),
    answer!("29-quiet-loop", "generation-left-out", "greeting-controller": Answer),
    answer!("29-quiet-loop", "never-says-no", "greeting-controller": Answer),
    answer!("30-two-small-loops", "by-name", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "create-and-patch", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "the-same-loop-twice", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "by-uid", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "one-for-both", "app-controller": Apps),
    answer!("30-two-small-loops", "a-release-each-time", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "direct-call", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "made-and-left", "app-controller": Apps, "release-controller": Releases),
    answer!("30-two-small-loops", "a-release-of-each-version", "app-controller": Apps, "release-controller": Releases),
];

/// `EXERCISE=25-own-replica-set` proves that one alone; with `-- --nocapture` each tells how long it took.
#[test]
fn right_controllers_pass_and_wrong_ones_fail_where_the_exercise_says() {
    let asked = std::env::var("EXERCISE").ok();
    let is_asked = |id: &str| asked.as_deref().is_none_or(|asked| asked.split(',').any(|one| one == id));
    let prove_all = |exercise: &Exercise| {
        let begun = Instant::now();
        let answers = || ANSWERS.iter().filter(|answer| answer.exercise == exercise.id);
        let told: Vec<_> =
            SEEDS.flat_map(|seed| answers().filter_map(move |answer| prove(answer, exercise, seed))).collect();
        if answers().next().is_some() {
            println!("{}: {:.1} s", exercise.id, begun.elapsed().as_secs_f64());
        }
        told
    };
    let exercises = exercise::all().unwrap();
    let asked = Mutex::new(exercises.iter().filter(|exercise| is_asked(&exercise.id)));
    let next = || asked.lock().unwrap().next();
    // As many at a time as there are cores: other tests run beside this one.
    let told: Vec<String> = std::thread::scope(|scope| {
        let worker = || std::iter::from_fn(next).flat_map(prove_all).collect::<Vec<_>>();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(told.is_empty(), "\n{}\n", told.join("\n"));
}

/// What is not as the exercise says.
fn prove(answer: &Proved, exercise: &Exercise, seed: u64) -> Option<String> {
    let settings = Settings { seed, language: Language::Ja, ..Settings::default() };
    let mut session = begin(exercise, settings).unwrap();
    let start = session.cluster.clone();
    let first = &exercise.checks[0];
    assert!(matches!(first.run(&start, &start), Finding::Fails(_)), "{}: the start passes", exercise.id);
    (answer.join)(&mut session.cluster);
    let verdict = judge(exercise, &start, &session.cluster);
    let is_so = match exercise.answers.wrong.get(answer.name) {
        None => verdict == Verdict::Passed,
        Some(wrong) => matches!(&verdict, Verdict::Wrong(failed) if failed.check == wrong.fails),
    };
    (!is_so).then(|| format!("{}, {}, seed {seed}: {verdict}", answer.exercise, answer.name))
}

#[test]
fn every_answer_that_is_a_controller_is_proved() {
    for exercise in exercise::all().unwrap() {
        let wrong = exercise.answers.wrong.iter().map(|(name, wrong)| (name, &wrong.cells));
        for (name, cells) in exercise.answers.right.iter().chain(wrong) {
            let is_rust = cells.iter().any(|cell| cell.starts_with("%%rust"));
            let is_proved = ANSWERS.iter().any(|answer| answer.exercise == exercise.id && answer.name == name);
            assert_eq!(is_rust, is_proved, "{}: {name}", exercise.id);
        }
    }
}
