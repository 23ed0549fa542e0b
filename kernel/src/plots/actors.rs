//! Who took part: on the left those who acted, on the right the records in the cluster; an arrow for what each has
//! heard of, and one for what each wrote. Nobody's arrow leads to anybody else.
//! <https://kubernetes.io/docs/concepts/architecture/controller/>

use std::collections::BTreeSet;

use cluster_core::trace::{Entry, RequestEntry, Sequence, Trace, What};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, GRID, INK, RIGHT, Sheet, WIDTH, anchored, arrow, draw, style, text_width};
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 44;
const TOP: i32 = 74;
const LEFT: i32 = 250;
const RECORDS: i32 = WIDTH as i32 - RIGHT - 190;
const WRITES: RGBColor = RGBColor(213, 94, 0);
const HEARS: RGBColor = RGBColor(0, 114, 178);

/// All entries that one led to, itself first.
pub fn consequences(trace: &Trace, root: Sequence) -> impl Iterator<Item = &Entry> {
    let mut led_to = BTreeSet::from([root]);
    trace.since(root).filter(move |entry| {
        let caused = entry.sequence == root || entry.causes.as_slice().iter().any(|cause| led_to.contains(cause));
        if caused {
            led_to.insert(entry.sequence);
        }
        caused
    })
}

/// What a component had been told when it did something: the causes of the entry, and those of the reconcile among them.
pub fn told<'a>(trace: &'a Trace, entry: &Entry) -> Vec<&'a Entry> {
    let causes = entry.causes.as_slice().iter().filter_map(|cause| trace.get(*cause));
    let causes: Vec<&Entry> = causes.collect();
    let reconciles = causes.iter().filter(|cause| matches!(cause.what, What::Reconcile { .. } | What::Note { .. }));
    let earlier = reconciles.flat_map(|cause| cause.causes.as_slice().iter().filter_map(|cause| trace.get(*cause)));
    let earlier: Vec<&Entry> = earlier.collect();
    causes.into_iter().chain(earlier).collect()
}

#[derive(Default)]
struct Graph {
    actors: Vec<String>,
    kinds: Vec<String>,
    /// Indices of an actor and a kind.
    wrote: BTreeSet<(usize, usize)>,
    heard: BTreeSet<(usize, usize)>,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let root = root(context).ok_or_else(|| match context.japanese {
        true => format!("{} についての記録はありません", context.subject),
        false => format!("there is no record of {}", context.subject),
    })?;
    let graph = graph(context.trace, root);
    let alt = alt(context, &graph);
    let rows = graph.actors.len().max(graph.kinds.len()) as i32;
    let bottom = TOP + ROW * rows;
    let svg = draw((bottom + 44) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("だれが何を見て、何を書いたか: {}", context.subject),
            false => format!("Who saw what, and wrote what: {}", context.subject),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        let [actors, kinds] = if context.japanese { ["動いたもの", "記録"] } else { ["who acted", "records"] };
        sheet.draw(&Text::new(actors, (LEFT, TOP - 20), anchored(12, &FAINT, HPos::Right, VPos::Center)))?;
        sheet.draw(&Text::new(kinds, (RECORDS, TOP - 20), anchored(12, &FAINT, HPos::Left, VPos::Center)))?;
        let y =
            |index: usize, count: usize| TOP + ROW / 2 + (ROW * rows - ROW) * index as i32 / (count.max(2) as i32 - 1);
        let left = |actor: usize| (LEFT + 8, y(actor, graph.actors.len()));
        let right = |kind: usize| (RECORDS - 8, y(kind, graph.kinds.len()));
        for (actor, kind) in &graph.heard {
            arrow(sheet, shifted(right(*kind), 5), shifted(left(*actor), 5), HEARS, true)?;
        }
        for (actor, kind) in &graph.wrote {
            arrow(sheet, shifted(left(*actor), -5), shifted(right(*kind), -5), WRITES, false)?;
        }
        for (index, actor) in graph.actors.iter().enumerate() {
            card(sheet, left(index), actor, HPos::Right)?;
        }
        for (index, kind) in graph.kinds.iter().enumerate() {
            card(sheet, right(index), kind, HPos::Left)?;
        }
        legend(sheet, bottom + 24, context.japanese)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &graph) })
}

/// The order that the newest coming of the subject was part of.
pub fn root(context: &Context<'_>) -> Option<Sequence> {
    let made = |write: &RequestEntry| write.before.is_none() && context.subject.names(write);
    let (first, _) = context.trace.writes().rev().find(|(_, write)| made(write))?;
    Some(first.causes.as_slice().first().copied().unwrap_or(first.sequence))
}

fn graph(trace: &Trace, root: Sequence) -> Graph {
    let mut graph = Graph::default();
    for entry in consequences(trace, root) {
        let wrote = match &entry.what {
            What::Request(request) if request.is_write() && is_shown(request) => Some(&request.kind.kind),
            What::Rules { .. } => None,
            _ => continue,
        };
        let actor = index(&mut graph.actors, entry.actor.split('/').next().unwrap_or_default());
        for cause in told(trace, entry) {
            let What::Request(request) = &cause.what else { continue };
            if is_shown(request) {
                let heard = index(&mut graph.kinds, &request.kind.kind);
                graph.heard.insert((actor, heard));
            }
        }
        if let Some(kind) = wrote {
            let kind = index(&mut graph.kinds, kind);
            graph.wrote.insert((actor, kind));
        }
    }
    graph
}

/// Events and Leases, the diary and the heartbeats, say nothing of the work.
fn is_shown(request: &RequestEntry) -> bool {
    !matches!(&*request.kind.kind, "Event" | "Lease")
}

fn index(known: &mut Vec<String>, name: &str) -> usize {
    known.iter().position(|known| known == name).unwrap_or_else(|| {
        known.push(name.to_owned());
        known.len() - 1
    })
}

fn shifted((x, y): (i32, i32), by: i32) -> (i32, i32) {
    (x, y + by)
}

fn card(sheet: &Sheet<'_>, (x, y): (i32, i32), name: &str, side: HPos) -> Drawn {
    let width = text_width(name, 13) + 18;
    let (from, to) = if matches!(side, HPos::Right) { (x - width, x) } else { (x, x + width) };
    sheet.draw(&Rectangle::new([(from, y - 15), (to, y + 15)], WHITE.filled()))?;
    sheet.draw(&Rectangle::new([(from, y - 15), (to, y + 15)], FAINT.stroke_width(1)))?;
    sheet.draw(&Text::new(name.to_owned(), ((from + to) / 2, y), anchored(13, &INK, HPos::Center, VPos::Center)))
}

fn legend(sheet: &Sheet<'_>, y: i32, japanese: bool) -> Drawn {
    let words = match japanese {
        true => ["書いた", "見た（kube-apiserver を通した見張り）"],
        false => ["wrote", "heard of (a watch through the kube-apiserver)"],
    };
    let mut x = 24;
    sheet.draw(&PathElement::new(vec![(12, y - 16), (WIDTH as i32 - 12, y - 16)], GRID))?;
    for (word, (color, dashed)) in words.into_iter().zip([(WRITES, false), (HEARS, true)]) {
        arrow(sheet, (x, y), (x + 44, y), color, dashed)?;
        sheet.draw(&Text::new(word, (x + 52, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 52 + text_width(word, 12) + 24;
    }
    Ok(())
}

fn alt(context: &Context<'_>, graph: &Graph) -> String {
    let (actors, kinds) = (graph.actors.len(), graph.kinds.len());
    match context.japanese {
        true => format!("{actors}人が{kinds}種類の記録を読み書きした。人から人への矢印は0本。"),
        false => format!("{actors} actors read and wrote {kinds} kinds of records; 0 arrows lead from actor to actor."),
    }
}

fn table(context: &Context<'_>, graph: &Graph) -> Table {
    let columns = match context.japanese {
        true => ["だれが", "見た記録", "書いた記録"],
        false => ["WHO", "HEARD OF", "WROTE"],
    };
    let list = |pairs: &BTreeSet<(usize, usize)>, actor: usize| {
        let kinds = pairs.iter().filter(|(own, _)| *own == actor).map(|(_, kind)| graph.kinds[*kind].as_str());
        let kinds: Vec<&str> = kinds.collect();
        if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") }
    };
    let row =
        |(index, actor): (usize, &String)| vec![actor.clone(), list(&graph.heard, index), list(&graph.wrote, index)];
    Table { columns: columns.map(str::to_owned).to_vec(), rows: graph.actors.iter().enumerate().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn each_actor_stands_with_the_records_that_it_saw_and_wrote() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let told = run(&mut session, "%plot actors deployment/web");
        assert!(told.contains("0 arrows lead from actor to actor."), "{told}");
        let line = |actor: &str| told.lines().find(|line| line.starts_with(actor)).unwrap_or_default().to_owned();
        assert!(line("deployment-controller").contains("ReplicaSet"), "{told}");
        let scheduler = line("kube-scheduler");
        let cells: Vec<&str> = scheduler.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells, ["kube-scheduler", "Pod", "Pod"]);
        assert!(run(&mut session, "%plot actors deployment/none").starts_with("PlotError: there is no record"));
    }
}
