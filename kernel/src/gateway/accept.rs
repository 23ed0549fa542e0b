//! The form in which a client wants its answer.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources>

use cluster_core::api::status::Status;

/// What the objects of an answer look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Whole,
    Table,
    /// `PartialObjectMetadata` of one object.
    One,
    /// `PartialObjectMetadataList`; of one object, its metadata.
    Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Yaml,
}

impl Syntax {
    /// The subtype of its media type.
    pub fn name(self) -> &'static str {
        match self {
            Syntax::Json => "json",
            Syntax::Yaml => "yaml",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub form: Form,
    pub syntax: Syntax,
    /// Indented, for a person.
    pub pretty: bool,
}

const SERVED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The first form of an Accept header that can be served; none or `*/*` means JSON. Not everything comes as a table.
///
/// # Errors
/// 406, with the media types that there are.
pub fn negotiate(header: Option<&str>, has_table: bool) -> Result<Wanted, Status> {
    first(header, |range| wanted(range).filter(|wanted| has_table || wanted.form != Form::Table))
}

/// The same for `/api` and `/apis`, which also have a form with everything in one document: true if that is wanted.
///
/// # Errors
/// 406, with the media types that there are.
pub fn negotiate_discovery(header: Option<&str>) -> Result<(Wanted, bool), Status> {
    first(header, |range| match range.split_once(';').map(|(media, parameters)| (wanted(media), parameters)) {
        Some((Some(plain), parameters)) if is_aggregated(parameters) => Some((plain, true)),
        _ => wanted(range).map(|plain| (plain, false)),
    })
}

fn is_aggregated(parameters: &str) -> bool {
    let mut parameters: Vec<&str> = parameters.split(';').map(str::trim).filter(|one| !one.starts_with("q=")).collect();
    parameters.sort_unstable();
    parameters == ["as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"]
}

/// What the first range of a header, by quality, that can be served asks for.
fn first<T>(header: Option<&str>, wanted: impl Fn(&str) -> Option<T>) -> Result<T, Status> {
    let header = header.map(str::trim).filter(|header| !header.is_empty()).unwrap_or("*/*");
    let mut ranges: Vec<(f32, &str)> = header.split(',').map(|range| (quality(range), range.trim())).collect();
    ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranges.iter().find_map(|(_, range)| wanted(range)).ok_or_else(|| {
        match ranges.iter().any(|(_, range)| syntax(range).is_some()) {
            true => Status::not_acceptable(format!("only the following media types are accepted: {SERVED}")),
            false => Status::unknown_accept(),
        }
    })
}

fn syntax(range: &str) -> Option<Syntax> {
    match range.split(';').next()?.trim() {
        "application/json" | "*/*" | "application/*" => Some(Syntax::Json),
        "application/yaml" => Some(Syntax::Yaml),
        _ => None,
    }
}

fn quality(range: &str) -> f32 {
    let value = range.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
    value.and_then(|value| value.parse().ok()).unwrap_or(1.0)
}

fn wanted(range: &str) -> Option<Wanted> {
    let mut wanted = Wanted { form: Form::Whole, syntax: syntax(range)?, pretty: false };
    for parameter in range.split(';').skip(1).map(str::trim) {
        match parameter.split_once('=')? {
            ("as", "Table") => wanted.form = Form::Table,
            ("as", "PartialObjectMetadata") => wanted.form = Form::One,
            ("as", "PartialObjectMetadataList") => wanted.form = Form::Metadata,
            ("g", group) if group != "meta.k8s.io" => return None,
            ("v", version) if version != "v1" => return None,
            ("as", _) => return None,
            _ => {}
        }
    }
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_may_come_in_one_document() {
        let in_one =
            |header: &str| negotiate_discovery(Some(header)).map(|(_, in_one)| in_one).map_err(|status| status.code);
        let newer = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let older = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(in_one(newer), Ok(true));
        assert_eq!(in_one(&format!("{older},{newer},application/json")), Ok(true));
        assert_eq!(in_one(&format!("{older},application/json")), Ok(false));
        assert_eq!(in_one(older), Err(406));
    }

    #[test]
    fn the_first_form_that_can_be_served_is_taken() {
        let form = |header| negotiate(Some(header), true).map(|wanted| wanted.form).map_err(|status| status.code);
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(form(table), Ok(Form::Table));
        assert_eq!(form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"), Ok(Form::Metadata));
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*"), Ok(Form::Whole));
        assert_eq!(form("application/json;as=Table;v=v9;g=meta.k8s.io,application/json"), Ok(Form::Whole));
        assert_eq!(form("text/html"), Err(406));
        assert!(negotiate(None, true).is_ok());
        assert_eq!(negotiate(Some(table), false).map(|wanted| wanted.form).ok(), Some(Form::Whole));
    }
}
