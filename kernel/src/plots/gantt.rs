//! Picture 2, the pod Gantt: a row for each uid, grouped by owner; what each did when, and on which node.

use cluster_core::clock::Time;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    Axis, GRID, INK, LEFT, RIGHT, Sheet, WIDTH, anchored, draw, legend, stage_color, stage_height, style,
};
use super::lives::{Life, Stage};
use super::{Context, Picture, Table};

pub const ROW: i32 = 24;
const ROWS_MAX: usize = 40;

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let rows = rows_of(context)?;
    let axis = context.axis(&rows);
    let alt = alt(context, &rows);
    let height = 46 + ROW * rows.len() as i32 + 58;
    let svg = draw(height as u32, &alt, |sheet| {
        sheet.draw(&Text::new(title(context), (12, 10), style(16, &INK)))?;
        let top = 46;
        let bottom = panel(sheet, &axis, context, &rows, top)?;
        legend(sheet, bottom + 40, context.japanese, true)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &rows, axis.to) })
}

fn title(context: &Context<'_>) -> String {
    let what = &context.subject;
    if context.japanese { format!("Pod の一生: {what}") } else { format!("Lives of pods: {what}") }
}

/// The lives to show, grouped by owner.
pub fn rows_of(context: &Context<'_>) -> Result<Vec<Life>, String> {
    let mut rows = context.lives();
    if rows.is_empty() {
        return Err(context.nothing());
    }
    rows.sort_by(|a, b| (&a.group, a.born()).cmp(&(&b.group, b.born())));
    rows.truncate(ROWS_MAX);
    Ok(rows)
}

/// Draws rows of bars from `top` down, with the time axis; returns where it ends.
pub fn panel(
    sheet: &Sheet<'_>,
    axis: &Axis,
    context: &Context<'_>,
    rows: &[Life],
    top: i32,
) -> Result<i32, DrawingAreaErrorKind<std::io::Error>> {
    let bottom = top + ROW * rows.len() as i32;
    axis.draw(sheet, top, bottom)?;
    let mut group = "";
    for (index, life) in rows.iter().enumerate() {
        let y = top + ROW * index as i32 + ROW / 2;
        if life.group != group {
            group = &life.group;
            if index > 0 {
                sheet.draw(&PathElement::new(vec![(8, y - ROW / 2), (WIDTH as i32 - RIGHT, y - ROW / 2)], GRID))?;
            }
        }
        let name = shortened(&life.name, 26);
        sheet.draw(&Text::new(name, (LEFT - 8, y), anchored(12, &INK, HPos::Right, VPos::Center)))?;
        for (from, to, stage) in life.spans(axis.to) {
            let half = stage_height(stage) / 2;
            let (x0, x1) = (axis.x(from), axis.x(to).max(axis.x(from) + 1));
            sheet.draw(&Rectangle::new([(x0, y - half), (x1, y + half.max(1))], stage_color(stage).filled()))?;
            let label = life.node.as_deref().unwrap_or_default();
            if stage == Stage::Ready && x1 - x0 > 60 && !label.is_empty() {
                sheet.draw(&Text::new(
                    label.to_owned(),
                    (x0 + 5, y),
                    anchored(11, &WHITE, HPos::Left, VPos::Center),
                ))?;
            }
        }
        if let Some(gone) = life.gone.filter(|gone| *gone <= axis.to) {
            let x = axis.x(gone);
            sheet.draw(&PathElement::new(vec![(x, y - 7), (x, y + 7)], INK.stroke_width(2)))?;
        }
        for &at in life.restarts.iter().filter(|at| **at >= axis.from && **at <= axis.to) {
            sheet.draw(&Text::new("↻", (axis.x(at) - 1, y - 1), anchored(15, &INK, HPos::Right, VPos::Center)))?;
        }
    }
    for (at, _) in context.faults() {
        axis.fault(sheet, at, top, bottom)?;
    }
    Ok(bottom)
}

pub fn shortened(name: &str, letters_max: usize) -> String {
    if name.chars().count() <= letters_max {
        return name.to_owned();
    }
    let tail: String = name.chars().rev().take(letters_max - 1).collect::<Vec<_>>().into_iter().rev().collect();
    format!("…{tail}")
}

pub fn alt(context: &Context<'_>, rows: &[Life]) -> String {
    let ready = rows.iter().filter(|life| life.stage_at(context.now) == Some(Stage::Ready)).count();
    let gone = rows.iter().filter(|life| life.gone.is_some()).count();
    let restarts: usize = rows.iter().map(|life| life.restarts.len()).sum();
    let subject = &context.subject;
    if context.japanese {
        format!(
            "{subject} の Pod の一生。{}個の行のうち{ready}個が Ready、{gone}個は消えた。再起動は{restarts}回。",
            rows.len()
        )
    } else {
        format!(
            "Lives of the pods of {subject}: {} rows, {ready} Ready now, {gone} gone, {restarts} restarts.",
            rows.len()
        )
    }
}

pub fn table(context: &Context<'_>, rows: &[Life], now: Time) -> Table {
    let columns = if context.japanese {
        ["持ち主", "名前", "ノード", "誕生", "Ready", "再起動", "いま"]
    } else {
        ["OWNER", "NAME", "NODE", "BORN", "READY", "RESTARTS", "NOW"]
    };
    let row = |life: &Life| {
        let ready = life.stages.iter().find(|(_, stage)| *stage == Stage::Ready);
        let state = match (life.gone, life.stage_at(now)) {
            (Some(gone), _) if context.japanese => format!("{gone} に消えた"),
            (Some(gone), _) => format!("gone at {gone}"),
            (None, Some(stage)) => stage.words(context.japanese).to_owned(),
            (None, None) => String::new(),
        };
        vec![
            life.group.clone(),
            life.name.clone(),
            life.node.clone().unwrap_or_else(|| "-".into()),
            life.born().to_string(),
            ready.map_or_else(|| "-".to_owned(), |(at, _)| at.to_string()),
            life.restarts.len().to_string(),
            state,
        ]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.iter().map(row).collect() }
}
