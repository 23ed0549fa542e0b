//! Named formats. <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-format-library>

use super::Function;
use crate::apiserver::cel::value::Value;
use crate::apiserver::custom::formats;
use crate::apiserver::validation::names;

pub struct Format {
    pub name: &'static str,
    /// What is wrong with a text; nothing if it has the format.
    problems: fn(&str) -> Vec<String>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static FORMATS: &[Format] = &[
    Format { name: "dns1123Label", problems: names::dns_label },
    Format { name: "dns1123Subdomain", problems: names::dns_subdomain },
    Format { name: "dns1035Label", problems: names::dns_1035_label },
    Format { name: "qualifiedName", problems: names::qualified_name },
    Format { name: "dns1123LabelPrefix", problems: |text| names::dns_label(text.strip_suffix('-').unwrap_or(text)) },
    Format {
        name: "dns1123SubdomainPrefix",
        problems: |text| names::dns_subdomain(text.strip_suffix('-').unwrap_or(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        problems: |text| names::dns_1035_label(text.strip_suffix('-').unwrap_or(text)),
    },
    Format { name: "labelValue", problems: names::label_value },
    Format { name: "uri", problems: |text| by_name("uri", text) },
    Format { name: "uuid", problems: |text| by_name("uuid", text) },
    Format { name: "byte", problems: |text| by_name("byte", text) },
    Format { name: "date", problems: |text| by_name("date", text) },
    Format { name: "datetime", problems: |text| by_name("datetime", text) },
];

fn by_name(format: &str, text: &str) -> Vec<String> {
    if formats::has_format(text, format) { Vec::new() } else { vec![format!("invalid {format}")] }
}

pub(super) const FUNCTIONS: &[Function] = &[
    ("format.dns1123Label() -> kubernetes.NamedFormat", |_| named("dns1123Label")),
    ("format.dns1123Subdomain() -> kubernetes.NamedFormat", |_| named("dns1123Subdomain")),
    ("format.dns1035Label() -> kubernetes.NamedFormat", |_| named("dns1035Label")),
    ("format.qualifiedName() -> kubernetes.NamedFormat", |_| named("qualifiedName")),
    ("format.dns1123LabelPrefix() -> kubernetes.NamedFormat", |_| named("dns1123LabelPrefix")),
    ("format.dns1123SubdomainPrefix() -> kubernetes.NamedFormat", |_| named("dns1123SubdomainPrefix")),
    ("format.dns1035LabelPrefix() -> kubernetes.NamedFormat", |_| named("dns1035LabelPrefix")),
    ("format.labelValue() -> kubernetes.NamedFormat", |_| named("labelValue")),
    ("format.uri() -> kubernetes.NamedFormat", |_| named("uri")),
    ("format.uuid() -> kubernetes.NamedFormat", |_| named("uuid")),
    ("format.byte() -> kubernetes.NamedFormat", |_| named("byte")),
    ("format.date() -> kubernetes.NamedFormat", |_| named("date")),
    ("format.datetime() -> kubernetes.NamedFormat", |_| named("datetime")),
    ("format.named(string) -> optional<kubernetes.NamedFormat>", |args| match &args[0] {
        Value::String(name) => Ok(named(name).ok().into()),
        _ => Err("no such overload".to_owned()),
    }),
    ("kubernetes.NamedFormat.validate(string) -> optional<list<string>>", |args| match (&args[0], &args[1]) {
        (Value::Format(format), Value::String(text)) => {
            let problems: Vec<Value> = (format.problems)(text).into_iter().map(Value::from).collect();
            Ok((!problems.is_empty()).then(|| problems.into()).into())
        }
        _ => Err("no such overload".to_owned()),
    }),
];

fn named(name: &str) -> Result<Value, String> {
    FORMATS.iter().find(|format| format.name == name).map(Value::Format).ok_or_else(|| format!("unknown format {name}"))
}
