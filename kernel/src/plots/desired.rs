//! Picture 1, desired and actual: the dashed wish, what exists, what is ready; the gap between them shaded.

use cluster_core::clock::Time;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    Axis, FAINT, GRID, INK, LEFT, RIGHT, Sheet, WIDTH, anchored, draw, stage_color, style, text_width,
};
use super::lives::{Life, Stage};
use super::{Context, Picture, Table};

const PANEL: i32 = 200;
const WISH: RGBColor = RGBColor(0, 114, 178);
const GAP: RGBColor = RGBColor(253, 226, 226);

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let rows = context.lives();
    let wishes = context.wishes();
    if rows.is_empty() && wishes.is_empty() {
        return Err(context.nothing());
    }
    let axis = context.axis(&rows);
    let counts = counts(&rows, &wishes, &axis);
    let alt = alt(context, &counts);
    let svg = draw(46 + PANEL as u32 + 60, &alt, |sheet| {
        let what = &context.subject;
        let title = if context.japanese {
            format!("望ましい状態と実際: {what}")
        } else {
            format!("Desired and actual: {what}")
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        panel(sheet, &axis, context, &counts, 46)?;
        legend(sheet, 46 + PANEL + 42, context.japanese)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &counts) })
}

/// The counts from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub at: Time,
    pub wished: Option<i32>,
    pub existing: i32,
    pub ready: i32,
}

/// The counts at each moment at which one of them changed.
pub fn counts(rows: &[Life], wishes: &[(Time, i32)], axis: &Axis) -> Vec<Counts> {
    let mut moments: Vec<Time> = rows
        .iter()
        .flat_map(|life| life.stages.iter().map(|(at, _)| *at).chain(life.gone))
        .chain(wishes.iter().map(|(at, _)| *at))
        .filter(|at| *at > axis.from && *at < axis.to)
        .chain([axis.from, axis.to])
        .collect();
    moments.sort();
    moments.dedup();
    let mut counts: Vec<Counts> = Vec::new();
    for at in moments {
        let stages = || rows.iter().filter_map(|life| life.stage_at(at));
        let now = Counts {
            at,
            wished: wishes.iter().rev().find(|(from, _)| *from <= at).map(|(_, wish)| *wish),
            existing: stages().filter(|stage| !matches!(stage, Stage::Down | Stage::Terminating)).count() as i32,
            ready: stages().filter(|stage| *stage == Stage::Ready).count() as i32,
        };
        let same = counts.last().is_some_and(|last: &Counts| Counts { at, ..*last } == now);
        if !same || at == axis.to {
            counts.push(now);
        }
    }
    counts
}

pub fn panel(
    sheet: &Sheet<'_>,
    axis: &Axis,
    context: &Context<'_>,
    counts: &[Counts],
    top: i32,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let bottom = top + PANEL;
    let most = counts.iter().map(|c| c.wished.unwrap_or(0).max(c.existing).max(c.ready)).max().unwrap_or(0).max(1) + 1;
    let y = |count: i32| bottom - count * (PANEL - 10) / most;
    let step = (most / 5).max(1);
    // The gap first, so that the lines lie on it.
    for pair in counts.windows(2) {
        if let Some(wished) = pair[0].wished.filter(|wished| *wished > pair[0].ready) {
            let corners = [(axis.x(pair[0].at), y(wished)), (axis.x(pair[1].at), y(pair[0].ready))];
            sheet.draw(&Rectangle::new(corners, GAP.filled()))?;
        }
    }
    axis.draw(sheet, top, bottom)?;
    for count in (0..=most).step_by(step as usize) {
        sheet.draw(&PathElement::new(vec![(LEFT, y(count)), (WIDTH as i32 - RIGHT, y(count))], GRID))?;
        let label = anchored(12, &FAINT, HPos::Right, VPos::Center);
        sheet.draw(&Text::new(count.to_string(), (LEFT - 6, y(count)), label))?;
    }
    stairs(sheet, axis, counts, |c| Some(y(c.ready)), stage_color(Stage::Ready).stroke_width(5))?;
    stairs(sheet, axis, counts, |c| Some(y(c.existing)), INK.stroke_width(2))?;
    dashes(sheet, axis, counts, |c| c.wished.map(y))?;
    for (at, _) in context.faults() {
        axis.fault(sheet, at, top, bottom)?;
    }
    Ok(())
}

fn stairs(
    sheet: &Sheet<'_>,
    axis: &Axis,
    counts: &[Counts],
    y: impl Fn(&Counts) -> Option<i32>,
    style: ShapeStyle,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let mut points: Vec<(i32, i32)> = Vec::new();
    for count in counts {
        if let Some(y) = y(count) {
            let x = axis.x(count.at);
            if let Some(&(_, before)) = points.last() {
                points.push((x, before));
            }
            points.push((x, y));
        }
    }
    sheet.draw(&PathElement::new(points, style))
}

fn dashes(
    sheet: &Sheet<'_>,
    axis: &Axis,
    counts: &[Counts],
    y: impl Fn(&Counts) -> Option<i32>,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let style = WISH.stroke_width(2);
    let mut before: Option<i32> = None;
    for (index, count) in counts.iter().enumerate() {
        let Some(y) = y(count) else { continue };
        let x = axis.x(count.at);
        if let Some(before) = before.filter(|before| *before != y) {
            sheet.draw(&PathElement::new(vec![(x, before), (x, y)], style))?;
        }
        let end = counts.get(index + 1).map_or(x, |next| axis.x(next.at));
        for start in (x..end).step_by(12) {
            sheet.draw(&PathElement::new(vec![(start, y), ((start + 7).min(end), y)], style))?;
        }
        before = Some(y);
    }
    Ok(())
}

fn legend(sheet: &Sheet<'_>, y: i32, japanese: bool) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let mut x = LEFT;
    let words = |ja: &'static str, en: &'static str| if japanese { ja } else { en };
    let word = |x: &mut i32, text: &'static str| -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        sheet.draw(&Text::new(text, (*x + 28, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        *x += 28 + text_width(text, 12) + 18;
        Ok(())
    };
    for start in [0, 12] {
        sheet.draw(&PathElement::new(vec![(x + start, y), (x + start + 7, y)], WISH.stroke_width(2)))?;
    }
    word(&mut x, words("望ましい数", "desired"))?;
    sheet.draw(&PathElement::new(vec![(x, y), (x + 22, y)], INK.stroke_width(2)))?;
    word(&mut x, words("存在する数", "existing"))?;
    sheet.draw(&PathElement::new(vec![(x, y), (x + 22, y)], stage_color(Stage::Ready).stroke_width(5)))?;
    word(&mut x, words("Ready の数", "Ready"))?;
    sheet.draw(&Rectangle::new([(x, y - 6), (x + 22, y + 6)], GAP.filled()))?;
    word(&mut x, words("足りない分", "the gap"))?;
    sheet.draw(&Polygon::new(vec![(x + 6, y - 4), (x + 16, y - 4), (x + 11, y + 4)], super::canvas::FAULT.filled()))?;
    word(&mut x, words("障害", "fault"))
}

fn alt(context: &Context<'_>, counts: &[Counts]) -> String {
    let last = counts.last();
    let (wished, ready) = (last.and_then(|c| c.wished), last.map_or(0, |c| c.ready));
    let worst = counts.iter().filter_map(|c| Some((c.wished? - c.ready).max(0))).max().unwrap_or(0);
    let subject = &context.subject;
    match (context.japanese, wished) {
        (true, Some(wished)) => {
            format!(
                "{subject} の望ましい数と実際の数。いま望ましい数は{wished}、Ready は{ready}。差は最大で{worst}だった。"
            )
        }
        (true, None) => format!("{subject} の実際の数。いま動いているのは{ready}。"),
        (false, Some(wished)) => {
            format!(
                "Desired and actual number of {subject}: {wished} wished and {ready} Ready now; the gap was {worst} at most."
            )
        }
        (false, None) => format!("Number of {subject}: {ready} running now."),
    }
}

fn table(context: &Context<'_>, counts: &[Counts]) -> Table {
    let columns = if context.japanese {
        ["時刻", "望ましい数", "存在", "Ready"]
    } else {
        ["TIME", "DESIRED", "EXISTING", "READY"]
    };
    let row = |count: &Counts| {
        let wished = count.wished.map_or_else(|| "-".to_owned(), |wished| wished.to_string());
        vec![count.at.to_string(), wished, count.existing.to_string(), count.ready.to_string()]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: counts.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(stages: &[(u64, Stage)], gone: Option<u64>) -> Life {
        Life {
            name: "web".into(),
            group: "deployment/web".into(),
            labels: Default::default(),
            node: None,
            stages: stages.iter().map(|(at, stage)| (Time::from_secs(*at), *stage)).collect(),
            restarts: Vec::new(),
            gone: gone.map(Time::from_secs),
        }
    }

    #[test]
    fn counts_change_when_lives_do() {
        let rows = [
            life(&[(1, Stage::Creating), (2, Stage::Ready), (5, Stage::Terminating)], Some(6)),
            life(&[(5, Stage::Creating), (7, Stage::Ready)], None),
        ];
        let axis = Axis { from: Time::from_secs(1), to: Time::from_secs(8) };
        let seen: Vec<_> = counts(&rows, &[(Time::from_secs(1), 1)], &axis)
            .iter()
            .map(|c| (c.at.as_secs_f64() as u64, c.wished, c.existing, c.ready))
            .collect();
        assert_eq!(
            seen,
            [(1, Some(1), 1, 0), (2, Some(1), 1, 1), (5, Some(1), 1, 0), (7, Some(1), 1, 1), (8, Some(1), 1, 1)]
        );
    }
}
