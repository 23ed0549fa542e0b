//! How a verb fails, and what kubectl then prints. (`CheckErr` of k8s.io/kubectl/pkg/cmd/util.)

use cluster_core::api::status::Status;

#[derive(Clone, Debug)]
pub enum Failure {
    /// The server said no.
    Server(Box<Status>),
    /// `error: …`
    Message(String),
    /// A wrong use of a verb: `error: …`, then where help is.
    Usage(String),
    /// Flags that can't be read.
    Flags(String),
    /// Text as it is.
    Raw(String),
    /// Several things went wrong; each is told.
    Many(Vec<Failure>),
    /// A command in a container ended with this exit code, which is then kubectl's.
    Command(i32),
    /// A failure with an exit code of its own.
    Coded(i32, Box<Failure>),
    /// All has been said.
    Quiet,
}

pub type Outcome = Result<(), Failure>;

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::Server(Box::new(status))
    }
}

pub fn message<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Message(text.into()))
}

pub fn usage<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(text.into()))
}

/// Ends a verb that went on after failures.
pub fn all_of(mut failures: Vec<Failure>) -> Outcome {
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => Err(Failure::Many(failures)),
    }
}

impl Failure {
    /// Puts words before the server's: `error when creating "web.yaml": …`.
    pub fn prefixed(self, prefix: &str) -> Failure {
        match self {
            Failure::Server(mut status) => {
                status.message = format!("{prefix}{}", status.message);
                Failure::Server(status)
            }
            Failure::Message(text) => Failure::Message(format!("{prefix}{text}")),
            other => other,
        }
    }

    /// What the program ends with.
    pub fn code(&self) -> i32 {
        match self {
            Failure::Command(code) | Failure::Coded(code, _) => *code,
            _ => 1,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Failure::Server(status) if status.is_not_found())
    }

    /// The text for standard error, with its last newline. `command` is `kubectl get`.
    pub fn text(&self, command: &str) -> String {
        match self {
            Failure::Server(status) => format!("{}\n", server(status)),
            Failure::Message(text) => format!("error: {}\n", text.strip_prefix("error: ").unwrap_or(text)),
            Failure::Usage(text) => format!("error: {text}\nSee '{command} -h' for help and examples\n"),
            Failure::Flags(text) => format!("error: {text}\nSee '{command} --help' for usage.\n"),
            Failure::Raw(text) => format!("{text}\n"),
            // Of several, kubectl puts no word before those that are its own.
            Failure::Many(all) => all
                .iter()
                .map(|failure| match failure {
                    Failure::Message(text) => format!("{text}\n"),
                    failure => failure.text(command),
                })
                .collect(),
            Failure::Command(code) => format!("command terminated with exit code {code}\n"),
            Failure::Coded(_, failure) => failure.text(command),
            Failure::Quiet => String::new(),
        }
    }
}

fn server(status: &Status) -> String {
    let refused = ["The connection to the server", "Unable to connect to the server"]
        .iter()
        .any(|words| status.message.starts_with(words));
    match (&status.details, status.reason) {
        _ if refused => status.message.clone(),
        (Some(details), "Invalid") => {
            let mut causes: Vec<String> = Vec::new();
            for cause in &details.causes {
                let text = if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                };
                if !causes.contains(&text) {
                    causes.push(text);
                }
            }
            let about = match (details.kind.as_str(), details.name.as_str()) {
                ("", "") => "The request is invalid".to_owned(),
                (kind, name) => format!("The {kind} {name:?} is invalid"),
            };
            match causes.as_slice() {
                [] => format!("{about}: {}", status.message),
                [one] => format!("{about}: {one}"),
                more => format!("{about}: \n* {}", more.join("\n* ")),
            }
        }
        (_, "Unauthorized") => format!("error: You must be logged in to the server ({})", status.message),
        (_, "") => format!("Error from server: {}", status.message),
        (_, reason) => format!("Error from server ({reason}): {}", status.message),
    }
}
