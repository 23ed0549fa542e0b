//! Picture 8, etcd over its revisions: a row for each key, a mark for each write, coloured by who wrote.
//! <https://etcd.io/docs/v3.6/learning/data_model/>

use cluster_core::clock::Time;
use cluster_core::trace::RequestEntry;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, FAULT, GRID, INK, RIGHT, Sheet, WIDTH, anchored, draw, style, text_width};
use super::gantt::shortened;
use super::lives::Subject;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 22;
const LEGEND_ROW: i32 = 24;
const LEGEND_LEFT: i32 = 20;
const ROWS_MAX: usize = 24;
const TOP: i32 = 46;
/// Keys are longer than names of pods.
pub const LEFT: i32 = 290;

/// After Okabe and Ito; they differ in lightness, too.
const WRITERS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(73, 80, 87),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Created,
    Changed,
    Reported,
    Deleted,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Created, Kind::Changed, Kind::Reported, Kind::Deleted];

    fn of(write: &RequestEntry) -> Kind {
        match (&write.before, &write.after) {
            (None, _) => Kind::Created,
            (_, None) => Kind::Deleted,
            _ if write.subresource == "status" => Kind::Reported,
            _ => Kind::Changed,
        }
    }

    fn words(self, japanese: bool) -> &'static str {
        match (self, japanese) {
            (Kind::Created, true) => "作成",
            (Kind::Created, false) => "created",
            (Kind::Changed, true) => "変更",
            (Kind::Changed, false) => "changed",
            (Kind::Reported, true) => "状態の報告",
            (Kind::Reported, false) => "status reported",
            (Kind::Deleted, true) => "削除",
            (Kind::Deleted, false) => "deleted",
        }
    }
}

/// One write.
pub struct Put {
    pub at: Time,
    pub revision: u64,
    /// The index of its row, and of its writer.
    row: usize,
    writer: usize,
    kind: Kind,
}

pub struct Timeline {
    keys: Vec<String>,
    writers: Vec<String>,
    pub puts: Vec<Put>,
}

impl Timeline {
    /// From the first write to the last.
    pub fn x(&self, revision: u64) -> i32 {
        let [first, last] = [self.puts.first(), self.puts.last()].map(|put| put.map_or(0, |put| put.revision));
        let share = revision.saturating_sub(first) as f64 / last.saturating_sub(first).max(1) as f64;
        LEFT + 14 + (share * f64::from(WIDTH as i32 - LEFT - RIGHT - 28)) as i32
    }

    /// How tall it is drawn.
    pub fn height(&self) -> i32 {
        ROW * self.keys.len() as i32 + 78 + LEGEND_ROW * (self.writers_places().1 - 1)
    }

    /// Where each writer stands in the legend, across and in which row; and how many rows that takes.
    fn writers_places(&self) -> (Vec<(i32, i32)>, i32) {
        let (mut x, mut row) = (LEGEND_LEFT, 0);
        let place = |writer: &String| {
            let width = legend_width(writer);
            if x > LEGEND_LEFT && x + width > WIDTH as i32 {
                (x, row) = (LEGEND_LEFT, row + 1);
            }
            let place = (x, row);
            x += width;
            place
        };
        let places = self.writers.iter().map(place).collect();
        (places, row + 1)
    }

    /// Draws the writes from `top` down, with the axis and the legend; returns where the rows end.
    pub fn panel(
        &self,
        sheet: &Sheet<'_>,
        top: i32,
        japanese: bool,
    ) -> Result<i32, DrawingAreaErrorKind<std::io::Error>> {
        let bottom = top + ROW * self.keys.len() as i32;
        let [first, last] = [self.puts.first(), self.puts.last()].map(|put| put.map_or(0, |put| put.revision));
        let step = ((last - first) / 8).max(1);
        for revision in (first..=last).step_by(step as usize) {
            let x = self.x(revision);
            sheet.draw(&PathElement::new(vec![(x, top), (x, bottom)], GRID))?;
            let label = anchored(12, &FAINT, HPos::Center, VPos::Top);
            sheet.draw(&Text::new(revision.to_string(), (x, bottom + 4), label))?;
        }
        for (index, key) in self.keys.iter().enumerate() {
            let y = top + ROW * index as i32 + ROW / 2;
            sheet.draw(&PathElement::new(vec![(LEFT, y), (WIDTH as i32 - RIGHT, y)], GRID))?;
            let name = anchored(12, &INK, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(shortened(key, 44), (LEFT - 8, y), name))?;
        }
        for put in &self.puts {
            let place = (self.x(put.revision), top + ROW * put.row as i32 + ROW / 2);
            mark(sheet, place, put.kind, color(put.writer))?;
        }
        legend(sheet, self, bottom + 36, japanese)?;
        Ok(bottom)
    }
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let timeline = timeline(context);
    let (Some(first), Some(last)) = (timeline.puts.first(), timeline.puts.last()) else {
        return Err(match context.japanese {
            true => format!("{} への書き込みはまだありません", context.subject),
            false => format!("nothing has been written about {} yet", context.subject),
        });
    };
    let alt = alt(context, &timeline, first.revision, last.revision);
    let svg = draw((TOP + timeline.height()) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("etcd のリビジョン: {}", context.subject),
            false => format!("Revisions of etcd: {}", context.subject),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        timeline.panel(sheet, TOP, context.japanese).map(|_| ())
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &timeline) })
}

/// The writes that concern the subject, without heartbeats and Events, which say nothing of the wish.
pub fn timeline(context: &Context<'_>) -> Timeline {
    let mut timeline = Timeline { keys: Vec::new(), writers: Vec::new(), puts: Vec::new() };
    for (entry, write) in context.trace.writes() {
        let is_late = context.from.is_some_and(|from| entry.at < from);
        if is_late || matches!(&*write.kind.kind, "Event" | "Lease") || !concerns(&context.subject, write) {
            continue;
        }
        let key = format!("{}/{}", write.kind.resource, write.key);
        let Some(row) = index_of(&mut timeline.keys, key, ROWS_MAX) else { continue };
        let actor = entry.actor.split('/').next().unwrap_or_default().to_owned();
        let Some(writer) = index_of(&mut timeline.writers, actor, usize::MAX) else { continue };
        timeline.puts.push(Put { at: entry.at, revision: write.revision, row, writer, kind: Kind::of(write) });
    }
    timeline
}

/// True for the object that is named, and for those whose names begin with its name and a hyphen.
fn concerns(subject: &Subject, write: &RequestEntry) -> bool {
    let named = |name: &str| {
        let rest = write.key.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    match subject {
        Subject::Everything => true,
        Subject::Docker(_) | Subject::Actor(_) => false,
        Subject::Workload { name, .. } | Subject::Pod(name) => named(name),
        Subject::Label(label, value) => {
            let labels = write.object().and_then(|object| object.metadata().labels.as_ref());
            labels.and_then(|labels| labels.get(label)) == Some(value)
        }
    }
}

fn index_of(known: &mut Vec<String>, name: String, most: usize) -> Option<usize> {
    if let Some(index) = known.iter().position(|known| *known == name) {
        return Some(index);
    }
    (known.len() < most).then(|| {
        known.push(name);
        known.len() - 1
    })
}

pub(super) fn color(writer: usize) -> RGBColor {
    WRITERS[writer % WRITERS.len()]
}

/// Full and large: created; full and small: changed; hollow: the status; a cross: deleted.
fn mark(sheet: &Sheet<'_>, at: (i32, i32), kind: Kind, color: RGBColor) -> Drawn {
    match kind {
        Kind::Created => sheet.draw(&Circle::new(at, 7, color.filled())),
        Kind::Changed => sheet.draw(&Circle::new(at, 4, color.filled())),
        Kind::Reported => {
            sheet.draw(&Circle::new(at, 4, WHITE.filled()))?;
            sheet.draw(&Circle::new(at, 4, color.stroke_width(2)))
        }
        Kind::Deleted => {
            let (x, y) = at;
            for rise in [-5, 5] {
                sheet.draw(&PathElement::new(vec![(x - 5, y - rise), (x + 5, y + rise)], color.stroke_width(3)))?;
            }
            Ok(())
        }
    }
}

fn legend(sheet: &Sheet<'_>, timeline: &Timeline, y: i32, japanese: bool) -> Drawn {
    let word = |(x, y): (i32, i32), text: &str| -> Drawn {
        sheet.draw(&Text::new(text.to_owned(), (x + 12, y), anchored(12, &INK, HPos::Left, VPos::Center)))
    };
    let (places, rows) = timeline.writers_places();
    for (index, (writer, (x, row))) in timeline.writers.iter().zip(places).enumerate() {
        let y = y + LEGEND_ROW * row;
        sheet.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], color(index).filled()))?;
        word((x, y), writer)?;
    }
    let (mut x, y) = (LEGEND_LEFT, y + LEGEND_ROW * rows);
    for kind in Kind::ALL {
        mark(sheet, (x, y), kind, if kind == Kind::Deleted { FAULT } else { INK })?;
        word((x, y), kind.words(japanese))?;
        x += legend_width(kind.words(japanese));
    }
    Ok(())
}

/// A mark, its words, and room behind them.
fn legend_width(words: &str) -> i32 {
    12 + text_width(words, 12) + 18
}

fn alt(context: &Context<'_>, timeline: &Timeline, first: u64, last: u64) -> String {
    let (keys, writes) = (timeline.keys.len(), timeline.puts.len());
    match context.japanese {
        true => format!(
            "リビジョン{first}から{last}までの{keys}個の鍵への書き込み{writes}回。書いたのは{}。",
            timeline.writers.join("、")
        ),
        false => {
            format!("{writes} writes to {keys} keys, revisions {first} to {last}, by {}.", timeline.writers.join(", "))
        }
    }
}

fn table(context: &Context<'_>, timeline: &Timeline) -> Table {
    let columns = match context.japanese {
        true => ["リビジョン", "鍵", "だれが", "何を"],
        false => ["REVISION", "KEY", "WRITER", "WHAT"],
    };
    let row = |put: &Put| {
        let what = put.kind.words(context.japanese).to_owned();
        vec![put.revision.to_string(), timeline.keys[put.row].clone(), timeline.writers[put.writer].clone(), what]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: timeline.puts.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn each_write_stands_at_its_revision_with_its_writer() {
        let mut session = session();
        run(&mut session, "kubectl create configmap note --from-literal=a=b");
        run(&mut session, "kubectl delete configmap note");
        run(&mut session, "kubectl create configmap notes --from-literal=a=b");
        let told = run(&mut session, "%plot revisions configmap/note");
        let lines: Vec<&str> = told.lines().skip(3).collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(lines[0].ends_with("configmaps/default/note   kubectl   created"), "{told}");
        assert!(lines[1].ends_with("configmaps/default/note   kubectl   deleted"), "{told}");
        assert!(run(&mut session, "%plot revisions pod/none").starts_with("PlotError: "));
    }
}
