//! Picture 4, the sequence: a lane for each component, time from top to bottom. An arrow starts at whoever opened the
//! connection; a watch is a connection that stays open, a long bar beside its lane, along which the answers come.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::clock::Time;
use cluster_core::trace::{ContainerPhase, Entry, RequestEntry, Sequence, What};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::actors::{consequences, root, told};
use super::canvas::{FAINT, FAULT, GRID, INK, Sheet, WIDTH, anchored, arrow, draw, style, text_width};
use super::gantt::shortened;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 26;
const HEAD: i32 = 20;
/// Below names at two heights.
const TOP: i32 = 88;
/// The lanes of etcd and the apiserver; those who ask stand to the right of them.
const ETCD: i32 = 118;
const APISERVER: i32 = 200;
const FIRST: i32 = 370;
const LAST: i32 = WIDTH as i32 - 60;
const STEPS_MAX: usize = 40;
const ASKS: RGBColor = RGBColor(213, 94, 0);
const HEARS: RGBColor = RGBColor(0, 114, 178);

#[derive(Clone, Debug, PartialEq)]
enum Deed {
    /// A watch was opened, long before.
    Watches,
    /// An answer comes along that watch.
    Hears,
    /// A request, with the revision that it made.
    Asks(u64),
    /// A request that was refused.
    Refused(u16),
    /// A kubelet calls its container runtime.
    Calls,
    /// A kube-proxy writes its node's rules.
    Acts,
}

struct Step {
    at: Time,
    lane: usize,
    deed: Deed,
    what: String,
    /// The same without names: `PUT pods/status`.
    family: String,
    /// So many of the family, one after the other.
    count: usize,
}

impl Step {
    fn is_like(&self, other: &Step) -> bool {
        let is_same_deed = std::mem::discriminant(&self.deed) == std::mem::discriminant(&other.deed);
        self.lane == other.lane && is_same_deed && self.family == other.family
    }
}

struct Story {
    /// Who asks, in the order of their first step.
    lanes: Vec<String>,
    steps: Vec<Step>,
    hidden: usize,
    start: Time,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let root = root(context).ok_or_else(|| match context.japanese {
        true => format!("{} についての記録はありません。例: %plot sequence deployment/web", context.subject),
        false => format!("there is no record of {}; try %plot sequence deployment/web", context.subject),
    })?;
    let story = story(context, root);
    let alt = alt(context, &story);
    let gap = (LAST - FIRST) / (story.lanes.len().max(2) as i32 - 1);
    let x = |lane: usize| FIRST + gap * lane as i32;
    let has_runtime = story.steps.iter().any(|step| step.deed == Deed::Calls);
    let heights = heights(&story.lanes, gap);
    let top = TOP + HEAD * (heights - 2);
    let bottom = top + ROW * story.steps.len() as i32;
    let svg = draw((bottom + 66) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("だれがだれに接続したか: {}", context.subject),
            false => format!("Who connected to whom: {}", context.subject),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        head(sheet, ETCD, "etcd", 0, bottom)?;
        head(sheet, APISERVER, "kube-apiserver", 0, bottom)?;
        for (index, lane) in story.lanes.iter().enumerate() {
            head(sheet, x(index), lane, index as i32 % heights, bottom)?;
        }
        for (index, step) in story.steps.iter().enumerate() {
            if step.deed == Deed::Watches {
                let (x, y) = (x(step.lane), top + ROW * index as i32 + 20);
                sheet.draw(&Rectangle::new([(x - 4, y), (x + 4, bottom + 6)], HEARS.mix(0.35).filled()))?;
            }
        }
        for (index, step) in story.steps.iter().enumerate() {
            draw_step(sheet, &story, step, x(step.lane), top + ROW * index as i32 + 20, context.japanese)?;
        }
        if story.hidden > 0 {
            let words = if context.japanese {
                format!("ほかに{}段", story.hidden)
            } else {
                format!("{} more steps", story.hidden)
            };
            sheet.draw(&Text::new(words, (12, bottom + 12), anchored(12, &FAINT, HPos::Left, VPos::Center)))?;
        }
        legend(sheet, bottom + 30, context.japanese, has_runtime)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &story) })
}

/// What the newest coming of the subject led to, step by step, each watch before what was heard along it.
fn story(context: &Context<'_>, root: Sequence) -> Story {
    let trace = context.trace;
    let mut lanes: Vec<String> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut heard: BTreeSet<(usize, Sequence)> = BTreeSet::new();
    let mut watched: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let start = trace.get(root).map(|entry| entry.at).unwrap_or_default();
    for entry in consequences(trace, root) {
        let Some((deed, family, what)) = deed(entry, context.japanese) else { continue };
        let actor = match deed {
            Deed::Calls => "kubelet",
            _ => entry.actor.split('/').next().unwrap_or_default(),
        };
        let lane = lanes.iter().position(|known| known == actor).unwrap_or_else(|| {
            lanes.push(actor.to_owned());
            lanes.len() - 1
        });
        for cause in told(trace, entry) {
            let What::Request(request) = &cause.what else { continue };
            if request.is_write() && is_shown(request) && heard.insert((lane, cause.sequence)) {
                let kinds = watched.entry(lane).or_default();
                let resource = request.kind.resource.to_string();
                if !kinds.contains(&resource) {
                    kinds.push(resource);
                }
                let family = request.kind.singular.to_string();
                let what = format!("{family}/{}", request.key.name);
                push(&mut steps, Step { at: entry.at, lane, deed: Deed::Hears, what, family, count: 1 });
            }
        }
        push(&mut steps, Step { at: entry.at, lane, deed, what, family, count: 1 });
    }
    let opened = watched.into_iter().map(|(lane, kinds)| {
        let what = if kinds.len() > 2 { format!("{}, {} …", kinds[0], kinds[1]) } else { kinds.join(", ") };
        Step { at: start, lane, deed: Deed::Watches, what, family: String::new(), count: 1 }
    });
    let mut all: Vec<Step> = opened.chain(steps).collect();
    let hidden = all.len().saturating_sub(STEPS_MAX);
    all.truncate(STEPS_MAX);
    Story { lanes, steps: all, hidden, start }
}

/// Adds a step, or counts it if it repeats the last one, or ends a repetition of the last two.
fn push(steps: &mut Vec<Step>, step: Step) {
    steps.push(step);
    for period in [1, 2] {
        let Some(first) = steps.len().checked_sub(2 * period) else { return };
        let (before, after) = steps[first..].split_at(period);
        if before.iter().zip(after).all(|(before, after)| after.is_like(before)) {
            for repeated in steps.split_off(first + period).into_iter().enumerate() {
                let (place, Step { deed, count, .. }) = repeated;
                let step = &mut steps[first + place];
                (step.deed, step.count) = (deed, step.count + count);
            }
            return;
        }
    }
}

/// What an entry is in the story, its family, and its own words.
fn deed(entry: &Entry, japanese: bool) -> Option<(Deed, String, String)> {
    match &entry.what {
        What::Request(request) if is_shown(request) && (request.is_write() || request.code >= 400) => {
            let deed = if request.is_write() { Deed::Asks(request.revision) } else { Deed::Refused(request.code) };
            Some((deed, path(request, ""), path(request, &request.key.name)))
        }
        What::Container(container) if !container.pod.namespace.is_empty() => {
            let call = match container.phase {
                ContainerPhase::SandboxCreated => "RunPodSandbox",
                ContainerPhase::Pulling => "PullImage",
                ContainerPhase::Created => "CreateContainer",
                ContainerPhase::Started => "StartContainer",
                ContainerPhase::Signalled(_) => "StopContainer",
                _ => return None,
            };
            Some((Deed::Calls, call.to_owned(), call.to_owned()))
        }
        What::Rules { service, .. } => {
            let name = &service.name;
            let rules = if japanese { format!("{name} の規則") } else { format!("rules of {name}") };
            Some((Deed::Acts, rules.clone(), rules))
        }
        _ => None,
    }
}

/// Events and Leases, the diary and the heartbeats, say nothing of the work.
fn is_shown(request: &RequestEntry) -> bool {
    !matches!(&*request.kind.kind, "Event" | "Lease")
}

/// `PUT pods/web-x7k2p/status`, as HTTP names it; without the name if that is empty.
fn path(request: &RequestEntry, name: &str) -> String {
    let method = match request.verb.as_str() {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        _ => "GET",
    };
    let parts = [&*request.kind.resource, name, request.subresource];
    let path: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{method} {}", path.join("/"))
}

/// At how many heights the names of lanes must stand, two or more, so that none covers another.
fn heights(lanes: &[String], gap: i32) -> i32 {
    let fits = |heights: &i32| {
        let apart = lanes.iter().zip(lanes.iter().skip(*heights as usize));
        apart.map(|(left, right)| (head_width(left) + head_width(right)) / 2).all(|width| width <= gap * heights)
    };
    (2..=lanes.len().max(2) as i32).find(fits).unwrap_or(2)
}

fn head_width(name: &str) -> i32 {
    text_width(name, 12) + 12
}

/// The name of a lane, those of neighbours at different heights, and its line.
fn head(sheet: &Sheet<'_>, x: i32, name: &str, height: i32, bottom: i32) -> Drawn {
    let (y, width) = (46 + HEAD * height, head_width(name));
    let left = (x - width / 2).min(WIDTH as i32 - 6 - width);
    sheet.draw(&PathElement::new(vec![(x, y + 10), (x, bottom + 6)], GRID))?;
    sheet.draw(&Rectangle::new([(left, y - 9), (left + width, y + 9)], WHITE.filled()))?;
    sheet.draw(&Rectangle::new([(left, y - 9), (left + width, y + 9)], FAINT.stroke_width(1)))?;
    let label = anchored(12, &INK, HPos::Center, VPos::Center);
    sheet.draw(&Text::new(name.to_owned(), (left + width / 2, y), label))
}

fn draw_step(sheet: &Sheet<'_>, story: &Story, step: &Step, x: i32, y: i32, japanese: bool) -> Drawn {
    if !matches!(step.deed, Deed::Watches | Deed::Hears) {
        let moment = format!("+{:.3}s", step.at.since(story.start).as_secs_f64());
        sheet.draw(&Text::new(moment, (8, y), anchored(11, &FAINT, HPos::Left, VPos::Center)))?;
    }
    let label = |sheet: &Sheet<'_>, from: i32, to: i32, color: &RGBColor| -> Drawn {
        let text = shortened(&words(step), usize::try_from((to - from).abs() / 7).unwrap_or(0).max(8));
        let (middle, half) = ((from + to) / 2, text_width(&text, 11) / 2 + 2);
        sheet.draw(&Rectangle::new([(middle - half, y - 16), (middle + half, y - 3)], WHITE.mix(0.85).filled()))?;
        sheet.draw(&Text::new(text, (middle, y - 9), anchored(11, color, HPos::Center, VPos::Center)))
    };
    match &step.deed {
        Deed::Watches => {
            arrow(sheet, (x - 4, y), (APISERVER, y), HEARS, false)?;
            label(sheet, APISERVER, x, &HEARS)
        }
        Deed::Hears => {
            arrow(sheet, (APISERVER, y), (x - 4, y), HEARS, true)?;
            label(sheet, APISERVER, x, &HEARS)
        }
        Deed::Asks(revision) => {
            arrow(sheet, (x - 4, y), (APISERVER, y), ASKS, false)?;
            label(sheet, APISERVER, x, &INK)?;
            arrow(sheet, (APISERVER, y), (ETCD, y), FAINT, false)?;
            let middle = (ETCD + APISERVER) / 2;
            let style = anchored(11, &FAINT, HPos::Center, VPos::Center);
            sheet.draw(&Text::new(format!("rev {revision}"), (middle, y - 9), style))
        }
        Deed::Refused(code) => {
            arrow(sheet, (x - 4, y), (APISERVER, y), FAULT, false)?;
            label(sheet, APISERVER, x, &FAULT)?;
            let style = anchored(12, &FAULT, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(format!("× {code}"), (APISERVER - 6, y), style))
        }
        Deed::Calls => {
            let runtime = if japanese { "ランタイム" } else { "runtime" };
            beside(sheet, (x, y), &format!("→ {runtime}: {}", words(step)))
        }
        Deed::Acts => beside(sheet, (x, y), &words(step)),
    }
}

/// What a component does on its own machine: a card at its lane.
fn beside(sheet: &Sheet<'_>, (x, y): (i32, i32), text: &str) -> Drawn {
    let width = text_width(text, 11) + 12;
    let left = (x - width / 2).min(WIDTH as i32 - 6 - width);
    sheet.draw(&Rectangle::new([(left, y - 9), (left + width, y + 9)], WHITE.filled()))?;
    sheet.draw(&Rectangle::new([(left, y - 9), (left + width, y + 9)], INK.stroke_width(1)))?;
    let label = anchored(11, &INK, HPos::Center, VPos::Center);
    sheet.draw(&Text::new(text.to_owned(), (left + width / 2, y), label))
}

fn words(step: &Step) -> String {
    match (&step.deed, step.count) {
        (Deed::Watches, _) => format!("WATCH {}", step.what),
        (_, 1) => step.what.clone(),
        (_, count) => format!("{} ×{count}", step.family),
    }
}

fn legend(sheet: &Sheet<'_>, y: i32, japanese: bool, has_runtime: bool) -> Drawn {
    let texts = match japanese {
        true => ["接続して頼む", "開いたままの watch を通って届く知らせ", "watch（受け取る側が開いた接続）"],
        false => ["connects and asks", "hears along a watch that it has open", "a watch: opened by who hears"],
    };
    let mut x = 20;
    for (index, text) in texts.into_iter().enumerate() {
        match index {
            0 => arrow(sheet, (x + 40, y), (x, y), ASKS, false)?,
            1 => arrow(sheet, (x, y), (x + 40, y), HEARS, true)?,
            _ => sheet.draw(&Rectangle::new([(x + 16, y - 9), (x + 24, y + 9)], HEARS.mix(0.35).filled()))?,
        }
        sheet.draw(&Text::new(text, (x + 48, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 48 + text_width(text, 12) + 20;
    }
    let note = match (japanese, has_runtime) {
        (true, true) => {
            "枠: そのノードの中で行うこと（kubelet はコンテナランタイムを呼ぶ）。kube-apiserver から始まる接続は etcd へのものだけ"
        }
        (true, false) => "kube-apiserver から始まる接続は etcd へのものだけ",
        (false, true) => {
            "framed: what is done on its own machine (a kubelet calls its runtime); the apiserver connects to etcd alone"
        }
        (false, false) => "the kube-apiserver opens connections to etcd alone",
    };
    sheet.draw(&Text::new(note, (20, y + 22), anchored(12, &FAINT, HPos::Left, VPos::Center)))
}

fn alt(context: &Context<'_>, story: &Story) -> String {
    let asked = story.steps.iter().filter(|step| matches!(step.deed, Deed::Asks(_) | Deed::Refused(_)));
    let asked: usize = asked.map(|step| step.count).sum();
    let (subject, lanes) = (&context.subject, story.lanes.join(if context.japanese { "、" } else { ", " }));
    match context.japanese {
        true => format!("{subject} について {lanes} が kube-apiserver に接続して{asked}回頼んだ。逆向きの接続は0本。"),
        false => format!(
            "For {subject}, {lanes} connected to the kube-apiserver and asked {asked} times; it connected to none of them."
        ),
    }
}

fn table(context: &Context<'_>, story: &Story) -> Table {
    let columns = match context.japanese {
        true => ["時刻", "だれが", "何を", "内容", "結果"],
        false => ["AFTER", "WHO", "DOES", "WHAT", "OUTCOME"],
    };
    let row = |step: &Step| {
        let (does, outcome) = match (&step.deed, context.japanese) {
            (Deed::Watches, true) => ("watch を開く", String::new()),
            (Deed::Watches, false) => ("opens a watch", String::new()),
            (Deed::Hears, true) => ("知らせを聞く", String::new()),
            (Deed::Hears, false) => ("hears", String::new()),
            (Deed::Asks(revision), true) => ("頼む", format!("リビジョン {revision}")),
            (Deed::Asks(revision), false) => ("asks", format!("revision {revision}")),
            (Deed::Refused(code), true) => ("頼む", format!("× {code}")),
            (Deed::Refused(code), false) => ("asks", format!("× {code}")),
            (Deed::Calls, true) => ("ランタイムを呼ぶ", String::new()),
            (Deed::Calls, false) => ("calls its runtime", String::new()),
            (Deed::Acts, true) => ("書く", String::new()),
            (Deed::Acts, false) => ("writes", String::new()),
        };
        let after = match step.deed {
            Deed::Watches | Deed::Hears => "-".to_owned(),
            _ => format!("+{:.3}s", step.at.since(story.start).as_secs_f64()),
        };
        vec![after, story.lanes[step.lane].clone(), does.to_owned(), words(step), outcome]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: story.steps.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::heights;
    use crate::controls::testing::{run, session};

    #[test]
    fn names_stand_at_as_many_heights_as_keep_them_apart() {
        let lanes = ["kubectl", "endpointslice-controller", "endpoints-controller", "kubelet"].map(str::to_owned);
        assert_eq!([200, 80, 40].map(|gap| heights(&lanes, gap)), [2, 2, 3]);
        assert_eq!(heights(&lanes[..1], 430), 2);
    }

    #[test]
    fn arrows_start_at_who_opened_the_connection() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        let told = run(&mut session, "%plot sequence deployment/web");
        assert!(told.contains("it connected to none of them."), "{told}");
        assert!(!told.lines().any(|line| line.split("   ").nth(1) == Some("kube-apiserver")), "{told}");
        insta::assert_snapshot!(told);
        insta::assert_snapshot!(run(&mut session, "%lang ja\n%plot sequence deployment/web"));
        assert!(run(&mut session, "%plot sequence").starts_with("PlotError: "));
    }
}
