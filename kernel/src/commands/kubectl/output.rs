//! `-o`: objects as YAML, JSON, names, or by a template.

use serde_json::{Value, json};

use super::columns;
use super::failure::{Failure, message};
use super::flags::{Flag, optional, switch, text};
use super::jsonpath::{self, Template};
use super::resources::Item;
use super::verb::Call;
use crate::yaml;

pub const OUTPUT: Flag = text("output").short('o');
pub const TEMPLATE: Flag = text("template");
pub const SHOW_MANAGED_FIELDS: Flag = switch("show-managed-fields");
pub const DRY_RUN: Flag = optional("dry-run", "unchanged");
pub const FIELD_MANAGER: Flag = text("field-manager");

/// How objects are to be printed.
pub enum Format {
    /// As the verb prints by itself.
    Human {
        wide: bool,
    },
    Name,
    Json,
    Yaml,
    JsonPath(Template),
    JsonPathAsJson(Template),
    CustomColumns(Vec<(String, Template)>),
}

/// Whether and where a change is only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    None,
    Client,
    Server,
}

impl DryRun {
    /// What stands behind the verb in the past tense.
    pub fn suffix(self) -> &'static str {
        match self {
            DryRun::None => "",
            DryRun::Client => " (dry run)",
            DryRun::Server => " (server dry run)",
        }
    }
}

const FORMATS: &str = "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,wide,yaml";
const FORMATS_OF_CHANGES: &str =
    "go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml";

impl Call<'_, '_> {
    pub fn format(&self) -> Result<Format, Failure> {
        self.format_among(FORMATS_OF_CHANGES)
    }

    /// Formats of `get`, which has tables.
    pub fn table_format(&self) -> Result<Format, Failure> {
        self.format_among(FORMATS)
    }

    fn format_among(&self, allowed: &str) -> Result<Format, Failure> {
        let asked = self.parsed.text("output").unwrap_or_default();
        let (name, template) = asked.split_once('=').map_or((asked, None), |(name, template)| (name, Some(template)));
        let template = template.or(self.parsed.text("template"));
        let path = || match template {
            Some(text) if !text.is_empty() => jsonpath::parse(text)
                .map_err(|problem| Failure::Message(format!("error parsing jsonpath {text}, {problem}"))),
            _ => message("template format specified but no template given"),
        };
        let file = || match template {
            Some(file) if !file.is_empty() => self.context.files.read(file).map_err(|trouble| {
                Failure::Message(format!("error reading --template {file}, open {file}: {trouble}"))
            }),
            _ => message("template format specified but no template given"),
        };
        match name {
            "" => Ok(Format::Human { wide: false }),
            "wide" if allowed == FORMATS => Ok(Format::Human { wide: true }),
            "name" => Ok(Format::Name),
            "json" => Ok(Format::Json),
            "yaml" => Ok(Format::Yaml),
            "jsonpath" => path().map(Format::JsonPath),
            "jsonpath-as-json" => path().map(Format::JsonPathAsJson),
            "jsonpath-file" => {
                let text = file()?;
                let parsed = jsonpath::parse(text.trim_end_matches('\n'));
                parsed
                    .map(Format::JsonPath)
                    .map_err(|problem| Failure::Message(format!("error parsing jsonpath {text}, {problem}")))
            }
            "custom-columns" if allowed == FORMATS => custom_columns(template.unwrap_or_default()),
            "custom-columns-file" if allowed == FORMATS => custom_columns_of_file(&file()?),
            "go-template" | "go-template-file" | "template" | "templatefile" | "kyaml" => {
                message(format!("the output format {name:?} is not supported here; jsonpath and custom-columns are"))
            }
            _ => message(format!(
                "unable to match a printer suitable for the output format {name:?}, allowed formats are: {allowed}"
            )),
        }
    }

    pub fn dry_run(&self) -> Result<DryRun, Failure> {
        match self.parsed.text("dry-run") {
            None | Some("none" | "false") => Ok(DryRun::None),
            Some("client") => Ok(DryRun::Client),
            Some("server") => Ok(DryRun::Server),
            Some("unchanged") => message(
                "--dry-run flag without a value was specified. A value must be set: \"none\", \"server\", or \"client\".",
            ),
            Some(other) => {
                message(format!("Invalid dry-run value ({other}). Must be \"none\", \"server\", or \"client\"."))
            }
        }
    }

    /// Tells of a change to an object, in the format that is asked for: `deployment.apps/web created`.
    pub fn changed(&mut self, item: &Item, what: &str, dry_run: DryRun) -> Result<(), Failure> {
        match self.format()? {
            Format::Human { .. } => self.line(format!("{} {what}{}", item.title(), dry_run.suffix())),
            format => self.print_objects(&format, std::slice::from_ref(item), false)?,
        }
        Ok(())
    }

    /// Prints objects in a format that is not a table; several as a List, if `list`.
    pub fn print_objects(&mut self, format: &Format, items: &[Item], list: bool) -> Result<(), Failure> {
        if matches!(format, Format::Name) {
            for item in items {
                self.line(item.title());
            }
            return Ok(());
        }
        let keep = self.parsed.switch("show-managed-fields");
        let shown = |item: &Item| if keep { item.value.clone() } else { without_managed_fields(item.value.clone()) };
        let value = match items {
            [one] if !list => shown(one),
            many => json!({
                "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
                "items": many.iter().map(shown).collect::<Vec<_>>(),
            }),
        };
        let text = match format {
            Format::Json => json_text(&value, "    ") + "\n",
            Format::Yaml => yaml::print(&value),
            Format::JsonPath(template) => execute(template, &value)?,
            Format::JsonPathAsJson(template) => {
                let found = template.values(&value).map_err(|problem| jsonpath_failure(&problem, template, &value))?;
                json_text(&Value::Array(found), "    ") + "\n"
            }
            Format::CustomColumns(wanted) => {
                let headers = !self.parsed.switch("no-headers");
                let rows: Vec<&Value> = match value.get("items") {
                    Some(Value::Array(rows)) if value.get("kind") == Some(&json!("List")) => rows.iter().collect(),
                    _ => vec![&value],
                };
                custom_table(wanted, &rows, headers)
            }
            Format::Human { .. } | Format::Name => String::new(),
        };
        self.context.print(text);
        Ok(())
    }
}

fn execute(template: &Template, value: &Value) -> Result<String, Failure> {
    template.execute(value).map_err(|problem| jsonpath_failure(&problem, template, value))
}

fn jsonpath_failure(problem: &str, template: &Template, value: &Value) -> Failure {
    Failure::Message(format!(
        "error executing jsonpath {:?}: Error executing template: {problem}. Printing more information for debugging the template:\n\ttemplate was:\n\t\t{}\n\tobject given to jsonpath engine was:\n\t\t{}\n",
        template.source,
        template.source,
        jsonpath::go_text(value)
    ))
}

pub fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// JSON as Go indents it, with `<`, `>` and `&` escaped.
pub fn json_text(value: &Value, indent: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // A value made of maps with string keys serializes without fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    escape(&String::from_utf8_lossy(&bytes))
}

/// JSON in one line, as Go's encoder writes it.
pub fn json_line(value: &Value) -> String {
    escape(&value.to_string())
}

fn escape(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn custom_columns(spec: &str) -> Result<Format, Failure> {
    if spec.is_empty() {
        return message("custom-columns format specified but no custom columns given");
    }
    let mut columns = Vec::new();
    for part in spec.split(',') {
        let Some((header, path)) = part.split_once(':') else {
            return message(format!("unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"));
        };
        columns.push((header.to_owned(), column_path(path)?));
    }
    Ok(Format::CustomColumns(columns))
}

/// A line of headers and a line of paths.
fn custom_columns_of_file(text: &str) -> Result<Format, Failure> {
    let mut lines = text.lines();
    let headers: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let paths: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    if headers.len() != paths.len() || headers.is_empty() {
        return message(format!(
            "number of headers ({}) and field specifications ({}) don't match",
            headers.len(),
            paths.len()
        ));
    }
    let mut columns = Vec::new();
    for (header, path) in headers.into_iter().zip(paths) {
        columns.push((header.to_owned(), column_path(path)?));
    }
    Ok(Format::CustomColumns(columns))
}

/// `x.y`, `.x.y`, `{x.y}` and `{.x.y}` are the same.
pub fn column_path(path: &str) -> Result<Template, Failure> {
    let inner = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    let inner = inner.strip_prefix('.').unwrap_or(inner);
    jsonpath::parse(&format!("{{.{inner}}}")).map_err(|_| {
        Failure::Message(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"
                .into(),
        )
    })
}

fn custom_table(wanted: &[(String, Template)], objects: &[&Value], headers: bool) -> String {
    let mut rows = Vec::new();
    if headers {
        rows.push(wanted.iter().map(|(header, _)| header.clone()).collect());
    }
    for object in objects {
        let cell = |(_, path): &(String, Template)| match path.values(object) {
            Ok(found) if !found.is_empty() => found.iter().map(jsonpath::go_text).collect::<Vec<_>>().join(","),
            _ => "<none>".to_owned(),
        };
        rows.push(wanted.iter().map(cell).collect());
    }
    columns::align(&rows)
}
