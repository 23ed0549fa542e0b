//! `%progress`: how far a learner has come, over all sessions.

use super::Args;
use crate::grading::exercise;
use crate::output::{CellError, Output, Sink};
use crate::progress::{LessonRecord, Record};
use crate::session::Session;
use crate::text;

pub fn progress(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if !args.words.is_empty() {
        return Err(args.wrong());
    }
    let language = session.language();
    let lessons = session.progress.lessons();
    let file = session.progress.file().map(|file| file.display().to_string());
    let record = session.progress.record().map_err(|error| {
        let file = file.clone().unwrap_or_default();
        CellError::new("Progress", format!("{file}: {error}"))
    })?;
    let columns = match language.is_japanese() {
        true => ["回", "予想", "終わった"],
        false => ["LESSON", "PREDICTIONS", "FINISHED"],
    };
    let none = LessonRecord::default();
    let rows: Vec<Vec<String>> = lessons
        .iter()
        .map(|lesson| {
            let done = record.lessons.get(&lesson.name).unwrap_or(&none);
            let predictions = format!("{}/{}", done.predictions.len().min(lesson.predictions), lesson.predictions);
            vec![lesson.title.clone(), predictions, if done.finished { "✓" } else { "" }.to_owned()]
        })
        .collect();
    let mut told = String::new();
    if !rows.is_empty() {
        told += &(text::table(&columns.map(str::to_owned), &rows) + "\n\n");
    }
    let exercises = exercise::all().map_err(|failure| CellError::new("Fault", failure.to_string()))?;
    let passed: Vec<&str> = passed(record, exercises.iter().map(|exercise| exercise.id.as_str()));
    told += &match language.is_japanese() {
        true => format!("演習: {}問中{}問に合格", exercises.len(), passed.len()),
        false => format!("exercises: {} of {} passed", passed.len(), exercises.len()),
    };
    if !passed.is_empty() {
        told += &format!(" ({})", passed.join(", "));
    }
    told += &match (file, language.is_japanese()) {
        (Some(file), true) => format!("\n記録は {file} にあります（消すと最初から）"),
        (Some(file), false) => format!("\nkept in {file}; delete it to begin anew"),
        (None, true) => "\nノートブックの外なので、記録は残りません".to_owned(),
        (None, false) => "\nnot kept: this is no notebook".to_owned(),
    };
    sink.put(Output::Stdout(told + "\n"));
    Ok(())
}

fn passed<'a>(record: &Record, exercises: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    exercises.filter(|id| record.exercises.contains(*id)).collect()
}

/// A record that can't be kept is no reason for a cell to fail, but is told.
pub fn note(kept: std::io::Result<()>, session: &Session, sink: &mut dyn Sink) {
    if let Err(error) = kept {
        let file = session.progress.file().map(|file| file.display().to_string()).unwrap_or_default();
        let words = session.language().say("進み具合を書き留められません", "your progress can't be kept");
        sink.put(Output::Stderr(format!("{words}: {file}: {error}\n")));
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};
    use crate::progress::tests::kept;

    #[test]
    fn predictions_lessons_and_exercises_add_up_over_sessions() {
        let root = tempfile::tempdir().expect("a folder");
        let lesson = r##"{"cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Nodes\n"]},
            {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": null, "outputs": [],
             "source": ["%predict one: 1\n", "%predict two: 2"]}
            ], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"##;
        std::fs::write(root.path().join("07-nodes.ipynb"), lesson).expect("a notebook");
        let mut learner = session();
        learner.progress = kept(root.path(), "07-nodes.ipynb");
        run(&mut learner, "%predict one: 3");
        assert!(run(&mut learner, "%progress").starts_with("LESSON   PREDICTIONS   FINISHED\nNodes    1/2 "));
        run(&mut learner, "%predict");
        run(&mut learner, "%exercise 1");
        run(&mut learner, "kubectl create deployment web --image=nginx --replicas=3");
        assert!(run(&mut learner, "%check").ends_with("All checks pass.\n"));

        let mut next = session();
        next.progress = kept(root.path(), "07-nodes.ipynb");
        let told = run(&mut next, "%progress");
        assert!(told.contains("Nodes    1/2           ✓\n") && told.contains(" passed (01-keep-three)\n"), "{told}");
    }

    #[test]
    fn without_a_notebook_it_says_that_nothing_is_kept() {
        let told = run(&mut session(), "%progress");
        assert!(told.starts_with("exercises: 0 of ") && told.ends_with("not kept: this is no notebook\n"), "{told}");
    }
}
