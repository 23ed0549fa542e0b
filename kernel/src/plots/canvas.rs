//! What the pictures share: the sheet, colours and marks, the time axis, the legend.

use cluster_core::clock::Time;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::lives::Stage;

pub const WIDTH: u32 = 860;
pub const LEFT: i32 = 200;
pub const RIGHT: i32 = 20;

pub const INK: RGBColor = RGBColor(33, 37, 41);
pub const FAINT: RGBColor = RGBColor(134, 142, 150);
pub const GRID: RGBColor = RGBColor(222, 226, 230);
pub const FAULT: RGBColor = RGBColor(194, 37, 92);

/// The sheet: a light card, so that a picture reads the same on light and dark themes and on paper.
pub type Sheet<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Colours that differ in lightness too (after Okabe and Ito), so that they can be told apart in grey.
pub fn stage_color(stage: Stage) -> RGBColor {
    match stage {
        Stage::Unscheduled => RGBColor(206, 212, 218),
        Stage::Creating => RGBColor(240, 228, 66),
        Stage::NotReady => RGBColor(230, 159, 0),
        Stage::Ready => RGBColor(0, 158, 115),
        Stage::Down => RGBColor(73, 80, 87),
        Stage::Terminating => RGBColor(204, 121, 167),
    }
}

/// Thick bars are ready, thin ones are not: shape says what colour says.
pub fn stage_height(stage: Stage) -> i32 {
    match stage {
        Stage::Unscheduled => 4,
        Stage::Creating => 8,
        Stage::NotReady => 10,
        Stage::Ready => 14,
        Stage::Down => 2,
        Stage::Terminating => 6,
    }
}

pub fn style(size: i32, color: &RGBColor) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", size).into_font()).color(color)
}

pub fn anchored(size: i32, color: &RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'_> {
    style(size, color).pos(Pos::new(horizontal, vertical))
}

/// Draws a picture of a height, and gives its SVG with the alternative text in it.
pub fn draw(
    height: u32,
    alt: &str,
    paint: impl FnOnce(&Sheet<'_>) -> Result<(), DrawingAreaErrorKind<std::io::Error>>,
) -> Result<String, String> {
    let mut svg = String::new();
    {
        let sheet = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let painted = sheet.fill(&WHITE).and_then(|()| paint(&sheet)).and_then(|()| sheet.present());
        painted.map_err(|error| format!("the picture could not be drawn: {error}"))?;
    }
    Ok(describe(&svg, alt))
}

/// Puts a title (what a screen reader says) and the role of an image into an SVG, and lets it shrink on narrow pages.
fn describe(svg: &str, alt: &str) -> String {
    let title = alt.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let label = escaped(alt);
    let Some(end) = svg.find('>') else { return svg.to_owned() };
    let (open, rest) = svg.split_at(end);
    format!(
        "{open} style=\"max-width:100%;height:auto\" role=\"img\" aria-label=\"{label}\">\n<title>{title}</title>{}",
        &rest[1..]
    )
}

/// A text as it stands in an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Virtual time along the x axis of a panel.
#[derive(Clone, Copy)]
pub struct Axis {
    pub from: Time,
    pub to: Time,
}

impl Axis {
    pub fn x(&self, at: Time) -> i32 {
        let span = self.to.since(self.from).as_secs_f64().max(1e-6);
        let share = (at.since(self.from).as_secs_f64() / span).clamp(0.0, 1.0);
        LEFT + (share * f64::from(WIDTH as i32 - LEFT - RIGHT)) as i32
    }

    /// Round moments, some six of them.
    pub fn ticks(&self) -> Vec<Time> {
        let span = self.to.since(self.from).as_secs_f64();
        let steps = [
            0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
        ];
        let step = steps.into_iter().find(|step| span / step <= 7.0).unwrap_or(span / 6.0);
        let micros = (step * 1e6) as u64;
        let first = self.from.as_micros().div_ceil(micros.max(1));
        let last = self.to.as_micros() / micros.max(1);
        (first..=last).map(|index| Time::from_micros(index * micros)).collect()
    }

    /// Grid lines from `top` to `bottom`, and the moments below.
    pub fn draw(&self, sheet: &Sheet<'_>, top: i32, bottom: i32) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        for tick in self.ticks() {
            let x = self.x(tick);
            sheet.draw(&PathElement::new(vec![(x, top), (x, bottom)], GRID))?;
            let label = anchored(12, &FAINT, HPos::Center, VPos::Top);
            sheet.draw(&Text::new(seconds(tick), (x, bottom + 4), label))?;
        }
        sheet.draw(&PathElement::new(vec![(LEFT, bottom), (WIDTH as i32 - RIGHT, bottom)], FAINT))?;
        Ok(())
    }

    /// A dashed line and a triangle at the moment of a fault.
    pub fn fault(
        &self,
        sheet: &Sheet<'_>,
        at: Time,
        top: i32,
        bottom: i32,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        if at < self.from || at > self.to {
            return Ok(());
        }
        let x = self.x(at);
        for y in (top..bottom).step_by(6) {
            sheet.draw(&PathElement::new(vec![(x, y), (x, (y + 3).min(bottom))], FAULT))?;
        }
        sheet.draw(&Polygon::new(vec![(x - 5, top - 8), (x + 5, top - 8), (x, top)], FAULT.filled()))?;
        Ok(())
    }
}

/// `2.5s`, `90s`.
pub fn seconds(at: Time) -> String {
    let seconds = at.as_secs_f64();
    let text = format!("{seconds:.2}");
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The stages with their colours and heights, and the mark of a fault.
pub fn legend(
    sheet: &Sheet<'_>,
    y: i32,
    japanese: bool,
    restarts: bool,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let mut x = LEFT;
    for stage in Stage::ALL {
        let half = stage_height(stage) / 2;
        sheet.draw(&Rectangle::new([(x, y - half), (x + 18, y + half.max(1))], stage_color(stage).filled()))?;
        let words = stage.words(japanese);
        sheet.draw(&Text::new(words, (x + 23, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 23 + text_width(words, 12) + 10;
    }
    if restarts {
        sheet.draw(&Text::new("↻", (x, y), anchored(14, &INK, HPos::Left, VPos::Center)))?;
        let words = if japanese { "再起動" } else { "restart" };
        sheet.draw(&Text::new(words, (x + 16, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 16 + text_width(words, 12) + 10;
    }
    sheet.draw(&Polygon::new(vec![(x, y - 4), (x + 10, y - 4), (x + 5, y + 4)], FAULT.filled()))?;
    let words = if japanese { "障害" } else { "fault" };
    sheet.draw(&Text::new(words, (x + 15, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
    Ok(())
}

/// A solid or a dashed line with a head at its end.
pub fn arrow(
    sheet: &Sheet<'_>,
    from: (i32, i32),
    to: (i32, i32),
    color: RGBColor,
    dashed: bool,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = dx.hypot(dy).max(1.0);
    let at = |way: f64, aside: f64| {
        let (x, y) = (f64::from(from.0) + dx * way / length, f64::from(from.1) + dy * way / length);
        ((x - dy * aside / length).round() as i32, (y + dx * aside / length).round() as i32)
    };
    let step = if dashed { 10.0 } else { length };
    let mut way = 0.0;
    while way < length - 8.0 {
        let end = (way + if dashed { 6.0 } else { length }).min(length - 8.0);
        sheet.draw(&PathElement::new(
            vec![at(way, 0.0), at(end, 0.0)],
            color.stroke_width(if dashed { 1 } else { 2 }),
        ))?;
        way += step;
    }
    sheet.draw(&Polygon::new(vec![to, at(length - 11.0, 5.0), at(length - 11.0, -5.0)], color.filled()))
}

/// About how wide a text is, without a font at hand.
pub fn text_width(text: &str, size: i32) -> i32 {
    let units: i32 = text.chars().map(|letter| if letter.is_ascii() { 56 } else { 100 }).sum();
    units * size / 100
}
