//! Errors as the API gives them: `Status` of apimachinery's meta/v1.

use serde_json::{Map, Value, json};

/// A refusal: HTTP code, reason, message, and what was wrong where.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Where a client may go on after a list has expired under it.
    pub continue_token: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The resource or kind that the message speaks of.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid` …
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl Cause {
    pub fn required(field: impl Into<String>, detail: &str) -> Cause {
        let tail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        Cause { reason: "FieldValueRequired", message: format!("Required value{tail}"), field: field.into() }
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl AsRef<str>) -> Cause {
        let message = format!("Invalid value: {}: {}", shown(&value.into()), detail.as_ref());
        Cause { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        let message = format!("Duplicate value: {}", shown(&value.into()));
        Cause { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    pub fn forbidden(field: impl Into<String>, detail: &str) -> Cause {
        Cause { reason: "FieldValueForbidden", message: format!("Forbidden: {detail}"), field: field.into() }
    }

    pub fn unsupported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Cause {
        let supported: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(&value.into()), supported.join(", "));
        Cause { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    pub fn too_long(field: impl Into<String>, bytes_max: usize) -> Cause {
        let message = format!("Too long: may not be more than {bytes_max} bytes");
        Cause { reason: "FieldValueTooLong", message, field: field.into() }
    }

    pub fn too_many(field: impl Into<String>, items: usize, items_max: usize) -> Cause {
        let noun = if items_max == 1 { "item" } else { "items" };
        let message = format!("Too many: {items}: must have at most {items_max} {noun}");
        Cause { reason: "FieldValueTooMany", message, field: field.into() }
    }

    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        Cause {
            reason: "FieldValueNotFound",
            message: format!("Not found: {}", shown(&value.into())),
            field: field.into(),
        }
    }
}

/// A value in a message: a text as Go quotes it, all else as JSON.
impl Cause {
    fn to_json(&self) -> Value {
        let texts = [("reason", self.reason), ("message", &self.message), ("field", &self.field)];
        let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(given.map(|(name, text)| (name.to_owned(), text.into())).collect())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() && control.is_ascii() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(control)))
            }
            control if control.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Reasons of refusals and of their causes, as apimachinery's meta/v1 names them.
const REASONS: [&str; 30] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
    "DisruptionBudget",
    "FieldManagerConflict",
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueNotFound",
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// The reason that somebody else's answer names; nothing if clients look for no such reason.
pub fn known_reason(text: &str) -> Option<&'static str> {
    REASONS.into_iter().find(|known| *known == text)
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: None, continue_token: String::new() }
    }

    fn about(mut self, kind: &super::kind::Kind, name: &str) -> Status {
        let details = self.details.get_or_insert_default();
        details.group = kind.group.to_string();
        details.kind = kind.resource.to_string();
        details.name = name.to_owned();
        self
    }

    pub fn not_found(kind: &super::kind::KindRef, name: &str) -> Status {
        let message = format!("{} \"{name}\" not found", kind.qualified_resource());
        Status::new(404, "NotFound", message).about(kind, name)
    }

    pub fn already_exists(kind: &super::kind::KindRef, name: &str) -> Status {
        let message = format!("{} \"{name}\" already exists", kind.qualified_resource());
        Status::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub fn conflict(kind: &super::kind::KindRef, name: &str, detail: &str) -> Status {
        let resource = kind.qualified_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {detail}");
        Status::new(409, "Conflict", message).about(kind, name)
    }

    /// The object is not the one that was meant; this speaks of its kind where others speak of the resource.
    pub fn precondition_failed(kind: &super::kind::KindRef, name: &str, detail: &str) -> Status {
        let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
        let message = format!("Operation cannot be fulfilled on {}{group} \"{name}\": {detail}", kind.kind);
        let mut status = Status::new(409, "Conflict", message).about(kind, name);
        status.details.get_or_insert_default().kind = kind.kind.to_string();
        status
    }

    /// The object was changed since the caller read it.
    pub fn stale(kind: &super::kind::KindRef, name: &str) -> Status {
        let detail = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(kind, name, detail)
    }

    pub fn forbidden(kind: &super::kind::KindRef, name: &str, detail: &str) -> Status {
        let resource = kind.qualified_resource();
        let message = format!("{resource} \"{name}\" is forbidden: {detail}");
        Status::new(403, "Forbidden", message).about(kind, name)
    }

    /// A user may not do this to a resource, be it served or not, or to a path (no resource).
    pub fn denied(group: &str, resource: &str, name: &str, detail: &str) -> Status {
        let dot = if group.is_empty() { "" } else { "." };
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {detail}"),
            (_, "") => format!("{resource}{dot}{group} is forbidden: {detail}"),
            _ => format!("{resource}{dot}{group} {} is forbidden: {detail}", quoted(name)),
        };
        let details = Details { name: name.into(), group: group.into(), kind: resource.into(), ..Details::default() };
        Status { details: Some(Box::new(details)), ..Status::new(403, "Forbidden", message) }
    }

    /// One or more fields are wrong.
    pub fn invalid(kind: &super::kind::KindRef, name: &str, causes: Vec<Cause>) -> Status {
        let mut list: Vec<String> = Vec::new();
        for text in causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)) {
            // What two checks found is told once.
            if !list.contains(&text) {
                list.push(text);
            }
        }
        let list = match list.as_slice() {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        let qualified = match &*kind.group {
            "" => kind.kind.to_string(),
            group => format!("{}.{group}", kind.kind),
        };
        let mut status =
            Status::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {list}")).about(kind, name);
        if let Some(details) = &mut status.details {
            details.kind = kind.kind.to_string();
            details.causes = causes;
        }
        status
    }

    /// An update that does not say what it is an update of, of a kind that insists on it.
    pub fn resource_version_required(kind: &super::kind::KindRef, name: &str) -> Status {
        let cause = Cause::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        let message =
            format!("{} \"{name}\" is invalid: {}: {}", kind.qualified_resource(), cause.field, cause.message);
        let mut status = Status::new(422, "Invalid", message).about(kind, name);
        status.details.get_or_insert_default().causes = vec![cause];
        status
    }

    /// Options of a request that do not go together: kind `ListOptions`, `DeleteOptions` …
    pub fn invalid_options(kind: &str, causes: Vec<Cause>) -> Status {
        let list: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = if causes.len() == 1 { list.concat() } else { format!("[{}]", list.join(", ")) };
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {list}");
        let details = Details { group: "meta.k8s.io".into(), kind: kind.into(), causes, ..Details::default() };
        Status { details: Some(Box::new(details)), ..Status::new(422, "Invalid", message) }
    }

    /// A question (a review) that can't be answered; its kind goes unnamed.
    pub fn invalid_question(group: &str, causes: Vec<Cause>) -> Status {
        let list: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = if causes.len() == 1 { list.concat() } else { format!("[{}]", list.join(", ")) };
        let details = Details { group: group.into(), causes, ..Details::default() };
        let status = Status::new(422, "Invalid", format!(".{group} \"\" is invalid: {list}"));
        Status { details: Some(Box::new(details)), ..status }
    }

    /// A fault that Kubernetes gives no reason for.
    pub fn unexplained(message: impl Into<String>) -> Status {
        Status::new(500, "", message)
    }

    /// A refusal by the server's front, before any resource has been asked: its details are there and empty.
    fn unrouted(code: u16, reason: &'static str, message: &str) -> Status {
        Status { details: Some(Box::default()), ..Status::new(code, reason, message) }
    }

    /// Nothing is served at this place.
    pub fn unknown_resource() -> Status {
        Status::unrouted(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn unknown_method() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::unrouted(405, "MethodNotAllowed", message)
    }

    /// No answer can be written in any of the media types that the client takes.
    pub fn unknown_accept() -> Status {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                       application/vnd.kubernetes.protobuf;stream=watch";
        Status::unrouted(406, "NotAcceptable", message)
    }

    /// A patch of no type that there is.
    pub fn unknown_patch() -> Status {
        Status::unrouted(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// Nothing is served anywhere near this place: clients are told in plain text.
    pub fn unknown_path() -> Status {
        Status::new(404, "", "404 page not found")
    }

    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// A well-formed request that can't be carried out.
    pub fn unprocessable(message: impl Into<String>) -> Status {
        Status { details: Some(Box::default()), ..Status::new(422, "Invalid", message) }
    }

    /// Fields that belong to other managers.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Status {
        let details = Details { causes, ..Details::default() };
        Status { details: Some(Box::new(details)), ..Status::new(409, "Conflict", message) }
    }

    /// A patch that makes no object of a kind.
    pub fn invalid_patch(problem: Cause) -> Status {
        let message = format!(" \"\" is invalid: {}: {}", problem.field, problem.message);
        let details = Details { causes: vec![problem], ..Details::default() };
        Status { details: Some(Box::new(details)), ..Status::new(422, "Invalid", message) }
    }

    pub fn method_not_allowed(message: impl Into<String>) -> Status {
        Status::new(405, "MethodNotAllowed", message)
    }

    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// A JSON patch of too many operations.
    pub fn too_many_operations(operations: usize, operations_max: usize) -> Status {
        let message = format!("The allowed maximum operations in a JSON patch is {operations_max}, got {operations}");
        Status::new(413, "RequestEntityTooLarge", message)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Status {
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// A body that is not read to its end.
    pub fn too_large(bytes_max: usize) -> Status {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Status::new(413, "RequestEntityTooLarge", message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Status {
        Status::new(406, "NotAcceptable", message)
    }

    pub fn internal(message: impl Into<String>) -> Status {
        Status::new(500, "InternalError", format!("Internal error occurred: {}", message.into()))
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        let mut status = Status::new(429, "TooManyRequests", message);
        status.details.get_or_insert_default().retry_after_seconds = retry_after_seconds;
        status
    }

    pub fn timeout(message: impl Into<String>) -> Status {
        Status::new(504, "Timeout", message)
    }

    /// The server can't be reached or can't do its work: what a client sees of a fault.
    pub fn unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    pub fn causes(&self) -> &[Cause] {
        self.details.as_deref().map_or(&[], |details| &details.causes)
    }

    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.continue_token.is_empty() {
            status["metadata"] = json!({"continue": self.continue_token});
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let (Some(details), Value::Object(fields)) = (&self.details, &mut status) {
            fields.insert("details".into(), details.to_json());
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        for (field, text) in texts {
            if !text.is_empty() {
                fields.insert(field.into(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            fields.insert("causes".into(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_seconds > 0 {
            fields.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(fields)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}
