//! Query parameters: the options of a request, as meta/v1 `ListOptions`, `CreateOptions`, `PatchOptions` … name them.

use std::fmt::Display;
use std::time::Duration;

use cluster_core::api::request::{FieldValidation, Options, PatchType, Propagation, Verb};
use cluster_core::api::selector::{FieldSelector, Selector};
use cluster_core::api::status::{Cause, Status};

/// A field manager's name is no longer than this.
const MANAGER_BYTES_MAX: usize = 128;

/// The parameters of a URL: a name may come more than once, the first counts.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: Option<&str>) -> Query {
        Query(form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    /// Anything but `false` and `0` is true, as apimachinery's conversion has it.
    pub fn is_true(&self, name: &str) -> bool {
        self.flag(name).unwrap_or(false)
    }

    /// Whether the answer is to be indented, for a person.
    pub fn is_pretty(&self) -> bool {
        self.get("pretty").is_some_and(|value| value != "false" && value != "0")
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| bad(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
    }

    /// How long a watch may last, if it says so.
    pub fn timeout(&self) -> Result<Option<Duration>, Status> {
        let seconds = self.integer("timeoutSeconds")?;
        Ok(seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }

    /// What rows of a table carry must be one of three things.
    pub fn check_include_object(&self) -> Result<(), Status> {
        match self.get("includeObject") {
            None | Some("" | "None" | "Metadata" | "Object") => Ok(()),
            Some(other) => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let problem = format!("includeObject: Invalid value: {other:?}: {detail}");
                Err(bad(format!("Unable to convert to Table as requested: {problem}")))
            }
        }
    }

    /// The options that the parameters give to a request of this verb.
    ///
    /// # Errors
    /// 400, with the text of the parser that refused; 422 for values that are not offered.
    pub fn options(&self, verb: Verb) -> Result<Options, Status> {
        let labels = Selector::parse(self.get("labelSelector").unwrap_or_default()).map_err(bad)?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default()).map_err(bad)?;
        let orphan = self.flag("orphanDependents");
        let options = Options {
            dry_run: self.all("dryRun").any(|value| value == "All"),
            field_manager: self.text("fieldManager"),
            force: self.is_true("force"),
            field_validation: match self.get("fieldValidation") {
                Some("Ignore") => FieldValidation::Ignore,
                Some("Strict") => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
            grace_period_seconds: self.integer("gracePeriodSeconds")?,
            propagation: self.get("propagationPolicy").and_then(propagation).or(orphan.map(of_orphan)),
            labels,
            fields,
            limit: self.integer("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            continue_token: self.text("continue"),
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            bookmarks: self.is_true("allowWatchBookmarks"),
            send_initial_events: self.flag("sendInitialEvents"),
            ..Options::default()
        };
        let kind = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch(_) => "PatchOptions",
            Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
            Verb::Get | Verb::List | Verb::Watch => return Ok(options),
        };
        let mut causes = self.manager_causes(verb);
        let dry_run: Vec<&str> = self.all("dryRun").collect();
        causes.extend(dry_run_cause(&dry_run));
        if kind == "DeleteOptions" {
            causes.extend(propagation_causes(self.get("propagationPolicy"), orphan));
        } else {
            let validation = self.get("fieldValidation").unwrap_or_default();
            let supported = ["", "Ignore", "Strict", "Warn"];
            if !supported.contains(&validation) {
                causes.push(Cause::unsupported("fieldValidation", validation, &supported));
            }
        }
        if causes.is_empty() { Ok(options) } else { Err(Status::invalid_options(kind, causes)) }
    }

    /// What is wrong with the field manager and with `force`, which only an apply knows.
    fn manager_causes(&self, verb: Verb) -> Vec<Cause> {
        let mut causes = Vec::new();
        let manager = self.get("fieldManager").unwrap_or_default();
        match verb {
            Verb::Patch(PatchType::Apply) if manager.is_empty() => {
                causes.push(Cause::required("fieldManager", "is required for apply patch"));
            }
            Verb::Patch(PatchType::Apply) => {}
            Verb::Patch(_) if self.get("force").is_some() => {
                causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        if manager.len() > MANAGER_BYTES_MAX {
            causes.push(Cause::too_long("fieldManager", MANAGER_BYTES_MAX));
        }
        // Positions count letters.
        if let Some((position, letter)) = manager.chars().enumerate().find(|(_, letter)| letter.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
            causes.push(Cause::invalid("fieldManager", manager, detail));
        }
        causes
    }
}

pub fn dry_run_cause(values: &[&str]) -> Option<Cause> {
    let unknown = values.iter().any(|value| *value != "All");
    unknown.then(|| Cause::unsupported("dryRun", values.to_vec(), &["All"]))
}

/// `orphanDependents` is the old way to say it; both at once are too much.
pub fn propagation_causes(policy: Option<&str>, orphan_dependents: Option<bool>) -> Option<Cause> {
    let policy = policy?;
    if orphan_dependents.is_some() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        return Some(Cause::invalid("propagationPolicy", policy, detail));
    }
    let supported = ["Foreground", "Background", "Orphan", "nil"];
    propagation(policy).is_none().then(|| Cause::unsupported("propagationPolicy", policy, &supported))
}

pub fn propagation(text: &str) -> Option<Propagation> {
    match text {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        _ => None,
    }
}

pub fn of_orphan(orphan: bool) -> Propagation {
    if orphan { Propagation::Orphan } else { Propagation::Background }
}

fn bad(problem: impl Display) -> Status {
    Status::bad_request(problem.to_string())
}
