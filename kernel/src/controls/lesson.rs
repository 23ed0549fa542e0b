//! Controls of exercises: begin one, get a hint, have the answer looked at.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::clock::Time;

use super::{Args, progress};
use crate::grading::exercise::{self, Exercise};
use crate::grading::replay::{begin, judge};
use crate::grading::verdict::{Outcome, Verdict};
use crate::output::{CellError, MimeBundle, Output, Sink, text};
use crate::plots::{self, Context, lives::Subject};
use crate::search::Story;
use crate::session::Session;
use crate::settings::Language;
use crate::text;

/// The exercise that a session is at.
pub struct Lesson {
    exercise: &'static Exercise,
    /// The cluster as the exercise began.
    start: Cluster,
    hints_given: usize,
}

pub fn exercise(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if args.words.is_empty() {
        return list(session, sink);
    }
    let exercise = exercise::find(args.one()?).map_err(|failure| CellError::new("NotFound", failure.to_string()))?;
    let settings = session.settings.clone();
    let begun = begin(exercise, settings.clone()).map_err(|fault| CellError::new("Fault", fault))?;
    session.reset(settings, sink)?;
    session.cluster = begun.cluster;
    session.lesson = Some(Lesson { exercise, start: session.cluster.clone(), hints_given: 0 });
    let language = session.language();
    let task = format!("**{}**\n\n{}", exercise.title.say(language), exercise.task.say(language).trim_end());
    sink.put(Output::Display { data: markdown(&task), id: None });
    Ok(())
}

fn list(session: &Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let all = exercise::all().map_err(|failure| CellError::new("Fault", failure.to_string()))?;
    let language = session.language();
    let row = |exercise: &Exercise| vec![exercise.id.clone(), exercise.title.say(language).to_owned()];
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let columns = [language.say("演習", "EXERCISE"), language.say("題", "TITLE")].map(str::to_owned);
    sink.put(Output::Stdout(text::table(&columns, &rows) + "\n"));
    Ok(())
}

pub fn hint(_: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let language = session.language();
    let lesson = current(session)?;
    let hints = &lesson.exercise.hints;
    let number = (lesson.hints_given + 1).min(hints.len());
    lesson.hints_given = number;
    let hint =
        format!("{} {number}/{}: {}", language.say("ヒント", "Hint"), hints.len(), hints[number - 1].say(language));
    sink.put(Output::Display { data: markdown(&hint), id: None });
    Ok(())
}

/// Each check with its outcome, then why the first one fails. With `--score` also the share of the points that the checks
/// passed are worth, as the cell's result, which is where nbgrader reads it.
pub fn check(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let points = match args.words.as_slice() {
        [] => None,
        ["--score"] => Some(1.0),
        ["--score", points] => {
            Some(points.parse::<f64>().ok().filter(|p| p.is_finite() && *p >= 0.0).ok_or_else(|| args.wrong())?)
        }
        _ => return Err(args.wrong()),
    };
    let (language, cluster) = (session.language(), session.cluster.clone());
    let Lesson { exercise, start, .. } = current(session)?;
    let (exercise, verdict) = (*exercise, judge(exercise, start, &cluster));
    let outcomes = verdict.outcomes(exercise);
    let mut told = String::new();
    for (id, outcome) in &outcomes {
        let mark = match outcome {
            Outcome::Passed => "✓",
            Outcome::Failed => "✗",
            Outcome::NotRun => "-",
        };
        told += &format!("{mark} {id}\n");
    }
    told += match verdict {
        Verdict::Passed => language.say("全部通りました。", "All checks pass.").to_owned(),
        _ => verdict.words().say(language).to_owned(),
    }
    .as_str();
    sink.put(Output::Stdout(told + "\n"));
    let failed = verdict.failed().and_then(|failed| exercise.check(&failed.check));
    if let Some(story) = failed.and_then(|check| check.expect.0.story(&cluster, start)) {
        show(&story, &cluster, language, sink);
    }
    if verdict == Verdict::Passed {
        let kept = session.progress.passed(&exercise.id);
        progress::note(kept, session, sink);
    }
    if let Some(points) = points {
        let passed = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Passed).count();
        let share = passed as f64 / outcomes.len().max(1) as f64;
        // Cut, not rounded: a rounded score could exceed the points.
        sink.put(Output::Result(text(((share * points * 100.0).floor() / 100.0).to_string())));
    }
    Ok(())
}

/// Who wrote what in a schedule that breaks a controller, and because of what.
fn show(story: &Story, cluster: &Cluster, language: Language, sink: &mut dyn Sink) {
    let context = Context {
        trace: &story.trace,
        scheduler: cluster.scheduler(),
        memory_bytes: &BTreeMap::new(),
        now: Time::ZERO,
        subject: Subject::Everything,
        other: None,
        from: Some(story.begun_at),
        japanese: language.is_japanese(),
    };
    // Nothing may have been written.
    if let Some(Ok(picture)) = plots::find("causes").map(|plot| (plot.draw)(&context)) {
        sink.put(Output::Display { data: picture.bundle(), id: None });
    }
}

fn current(session: &mut Session) -> Result<&mut Lesson, CellError> {
    let message = session
        .language()
        .say("演習が始まっていません。%exercise ID で始めます", "no exercise is under way; %exercise ID begins one");
    let message = message.to_owned();
    session.lesson.as_mut().ok_or_else(|| CellError::new("NoExercise", message))
}

fn markdown(words: &str) -> MimeBundle {
    let mut data = text(words);
    data.insert("text/markdown".to_owned(), words.into());
    data
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};
    use crate::rust_cells::native;
    use crate::session::Session;
    use crate::settings::Language;

    mod only_grows {
        include!("../../../notebooks/exercises/25-own-replica-set/answers/only-grows.rs");
    }

    #[test]
    fn a_learner_begins_asks_and_answers() {
        let mut session = session();
        assert_eq!(run(&mut session, "%check"), "NoExercise: no exercise is under way; %exercise ID begins one");
        assert!(run(&mut session, "%exercise").contains("01-keep-three"));
        assert!(run(&mut session, "%exercise 01-keep-three").starts_with("**Keep three**\n\n"));
        assert_eq!(
            run(&mut session, "%check"),
            "- three-ready\n- one-owner\n- comes-back\nnothing has been changed yet\n"
        );
        assert!(run(&mut session, "%hint").starts_with("Hint 1/3: "));
        assert!(run(&mut session, "%hint").starts_with("Hint 2/3: "));
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        let told = run(&mut session, "%check --score 3");
        assert!(told.starts_with("✗ three-ready\n- one-owner\n- comes-back\nThere are not exactly three"), "{told}");
        assert!(told.contains("Found: 2 Pods app=web (web-") && told.ends_with("result \"0\""), "{told}");
        run(&mut session, "kubectl scale deployment web --replicas=3");
        let told = run(&mut session, "%check --score 3");
        assert_eq!(told, "✓ three-ready\n✓ one-owner\n✓ comes-back\nAll checks pass.\nresult \"3\"");
    }

    #[test]
    fn checks_leave_the_cluster_as_it_is() {
        let mut session = session();
        run(&mut session, "%exercise 6");
        let before = (session.cluster.revision(), session.cluster.now(), session.cluster.trace().len());
        session.cluster.record_fault("something");
        run(&mut session, "%check");
        let after = (session.cluster.revision(), session.cluster.now(), session.cluster.trace().len() - 2);
        assert_eq!(after, before);
    }
    /// As a `%%rust` cell does with `run("pool-controller", Answer)`.
    fn join(session: &mut Session) {
        let kinds: Vec<_> = session.cluster.kinds().cloned().collect();
        session.cluster.join(native("pool-controller", only_grows::Answer, kinds.iter()).unwrap());
    }

    #[test]
    fn a_controller_is_answered_with_the_schedule_that_breaks_it() {
        let mut session = session();
        run(&mut session, "%exercise 25");
        let begun = run(&mut session, "%check");
        assert_eq!(
            begun,
            "- converges\n- leaves-others-alone\n- remembers-nothing\n- comes-to-rest\n- does-no-harm\nnothing has been changed yet\n"
        );
        join(&mut session);
        let told = run(&mut session, "%check");
        assert!(told.starts_with("✗ converges\n- leaves-others-alone\n- remembers-nothing\n"), "{told}");
        assert!(told.contains("Found: Pool web has "), "{told}");
        assert!(told.contains(". the next edit: scale to 1\n"), "{told}");
        assert!(told.contains("\nThe last ") && told.contains(" writes, by user, pool-controller."), "{told}");
        assert!(told.contains(". pool-controller writes: create Pod web-0 (too few Pods)\n"), "{told}");
        session.settings.language = Language::Ja;
        let told = run(&mut session, "%check");
        assert!(told.contains("見つかったもの: Pool web のPodが1個のはずなのに"), "{told}");
        assert!(told.contains(". 次の操作: 1つにする\n"), "{told}");
        assert!(told.contains(". pool-controller が書く: create Pod web-0 (too few Pods)\n"), "{told}");
    }
}
