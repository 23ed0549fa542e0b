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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub form: Form,
    pub syntax: Syntax,
    /// Indented, for a person.
    pub pretty: bool,
}

const SERVED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The first form of an Accept header that can be served; none or `*/*` means JSON.
///
/// # Errors
/// 406, with the media types that there are.
pub fn negotiate(header: Option<&str>) -> Result<Wanted, Status> {
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
    fn the_first_form_that_can_be_served_is_taken() {
        let form = |header| negotiate(Some(header)).map(|wanted| wanted.form).map_err(|status| status.code);
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(form(table), Ok(Form::Table));
        assert_eq!(form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"), Ok(Form::Metadata));
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*"), Ok(Form::Whole));
        assert_eq!(form("application/json;as=Table;v=v9;g=meta.k8s.io,application/json"), Ok(Form::Whole));
        assert_eq!(form("text/html"), Err(406));
        assert!(negotiate(None).is_ok());
    }
}
