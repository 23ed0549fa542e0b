//! Picture 9, the work queue of a controller: a row for each key; since when it waited, when a worker had it, when it
//! was tried again after a failure or came back by itself; below, how many keys waited.
//! <https://pkg.go.dev/k8s.io/client-go/util/workqueue>

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_core::clock::Time;
use cluster_core::trace::{Entry, Sequence, Trace, What};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, FAULT, GRID, INK, LEFT, RIGHT, Sheet, WIDTH, anchored, draw, style, text_width};
use super::gantt::shortened;
use super::lives::Subject;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 30;
const ROWS_MAX: usize = 16;
const TOP: i32 = 46;
/// The panel below: how many wait.
const DEPTH: i32 = 64;
/// What is idle for long takes so much room.
const FOLD: i32 = 34;
const FOLDS_MAX: usize = 8;
const ERROR_CODE_MIN: u16 = 400;

const WAITS: RGBColor = RGBColor(240, 228, 66);
const RUNS: RGBColor = RGBColor(0, 114, 178);
const BACKS_OFF: RGBColor = RGBColor(213, 94, 0);

/// One look at a key.
struct Turn {
    key: String,
    /// When the first of the changes was written that it is about.
    told: Time,
    from: Time,
    to: Time,
    writes: usize,
    /// So many changes were merged into this one look.
    merged: usize,
    /// Why it failed.
    failure: Option<String>,
    /// The end of the look that asked for this one, and whether it had failed.
    after: Option<(Time, bool)>,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let Subject::Actor(actor) = &context.subject else { return Err(expected(context)) };
    let turns = turns(context, actor);
    if turns.is_empty() {
        return Err(match context.japanese {
            true => format!("{actor} はこの間、何も調べていません"),
            false => format!("{actor} has looked at no key in this time"),
        });
    }
    let mut keys: Vec<&str> = Vec::new();
    turns.iter().for_each(|turn| {
        if !keys.contains(&turn.key.as_str()) {
            keys.push(&turn.key)
        }
    });
    let hidden = keys.len().saturating_sub(ROWS_MAX);
    keys.truncate(ROWS_MAX);
    let axis = Folded::new(&turns);
    let alt = alt(context, actor, &turns);
    let bottom = TOP + ROW * keys.len() as i32;
    let floor = bottom + 14 + DEPTH;
    let svg = draw((floor + 82) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("作業キュー: {actor}"),
            false => format!("The work queue of {actor}"),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        axis.draw(sheet, TOP, floor)?;
        for (index, key) in keys.iter().enumerate() {
            let y = TOP + ROW * index as i32 + ROW / 2;
            sheet.draw(&PathElement::new(vec![(LEFT, y), (WIDTH as i32 - RIGHT, y)], GRID))?;
            let name = anchored(12, &INK, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(shortened(key, 28), (LEFT - 8, y), name))?;
            for turn in turns.iter().filter(|turn| turn.key == *key) {
                draw_turn(sheet, &axis, turn, y)?;
            }
        }
        if hidden > 0 {
            let words = format!("… +{hidden}");
            sheet.draw(&Text::new(words, (LEFT - 8, bottom + 8), anchored(12, &FAINT, HPos::Right, VPos::Center)))?;
        }
        depth(sheet, &axis, context.japanese, &turns, floor)?;
        legend(sheet, context.japanese, floor + 40)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &turns) })
}

fn expected(context: &Context<'_>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for entry in context.trace.iter().filter(|entry| matches!(entry.what, What::Reconcile { .. })) {
        if !known.contains(&&*entry.actor) {
            known.push(&entry.actor);
        }
    }
    known.sort_unstable();
    match context.japanese {
        true => format!(
            "どのコントローラーのキューかを書いてください: %plot queue deployment-controller（{}）",
            known.join("、")
        ),
        false => format!("say the queue of which controller: %plot queue deployment-controller ({})", known.join(", ")),
    }
}

/// Time along the x axis, but what is idle for long is folded: work takes milliseconds, and comes seconds apart.
struct Folded {
    /// When something happens, with the places of beginning and end.
    busy: Vec<(Time, Time, i32, i32)>,
}

impl Folded {
    fn new(turns: &[Turn]) -> Folded {
        let mut spans: Vec<(Time, Time)> = turns.iter().map(|turn| (turn.told.min(turn.from), turn.to)).collect();
        spans.sort();
        let active: Duration = spans.iter().map(|(from, to)| to.since(*from)).sum();
        let idle_max = (active / 8).max(Duration::from_millis(2)).max(longest(&spans, FOLDS_MAX));
        let mut busy: Vec<(Time, Time)> = Vec::new();
        for (from, to) in spans {
            match busy.last_mut().filter(|(_, end)| from.since(*end) <= idle_max) {
                Some((_, end)) => *end = to.max(*end),
                None => busy.push((from, to)),
            }
        }
        let room = WIDTH as i32 - LEFT - RIGHT - FOLD * (busy.len() as i32 - 1);
        let least = (room / busy.len().max(1) as i32).min(FOLD);
        let spare = f64::from((room - least * busy.len() as i32).max(0));
        let total: Duration = busy.iter().map(|(from, to)| to.since(*from)).sum();
        let mut x = LEFT;
        let place = |(from, to): (Time, Time)| {
            let share = to.since(from).as_secs_f64() / total.as_secs_f64().max(1e-6);
            let begin = x;
            let end = begin + least + (share * spare) as i32;
            x = end + FOLD;
            (from, to, begin, end)
        };
        Folded { busy: busy.into_iter().map(place).collect() }
    }

    fn x(&self, at: Time) -> i32 {
        let mut ended = (Time::ZERO, LEFT);
        for (from, to, begin, end) in &self.busy {
            if at <= *from {
                let (idle, passed) = (from.since(ended.0), at.since(ended.0));
                return between(passed, idle, ended.1, *begin);
            }
            if at <= *to {
                return between(at.since(*from), to.since(*from), *begin, *end);
            }
            ended = (*to, *end);
        }
        ended.1
    }

    /// A grey field for each busy time, with the moment at which it begins, and how long it is quiet in between.
    fn draw(&self, sheet: &Sheet<'_>, top: i32, bottom: i32) -> Drawn {
        let mut ended = None;
        let mut labelled = 0;
        for (from, to, begin, end) in &self.busy {
            sheet.draw(&Rectangle::new([(*begin, top), (*end, bottom)], GRID.mix(0.35).filled()))?;
            if let Some((since, x)) = ended {
                let idle = format!("{:.1}s", from.since(since).as_secs_f64());
                let label = anchored(10, &FAINT, HPos::Center, VPos::Center);
                sheet.draw(&Text::new(idle, ((x + begin) / 2, top + 6), label))?;
            }
            if *begin >= labelled {
                let label = anchored(12, &FAINT, HPos::Left, VPos::Top);
                sheet.draw(&Text::new(from.to_string(), (*begin, bottom + 4), label))?;
                labelled = begin + text_width(&from.to_string(), 12) + 6;
            }
            ended = Some((*to, *end));
        }
        sheet.draw(&PathElement::new(vec![(LEFT, bottom), (WIDTH as i32 - RIGHT, bottom)], FAINT))
    }
}

/// How long nothing happens at most, but for so many times.
fn longest(sorted: &[(Time, Time)], but_for: usize) -> Duration {
    let mut end = sorted.first().map_or(Time::ZERO, |(from, _)| *from);
    let mut idle: Vec<Duration> = Vec::new();
    for (from, to) in sorted {
        idle.push(from.since(end));
        end = end.max(*to);
    }
    idle.sort_unstable_by(|a, b| b.cmp(a));
    idle.get(but_for).copied().unwrap_or_default()
}

/// The place of a part of a span between two places.
fn between(passed: Duration, span: Duration, from: i32, to: i32) -> i32 {
    let share = passed.as_secs_f64() / span.as_secs_f64().max(1e-9);
    from + (share.clamp(0.0, 1.0) * f64::from(to - from)) as i32
}

/// All looks since the first cell, or since when it was asked for.
fn turns(context: &Context<'_>, actor: &str) -> Vec<Turn> {
    let trace = context.trace;
    let begun = trace.iter().find(|entry| matches!(entry.what, What::Cell(_))).map(|entry| entry.at);
    let from = context.from.or(begun).unwrap_or_default();
    let mut places: BTreeMap<Sequence, usize> = BTreeMap::new();
    let mut turns: Vec<Turn> = Vec::new();
    for entry in trace.iter().filter(|entry| *entry.actor == *actor && entry.at >= from) {
        match &entry.what {
            What::Reconcile { key, writes, note, .. } => {
                let key = if key.namespace.is_empty() { key.name.to_string() } else { key.to_string() };
                let failure = (!note.is_empty()).then(|| note.to_string());
                let own = entry.causes.as_slice().iter().find_map(|cause| places.get(cause));
                let after = own.map(|index| (turns[*index].to, turns[*index].failure.is_some()));
                let (told, merged) = told(trace, entry, &places);
                // What a look has not seen came to the queue after it had begun.
                let before = turns.iter().rev().find(|turn| turn.key == key).map(|turn| turn.from);
                let told = before.map_or(told, |before| told.max(before));
                places.insert(entry.sequence, turns.len());
                turns.push(Turn { key, told, from: entry.at, to: entry.at, writes: *writes, merged, failure, after });
            }
            What::Request(request) => {
                let own = entry.causes.as_slice().iter().find_map(|cause| places.get(cause));
                let Some(turn) = own.map(|index| &mut turns[*index]) else { continue };
                turn.to = turn.to.max(entry.at);
                if request.code >= ERROR_CODE_MIN && turn.failure.is_none() {
                    turn.failure = Some(request.reason.to_string());
                }
            }
            _ => {}
        }
    }
    let is_meant = |turn: &Turn| match &context.other {
        Some(Subject::Pod(name) | Subject::Workload { name, .. }) => turn.key.contains(name.as_str()),
        _ => true,
    };
    turns.retain(is_meant);
    turns
}

/// When the first change was written that a look is about, and how many there were. What the controller asked for itself
/// is none.
fn told(trace: &Trace, entry: &Entry, own: &BTreeMap<Sequence, usize>) -> (Time, usize) {
    let causes = entry.causes.as_slice().iter().filter(|cause| !own.contains_key(cause));
    let moments: Vec<Time> = causes.filter_map(|cause| trace.get(*cause)).map(|cause| cause.at).collect();
    (moments.iter().min().copied().unwrap_or(entry.at), moments.len())
}

fn draw_turn(sheet: &Sheet<'_>, axis: &Folded, turn: &Turn, y: i32) -> Drawn {
    let bar = |from: Time, to: Time, half: i32, color: RGBColor| {
        let (x0, x1) = (axis.x(from), axis.x(to).max(axis.x(from) + 2));
        sheet.draw(&Rectangle::new([(x0, y - half), (x1, y + half)], color.filled()))
    };
    match turn.after {
        Some((ended, true)) => bar(ended, turn.from, 2, BACKS_OFF)?,
        Some((ended, false)) => {
            for x in (axis.x(ended)..axis.x(turn.from)).step_by(8) {
                sheet.draw(&PathElement::new(vec![(x, y), (x + 3, y)], FAINT.stroke_width(1)))?;
            }
        }
        None => {}
    }
    if turn.merged > 0 {
        bar(turn.told, turn.from, 7, WAITS)?;
    }
    bar(turn.from, turn.to, 10, if turn.failure.is_some() { FAULT } else { RUNS })?;
    if turn.failure.is_some() {
        let label = anchored(13, &FAULT, HPos::Left, VPos::Center);
        sheet.draw(&Text::new("×", (axis.x(turn.to) + 4, y), label))?;
    }
    if turn.merged > 1 {
        let label = anchored(11, &INK, HPos::Center, VPos::Center);
        sheet.draw(&Text::new(turn.merged.to_string(), ((axis.x(turn.told) + axis.x(turn.from)) / 2, y), label))?;
    }
    Ok(())
}

/// How many keys waited at each moment.
fn depth(sheet: &Sheet<'_>, axis: &Folded, japanese: bool, turns: &[Turn], floor: i32) -> Drawn {
    let mut changes: Vec<(Time, i32)> =
        turns.iter().filter(|turn| turn.merged > 0).flat_map(|turn| [(turn.told, 1), (turn.from, -1)]).collect();
    changes.sort_by_key(|(at, change)| (*at, -change));
    let mut level = 0;
    let levels: Vec<(Time, i32)> = changes
        .into_iter()
        .map(|(at, change)| {
            level += change;
            (at, level)
        })
        .collect();
    let most = levels.iter().map(|(_, level)| *level).max().unwrap_or(0);
    let y = |level: i32| floor - (DEPTH - 12) * level / most.max(1);
    let ends = levels.iter().skip(1).map(|(at, _)| *at).chain(levels.last().map(|(at, _)| *at));
    for ((from, level), to) in levels.iter().zip(ends).filter(|((_, level), _)| *level > 0) {
        let (x0, x1) = (axis.x(*from), axis.x(to).max(axis.x(*from) + 1));
        sheet.draw(&Rectangle::new([(x0, y(*level)), (x1, floor)], WAITS.mix(0.8).filled()))?;
        sheet.draw(&PathElement::new(vec![(x0, y(*level)), (x1, y(*level))], INK))?;
    }
    let words = if japanese {
        format!("待ち行列の長さ（最大{most}）")
    } else {
        format!("keys that wait (most: {most})")
    };
    sheet.draw(&Text::new(words, (LEFT - 8, floor - DEPTH / 2), anchored(12, &FAINT, HPos::Right, VPos::Center)))
}

fn legend(sheet: &Sheet<'_>, japanese: bool, y: i32) -> Drawn {
    let words = match japanese {
        true => ["知らせの書き込みから順番まで", "調整中", "失敗した調整", "失敗して間を置く", "自分で決めた時刻まで"],
        false => {
            ["waits (since the write it is about)", "reconciles", "fails", "backs off", "waits for a moment it named"]
        }
    };
    let mut x = 20;
    for (index, word) in words.into_iter().enumerate() {
        let (half, color) = [(6, WAITS), (8, RUNS), (8, FAULT), (2, BACKS_OFF), (1, FAINT)][index];
        sheet.draw(&Rectangle::new([(x, y - half), (x + 16, y + half)], color.filled()))?;
        sheet.draw(&Text::new(word, (x + 21, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 21 + text_width(word, 12) + 14;
    }
    let words = match japanese {
        true => "小さな数字: 一度の調整にまとめられた変更の数　白い帯: 何もない時間（縮めてある）",
        false => "small number: changes that were merged into one look; white: nothing happens (shortened)",
    };
    sheet.draw(&Text::new(words, (20, y + 22), anchored(12, &FAINT, HPos::Left, VPos::Center)))
}

fn alt(context: &Context<'_>, actor: &str, turns: &[Turn]) -> String {
    let keys = turns.iter().map(|turn| &turn.key).collect::<std::collections::BTreeSet<_>>().len();
    let changes: usize = turns.iter().map(|turn| turn.merged).sum();
    let failed = turns.iter().filter(|turn| turn.failure.is_some()).count();
    let looks = turns.len();
    match context.japanese {
        true => format!("{actor} は{changes}個の変更を聞き、{keys}個のキーを{looks}回調べた。失敗は{failed}回。"),
        false => {
            format!("{actor}: changes heard of: {changes}, keys: {keys}, looks at them: {looks}, failed: {failed}.")
        }
    }
}

fn table(context: &Context<'_>, turns: &[Turn]) -> Table {
    let columns = match context.japanese {
        true => ["キー", "変更", "待ち始め", "開始", "終了", "書き込み", "結果"],
        false => ["KEY", "CHANGES", "WAITS SINCE", "STARTS", "ENDS", "WRITES", "OUTCOME"],
    };
    let say = |ja: &'static str, en: &'static str| if context.japanese { ja } else { en };
    let row = |turn: &Turn| {
        let came = match turn.after {
            Some((_, true)) => say("間を置いてやり直し", "retried after a backoff"),
            Some((_, false)) if turn.merged == 0 => say("自分で決めた時刻", "came back by itself"),
            _ => "ok",
        };
        let outcome = turn.failure.as_ref().map_or_else(|| came.to_owned(), |why| format!("× {why}"));
        let since = if turn.merged == 0 { "-".to_owned() } else { turn.told.to_string() };
        let (changes, writes) = (turn.merged.to_string(), turn.writes.to_string());
        vec![turn.key.clone(), changes, since, turn.from.to_string(), turn.to.to_string(), writes, outcome]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: turns.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn changes_wait_are_merged_and_looked_at_once() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        insta::assert_snapshot!(run(&mut session, "%plot queue replicaset-controller"));
        insta::assert_snapshot!(run(&mut session, "%lang ja\n%plot queue deployment-controller deployment/web"));
        let told = run(&mut session, "%lang en\n%plot queue");
        assert!(told.starts_with("PlotError: say the queue of which controller"), "{told}");
    }
}
