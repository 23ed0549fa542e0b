//! Picture 10, field owners: a row for each field of an object, its revisions along the x axis, coloured by who manages
//! the field; a field of several managers is striped, and a cross stands where an apply was refused for it.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::api::field_set::{Path, path_text};
use cluster_core::api::object::Object;
use cluster_core::apiserver::managed;
use cluster_core::trace::{RequestEntry, What};
use plotters::element::PathElement as Polyline;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{FAINT, FAULT, GRID, INK, RIGHT, Sheet, WIDTH, anchored, draw, style, text_width};
use super::gantt::shortened;
use super::revisions::color;
use super::{Context, Picture, Table};

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const ROW: i32 = 22;
const ROWS_MAX: usize = 24;
const COLUMNS_MAX: usize = 14;
const TOP: i32 = 46;
/// Paths are long.
const LEFT: i32 = 330;
const CONFLICT: u16 = 409;

/// Indices of managers.
type Managers = BTreeSet<usize>;

/// A revision, or an apply that was refused.
struct Column {
    /// `None` for a refusal.
    revision: Option<u64>,
    /// Who asked.
    actor: String,
    /// The fields for which it was refused, as the API writes them.
    refused: Vec<String>,
}

struct Row {
    /// A field, or what several have in common.
    path: String,
    /// The fields themselves.
    fields: Vec<String>,
    /// Who manages the field in each column; nobody if there is no such field.
    managers: Vec<Managers>,
}

impl Row {
    fn label(&self) -> String {
        if self.fields.len() > 1 { format!("{} ({})", self.path, self.fields.len()) } else { self.path.clone() }
    }

    fn is_refused(&self, column: &Column) -> bool {
        self.fields.iter().any(|field| column.refused.contains(field))
    }
}

struct Owners {
    managers: Vec<String>,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

pub fn plot(context: &Context<'_>) -> Result<Picture, String> {
    let owners = owners(context);
    if owners.rows.is_empty() {
        return Err(match context.japanese {
            true => format!("{} のフィールドを管理しているものの記録はありません", context.subject),
            false => format!("there is no record of who manages fields of {}", context.subject),
        });
    }
    let alt = alt(context, &owners);
    let bottom = TOP + ROW * owners.rows.len() as i32;
    let step = (WIDTH as i32 - LEFT - RIGHT) / owners.columns.len() as i32;
    let x = |column: usize| LEFT + step * column as i32;
    let svg = draw((bottom + 84) as u32, &alt, |sheet| {
        let title = match context.japanese {
            true => format!("フィールドの管理者: {}", context.subject),
            false => format!("Who manages which fields: {}", context.subject),
        };
        sheet.draw(&Text::new(title, (12, 10), style(16, &INK)))?;
        for (index, row) in owners.rows.iter().enumerate() {
            let y = TOP + ROW * index as i32;
            let name = anchored(12, &INK, HPos::Right, VPos::Center);
            sheet.draw(&Text::new(shortened(&row.label(), 50), (LEFT - 8, y + ROW / 2), name))?;
            sheet.draw(&Polyline::new(vec![(LEFT, y + ROW), (WIDTH as i32 - RIGHT, y + ROW)], GRID))?;
            for (column, managers) in row.managers.iter().enumerate() {
                stripes(sheet, (x(column), y + 3), (step, ROW - 6), managers)?;
            }
        }
        for (index, column) in owners.columns.iter().enumerate() {
            let middle = x(index) + step / 2;
            let (label, color) = match column.revision {
                Some(revision) => (revision.to_string(), &FAINT),
                None => (CONFLICT.to_string(), &FAULT),
            };
            sheet.draw(&Text::new(label, (middle, bottom + 4), anchored(12, color, HPos::Center, VPos::Top)))?;
            for (row, _) in owners.rows.iter().enumerate().filter(|(_, row)| row.is_refused(column)) {
                cross(sheet, (middle, TOP + ROW * row as i32 + ROW / 2))?;
            }
        }
        legend(sheet, &owners, bottom + 36, context.japanese)
    })?;
    Ok(Picture { svg, html: None, alt, table: table(context, &owners) })
}

fn owners(context: &Context<'_>) -> Owners {
    let mut owners = Owners { managers: Vec::new(), columns: Vec::new(), rows: Vec::new() };
    let mut fields: BTreeMap<Path, Vec<Managers>> = BTreeMap::new();
    for entry in context.trace.iter().filter(|entry| context.from.is_none_or(|from| entry.at >= from)) {
        let What::Request(request) = &entry.what else { continue };
        if !context.subject.names(request) {
            continue;
        }
        let actor = entry.actor.to_string();
        if request.is_write() {
            let managers = request.after.as_ref().map(|object| managers(object, &mut owners.managers));
            let managers = managers.unwrap_or_default();
            let last = |path: &Path| fields.get(path).and_then(|known| known.last());
            let same = !owners.columns.is_empty()
                && managers.iter().all(|(path, now)| last(path) == Some(now))
                && fields
                    .iter()
                    .all(|(path, known)| managers.contains_key(path) || known.last().is_none_or(BTreeSet::is_empty));
            if !same {
                owners.columns.push(Column { revision: Some(request.revision), actor, refused: Vec::new() });
                extend(&mut fields, owners.columns.len(), managers);
            }
        } else if request.code == CONFLICT && !refused(request).is_empty() {
            let now = fields.iter().filter_map(|(path, known)| Some((path.clone(), known.last()?.clone()))).collect();
            owners.columns.push(Column { revision: None, actor, refused: refused(request) });
            extend(&mut fields, owners.columns.len(), now);
        }
    }
    keep_last(&mut owners.columns, &mut fields);
    owners.rows = rows(fields);
    owners
}

/// Who manages each field that is not of the status.
fn managers(object: &Object, known: &mut Vec<String>) -> BTreeMap<Path, Managers> {
    let mut managers: BTreeMap<Path, Managers> = BTreeMap::new();
    for entry in managed::entries(object).iter().filter(|entry| *entry.subresource != *"status") {
        let name = entry.manager.to_string();
        let index = known.iter().position(|known| *known == name).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        });
        for path in entry.fields.paths() {
            managers.entry(path).or_default().insert(index);
        }
    }
    managers
}

/// Fills a column: fields that are new have had nobody before.
fn extend(fields: &mut BTreeMap<Path, Vec<Managers>>, columns: usize, now: BTreeMap<Path, Managers>) {
    for (path, managers) in now {
        let known = fields.entry(path).or_default();
        known.resize(columns - 1, Managers::new());
        known.push(managers);
    }
    fields.values_mut().for_each(|known| known.resize(columns, Managers::new()));
}

/// The fields in a refusal's words: `conflict with "kubectl": .spec.replicas`.
fn refused(request: &RequestEntry) -> Vec<String> {
    let paths = request.reason.split_whitespace().filter(|word| word.starts_with('.'));
    paths.map(str::to_owned).collect()
}

fn keep_last(columns: &mut Vec<Column>, fields: &mut BTreeMap<Path, Vec<Managers>>) {
    let surplus = columns.len().saturating_sub(COLUMNS_MAX);
    columns.drain(..surplus);
    fields.values_mut().for_each(|known| drop(known.drain(..surplus)));
    fields.retain(|_, known| known.iter().any(|managers| !managers.is_empty()));
}

/// Fields as deep as there is room for: below a path of that depth those that always had the same managers share a row.
fn rows(fields: BTreeMap<Path, Vec<Managers>>) -> Vec<Row> {
    let deepest = fields.keys().map(Vec::len).max().unwrap_or(0);
    let at_depth = |depth: usize| {
        let mut rows: Vec<Row> = Vec::new();
        for (path, managers) in &fields {
            let (field, path) = (path_text(path), path_text(&path[..path.len().min(depth)]));
            match rows.iter_mut().find(|row| row.path == path && row.managers == *managers) {
                Some(row) => row.fields.push(field),
                None => rows.push(Row { path, fields: vec![field], managers: managers.clone() }),
            }
        }
        rows
    };
    let mut rows = at_depth(deepest);
    for depth in (1..deepest).rev() {
        if rows.len() > ROWS_MAX {
            rows = at_depth(depth);
        }
    }
    rows.truncate(ROWS_MAX);
    rows
}

/// One stripe a manager, one under the other.
fn stripes(sheet: &Sheet<'_>, (x, y): (i32, i32), (width, height): (i32, i32), managers: &Managers) -> Drawn {
    let each = height / managers.len().max(1) as i32;
    for (place, manager) in managers.iter().enumerate() {
        let top = y + each * place as i32;
        sheet.draw(&Rectangle::new([(x + 1, top), (x + width - 1, top + each)], color(*manager).filled()))?;
        let number = anchored(10, &WHITE, HPos::Center, VPos::Center);
        sheet.draw(&Text::new((manager + 1).to_string(), (x + width / 2, top + each / 2), number))?;
    }
    Ok(())
}

fn cross(sheet: &Sheet<'_>, (x, y): (i32, i32)) -> Drawn {
    sheet.draw(&Circle::new((x, y), 9, WHITE.filled()))?;
    for rise in [-5, 5] {
        sheet.draw(&Polyline::new(vec![(x - 5, y - rise), (x + 5, y + rise)], FAULT.stroke_width(3)))?;
    }
    Ok(())
}

fn legend(sheet: &Sheet<'_>, owners: &Owners, y: i32, japanese: bool) -> Drawn {
    let mut x = 20;
    for (index, manager) in owners.managers.iter().enumerate() {
        sheet.draw(&Rectangle::new([(x - 7, y - 7), (x + 7, y + 7)], color(index).filled()))?;
        let number = anchored(10, &WHITE, HPos::Center, VPos::Center);
        sheet.draw(&Text::new((index + 1).to_string(), (x, y), number))?;
        sheet.draw(&Text::new(manager.clone(), (x + 12, y), anchored(12, &INK, HPos::Left, VPos::Center)))?;
        x += 12 + text_width(manager, 12) + 22;
    }
    cross(sheet, (20, y + 24))?;
    let words = match japanese {
        true => "競合で拒まれた適用（409）　横軸: 管理者が変わったリビジョン　status と、値だけの書き込みは省いた",
        false => {
            "an apply refused for a conflict (409); x axis: revisions at which managers changed; without the status"
        }
    };
    sheet.draw(&Text::new(words, (34, y + 24), anchored(12, &FAINT, HPos::Left, VPos::Center)))
}

fn alt(context: &Context<'_>, owners: &Owners) -> String {
    let (fields, refusals) =
        (owners.rows.len(), owners.columns.iter().filter(|column| column.revision.is_none()).count());
    let subject = &context.subject;
    match context.japanese {
        true => format!(
            "{subject} の{fields}行のフィールドを{}が管理する。競合で拒まれた適用は{refusals}回。",
            owners.managers.join("、")
        ),
        false => format!(
            "Fields of {subject} in {fields} rows, managed by {}; applies refused for conflicts: {refusals}.",
            owners.managers.join(", ")
        ),
    }
}

/// A row a field and change of managers: what one reads off the picture from left to right.
fn table(context: &Context<'_>, owners: &Owners) -> Table {
    let columns = match context.japanese {
        true => ["フィールド", "リビジョン", "だれが", "管理者"],
        false => ["FIELD", "REVISION", "WRITER", "MANAGERS"],
    };
    let names = |managers: &Managers| {
        let names: Vec<&str> = managers.iter().map(|manager| owners.managers[*manager].as_str()).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(", ") }
    };
    let mut rows = Vec::new();
    for row in &owners.rows {
        for (index, column) in owners.columns.iter().enumerate() {
            let (before, now) = (index.checked_sub(1).map(|before| &row.managers[before]), &row.managers[index]);
            let has_changed = before.map_or(!now.is_empty(), |before| before != now);
            if row.is_refused(column) || has_changed {
                let revision = column.revision.map_or_else(|| format!("× {CONFLICT}"), |revision| revision.to_string());
                rows.push(vec![row.label(), revision, column.actor.clone(), names(now)]);
            }
        }
    }
    Table { columns: columns.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn a_field_changes_hands_and_a_conflict_is_marked() {
        let mut session = session();
        let file = |color: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: note}}\ndata: {{color: {color}}}\n")
        };
        session.files.write("note.yaml", &file("red")).unwrap();
        run(&mut session, "kubectl apply --server-side -f note.yaml");
        run(&mut session, "kubectl annotate configmap note by=hand");
        session.files.write("note.yaml", &file("blue")).unwrap();
        run(&mut session, "kubectl apply --server-side --field-manager=other -f note.yaml");
        run(&mut session, "kubectl apply --server-side --field-manager=other --force-conflicts -f note.yaml");
        insta::assert_snapshot!(run(&mut session, "%plot owners configmap/note"));
        insta::assert_snapshot!(run(&mut session, "%lang ja\n%plot owners configmap/note"));
        run(&mut session, "kubectl create deployment web --image=nginx");
        run(&mut session, "kubectl scale deployment web --replicas=2");
        let told = run(&mut session, "%lang en\n%plot owners deployment/web");
        assert!(told.lines().any(|line| line.starts_with(".spec.replicas") && line.ends_with("   kubectl")), "{told}");
        assert!(run(&mut session, "%plot owners configmap/none").starts_with("PlotError: "));
    }
}
