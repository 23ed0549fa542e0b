//! Controls of the session itself.

use super::{ALL, Args, find, progress};
use crate::output::{CellError, Output, Sink};
use crate::session::Session;
use crate::settings::{Language, Settings};
use crate::text;

const NODES_MAX: usize = 5000;

pub fn help(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let language = session.language();
    let shown = match args.words.as_slice() {
        [] => {
            let rows: Vec<Vec<String>> = ALL
                .iter()
                .map(|control| {
                    vec![control.usage.to_owned(), language.say(control.about.0, control.about.1).to_owned()]
                })
                .collect();
            let head = language.say("操作", "CONTROL").to_owned();
            text::table(&[head, language.say("すること", "WHAT IT DOES").to_owned()], &rows)
        }
        [name] => {
            let control = find(name.trim_start_matches('%')).ok_or_else(|| args.wrong())?;
            control.help(language)
        }
        _ => return Err(args.wrong()),
    };
    sink.put(Output::Stdout(shown + "\n"));
    Ok(())
}

fn number<T: std::str::FromStr>(args: &Args<'_>) -> Result<T, CellError> {
    args.one()?.parse().map_err(|_| args.wrong())
}

fn made_anew(settings: Settings, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    session.reset(settings, sink)?;
    let (nodes, seed) = (session.settings.nodes, session.settings.seed);
    let text = match session.language().is_japanese() {
        true => format!("新しいクラスタ: ノード{nodes}台、種{seed}\n"),
        false => format!("a new cluster: {nodes} nodes, seed {seed}\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn seed(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let seed = number(args)?;
    made_anew(Settings { seed, ..session.settings.clone() }, session, sink)
}

pub fn nodes(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let nodes: usize = number(args)?;
    if nodes > NODES_MAX {
        return Err(CellError::new("TooMany", format!("at most {NODES_MAX} nodes, not {nodes}")));
    }
    made_anew(Settings { nodes, ..session.settings.clone() }, session, sink)
}

pub fn reset(_: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    made_anew(session.settings.clone(), session, sink)
}

pub fn clear(_: &Args<'_>, _: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    sink.put(Output::Clear { wait: false });
    Ok(())
}

pub fn lang(args: &Args<'_>, session: &mut Session, _: &mut dyn Sink) -> Result<(), CellError> {
    session.settings.language = match args.one()? {
        "ja" => Language::Ja,
        "en" => Language::En,
        _ => return Err(args.wrong()),
    };
    Ok(())
}

pub fn predict(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if args.text.is_empty() {
        let rows: Vec<Vec<String>> =
            session.predictions.iter().map(|(question, answer)| vec![question.clone(), answer.clone()]).collect();
        let columns = ["問い", "予想"].map(str::to_owned);
        let columns =
            if session.language().is_japanese() { columns } else { ["QUESTION", "PREDICTION"].map(str::to_owned) };
        sink.put(Output::Stdout(text::table(&columns, &rows) + "\n"));
        if !rows.is_empty() {
            let kept = session.progress.looked_back();
            progress::note(kept, session, sink);
        }
        return Ok(());
    }
    let Some((question, answer)) = args.text.split_once(':').map(|(q, a)| (q.trim(), a.trim())) else {
        return Err(args.wrong());
    };
    if answer.is_empty() {
        return Err(args.wrong());
    }
    let language = session.language();
    let locked = session.predictions.iter().find(|(known, _)| known == question).map(|(_, first)| first.clone());
    let text = match locked {
        Some(first) if first != answer => {
            // A cluster that was gone back to knows nothing of the first one.
            session.cluster.record_cell(&format!("%predict {question}: {first}"));
            match language {
                Language::Ja => format!("予想はもう書き留めてあります（{first}）。最初のものが残ります\n"),
                Language::En => format!("your prediction is locked in already ({first}); the first one stays\n"),
            }
        }
        _ => match language {
            Language::Ja => format!("予想「{question}」: {answer}。書き留めました\n"),
            Language::En => format!("prediction '{question}': {answer}. Locked in\n"),
        },
    };
    if !session.predictions.iter().any(|(known, _)| known == question) {
        session.predictions.push((question.to_owned(), answer.to_owned()));
    }
    sink.put(Output::Stdout(text));
    let kept = session.progress.predicted(question, answer);
    progress::note(kept, session, sink);
    Ok(())
}
