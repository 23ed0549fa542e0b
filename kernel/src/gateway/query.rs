//! Query parameters: the options of a request, as meta/v1 `ListOptions`, `CreateOptions`, `PatchOptions` … name them.

use std::fmt::Display;
use std::time::Duration;

use cluster_core::api::request::{FieldValidation, Options, Propagation};
use cluster_core::api::selector::{FieldSelector, Selector};
use cluster_core::api::status::Status;

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

    /// The options that the parameters give.
    ///
    /// # Errors
    /// 400, with the text of the parser that refused.
    pub fn options(&self) -> Result<Options, Status> {
        let labels = Selector::parse(self.get("labelSelector").unwrap_or_default()).map_err(bad)?;
        let fields = FieldSelector::parse(self.get("fieldSelector").unwrap_or_default()).map_err(bad)?;
        Ok(Options {
            dry_run: self.all("dryRun").any(|value| value == "All"),
            field_manager: self.text("fieldManager"),
            force: self.is_true("force"),
            field_validation: match self.get("fieldValidation") {
                Some("Ignore") => FieldValidation::Ignore,
                Some("Strict") => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
            grace_period_seconds: self.integer("gracePeriodSeconds")?,
            propagation: self.get("propagationPolicy").and_then(propagation).or_else(|| {
                self.flag("orphanDependents")
                    .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background })
            }),
            labels,
            fields,
            limit: self.integer("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            continue_token: self.text("continue"),
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            bookmarks: self.is_true("allowWatchBookmarks"),
            send_initial_events: self.flag("sendInitialEvents"),
            ..Options::default()
        })
    }
}

pub fn propagation(text: &str) -> Option<Propagation> {
    match text {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        _ => None,
    }
}

fn bad(problem: impl Display) -> Status {
    Status::bad_request(problem.to_string())
}
