//! Picture 11, the contrast: the same fault on the imperative side and on the declarative side, on one time axis.

use plotters::prelude::*;

use super::canvas::{FAINT, INK, draw, legend, style};
use super::gantt;
use super::lives::{Life, Stage, Subject};
use super::{Context, Picture};

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let Some(other) = &context.other else {
        return Err(if context.japanese {
            "比べる相手が必要です: %plot contrast docker deployment/web".into()
        } else {
            "two things are needed to contrast: %plot contrast docker deployment/web".into()
        });
    };
    let second = Context { subject: other.clone(), other: None, ..*context };
    let (above, below) = (side(context)?, side(&second)?);
    let all: Vec<Life> = above.iter().chain(&below).cloned().collect();
    let axis = context.axis(&all);
    let alt = alt(context, &above, &second, &below);
    let rows = (above.len() + below.len()) as i32 * 24;
    let svg = draw((rows + 196) as u32, &alt, |sheet| {
        let title = if context.japanese { "同じ障害、二つの世界" } else { "One fault, two worlds" };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        sheet.draw(&Text::new(heading(context), (12, 38), style(13, &FAINT)))?;
        let bottom = gantt::panel(sheet, &axis, context, &above, 64)?;
        sheet.draw(&Text::new(heading(&second), (12, bottom + 30), style(13, &FAINT)))?;
        let bottom = gantt::panel(sheet, &axis, context, &below, bottom + 56)?;
        legend(sheet, bottom + 40, context.japanese, true)
    })?;
    Ok(Picture { svg, html: None, alt, table: gantt::table(context, &all, axis.to) })
}

fn side(context: &Context<'_>) -> Result<Vec<Life>, String> {
    let mut rows = context.lives();
    if rows.is_empty() {
        return Err(context.nothing());
    }
    rows.sort_by_key(Life::born);
    rows.truncate(20);
    Ok(rows)
}

fn heading(context: &Context<'_>) -> String {
    let imperative = matches!(context.subject, Subject::Docker(_) | Subject::Pod(_));
    let side = match (imperative, context.japanese) {
        (true, true) => "手続き型（命令型）",
        (true, false) => "imperative",
        (false, true) => "宣言型",
        (false, false) => "declarative",
    };
    format!("{side}: {}", context.subject)
}

fn alt(first: &Context<'_>, above: &[Life], second: &Context<'_>, below: &[Life]) -> String {
    let ready = |rows: &[Life]| rows.iter().filter(|life| life.stage_at(first.now) == Some(Stage::Ready)).count();
    if first.japanese {
        format!(
            "同じ障害のあと、{} では{}個、{} では{}個が動いている。",
            first.subject,
            ready(above),
            second.subject,
            ready(below)
        )
    } else {
        format!(
            "After the same fault {} run in {} and {} in {}.",
            ready(above),
            first.subject,
            ready(below),
            second.subject
        )
    }
}
