//! Picture 5, packing: for each node what its pods have requested of what it offers, pods that wait for a node, and what
//! the scheduler found of each node when it last looked for a place.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/>

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cluster_core::api::object::Object;
use cluster_core::api::{Key, Name, quantity};
use cluster_core::quota;
use cluster_core::scheduler::{NodeVerdict, Verdict};
use k8s_openapi::api::core::v1::{Node, Pod};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, FAULT, GRID, INK, RIGHT, Sheet, WIDTH, anchored, draw, style, text_width};
use super::gantt::shortened;
use super::lives::Subject;
use super::revisions::color;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const TOP: i32 = 46;
/// A node: two bars and the space below.
const NODE: i32 = 58;
const BAR: i32 = 20;
const LEFT: i32 = 150;
/// The amounts stand to the right of the bars.
const BARS_END: i32 = WIDTH as i32 - RIGHT - 190;
const CHIP: i32 = 24;
const LINE: i32 = 20;
const NODES_MAX: usize = 12;
const CHIPS_MAX: usize = 10;
const LINES_MAX: usize = 8;

const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// A pod and what it requests: thousandths of a CPU, and bytes.
struct Block {
    pod: Key,
    /// The index of its colour: pods of one owner share it.
    owner: usize,
    requests: [i64; 2],
}

struct Shelf {
    node: Name,
    allocatable: [i64; 2],
    blocks: Vec<Block>,
    /// Bytes of memory that its containers use.
    memory_used: Option<u64>,
    /// Cordoned or not ready.
    closed: bool,
}

struct Shop {
    shelves: Vec<Shelf>,
    pending: Vec<Block>,
    /// The pod of which the scheduler's findings are told.
    judged: Option<(Key, Verdict)>,
}

impl Shelf {
    fn requested(&self, resource: usize) -> i64 {
        self.blocks.iter().map(|block| block.requests[resource]).sum()
    }
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let shop = shop(context);
    if shop.shelves.is_empty() {
        return Err(match context.japanese {
            true => "ノードがまだありません".into(),
            false => "there are no nodes yet".into(),
        });
    }
    let alt = alt(context, &shop);
    let verdict = shop.judged.as_ref().map(|(_, verdict)| verdict_table(verdict, context.japanese));
    let lines = verdict.as_ref().map_or(0, |table| table.rows.len().min(LINES_MAX) + 1) as i32;
    let tray = TOP + NODE * shop.shelves.len() as i32 + 8;
    let findings = tray + 22 + CHIP * i32::from(!shop.pending.is_empty());
    let bottom = findings + LINE * lines + 12;
    let svg = draw((bottom + 24) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => "ノードの詰まり具合: 要求（requests）と割り当て可能量",
            false => "Packing: requests over what each node offers",
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        let most = |resource: usize| shop.shelves.iter().map(|shelf| shelf.allocatable[resource]).max().unwrap_or(1);
        for (index, shelf) in shop.shelves.iter().enumerate() {
            draw_shelf(sheet, context, shelf, TOP + NODE * index as i32, [most(0), most(1)])?;
        }
        draw_tray(sheet, context, &shop, tray)?;
        if let (Some((pod, _)), Some(table)) = (&shop.judged, &verdict) {
            let words = match context.japanese {
                true => format!("スケジューラーの判定: pod/{}", pod.name),
                false => format!("what the scheduler found for pod/{}", pod.name),
            };
            sheet.draw(&Text::new(words, (12, findings + 4), style(13, &FAINT)))?;
            for (index, row) in table.rows.iter().take(LINES_MAX).enumerate() {
                let y = findings + 4 + LINE * (index as i32 + 1);
                for (x, cell) in [20, LEFT, LEFT + 110].into_iter().zip(row) {
                    sheet.draw(&Text::new(cut(cell, 92), (x, y), style(12, &INK)))?;
                }
            }
        }
        legend(sheet, context.japanese, bottom + 8)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &shop) })
}

/// The nodes and pods that the writes have left.
fn shop(context: &Context<'_>) -> Shop {
    let mut nodes: BTreeMap<&Key, &Object> = BTreeMap::new();
    let mut pods: BTreeMap<&Key, &Object> = BTreeMap::new();
    for (_, write) in context.trace.writes() {
        let known = match &*write.kind.kind {
            "Node" => &mut nodes,
            "Pod" => &mut pods,
            _ => continue,
        };
        match &write.after {
            Some(after) => known.insert(&write.key, after),
            None => known.remove(&write.key),
        };
    }
    let shelf = |node: &&Object| {
        let allocatable = node.status::<Node>().allocatable.clone().unwrap_or_default();
        let ready = node.status::<Node>().conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
        Shelf {
            node: node.key.name.clone(),
            allocatable: amounts(&allocatable),
            blocks: Vec::new(),
            memory_used: context.memory_bytes.get(&node.key.name).copied(),
            closed: !ready || node.spec::<Node>().unschedulable == Some(true),
        }
    };
    let mut shelves: Vec<Shelf> = nodes.values().map(shelf).collect();
    let (mut owners, mut pending) = (Vec::new(), Vec::new());
    for (key, pod) in pods {
        if matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed")) {
            continue;
        }
        let name = pod.controller().map_or_else(|| key.name.to_string(), |owner| owner.name.clone());
        let owner = owners.iter().position(|known| *known == name).unwrap_or_else(|| {
            owners.push(name);
            owners.len() - 1
        });
        let block = Block { pod: key.clone(), owner, requests: amounts(&quota::usage(pod)) };
        match pod.spec::<Pod>().node_name.as_deref() {
            None => pending.push(block),
            Some(node) => {
                if let Some(shelf) = shelves.iter_mut().find(|shelf| *shelf.node == *node) {
                    shelf.blocks.push(block);
                }
            }
        }
    }
    shelves.truncate(NODES_MAX);
    let judged = judged(context, &pending);
    Shop { shelves, pending, judged }
}

fn amounts(quantities: &quota::Amounts) -> [i64; 2] {
    [quantities.get(RESOURCES[0]).map_or(0, quantity::millis), quantities.get(RESOURCES[1]).map_or(0, quantity::units)]
}

/// The pod that is named, or the first that waits, or the one that got a node last.
fn judged(context: &Context<'_>, pending: &[Block]) -> Option<(Key, Verdict)> {
    let bound = context.trace.writes().rev().filter(|(_, write)| write.subresource == "binding");
    let pods = pending.iter().map(|block| &block.pod).chain(bound.map(|(_, write)| &write.key));
    let is_meant = |pod: &&Key| match &context.subject {
        Subject::Pod(name) | Subject::Workload { name, .. } => pod.name.starts_with(name.as_str()),
        _ => true,
    };
    let verdict = |pod: &Key| {
        let verdict = context.scheduler.verdict(pod).filter(|verdict| !verdict.nodes.is_empty())?;
        Some((pod.clone(), verdict))
    };
    pods.filter(is_meant).find_map(verdict)
}

fn draw_shelf(sheet: &Sheet<'_>, context: &Context<'_>, shelf: &Shelf, y: i32, most: [i64; 2]) -> Drawn {
    let color_of_name = if shelf.closed { &FAULT } else { &INK };
    let name = anchored(13, color_of_name, HPos::Left, VPos::Center);
    sheet.draw(&Text::new(shortened(&shelf.node, 14), (12, y + BAR), name))?;
    for (resource, label) in RESOURCES.into_iter().enumerate() {
        let y = y + (BAR + 4) * resource as i32;
        let name = anchored(11, &FAINT, HPos::Right, VPos::Center);
        sheet.draw(&Text::new(label, (LEFT - 8, y + BAR / 2), name))?;
        let width = |amount: i64| {
            let share = amount as f64 / most[resource].max(1) as f64;
            (share * f64::from(BARS_END - LEFT)).round() as i32
        };
        let end = LEFT + width(shelf.allocatable[resource]);
        sheet.draw(&Rectangle::new([(LEFT, y), (end, y + BAR)], GRID.mix(0.5).filled()))?;
        let mut filled = 0;
        for block in shelf.blocks.iter().filter(|block| block.requests[resource] > 0) {
            let from = LEFT + width(filled);
            filled += block.requests[resource];
            let to = (LEFT + width(filled)).max(from + 1);
            let place = [(from, y), (to, y + BAR)];
            sheet.draw(&Rectangle::new(place, color(block.owner).filled()))?;
            sheet.draw(&Rectangle::new(place, WHITE.stroke_width(1)))?;
            let name = last_letters(&block.pod.name, (to - from - 6) / 7);
            let label = anchored(11, &WHITE, HPos::Left, VPos::Center);
            sheet.draw(&Text::new(name, (from + 4, y + BAR / 2), label))?;
        }
        sheet.draw(&Rectangle::new([(LEFT, y), (end, y + BAR)], FAINT.stroke_width(1)))?;
        if let Some(used) = shelf.memory_used.filter(|used| resource == 1 && *used > 0) {
            let to = LEFT + width(i64::try_from(used).unwrap_or(i64::MAX)).max(2);
            ghost(sheet, LEFT, to, y)?;
        }
        let told = told(context, shelf, resource);
        let style = anchored(11, &INK, HPos::Left, VPos::Center);
        sheet.draw(&Text::new(told, (BARS_END + 8, y + BAR / 2), style))?;
    }
    Ok(())
}

/// A dashed outline: what is in use, requested or not.
fn ghost(sheet: &Sheet<'_>, from: i32, to: i32, y: i32) -> Drawn {
    for x in (from..to).step_by(7) {
        let end = (x + 4).min(to);
        for edge in [y + 3, y + BAR - 3] {
            sheet.draw(&PathElement::new(vec![(x, edge), (end, edge)], INK.stroke_width(1)))?;
        }
    }
    sheet.draw(&PathElement::new(vec![(to, y + 3), (to, y + BAR - 3)], INK.stroke_width(2)))
}

/// The end of a name, which tells a pod from its siblings, as far as there is room.
fn last_letters(name: &str, room: i32) -> String {
    match usize::try_from(room).unwrap_or(0) {
        0..4 => String::new(),
        room => shortened(name, room),
    }
}

fn draw_tray(sheet: &Sheet<'_>, context: &Context<'_>, shop: &Shop, y: i32) -> Drawn {
    let words = match (shop.pending.is_empty(), context.japanese) {
        (true, true) => "ノードを待つ Pod: なし",
        (true, false) => "no pod waits for a node",
        (false, true) => "ノードを待つ Pod",
        (false, false) => "pods that wait for a node",
    };
    sheet.draw(&Text::new(words, (12, y), style(13, &FAINT)))?;
    let mut x = 20;
    for block in shop.pending.iter().take(CHIPS_MAX) {
        let text = format!("{} {} / {}", block.pod.name, cpu(block.requests[0]), memory(block.requests[1]));
        let width = text_width(&text, 12) + 14;
        if x + width > WIDTH as i32 - RIGHT {
            break;
        }
        let place = [(x, y + 20), (x + width, y + 20 + CHIP - 4)];
        sheet.draw(&Rectangle::new(place, color(block.owner).stroke_width(2)))?;
        let label = anchored(12, &INK, HPos::Center, VPos::Center);
        sheet.draw(&Text::new(text, (x + width / 2, y + 20 + CHIP / 2 - 2), label))?;
        x += width + 8;
    }
    Ok(())
}

fn legend(sheet: &Sheet<'_>, japanese: bool, y: i32) -> Drawn {
    let words = match japanese {
        true => {
            "塗り: Pod の要求（色は持ち主）　破線: 使用中のメモリ　枠: 割り当て可能量　赤い名前: 新しい Pod を受け取らないノード"
        }
        false => {
            "filled: requests of a pod (colour: its owner); dashed: memory in use; frame: allocatable; red name: takes no new pods"
        }
    };
    sheet.draw(&Text::new(words, (12, y), anchored(11, &FAINT, HPos::Left, VPos::Center)))
}

/// Of each node that was looked at: refused or its points, those with the most points first.
pub fn verdict_table(verdict: &Verdict, japanese: bool) -> Table {
    let say = |ja: &str, en: &str| if japanese { ja.to_owned() } else { en.to_owned() };
    let mut nodes: Vec<_> = verdict.nodes.iter().collect();
    nodes.sort_by_key(|(node, found)| match found {
        NodeVerdict::Passed { total, .. } => (Reverse(*total), verdict.outcome.as_ref() != Ok(node)),
        NodeVerdict::Rejected { .. } => (Reverse(-1), true),
    });
    let is_only = nodes.iter().filter(|(_, found)| matches!(found, NodeVerdict::Passed { .. })).count() == 1;
    let row = |(node, found): &(Name, NodeVerdict)| {
        let (result, why) = match found {
            NodeVerdict::Rejected { plugin, reasons } => {
                (say("除外", "refused"), format!("{plugin}: {}", reasons.join(", ")))
            }
            NodeVerdict::Passed { points, total } => {
                let chosen = verdict.outcome.as_ref() == Ok(node);
                let word = if chosen { say("採用", "chosen") } else { say("通過", "passed") };
                let given = points.iter().filter(|(_, points)| *points != 0);
                let given: Vec<String> = given.map(|(plugin, points)| format!("{plugin} {points}")).collect();
                let only =
                    || say("残ったのはこのノードだけなので採点しない", "the only one left, so nothing is scored");
                (format!("{word} {total}"), if is_only { only() } else { given.join(", ") })
            }
        };
        vec![node.to_string(), result, why]
    };
    Table {
        columns: vec![say("ノード", "NODE"), say("判定", "RESULT"), say("プラグイン", "PLUGINS")],
        rows: nodes.into_iter().map(row).collect(),
    }
}

fn alt(context: &Context<'_>, shop: &Shop) -> String {
    let pods: usize = shop.shelves.iter().map(|shelf| shelf.blocks.len()).sum();
    let (nodes, pending) = (shop.shelves.len(), shop.pending.len());
    match context.japanese {
        true => format!("{nodes}台のノードに{pods}個の Pod が載り、{pending}個がノードを待っている。"),
        false => format!("Pods on {nodes} nodes: {pods}; waiting for a node: {pending}."),
    }
}

/// A row a node, then one for each pod that waits.
fn table(context: &Context<'_>, shop: &Shop) -> Table {
    let mut columns = match context.japanese {
        true => ["ノード", "Pod", "cpu", "memory"].map(str::to_owned).to_vec(),
        false => ["NODE", "PODS", "CPU", "MEMORY"].map(str::to_owned).to_vec(),
    };
    let verdict = shop.judged.as_ref().map(|(_, verdict)| verdict_table(verdict, context.japanese));
    if let (Some((pod, _)), Some(verdict)) = (&shop.judged, &verdict) {
        columns.push(format!("{} (pod/{})", verdict.columns[1], pod.name));
        columns.push(verdict.columns[2].clone());
    }
    let found = |node: &str| {
        let rows = verdict.iter().flat_map(|table| &table.rows);
        let row = rows.into_iter().find(|row| row[0] == node);
        row.map_or_else(|| vec!["-".to_owned(); 2], |row| row[1..].to_vec())
    };
    let on_node = |shelf: &Shelf| {
        let count = shelf.blocks.len().to_string();
        let amounts = [told(context, shelf, 0), told(context, shelf, 1)];
        let found = if verdict.is_some() { found(&shelf.node) } else { Vec::new() };
        [shelf.node.to_string(), count].into_iter().chain(amounts).chain(found).collect()
    };
    let waiting = |block: &Block| {
        let (cpu, memory) = (cpu(block.requests[0]), memory(block.requests[1]));
        vec!["-".to_owned(), format!("pod/{}", block.pod.name), cpu, memory]
    };
    Table { columns, rows: shop.shelves.iter().map(on_node).chain(shop.pending.iter().map(waiting)).collect() }
}

/// `350m / 4`; of memory also what is in use.
fn told(context: &Context<'_>, shelf: &Shelf, resource: usize) -> String {
    let show = if resource == 0 { cpu } else { memory };
    let text = format!("{} / {}", show(shelf.requested(resource)), show(shelf.allocatable[resource]));
    match shelf.memory_used.filter(|_| resource == 1) {
        Some(used) => {
            let used = memory(i64::try_from(used).unwrap_or(i64::MAX));
            if context.japanese { format!("{text}（使用 {used}）") } else { format!("{text} ({used} used)") }
        }
        None => text,
    }
}

fn cpu(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

fn memory(bytes: i64) -> String {
    const GIB: f64 = (1_i64 << 30) as f64;
    match bytes as f64 / GIB {
        0.0 => "0".to_owned(),
        gib if gib >= 1.0 => format!("{}Gi", (gib * 10.0).round() / 10.0),
        gib => format!("{}Mi", (gib * 1024.0).ceil()),
    }
}

fn cut(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn requests_stand_on_their_nodes_and_what_waits_beside_them() {
        let mut session = session();
        let pod = |name: &str, cpu: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - name: a\n    image: nginx\n    \
                 resources: {{requests: {{cpu: {cpu}, memory: 64Mi}}}}\n"
            )
        };
        run(&mut session, "kubectl cordon node-3");
        run(&mut session, &pod("small", "500m"));
        run(&mut session, &pod("huge", "100"));
        insta::assert_snapshot!(run(&mut session, "%plot packing"));
        insta::assert_snapshot!(run(&mut session, "%lang ja\n%plot packing pod/small"));
    }
}
