//! `--watch`: what there is, and then what happens to it, until it is interrupted.

use cluster_core::apiserver::table::Table;
use cluster_core::watch::EventType;
use serde_json::{Value, json};

use super::super::super::columns::Aligner;
use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::output::{Format, json_line, json_text, without_managed_fields};
use super::super::super::resources::Item;
use super::super::super::verb::Call;
use super::tables::Look;
use super::{Wanted, failed, request, sorting};
use crate::yaml;

pub fn watch(call: &mut Call<'_, '_>, wanted: Vec<Wanted>) -> Outcome {
    if wanted.windows(2).any(|pair| pair[0].kind != pair[1].kind) {
        return message("you may only specify a single resource type");
    }
    let [wanted] = wanted.as_slice() else {
        return message(format!(
            "watch is only supported on individual resources and resource collections - {} resources were found",
            wanted.len()
        ));
    };
    let only = call.parsed.switch("watch-only");
    if call.parsed.has("sort-by") {
        let what = match call.parsed.switch("watch") {
            true => "--watch requested, --sort-by will be ignored for watch events received",
            false => "--watch-only requested, --sort-by will be ignored",
        };
        call.context.error_line(format!("warning: {what}"));
    }
    let mut printer = Printer {
        format: call.table_format()?,
        look: Look::of(call, call.parsed.text("output") == Some("wide")),
        events: call.parsed.switch("output-watch-events"),
        managers: call.parsed.switch("show-managed-fields"),
        aligner: Aligner::default(),
        printed: 0,
    };
    let sort_by = sorting::path(call).ok().flatten();
    let request = request(call, wanted)?;
    call.deprecated(&wanted.kind);
    let mut failure = None;
    let outcome = call.context.with_output(|api, write| {
        api.watch(request, &mut |event, mut table: Table| {
            if event.is_none() && only || failure.is_some() {
                return;
            }
            if event.is_none()
                && let Some(path) = &sort_by
                && sorting::sort_rows(path, &mut table.rows).is_err()
            {
                return;
            }
            match printer.text(event, &table) {
                Ok(text) => write(&text),
                Err(problem) => failure = Some(problem),
            }
        })
    });
    match (outcome, failure) {
        (_, Some(failure)) => Err(failure),
        (Err(status), None) => failed(call, wanted, status.into()).map_or(Ok(()), Err),
        (Ok(()), None) => Ok(()),
    }
}

/// Prints one table after the other: a header only once, columns no narrower than they have been.
struct Printer {
    format: Format,
    look: Look,
    /// What has happened is printed, too.
    events: bool,
    managers: bool,
    aligner: Aligner,
    printed: usize,
}

impl Printer {
    fn text(&mut self, event: Option<EventType>, table: &Table) -> Result<String, Failure> {
        let event = event.unwrap_or(EventType::Added);
        if matches!(self.format, Format::Human) {
            return Ok(self.rows(event, table));
        }
        table.rows.iter().map(|row| self.object(event, table, row.object.to_json())).collect()
    }

    fn rows(&mut self, event: EventType, table: &Table) -> String {
        let mut lines = Vec::new();
        let first = |text: &str| self.events.then(|| text.to_owned());
        if self.printed == 0 && self.look.headers && !table.rows.is_empty() {
            let header = self.look.header(&table.kind, &table.columns);
            lines.push(first("EVENT").into_iter().chain(header).collect::<Vec<String>>());
        }
        for row in &table.rows {
            let cells = self.look.row(&table.kind, &table.columns, row);
            lines.push(first(&format!("{:8}", event.as_str())).into_iter().chain(cells).collect());
        }
        self.printed += table.rows.len();
        self.aligner.align(&lines)
    }

    fn object(&mut self, event: EventType, table: &Table, value: Value) -> Result<String, Failure> {
        let value = if self.managers { value } else { without_managed_fields(value) };
        self.printed += 1;
        let shown = match self.events {
            true => json!({"type": event.as_str(), "object": value}),
            false => value.clone(),
        };
        Ok(match &self.format {
            Format::Name => format!("{}\n", Item::new(&table.kind, value).title()),
            Format::Json if self.events => {
                format!("{{\"type\":\"{}\",\"object\":{}}}\n", event.as_str(), json_line(&value))
            }
            Format::Json => json_text(&shown, "    ") + "\n",
            Format::Yaml => {
                let mark = if self.printed > 1 { "---\n" } else { "" };
                format!("{mark}{}", yaml::print(&shown))
            }
            Format::Kyaml => super::super::super::kyaml::document(&shown),
            Format::JsonPath(template) => template.execute(&shown).map_err(Failure::Message)?,
            Format::JsonPathAsJson(template) => template.execute_as_json(&shown).map_err(Failure::Message)?,
            Format::GoTemplate(template) => match template.execute(&shown) {
                (text, Ok(())) => text,
                (_, Err(problem)) => {
                    return message(format!("error executing template {:?}: {problem}", template.source));
                }
            },
            Format::CustomColumns(columns) => {
                let lines = columns.lines(std::slice::from_ref(&shown), self.printed == 1)?;
                self.aligner.align(&lines)
            }
            Format::Human => String::new(),
        })
    }
}
