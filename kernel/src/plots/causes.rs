//! Picture 3, causes: what led to an object; of everything, the last writes and what led to each. A row for each actor, a
//! numbered mark for each write, an edge from what was written to what somebody wrote because of it: whole if its writer
//! heard of it by a watch, dashed if its writer had asked to be woken again.

use std::collections::BTreeMap;

use cluster_core::clock::Time;
use cluster_core::trace::{Entry, RequestEntry, Sequence, Trace, What, causes};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, GRID, INK, RIGHT, Sheet, WIDTH, anchored, draw, style};
use super::gantt::shortened;
use super::lives::Subject;
use super::revisions::color;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 34;
const LINE: i32 = 20;
const TOP: i32 = 46;
const LEFT: i32 = 230;
const RADIUS: i32 = 11;
const NODES_MAX: usize = 14;
const STEPS_MAX: usize = 64;
const CELL_LETTERS_MAX: usize = 60;

/// A cell, or a write.
struct Node {
    sequence: Sequence,
    actor: usize,
    /// When, since the first one.
    after: String,
    what: String,
}

struct Edge {
    from: usize,
    to: usize,
    woken: bool,
}

struct Graph {
    actors: Vec<String>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let led = led(context);
    if led.is_empty() {
        return Err(match context.japanese {
            true => format!("{} への書き込みはまだありません", context.subject),
            false => format!("nothing has been written about {} yet", context.subject),
        });
    }
    let graph = graph(context, &led);
    let alt = alt(context, &graph);
    let bottom = TOP + ROW * graph.actors.len() as i32;
    let height = bottom + 16 + LINE * graph.nodes.len() as i32 + 8;
    let step = (WIDTH as i32 - LEFT - RIGHT - 2 * RADIUS) / (graph.nodes.len().max(2) as i32 - 1);
    let place = |index: usize| {
        let node: &Node = &graph.nodes[index];
        (LEFT + RADIUS + step * index as i32, TOP + ROW * node.actor as i32 + ROW / 2)
    };
    let svg = draw(height as u32, &alt, |sheet| {
        let title = match (&context.subject, context.japanese) {
            (Subject::Everything, true) => "何が何を引き起こしたか".to_owned(),
            (Subject::Everything, false) => "What led to what".to_owned(),
            (subject, true) => format!("何が何を引き起こしたか: {subject}"),
            (subject, false) => format!("What led to what: {subject}"),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        for (index, actor) in graph.actors.iter().enumerate() {
            let y = TOP + ROW * index as i32 + ROW / 2;
            sheet.draw(&PathElement::new(vec![(LEFT, y), (WIDTH as i32 - RIGHT, y)], GRID))?;
            let name = anchored(13, &INK, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(shortened(actor, 32), (LEFT - 8, y), name))?;
        }
        for edge in &graph.edges {
            arrow(sheet, place(edge.from), place(edge.to), edge.woken)?;
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let (x, y) = place(index);
            sheet.draw(&Circle::new((x, y), RADIUS, color(node.actor).filled()))?;
            let number = anchored(12, &WHITE, HPos::Center, VPos::Center);
            sheet.draw(&Text::new((index + 1).to_string(), (x, y), number))?;
            let y = bottom + 16 + LINE * index as i32;
            let line = format!("{}. +{} {}: {}", index + 1, node.after, graph.actors[node.actor], node.what);
            sheet.draw(&Text::new(line, (20, y), style(12, &INK)))?;
        }
        Ok(())
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &graph) })
}

/// The write that made the subject; of several that bear its name, or one that begins so, the one made last.
fn newest(context: &Context<'_>) -> Option<Sequence> {
    let (kind, name) = match &context.subject {
        Subject::Workload { kind, name } => (kind.as_str(), name.as_str()),
        Subject::Pod(name) => ("Pod", name.as_str()),
        _ => return None,
    };
    let is_kind = |write: &RequestEntry| {
        [&write.kind.kind, &write.kind.resource, &write.kind.singular]
            .iter()
            .any(|word| word.eq_ignore_ascii_case(kind))
    };
    let made = |write: &RequestEntry| write.before.is_none() && is_kind(write);
    let exact = context.trace.writes().rev().find(|(_, write)| made(write) && *write.key.name == *name);
    let begins = || context.trace.writes().rev().find(|(_, write)| made(write) && write.key.name.starts_with(name));
    exact.or_else(begins).map(|(entry, _)| entry.sequence)
}

/// What is shown: the chain of causes that ends at the write that made the subject; all writes, if there is no subject.
fn led<'a>(context: &Context<'a>) -> Vec<&'a Entry> {
    let trace = context.trace;
    let from = context.from.unwrap_or(Time::ZERO);
    let chain: Vec<&Entry> = match context.subject {
        Subject::Everything => trace.iter().collect(),
        _ => newest(context).map(|last| causes::chain(trace, last, STEPS_MAX)).unwrap_or_default(),
    };
    chain.into_iter().filter(|entry| entry.at >= from && what(entry, context).is_some()).collect()
}

fn graph(context: &Context<'_>, led: &[&Entry]) -> Graph {
    let trace = context.trace;
    let shown = &led[led.len().saturating_sub(NODES_MAX)..];
    let start = shown.first().map(|entry| entry.at).unwrap_or_default();
    let mut graph = Graph { actors: Vec::new(), nodes: Vec::new(), edges: Vec::new() };
    for entry in shown {
        let actor = match &entry.what {
            What::Cell(_) if context.japanese => "セル".to_owned(),
            What::Cell(_) => "cell".to_owned(),
            _ => entry.actor.to_string(),
        };
        let index = graph.actors.iter().position(|known| *known == actor).unwrap_or_else(|| {
            graph.actors.push(actor);
            graph.actors.len() - 1
        });
        let after = format!("{:.3}s", entry.at.since(start).as_secs_f64());
        let what = what(entry, context).unwrap_or_default();
        graph.nodes.push(Node { sequence: entry.sequence, actor: index, after, what });
    }
    let index: BTreeMap<Sequence, usize> =
        graph.nodes.iter().enumerate().map(|(index, node)| (node.sequence, index)).collect();
    for (to, node) in graph.nodes.iter().enumerate() {
        for (from, woken) in earlier(trace, node.sequence, &index) {
            graph.edges.push(Edge { from, to, woken });
        }
    }
    graph
}

/// The nodes that an entry was caused by, through what its actor did in between, and whether it had asked to be woken.
fn earlier(trace: &Trace, of: Sequence, index: &BTreeMap<Sequence, usize>) -> BTreeMap<usize, bool> {
    let mut found = BTreeMap::new();
    let mut frontier = vec![(of, 0)];
    while let Some((sequence, looks)) = frontier.pop() {
        let causes = trace.get(sequence).map(|entry| entry.causes.as_slice()).unwrap_or_default();
        for cause in causes {
            if let Some(node) = index.get(cause) {
                *found.entry(*node).or_insert(true) &= looks > 1;
            } else if looks < STEPS_MAX {
                let look = trace.get(*cause).is_some_and(|entry| matches!(entry.what, What::Reconcile { .. }));
                frontier.push((*cause, looks + usize::from(look)));
            }
        }
    }
    found
}

/// What a node says; nothing for an entry that is none.
fn what(entry: &Entry, context: &Context<'_>) -> Option<String> {
    let say = |japanese: &str, english: &str| if context.japanese { japanese.to_owned() } else { english.to_owned() };
    match &entry.what {
        What::Cell(text) => {
            let first = text.lines().find(|line| !line.trim().is_empty())?;
            Some(first.chars().take(CELL_LETTERS_MAX).collect())
        }
        What::Request(write) if write.is_write() && !matches!(&*write.kind.kind, "Event" | "Lease") => {
            let deed = match (&write.before, &write.after) {
                (None, _) => say("作成", "created"),
                (_, None) => say("削除", "deleted"),
                _ if write.subresource == "status" => say("状態を報告", "reported"),
                _ if write.subresource == "binding" => say("割り当て", "bound"),
                _ => say("変更", "changed"),
            };
            let reason = if write.reason.is_empty() { String::new() } else { format!(" ({})", write.reason) };
            Some(format!("{deed} {} {}{reason}", write.kind.kind, write.key.name))
        }
        _ => None,
    }
}

fn arrow(sheet: &Sheet<'_>, from: (i32, i32), to: (i32, i32), dashed: bool) -> Drawn {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = dx.hypot(dy).max(1.0);
    let at = |along: f64, aside: f64| {
        let (x, y) = (dx / length, dy / length);
        let point = (f64::from(from.0) + x * along - y * aside, f64::from(from.1) + y * along + x * aside);
        (point.0.round() as i32, point.1.round() as i32)
    };
    let (begin, end) = (f64::from(RADIUS), length - f64::from(RADIUS) - 2.0);
    let dash = if dashed { 5.0 } else { end - begin };
    let mut along = begin;
    while along < end {
        sheet.draw(&PathElement::new(vec![at(along, 0.0), at((along + dash).min(end), 0.0)], FAINT.stroke_width(2)))?;
        along += (2.0 * dash).max(1.0);
    }
    sheet.draw(&Polygon::new(vec![at(end - 7.0, -4.0), at(end - 7.0, 4.0), at(end + 2.0, 0.0)], FAINT.filled()))
}

fn alt(context: &Context<'_>, graph: &Graph) -> String {
    let (count, subject) = (graph.nodes.len(), &context.subject);
    match (subject, context.japanese) {
        (Subject::Everything, true) => format!("終わりの{count}回の書き込み。書いたのは{}。", graph.actors.join("、")),
        (Subject::Everything, false) => format!("The last {count} writes, by {}.", graph.actors.join(", ")),
        (subject, true) => format!("{subject} ができるまでの{count}段。働いたのは{}。", graph.actors.join("、")),
        (subject, false) => format!("{count} steps that led to {subject}, by {}.", graph.actors.join(", ")),
    }
}

fn table(context: &Context<'_>, graph: &Graph) -> Table {
    let columns = match context.japanese {
        true => ["番号", "時刻", "だれが", "何を", "きっかけ"],
        false => ["NO.", "AFTER", "WHO", "WHAT", "BECAUSE OF"],
    };
    let row = |(index, node): (usize, &Node)| {
        let because = graph.edges.iter().filter(|edge| edge.to == index).map(|edge| (edge.from + 1).to_string());
        let because = because.collect::<Vec<_>>().join(", ");
        let actor = graph.actors[node.actor].clone();
        vec![(index + 1).to_string(), format!("+{}", node.after), actor, node.what.clone(), because]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: graph.nodes.iter().enumerate().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn of_everything_it_shows_the_last_writes() {
        let mut session = session();
        run(&mut session, "kubectl create configmap one");
        run(&mut session, "kubectl create configmap two");
        let told = run(&mut session, "%plot causes --from 0s");
        assert!(told.contains(" created ConfigMap one ") && told.contains(" created ConfigMap two "), "{told}");
    }

    #[test]
    fn each_write_stands_behind_the_one_that_led_to_it() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let told = run(&mut session, "%plot causes replicaset/web");
        let lines: Vec<Vec<&str>> = told.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3, "{told}");
        assert_eq!(lines[0][2..4], ["cell", "kubectl"], "{told}");
        assert_eq!(lines[1][2..5], ["kubectl", "created", "Deployment"], "{told}");
        assert_eq!(lines[2][2..5], ["deployment-controller", "created", "ReplicaSet"], "{told}");
        assert_eq!(lines[1].last(), Some(&"1"), "{told}");
        assert_eq!(lines[2].last(), Some(&"2"), "{told}");
        assert!(run(&mut session, "%plot causes pod/none").starts_with("PlotError: "));
    }
}
