//! Request bodies: from bytes to the value that the apiserver reads.

use std::time::Duration;

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use cluster_core::api::kind::Kind;
use cluster_core::api::request::{FieldValidation, Options, PatchType};
use cluster_core::api::status::{Cause, Status};
use cluster_core::apiserver::decode::text::{self, Parsed};
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

use super::protobuf;
use super::query::{dry_run_cause, of_orphan, propagation, propagation_causes};

/// As kube-apiserver limits bodies (`--max-resource-write-bytes` aside): 3 MiB.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A client that lets so much time pass between two parts of its body is let go.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A whole body may take so long, as all of a request may that is no watch.
const BODY_MAX: Duration = Duration::from_secs(60);
/// So much of a body that can't be read is shown.
const SUMMARY_BYTES_MAX: usize = 30;

/// All of a body. Whoever stops in the middle of it holds the connection for a while only.
pub async fn all(body: Body) -> Result<Bytes, Status> {
    within(body, SILENCE_MAX, BODY_MAX).await
}

async fn within(body: Body, silence_max: Duration, body_max: Duration) -> Result<Bytes, Status> {
    let too_slow = |_| Status::timeout("Timeout: request did not complete within the allotted timeout");
    let mut body = Limited::new(body, BODY_BYTES_MAX);
    let mut whole = BytesMut::new();
    let read = async {
        while let Some(frame) = tokio::time::timeout(silence_max, body.frame()).await.map_err(too_slow)? {
            let frame = frame.map_err(|_| Status::too_large(BODY_BYTES_MAX))?;
            if let Ok(part) = frame.into_data() {
                whole.extend_from_slice(&part);
            }
        }
        Ok(())
    };
    tokio::time::timeout(body_max, read).await.map_err(too_slow)??;
    Ok(whole.freeze())
}

/// The patch type that a content type names.
pub fn patch_type(content_type: &str) -> Option<PatchType> {
    match media_type(content_type) {
        "application/json-patch+json" => Some(PatchType::Json),
        "application/merge-patch+json" => Some(PatchType::Merge),
        "application/strategic-merge-patch+json" => Some(PatchType::StrategicMerge),
        "application/apply-patch+yaml" => Some(PatchType::Apply),
        _ => None,
    }
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Why a body can't be read.
pub enum Unreadable {
    Refused(Status),
    /// What is wrong with a text that does not say what it is.
    Unrecognized(String),
}

impl Unreadable {
    fn of_kind(self, kind: &Kind, bytes: &[u8]) -> Status {
        match self {
            Unreadable::Refused(status) => status,
            Unreadable::Unrecognized(problem) => Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {problem} ({})",
                kind.kind,
                summary(bytes)
            )),
        }
    }
}

/// A body, read as far as that goes without the kind, which only the cluster knows.
pub enum Sent {
    Object { bytes: Bytes, read: Result<Parsed, Unreadable> },
    Patch(Parsed),
}

impl Sent {
    /// The value and its faults. Objects of custom kinds have to name theirs.
    pub fn of_kind(self, kind: &Kind) -> Result<Parsed, Status> {
        let (bytes, read) = match self {
            Sent::Object { bytes, read } => (bytes, read),
            Sent::Patch(patch) => return Ok(patch),
        };
        let names_kind = |value: &Value| value["kind"].as_str().is_some_and(|name| !name.is_empty());
        let read = match read {
            Ok(parsed) if kind.definition.is_some() && !names_kind(&parsed.value) => Err(Unreadable::Unrecognized(
                format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(&bytes)),
            )),
            read => read,
        };
        read.map_err(|unreadable| unreadable.of_kind(kind, &bytes))
    }
}

/// The object of a create or an update.
pub fn object(content_type: &str, bytes: Bytes) -> Sent {
    Sent::Object { read: read(content_type, &bytes), bytes }
}

fn read(content_type: &str, bytes: &[u8]) -> Result<Parsed, Unreadable> {
    match media_type(content_type) {
        "" | "application/json" | "*/*" => {
            let problem = |problem| format!("couldn't get version/kind; json parse error: {problem}");
            text::parse(bytes).map_err(problem).and_then(recognized).map_err(Unreadable::Unrecognized)
        }
        "application/yaml" => yaml(bytes).and_then(recognized).map_err(Unreadable::Unrecognized),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(bytes)
            .map(|value| Parsed { value, ..Parsed::default() })
            .map_err(|problem| Unreadable::Refused(Status::bad_request(problem))),
        _ => Err(Unreadable::Refused(unsupported())),
    }
}

/// What kube-apiserver must find in a body before it looks at the fields of its kind.
fn recognized(parsed: Parsed) -> Result<Parsed, String> {
    const TYPE_META: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    match &parsed.value {
        Value::Object(_) | Value::Null => Ok(parsed),
        other => {
            let problem = text::misfit(text::json_type(other), TYPE_META);
            Err(format!("couldn't get version/kind; json parse error: {problem}"))
        }
    }
}

/// The beginning of a body: as text if it may be an object, else in hexadecimal digits.
fn summary(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SUMMARY_BYTES_MAX)];
    let text = match bytes.first() {
        None => return "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if shown.len() < bytes.len() { format!("{text} ...") } else { text }
}

/// The body of a patch of any type. Who asks for no validation has the patch read by those who carry it out.
pub fn patch(patch_type: PatchType, validation: FieldValidation, bytes: &[u8]) -> Result<Parsed, Status> {
    if patch_type == PatchType::Apply {
        return configuration(bytes).map_err(|problem| Status::bad_request(format!("error decoding YAML: {problem}")));
    }
    text::parse(bytes).map_err(|problem| {
        Status::bad_request(match (patch_type, validation) {
            (PatchType::Merge, FieldValidation::Ignore) => "Invalid JSON Patch".into(),
            (PatchType::StrategicMerge, _) | (_, FieldValidation::Ignore) => problem,
            _ => format!("error decoding patch: {problem}"),
        })
    })
}

/// What is applied on the server: YAML, whatever the media type says.
fn configuration(bytes: &[u8]) -> Result<Parsed, String> {
    let parsed = yaml(bytes).map_err(|problem| format!("error converting YAML to JSON: {problem}"))?;
    match &parsed.value {
        Value::Object(_) | Value::Null => Ok(parsed),
        other => {
            let problem = text::misfit(text::json_type(other), "map[string]interface {}");
            Err(format!("error unmarshaling JSON: while decoding JSON: {problem}"))
        }
    }
}

/// Reads `DeleteOptions` from the body of a DELETE into the options that the URL gave.
pub fn delete_options(content_type: &str, bytes: &[u8], options: &mut Options) -> Result<(), Status> {
    if bytes.is_empty() {
        return Ok(());
    }
    let value = match read(content_type, bytes) {
        Ok(parsed) => parsed.value,
        Err(Unreadable::Refused(status)) => return Err(status),
        Err(Unreadable::Unrecognized(problem)) => return Err(Status::bad_request(problem)),
    };
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    if let (Some(kind), version) = (word("kind"), word("apiVersion").unwrap_or("v1"))
        && kind != "DeleteOptions"
    {
        let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
        return Err(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{scheme}\""
        )));
    }
    let dry_run: Vec<&str> = value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let orphan = value.get("orphanDependents").and_then(Value::as_bool);
    let mut causes: Vec<Cause> = propagation_causes(word("propagationPolicy"), orphan).into_iter().collect();
    causes.extend(dry_run_cause(&dry_run));
    if !causes.is_empty() {
        return Err(Status::invalid_options("DeleteOptions", causes));
    }
    if let Some(seconds) = value.get("gracePeriodSeconds").and_then(Value::as_i64) {
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(policy) = word("propagationPolicy").and_then(propagation).or(orphan.map(of_orphan)) {
        options.propagation = Some(policy);
    }
    options.dry_run |= !dry_run.is_empty();
    let precondition = |name: &str| value.pointer(&format!("/preconditions/{name}")).and_then(Value::as_str);
    options.precondition_uid = precondition("uid").map(str::to_owned);
    options.precondition_revision = precondition("resourceVersion").and_then(|text| text.parse().ok());
    Ok(())
}

/// The first document of a text.
fn yaml(bytes: &[u8]) -> Result<Parsed, String> {
    let text = std::str::from_utf8(bytes).map_err(|fault| match fault.error_len() {
        Some(_) => "yaml: invalid Unicode character",
        None => "yaml: incomplete UTF-8 octet sequence",
    })?;
    let document = crate::yaml::first(text).map_err(|error| error.in_go_words())?;
    let Some(document) = document else { return Ok(Parsed::default()) };
    let mut strict_errors = Vec::new();
    if !document.repeated.is_empty() {
        strict_errors.push(format!("yaml: unmarshal errors:\n  {}", document.repeated.join("\n  ")));
    }
    Ok(Parsed { value: document.value, strict_errors, ..Parsed::default() })
}

fn unsupported() -> Status {
    Status::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

#[cfg(test)]
mod tests {
    use cluster_core::api::kind::{KindRef, Resource};
    use futures_util::{StreamExt, stream};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn refused(content_type: &str, text: &'static str) -> String {
        let kind: &KindRef = ConfigMap::kind();
        object(content_type, Bytes::from(text)).of_kind(kind).unwrap_err().message
    }

    #[tokio::test]
    async fn a_client_that_stops_in_the_middle_of_its_body_is_let_go() {
        let part = Ok::<Bytes, std::io::Error>(Bytes::from("{\"kind\":"));
        let (soon, late) = (Duration::from_millis(5), Duration::from_secs(600));
        let stopped = Body::from_stream(stream::iter([part]).chain(stream::pending()));
        assert_eq!(within(stopped, soon, late).await.unwrap_err().code, 504);
        let drop_by_drop = stream::repeat(()).then(|()| async {
            tokio::task::yield_now().await;
            Ok::<Bytes, std::io::Error>(Bytes::new())
        });
        let endless = Body::from_stream(drop_by_drop);
        assert_eq!(within(endless, late, soon).await.unwrap_err().code, 504);
        let large = Body::from(vec![b'x'; BODY_BYTES_MAX + 1]);
        assert_eq!(all(large).await.unwrap_err().code, 413);
        assert_eq!(all(Body::from("{}")).await.unwrap(), "{}");
    }

    #[test]
    fn a_body_that_is_no_object_is_named_and_shown() {
        assert_eq!(
            refused("application/json", r#"{"kind": "ConfigMap", "metadata": }"#),
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse \
             error: invalid character '}' looking for beginning of value ({\"kind\": \"ConfigMap\", \"metadat ...)"
        );
        assert_eq!(
            refused("application/yaml", "a:\n  b: c: d\n"),
            "the object provided is unrecognized (must be of type ConfigMap): yaml: line 2: mapping values are not \
             allowed in this context (613a0a2020623a20633a20640a)"
        );
        assert!(
            refused("application/yaml", "- a\n").contains("json: cannot unmarshal array into Go value of type struct")
        );
        assert!(refused("text/plain", "").starts_with("the body of the request was in an unknown format"));
    }

    #[test]
    fn keys_that_stand_twice_are_told_of() {
        let text = "kind: ConfigMap\ndata: {k: '1'}\ndata: {k: '2'}\n";
        let parsed = object("application/yaml", Bytes::from(text)).of_kind(ConfigMap::kind()).unwrap();
        assert_eq!(parsed.value["data"], json!({"k": "2"}));
        assert_eq!(parsed.strict_errors, ["yaml: unmarshal errors:\n  line 3: key \"data\" already set in map"]);
        let parsed = patch(PatchType::Merge, FieldValidation::Warn, br#"{"a": {"b": 1, "b": 2}}"#).unwrap();
        assert_eq!(parsed.strict_errors, ["duplicate field \"a.b\""]);
    }

    #[test]
    fn faults_of_patches_are_told_by_their_readers() {
        let refused = |patch_type, validation, text: &str| patch(patch_type, validation, text.as_bytes()).unwrap_err();
        let (warn, ignore) = (FieldValidation::Warn, FieldValidation::Ignore);
        for (patch_type, validation, text, message) in [
            (PatchType::Merge, warn, "{", "error decoding patch: unexpected end of JSON input"),
            (PatchType::Merge, ignore, "{", "Invalid JSON Patch"),
            (PatchType::StrategicMerge, warn, "{", "unexpected end of JSON input"),
            (PatchType::Json, ignore, "[", "unexpected end of JSON input"),
            (
                PatchType::Apply,
                warn,
                "- a\n",
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go \
                 value of type map[string]interface {}",
            ),
            (
                PatchType::Apply,
                warn,
                "a: b\n c: d\n",
                "error decoding YAML: error converting YAML to JSON: yaml: line 2: mapping values are not allowed in \
                 this context",
            ),
        ] {
            assert_eq!(refused(patch_type, validation, text).message, message);
        }
    }
}
