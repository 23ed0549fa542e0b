//! `-o`: objects as YAML, JSON, names, or by a template.

use cluster_core::go_json::escape_html;
use serde_json::{Value, json};

use super::custom_columns::CustomColumns;
pub use super::custom_columns::column_path;
use super::failure::{Failure, message};
use super::flags::{Flag, optional, switch, text};
use super::go_template;
use super::jsonpath::{self, Template};
use super::kyaml;
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
    Human,
    Name,
    Json,
    Yaml,
    Kyaml,
    JsonPath(Template),
    JsonPathAsJson(Template),
    GoTemplate(go_template::Template),
    CustomColumns(CustomColumns),
}

impl Format {
    /// Whether objects are shown with the managers of their fields without being asked: templates see all there is.
    pub fn shows_managers(&self) -> bool {
        !matches!(self, Format::Human | Format::Name | Format::Json | Format::Yaml | Format::Kyaml)
    }
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
        let separate = self.parsed.text("template").filter(|template| !template.is_empty());
        let (name, template) = match (asked.split_once('='), separate) {
            // `get` takes a template for itself.
            (None, Some(template)) if asked.is_empty() && allowed == FORMATS => ("go-template", Some(template)),
            (None, template) => (asked, template),
            (Some((name, template)), None) => (name, Some(template)),
            (Some(_), Some(_)) => ("", None),
        };
        let given = || match template {
            Some(text) if !text.is_empty() => Ok(text),
            _ => message("template format specified but no template given"),
        };
        let file = || {
            let file = given()?;
            self.context
                .files
                .read(file)
                .map_err(|trouble| Failure::Message(format!("error reading --template {file}, open {file}: {trouble}")))
        };
        let path = |text: &str| {
            jsonpath::parse(text)
                .map_err(|problem| Failure::Message(format!("error parsing jsonpath {text}, {problem}")))
        };
        let go = |text: &str| match go_template::parse(text) {
            Ok(template) => Ok(Format::GoTemplate(template)),
            Err(problem) => message(format!("error parsing template {text}, {problem}")),
        };
        match (name, asked.to_lowercase().as_str()) {
            (_, "") if template.is_none() => Ok(Format::Human),
            (_, "wide") if allowed == FORMATS => Ok(Format::Human),
            (_, "name") => Ok(Format::Name),
            (_, "json") => Ok(Format::Json),
            (_, "yaml") => Ok(Format::Yaml),
            (_, "kyaml") => Ok(Format::Kyaml),
            ("jsonpath", _) => path(given()?).map(Format::JsonPath),
            ("jsonpath-as-json", _) => path(given()?).map(Format::JsonPathAsJson),
            ("jsonpath-file", _) => path(&file()?).map(Format::JsonPath),
            ("go-template" | "template", _) => go(given()?),
            ("go-template-file" | "templatefile", _) => go(&file()?),
            ("custom-columns", _) if allowed == FORMATS => {
                let headers = !self.parsed.switch("no-headers");
                CustomColumns::parse(template.unwrap_or_default(), headers).map(Format::CustomColumns)
            }
            ("custom-columns-file", _) if allowed == FORMATS => {
                let file = template.unwrap_or_default();
                if file.is_empty() {
                    return message("custom-columns format specified but no custom columns given");
                }
                let text = self.context.files.read(file);
                let unread =
                    |trouble| Failure::Message(format!("error reading template {file}, open {file}: {trouble}"));
                CustomColumns::of_file(&text.map_err(unread)?).map(Format::CustomColumns)
            }
            _ => message(format!(
                "unable to match a printer suitable for the output format {asked:?}, allowed formats are: {allowed}"
            )),
        }
    }

    pub fn dry_run(&self) -> Result<DryRun, Failure> {
        match self.parsed.text("dry-run") {
            None | Some("none" | "false") => Ok(DryRun::None),
            Some("client" | "unchanged") => Ok(DryRun::Client),
            Some("server") => Ok(DryRun::Server),
            Some(other) => {
                message(format!("Invalid dry-run value ({other}). Must be \"none\", \"server\", or \"client\"."))
            }
        }
    }

    /// Tells of a change to an object, in the format that is asked for: `deployment.apps/web created`.
    pub fn changed(&mut self, item: &Item, what: &str, dry_run: DryRun) -> Result<(), Failure> {
        match self.format()? {
            Format::Human => self.line(format!("{} {what}{}", item.title(), dry_run.suffix())),
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
        let keep = self.parsed.switch("show-managed-fields") || format.shows_managers();
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
            Format::Kyaml => kyaml::document(&value),
            Format::JsonPath(template) => {
                template.execute(&value).map_err(|problem| jsonpath_failure(&problem, template, &value))?
            }
            Format::JsonPathAsJson(template) => {
                template.execute_as_json(&value).map_err(|problem| jsonpath_failure(&problem, template, &value))?
            }
            Format::GoTemplate(template) => {
                let (text, outcome) = template.execute(&value);
                self.context.print(text);
                return outcome.map_err(|problem| self.template_failure(&problem, template, &value));
            }
            Format::CustomColumns(columns) => match value.get("items") {
                Some(Value::Array(rows)) if list || items.len() != 1 => columns.table(rows)?,
                _ => columns.table(std::slice::from_ref(&value))?,
            },
            Format::Human | Format::Name => String::new(),
        };
        self.context.print(text);
        Ok(())
    }

    /// Says more on standard output, as kubectl does.
    fn template_failure(&mut self, problem: &str, template: &go_template::Template, value: &Value) -> Failure {
        let source = &template.source;
        self.context.print(format!(
            "Error executing template: {problem}. Printing more information for debugging the template:\n\ttemplate was:\n\t\t{source}\n\traw data was:\n\t\t{}\n\tobject given to template engine was:\n\t\t{}\n\n",
            json_line(value),
            jsonpath::go_text(value)
        ));
        Failure::Message(format!("error executing template {source:?}: {problem}"))
    }
}

fn jsonpath_failure(problem: &str, template: &Template, value: &Value) -> Failure {
    let source = &template.source;
    Failure::Message(format!(
        "error executing jsonpath {source:?}: Error executing template: {problem}. Printing more information for debugging the template:\n\ttemplate was:\n\t\t{source}\n\tobject given to jsonpath engine was:\n\t\t{}\n\n",
        jsonpath::go_syntax(value)
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
    escape_html(&String::from_utf8_lossy(&bytes)).into_owned()
}

/// JSON in one line, as Go's encoder writes it.
pub fn json_line(value: &Value) -> String {
    escape_html(&value.to_string()).into_owned()
}
