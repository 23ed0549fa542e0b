//! Objects in rows, as people read them.

use cluster_core::api::kind::KindRef;
use cluster_core::apiserver::table::{Column, Row, Table, human_duration};
use cluster_core::clock::Time;
use serde_json::Value;

use super::super::super::columns::Aligner;
use super::super::super::failure::{Outcome, all_of, message};
use super::super::super::jsonpath;
use super::super::super::verb::Call;
use super::{Wanted, failed, request, sorting};

/// Which columns a table has beside those of the server, and whether it has a header.
pub struct Look {
    pub wide: bool,
    pub headers: bool,
    pub with_kind: bool,
    pub with_namespace: bool,
    labels: Vec<String>,
    all_labels: bool,
}

impl Look {
    pub fn of(call: &Call<'_, '_>, wide: bool) -> Look {
        Look {
            wide,
            headers: !call.parsed.switch("no-headers"),
            with_kind: call.parsed.switch("show-kind"),
            with_namespace: call.parsed.switch("all-namespaces"),
            labels: call.parsed.list("label-columns").map(str::to_owned).collect(),
            all_labels: call.parsed.switch("show-labels"),
        }
    }

    fn shown<'c>(&self, columns: &'c [Column]) -> impl Iterator<Item = (usize, &'c Column)> {
        let wide = self.wide;
        columns.iter().enumerate().filter(move |(_, column)| wide || column.priority == 0)
    }

    pub fn header(&self, kind: &KindRef, columns: &[Column]) -> Vec<String> {
        let mut header: Vec<String> = Vec::new();
        header.extend((self.with_namespace && kind.namespaced).then(|| "NAMESPACE".to_owned()));
        header.extend(self.shown(columns).map(|(_, column)| column.name.to_uppercase()));
        header.extend(self.labels.iter().map(|label| label.rsplit('/').next().unwrap_or(label).to_uppercase()));
        header.extend(self.all_labels.then(|| "LABELS".to_owned()));
        header
    }

    pub fn row(&self, kind: &KindRef, columns: &[Column], row: &Row) -> Vec<String> {
        let object = &row.object;
        let mut line: Vec<String> = Vec::new();
        line.extend((self.with_namespace && kind.namespaced).then(|| object.key.namespace.to_string()));
        let name = columns.iter().position(|column| column.format == "name" && column.type_ == "string");
        for (place, _) in self.shown(columns) {
            let cell = row.cells.get(place).map(cell_text).unwrap_or_default();
            line.push(if self.with_kind && name == Some(place) { kind.qualified_name(&cell) } else { cell });
        }
        line.extend(self.labels.iter().map(|label| object.label(label).unwrap_or_default().to_owned()));
        if self.all_labels {
            let labels = object.metadata().labels.iter().flatten();
            let pairs: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
            line.push(if pairs.is_empty() { "<none>".into() } else { pairs.join(",") });
        }
        line
    }
}

/// A cell in one line.
fn cell_text(cell: &Value) -> String {
    let text = match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => jsonpath::go_text(other),
    };
    match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A table as kubectl makes it of what every object has.
fn plain(table: Table, now: Time) -> Table {
    let column = |name: &str, format: &str| Column {
        name: name.into(),
        type_: "string".into(),
        format: format.into(),
        description: String::new(),
        priority: 0,
    };
    let row = |row: Row| {
        let created = row.object.metadata().creation_timestamp.as_ref().map(Time::from);
        let age = created.map_or_else(|| "<unknown>".into(), |created| human_duration(now.since(created)));
        Row { cells: vec![row.object.key.name.to_string().into(), age.into()], ..row }
    };
    let rows = table.rows.into_iter().map(row).collect();
    Table { columns: vec![column("Name", "name"), column("Age", "")], rows, ..table }
}

pub fn print(call: &mut Call<'_, '_>, wanted: &[Wanted], wide: bool) -> Outcome {
    let mut tables: Vec<Table> = Vec::new();
    let mut failures = Vec::new();
    for wanted in wanted {
        let request = request(call, wanted)?;
        match call.context.api.table(request) {
            Ok(table) => {
                call.deprecated(&wanted.kind);
                let table = Table { kind: wanted.kind.clone(), ..table };
                let is_server = call.parsed.switch_or_on("server-print");
                tables.push(if is_server { table } else { plain(table, call.context.api.now()) });
            }
            Err(status) => failures.extend(failed(call, wanted, status.into())),
        }
    }
    let mut look = Look::of(call, wide);
    look.with_kind |= tables.iter().any(|table| table.kind != tables[0].kind);
    sort(call, &mut tables)?;
    let mut text = String::new();
    for block in tables.chunk_by(|left, right| left.kind.resource == right.kind.resource) {
        let mut lines = Vec::new();
        for table in block.iter().filter(|table| !table.rows.is_empty()) {
            if look.headers && lines.is_empty() {
                lines.push(look.header(&table.kind, &table.columns));
            }
            lines.extend(table.rows.iter().map(|row| look.row(&table.kind, &table.columns, row)));
        }
        if look.headers && !text.is_empty() && !lines.is_empty() {
            text.push('\n');
        }
        text.push_str(&Aligner::default().align(&lines));
    }
    if text.is_empty() && failures.is_empty() && !call.parsed.switch("ignore-not-found") {
        let elsewhere = look.with_namespace || tables.iter().any(|table| !table.kind.namespaced);
        let place = if elsewhere { String::new() } else { format!(" in {} namespace.", call.namespace) };
        call.context.error_line(format!("No resources found{place}"));
    }
    call.context.print(text);
    all_of(failures)
}

/// Sorts the rows of a single table. kubectl looks for the field in the tables themselves if there are several, where it
/// is not; and a table that can't be sorted is not printed.
fn sort(call: &Call<'_, '_>, tables: &mut [Table]) -> Outcome {
    let Some(path) = call.parsed.text("sort-by").filter(|path| !path.is_empty()) else { return Ok(()) };
    let parsed = sorting::path(call);
    match tables {
        [] => Ok(()),
        [table] if table.rows.len() < 2 => Ok(()),
        [table] => {
            let sorted = parsed.and_then(|path| path.map_or(Ok(()), |path| sorting::sort_rows(&path, &mut table.rows)));
            if sorted.is_err() {
                table.rows.clear();
            }
            Ok(())
        }
        _ => {
            let source = parsed?.map_or(path.to_owned(), |path| path.source);
            message(format!("couldn't find any field with path {source:?} in the list of objects"))
        }
    }
}
