//! Levels, versions of the standards, and what the labels of a namespace ask for.
//! <https://kubernetes.io/docs/concepts/security/pod-security-standards/>

use std::fmt;

use crate::api::selector::Labels;
use crate::api::status::Cause;

const PREFIX: &str = "pod-security.kubernetes.io/";
/// The version of the standards that `latest` is: 1.36.
const LATEST: u32 = 36;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

/// A level as a minor version of Kubernetes has it; no version is the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Option<u32>,
}

impl LevelVersion {
    /// The minor version whose checks apply.
    pub fn minor(self) -> u32 {
        self.version.unwrap_or(LATEST).min(LATEST)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

/// What a namespace asks for. Auditing is left out: there is no audit log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    pub enforce: LevelVersion,
    pub warn: LevelVersion,
}

/// The namespace has labels of this plugin.
pub fn is_labelled(labels: &Labels) -> bool {
    labels.range(PREFIX.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(PREFIX))
}

impl Policy {
    /// Reads the labels. A wrong one counts as the strictest to enforce and as none to warn of.
    pub fn of(labels: &Labels) -> (Policy, Vec<Cause>) {
        let mut causes = Vec::new();
        let enforce = read(labels, "enforce", Level::Restricted, &mut causes);
        read(labels, "audit", Level::Privileged, &mut causes);
        let mut warn = read(labels, "warn", Level::Privileged, &mut causes);
        let is_right = labels.get(&format!("{PREFIX}enforce")).is_some_and(|text| level(text).is_some());
        if is_right && !labels.contains_key(&format!("{PREFIX}warn")) && enforce.level > warn.level {
            warn.level = enforce.level;
            if !labels.contains_key(&format!("{PREFIX}warn-version")) {
                warn.version = enforce.version;
            }
        }
        (Policy { enforce, warn }, causes)
    }
}

fn read(labels: &Labels, mode: &str, if_wrong: Level, causes: &mut Vec<Cause>) -> LevelVersion {
    let mut read = LevelVersion::default();
    let name = format!("{PREFIX}{mode}");
    if let Some(text) = labels.get(&name) {
        read.level = level(text).unwrap_or_else(|| {
            causes.push(wrong(&name, text, "must be one of privileged, baseline, restricted"));
            if_wrong
        });
    }
    let name = format!("{PREFIX}{mode}-version");
    if let Some(text) = labels.get(&name).filter(|text| *text != "latest") {
        read.version = version(text);
        if read.version.is_none() {
            causes.push(wrong(&name, text, "must be \"latest\" or \"v1.x\""));
        }
    }
    read
}

fn wrong(label: &str, value: &str, detail: &str) -> Cause {
    Cause::invalid(format!("metadata.labels[{label}]"), value, detail)
}

fn level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn version(text: &str) -> Option<u32> {
    let minor = text.strip_prefix("v1.")?;
    let is_plain = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    minor.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| (format!("{PREFIX}{name}"), value.to_string())).collect()
    }

    #[test]
    fn labels_name_a_level_and_a_version() {
        let (policy, causes) = Policy::of(&labels(&[("enforce", "baseline"), ("enforce-version", "v1.24")]));
        assert_eq!((policy.enforce.to_string().as_str(), causes.len()), ("baseline:v1.24", 0));
        // What is enforced is warned of in workloads, too.
        assert_eq!(policy.warn, policy.enforce);
        let (policy, causes) = Policy::of(&labels(&[("enforce", "strict"), ("warn-version", "v1.01")]));
        assert_eq!(policy.enforce.to_string(), "restricted:latest");
        assert_eq!(policy.warn.level, Level::Privileged);
        assert_eq!(causes.len(), 2);
    }
}
