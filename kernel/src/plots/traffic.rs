//! Picture 7, traffic: a row for each client, a column for each pod of a Service, in the cells how many requests came
//! through; the heads say what the EndpointSlices say of the pods now.
//! <https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/>

use std::collections::BTreeMap;

use cluster_core::trace::{ConnectionEntry, What};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, FAULT, GRID, INK, Sheet, WIDTH, anchored, draw, style};
use super::gantt::shortened;
use super::lives::Subject;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
const ROW: i32 = 40;
const TOP: i32 = 104;
const LEFT: i32 = 150;
const COLUMN_WIDTH_MAX: i32 = 130;
const COLUMNS_MAX: usize = 8;
const FULL: RGBColor = RGBColor(0, 114, 178);

/// What the slices say of a pod.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Ready,
    NotReady,
    Serving,
    Terminating,
    Gone,
}

impl State {
    fn of(endpoint: &Endpoint) -> State {
        let conditions = endpoint.conditions.clone().unwrap_or_default();
        let is = |condition: Option<bool>, unsaid: bool| condition.unwrap_or(unsaid);
        match (is(conditions.ready, true), is(conditions.serving, true), is(conditions.terminating, false)) {
            (true, ..) => State::Ready,
            (_, true, true) => State::Serving,
            (_, false, true) => State::Terminating,
            _ => State::NotReady,
        }
    }

    fn words(self, japanese: bool) -> &'static str {
        match (self, japanese) {
            (State::Ready, _) => "Ready",
            (State::NotReady, true) => "未 Ready",
            (State::NotReady, false) => "not ready",
            (State::Serving, true) => "終了処理中（応答可）",
            (State::Serving, false) => "ending, serving",
            (State::Terminating, true) => "終了処理中",
            (State::Terminating, false) => "terminating",
            (State::Gone, true) => "名簿にない",
            (State::Gone, false) => "not listed",
        }
    }
}

struct Matrix {
    /// Pods with their state, in the order in which they were first listed or answered.
    pods: Vec<(String, State)>,
    /// Clients with their count a pod, and how many of their requests nobody answered.
    clients: Vec<(String, BTreeMap<String, usize>, usize)>,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let Subject::Workload { kind, name } = &context.subject else { return Err(expected(context.japanese)) };
    if !matches!(kind.as_str(), "Service" | "Services" | "Svc") {
        return Err(expected(context.japanese));
    }
    let matrix = matrix(context, name);
    if matrix.clients.is_empty() {
        return Err(match context.japanese {
            true => format!("{name} への通信はまだありません"),
            false => format!("there has been no traffic to {name} yet"),
        });
    }
    let table = table(context, &matrix);
    let alt = alt(context, name, &matrix);
    let most = matrix.clients.iter().flat_map(|(_, counts, _)| counts.values()).max().copied().unwrap_or(1);
    let columns = matrix.pods.len() as i32 + 1;
    let width = ((WIDTH as i32 - LEFT - 20) / columns).min(COLUMN_WIDTH_MAX);
    let bottom = TOP + ROW * matrix.clients.len() as i32;
    let svg = draw((bottom + 44) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("通信の行き先: service/{name}"),
            false => format!("Where traffic went: service/{name}"),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        for (index, (pod, state)) in matrix.pods.iter().enumerate() {
            let x = LEFT + width * index as i32 + width / 2;
            heading(sheet, x, last_part(pod, name), state.words(context.japanese), *state == State::Ready)?;
        }
        let x = LEFT + width * (columns - 1) + width / 2;
        heading(sheet, x, "×", if context.japanese { "届かず" } else { "failed" }, false)?;
        for (row, (client, counts, failed)) in matrix.clients.iter().enumerate() {
            let y = TOP + ROW * row as i32;
            let label = anchored(13, &INK, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(shortened(client, 20), (LEFT - 10, y + ROW / 2), label))?;
            for (index, (pod, _)) in matrix.pods.iter().enumerate() {
                let count = counts.get(pod).copied().unwrap_or(0);
                cell(sheet, (LEFT + width * index as i32, y), width, count, most)?;
            }
            failures(sheet, (LEFT + width * (columns - 1), y), width, *failed)?;
        }
        let words = match context.japanese {
            true => "数字: その Pod が答えた要求の数（濃いほど多い）。見出し: 名簿（EndpointSlice）のいまの記載",
            false => "numbers: requests that the pod answered (darker: more); heads: what the EndpointSlices say now",
        };
        sheet.draw(&Text::new(words, (20, bottom + 22), anchored(12, &FAINT, HPos::Left, VPos::Center)))
    })?;
    Ok(Picture { svg, html: None, alt, table })
}

fn expected(japanese: bool) -> String {
    match japanese {
        true => "どの Service への通信かを書いてください: %plot traffic service/web".into(),
        false => "say the traffic of which Service: %plot traffic service/web".into(),
    }
}

fn matrix(context: &Context<'_>, service: &str) -> Matrix {
    let mut pods: Vec<(String, State)> = Vec::new();
    let mut slices: BTreeMap<String, Vec<(String, State)>> = BTreeMap::new();
    for (_, write) in context.trace.writes().filter(|(_, write)| &*write.kind.kind == "EndpointSlice") {
        let slice = write.after.as_ref().filter(|slice| slice.label(SERVICE_NAME_LABEL) == Some(service));
        let endpoints = slice.into_iter().flat_map(|slice| slice.spec::<EndpointSlice>().endpoints.iter().flatten());
        let listed = endpoints.filter_map(|endpoint| {
            let pod = endpoint.target_ref.as_ref()?.name.clone()?;
            Some((pod, State::of(endpoint)))
        });
        slices.insert(write.key.to_string(), listed.collect());
    }
    let listed: Vec<(String, State)> = slices.into_values().flatten().collect();
    let mut clients: Vec<(String, BTreeMap<String, usize>, usize)> = Vec::new();
    for entry in context.trace.iter().filter(|entry| context.from.is_none_or(|from| entry.at >= from)) {
        let What::Connection(connection) = &entry.what else { continue };
        if !is_to(connection, service) {
            continue;
        }
        let index = clients.iter().position(|(client, ..)| *client == *connection.from).unwrap_or_else(|| {
            clients.push((connection.from.to_string(), BTreeMap::new(), 0));
            clients.len() - 1
        });
        match connection.backend.as_ref().filter(|_| connection.ok) {
            Some(pod) => {
                let pod = pod.name.to_string();
                if !listed.iter().chain(&pods).any(|(known, _)| *known == pod) {
                    pods.push((pod.clone(), State::Gone));
                }
                *clients[index].1.entry(pod).or_default() += 1;
            }
            None => clients[index].2 += 1,
        }
    }
    pods.extend(listed);
    pods.truncate(COLUMNS_MAX);
    clients.sort_by(|a, b| a.0.cmp(&b.0));
    Matrix { pods, clients }
}

fn is_to(connection: &ConnectionEntry, service: &str) -> bool {
    connection.service.as_ref().is_some_and(|key| &*key.name == service)
}

/// What tells a pod from its siblings: `web-6d4b-x7k2p` of Service `web` is `x7k2p`.
fn last_part<'a>(pod: &'a str, service: &str) -> &'a str {
    match pod.rsplit_once('-') {
        Some((front, last)) if front.starts_with(service) => last,
        _ => pod,
    }
}

fn heading(sheet: &Sheet<'_>, x: i32, name: &str, state: &str, ready: bool) -> Drawn {
    sheet.draw(&Text::new(shortened(name, 16), (x, 52), anchored(13, &INK, HPos::Center, VPos::Center)))?;
    let color = if ready { RGBColor(0, 120, 88) } else { FAULT };
    sheet.draw(&Text::new(state.to_owned(), (x, 74), anchored(11, &color, HPos::Center, VPos::Center)))?;
    let mark = [(x - 14, 88), (x + 14, 92)];
    match ready {
        true => sheet.draw(&Rectangle::new(mark, color.filled())),
        false => sheet.draw(&Rectangle::new(mark, color.stroke_width(1))),
    }
}

fn cell(sheet: &Sheet<'_>, (x, y): (i32, i32), width: i32, count: usize, most: usize) -> Drawn {
    let place = [(x + 2, y + 2), (x + width - 2, y + ROW - 2)];
    let share = count as f64 / most.max(1) as f64;
    sheet.draw(&Rectangle::new(place, FULL.mix(share * 0.6).filled()))?;
    sheet.draw(&Rectangle::new(place, GRID.stroke_width(1)))?;
    let middle = (x + width / 2, y + ROW / 2);
    sheet.draw(&Text::new(count.to_string(), middle, anchored(14, &INK, HPos::Center, VPos::Center)))
}

/// A cross a failure, three at most, and their number.
fn failures(sheet: &Sheet<'_>, (x, y): (i32, i32), width: i32, failed: usize) -> Drawn {
    let text = match failed {
        0 => "0".to_owned(),
        failed => format!("{} {failed}", "×".repeat(failed.min(3))),
    };
    let color = if failed == 0 { FAINT } else { FAULT };
    let middle = (x + width / 2, y + ROW / 2);
    sheet.draw(&Text::new(text, middle, anchored(14, &color, HPos::Center, VPos::Center)))
}

fn alt(context: &Context<'_>, service: &str, matrix: &Matrix) -> String {
    let answered: usize = matrix.clients.iter().flat_map(|(_, counts, _)| counts.values()).sum();
    let failed: usize = matrix.clients.iter().map(|(.., failed)| failed).sum();
    let pods = matrix.clients.iter().flat_map(|(_, counts, _)| counts.keys());
    let pods = pods.collect::<std::collections::BTreeSet<_>>().len();
    match context.japanese {
        true => format!("service/{service} への要求{answered}回に{pods}個の Pod が答え、{failed}回は届かなかった。"),
        false => format!("{answered} requests to service/{service} were answered by {pods} pods, {failed} failed."),
    }
}

fn table(context: &Context<'_>, matrix: &Matrix) -> Table {
    let (client, failed) = if context.japanese { ("どこから", "届かず") } else { ("FROM", "FAILED") };
    let heads = matrix.pods.iter().map(|(pod, state)| format!("{pod} ({})", state.words(context.japanese)));
    let row = |(client, counts, failed): &(String, BTreeMap<String, usize>, usize)| {
        let numbers = matrix.pods.iter().map(|(pod, _)| counts.get(pod).copied().unwrap_or(0).to_string());
        std::iter::once(client.clone()).chain(numbers).chain([failed.to_string()]).collect()
    };
    Table {
        columns: std::iter::once(client.to_owned()).chain(heads).chain([failed.to_owned()]).collect(),
        rows: matrix.clients.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn requests_are_counted_by_client_and_pod() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=my-app:1.0 --replicas=2");
        run(&mut session, "kubectl expose deployment web --port=80");
        run(&mut session, "%advance 5s");
        assert!(run(&mut session, "%plot traffic service/web").starts_with("PlotError: there has been no traffic"));
        let place = run(&mut session, "kubectl get service web -o jsonpath='{.spec.clusterIP}'");
        run(&mut session, &format!("node-1$ curl -s -H 'Connection: close' http://{place}/[1-40]"));
        let told = run(&mut session, "%plot traffic service/web");
        assert!(told.starts_with("40 requests to service/web were answered by 2 pods, 0 failed."), "{told}");
        assert!(told.contains("(Ready)"), "{told}");
        let counts: Vec<usize> =
            told.lines().last().unwrap().split("  ").filter_map(|n| n.trim().parse().ok()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 40, "{told}");
        run(&mut session, "kubectl scale deployment web --replicas=0");
        run(&mut session, &format!("node-2$ curl -s http://{place}/"));
        let told = run(&mut session, "%plot traffic service/web");
        assert!(told.contains("(not listed)") && told.lines().last().unwrap().ends_with('1'), "{told}");
        assert!(run(&mut session, "%plot traffic pod/web").starts_with("PlotError: say the traffic of which Service"));
    }
}
