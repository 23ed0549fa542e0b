//! The file with which kubelets are started, as far as it is heeded: when a machine counts as short, and what follows.
//! <https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>

use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::eviction::Signal;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Status;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::{custom, parse_duration};

#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub thresholds: Vec<Threshold>,
    /// A condition holds on for so long after the machine has recovered.
    pub transition: Duration,
    /// What pods get at most to end in, where a soft threshold was met.
    pub pod_grace_max: Duration,
}

/// From where on a resource is short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub signal: Signal,
    pub at: Amount,
    /// How long it must be met before pods go (soft); `None`: at once (hard).
    pub grace: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Units(u64),
    Percent(f64),
}

impl Amount {
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Amount::Units(units) => units,
            Amount::Percent(percent) => (capacity as f64 * percent / 100.0) as u64,
        }
    }

    fn parse(text: &str) -> Option<Amount> {
        match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(Amount::Percent)
            }
            None => {
                quantity::parse(text)?;
                u64::try_from(quantity::units(&Quantity(text.to_owned()))).ok().map(Amount::Units)
            }
        }
    }
}

impl Default for Configuration {
    fn default() -> Configuration {
        let hard = |signal, at| Threshold { signal, at, grace: None };
        Configuration {
            thresholds: vec![
                hard(Signal::Memory, Amount::Units(100 << 20)),
                hard(Signal::Disk, Amount::Percent(10.0)),
                hard(Signal::Pids, Amount::Percent(5.0)),
            ],
            transition: Duration::from_secs(300),
            pod_grace_max: Duration::ZERO,
        }
    }
}

/// KubeletConfiguration, which no API serves.
pub fn kind() -> &'static KindRef {
    static KIND: LazyLock<KindRef> = LazyLock::new(|| custom::kind_of(&definition()));
    &KIND
}

/// # Errors
/// What is wrong with the file, with its place.
pub fn read(file: &Value) -> Result<Configuration, Status> {
    let file = custom::read_strictly(kind(), file)?;
    let mut causes = Causes::new();
    let mut configuration = Configuration::default();
    if file["evictionHard"].is_object() {
        configuration.thresholds = thresholds(&file, "evictionHard", false, &mut causes);
    }
    configuration.thresholds.extend(thresholds(&file, "evictionSoft", true, &mut causes));
    let transition = Path::new("evictionPressureTransitionPeriod");
    if let Some(text) = file["evictionPressureTransitionPeriod"].as_str() {
        match duration(text) {
            Some(duration) => configuration.transition = duration,
            None => causes.invalid(&transition, text, "expected a duration, such as 5m"),
        }
    }
    match file["evictionMaxPodGracePeriod"].as_i64().map(u64::try_from) {
        Some(Ok(seconds)) => configuration.pod_grace_max = Duration::from_secs(seconds),
        Some(Err(_)) => causes.invalid(
            &Path::new("evictionMaxPodGracePeriod"),
            file["evictionMaxPodGracePeriod"].clone(),
            "must not be negative",
        ),
        None => {}
    }
    if causes.is_empty() { Ok(configuration) } else { Err(Status::invalid(kind(), "", causes.into())) }
}

fn thresholds(file: &Value, field: &str, soft: bool, causes: &mut Causes) -> Vec<Threshold> {
    let path = Path::new(field);
    let mut found = Vec::new();
    for (name, value) in file[field].as_object().into_iter().flatten() {
        let signal = match name.as_str() {
            "memory.available" => Signal::Memory,
            "nodefs.available" | "imagefs.available" | "containerfs.available" => Signal::Disk,
            "pid.available" => Signal::Pids,
            // Files and directories are not counted here.
            "nodefs.inodesFree" | "imagefs.inodesFree" | "containerfs.inodesFree" => continue,
            name => {
                causes.invalid(&path, name, format!("unsupported eviction signal {name}"));
                continue;
            }
        };
        let text = value.as_str().unwrap_or_default();
        let Some(at) = Amount::parse(text) else {
            causes.invalid(
                &path,
                text,
                format!("expected a quantity or a percentage for {name}, such as 100Mi or 10%"),
            );
            continue;
        };
        let grace = file["evictionSoftGracePeriod"][name].as_str();
        let grace = match grace.map(duration) {
            _ if !soft => None,
            Some(Some(grace)) => Some(grace),
            Some(None) => {
                causes.invalid(
                    &Path::new("evictionSoftGracePeriod"),
                    grace.unwrap_or_default(),
                    "expected a duration, such as 1m30s",
                );
                continue;
            }
            None => {
                let told = format!("grace period must be specified for the soft eviction threshold {name}");
                causes.invalid(&path, text, told);
                continue;
            }
        };
        found.push(Threshold { signal, at, grace });
    }
    found
}

fn duration(text: &str) -> Option<Duration> {
    parse_duration(text)?.try_into().ok()
}

fn definition() -> Object {
    let texts = |description: &str| json!({"type": "object", "additionalProperties": {"type": "string"}, "description": description});
    let schema = json!({
        "type": "object",
        "description": "KubeletConfiguration is the file with which kubelets are started; of its fields these are heeded.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "evictionHard": texts("Signals, such as memory.available, and what must be left, such as 100Mi or 10%. If less is, a pod goes at once."),
            "evictionSoft": texts("The same, but pods go only when less has been left for the grace period."),
            "evictionSoftGracePeriod": texts("Signals of evictionSoft, and how long less must be left, such as 1m30s."),
            "evictionMaxPodGracePeriod": {"type": "integer", "format": "int32", "description": "How many seconds pods get at most to end in, where a soft threshold was met."},
            "evictionPressureTransitionPeriod": {"type": "string", "description": "How long the node's condition holds on after the machine has recovered; 5m, if it is not there."},
        },
    });
    let definition = json!({
        "metadata": {"name": "kubeletconfigurations.kubelet.config.k8s.io"},
        "spec": {
            "group": "kubelet.config.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "kubeletconfigurations", "kind": "KubeletConfiguration"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    // The text above is a definition.
    let none = || Object::new::<CustomResourceDefinition>("", "", Default::default());
    Object::from_json(KindRef::of::<CustomResourceDefinition>(), definition).unwrap_or_else(|_| none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_threshold_needs_a_grace_period() {
        let refused = read(&json!({"evictionSoft": {"memory.available": "1Gi"}})).unwrap_err().message;
        assert!(
            refused.ends_with("grace period must be specified for the soft eviction threshold memory.available"),
            "{refused}"
        );
        let refused = read(&json!({"evictionHard": {"cpu.available": "1"}})).unwrap_err().message;
        assert!(refused.ends_with("unsupported eviction signal cpu.available"), "{refused}");
        let read = read(&json!({"evictionHard": {"nodefs.available": "15%"}})).unwrap();
        assert_eq!(read.thresholds, [Threshold { signal: Signal::Disk, at: Amount::Percent(15.0), grace: None }]);
    }
}
