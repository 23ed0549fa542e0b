//! The file with which kube-scheduler is started: read, and held to what is possible.
//! <https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/>

mod fields;

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::NodeAffinity;
use serde_json::Value;

use super::profile::{Configuration, DEFAULT_SCHEDULER, DefaultSpread, Fit, Profile, Strategy};
use super::terms::NodeTerm;
use super::{filters, scores};
use crate::api::kind::KindRef;
use crate::api::status::Status;
use crate::apiserver::custom;
use crate::apiserver::validation::field::{Causes, Path};

/// Plugins that a profile may name and that have nothing to decide here, or always do.
const OTHERS: &[&str] = &["DefaultBinder", "DefaultPreemption", "DynamicResources", "PrioritySort", "SchedulingGates"];

/// The points of a cycle at which plugins are asked, as a profile names them.
const POINTS: &[&str] = &[
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
];

/// KubeSchedulerConfiguration, which no API serves.
pub fn kind() -> &'static KindRef {
    static KIND: LazyLock<KindRef> = LazyLock::new(|| custom::kind_of(&fields::definition()));
    &KIND
}

/// # Errors
/// What a strict decoder and the validation of kube-scheduler say.
pub fn read(value: &Value) -> Result<Configuration, Status> {
    let value = custom::read_strictly(kind(), value)?;
    let mut reader = Reader::default();
    let configuration = reader.configuration(&value);
    match reader.causes.is_empty() {
        true => Ok(configuration),
        false => Err(Status::invalid(kind(), "", reader.causes.into())),
    }
}

#[derive(Default)]
struct Reader {
    causes: Causes,
}

fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

impl Reader {
    fn configuration(&mut self, value: &Value) -> Configuration {
        let root = Path::default();
        let (first, most) = Configuration::default().backoff_seconds;
        let seconds = |field: &str, or: u64| value[field].as_i64().map_or(or as i64, |seconds| seconds);
        let (first, most) = (seconds("podInitialBackoffSeconds", first), seconds("podMaxBackoffSeconds", most));
        if first <= 0 {
            self.causes.invalid(&root.child("podInitialBackoffSeconds"), first, "must be greater than 0");
        }
        if most < first {
            let told = "must be greater than or equal to PodInitialBackoffSeconds";
            self.causes.invalid(&root.child("podMaxBackoffSeconds"), most, told);
        }
        if let Some(parallelism) = value["parallelism"].as_i64().filter(|parallelism| *parallelism <= 0) {
            let told = "should be an integer value greater than zero";
            self.causes.invalid(&root.child("parallelism"), parallelism, told);
        }
        if items(&value["extenders"]).next().is_some() {
            self.causes.forbidden(&root.child("extenders"), "there is nobody to ask: containers are no processes");
        }
        let percentage = self.percentage(value, &root).unwrap_or(0);
        let mut profiles: Vec<Arc<Profile>> = Vec::new();
        for (index, profile) in items(&value["profiles"]) {
            let path = root.child("profiles").index(index);
            let profile = self.profile(profile, &path, percentage);
            if profiles.iter().any(|known| known.scheduler_name == profile.scheduler_name) {
                self.causes.duplicate(&path.child("schedulerName"), &*profile.scheduler_name);
            }
            profiles.push(Arc::new(profile));
        }
        if profiles.is_empty() {
            profiles.push(Arc::new(Profile { percentage_of_nodes: percentage, ..Profile::default() }));
        }
        let positive = |seconds: i64| u64::try_from(seconds).unwrap_or(1);
        Configuration { profiles, backoff_seconds: (positive(first), positive(most)) }
    }

    fn percentage(&mut self, value: &Value, path: &Path) -> Option<usize> {
        let percentage = value["percentageOfNodesToScore"].as_i64()?;
        if !(0..=100).contains(&percentage) {
            let path = path.child("percentageOfNodesToScore");
            self.causes.invalid(&path, percentage, "not in valid range [0-100]");
        }
        usize::try_from(percentage).ok()
    }

    fn profile(&mut self, value: &Value, path: &Path, percentage: usize) -> Profile {
        let name = match value.get("schedulerName").and_then(Value::as_str) {
            Some("") => {
                self.causes.required(&path.child("schedulerName"), "");
                ""
            }
            name => name.unwrap_or(DEFAULT_SCHEDULER),
        };
        let mut profile = Profile {
            scheduler_name: name.into(),
            percentage_of_nodes: self.percentage(value, path).unwrap_or(percentage),
            ..Profile::default()
        };
        for point in POINTS {
            self.plugins(&value["plugins"][*point], point, &path.child("plugins").child(point), &mut profile);
        }
        let mut seen: Vec<&str> = Vec::new();
        for (index, config) in items(&value["pluginConfig"]) {
            let path = path.child("pluginConfig").index(index);
            let name = config["name"].as_str().unwrap_or_default();
            if seen.contains(&name) {
                self.causes.duplicate(&path, name);
            }
            seen.push(name);
            self.arguments(name, &config["args"], &path, &mut profile);
        }
        profile
    }

    /// What a profile turns off and on at one point. A plugin that is turned on again has a new weight.
    fn plugins(&mut self, value: &Value, point: &str, path: &Path, profile: &mut Profile) {
        let filters_too = matches!(point, "multiPoint" | "filter");
        let scores_too = matches!(point, "multiPoint" | "score");
        let preempts_too = matches!(point, "multiPoint" | "postFilter");
        for (list, enable) in [("disabled", false), ("enabled", true)] {
            for (index, plugin) in items(&value[list]) {
                let place = path.child(list).index(index).child("name");
                let name = plugin["name"].as_str().unwrap_or_default();
                let all = name == "*" && !enable;
                let means = |known: &str| all || known == name;
                if !all && !is_known(name) {
                    let near = nearest(name).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                    self.causes.invalid(&place, name, format!("plugin {name:?} does not exist{near}"));
                }
                if filters_too {
                    for (known, enabled) in filters::ALL.into_iter().zip(&mut profile.filters) {
                        *enabled = if means(known.name()) { enable } else { *enabled };
                    }
                }
                if scores_too {
                    let asked = plugin["weight"].as_i64().filter(|weight| *weight != 0);
                    for (known, weight) in scores::ALL.into_iter().zip(&mut profile.weights) {
                        if means(known.name()) {
                            // At one point alone a plugin weighs 1 if nothing is said.
                            let usual = if point == "multiPoint" { known.weight() } else { 1 };
                            *weight = if enable { asked.unwrap_or(usual) } else { 0 };
                        }
                    }
                }
                if preempts_too && means("DefaultPreemption") {
                    profile.preempts = enable;
                }
            }
        }
    }

    fn arguments(&mut self, plugin: &str, args: &Value, path: &Path, profile: &mut Profile) {
        let known = match plugin {
            "NodeResourcesFit" => fields::FIT,
            "PodTopologySpread" => fields::SPREAD,
            "InterPodAffinity" => fields::POD_AFFINITY,
            "NodeAffinity" => fields::NODE_AFFINITY,
            name if is_known(name) => &[][..],
            name => {
                return self.causes.invalid(&path.child("name"), name, format!("plugin {name:?} does not exist"));
            }
        };
        let path = path.child("args");
        for field in args.as_object().into_iter().flatten().map(|(field, _)| field.as_str()) {
            if !known.contains(&field) && !matches!(field, "apiVersion" | "kind") {
                let told = format!("{plugin} has no such argument; it has: {}", known.join(", "));
                self.causes.forbidden(&path.child(field), told.trim_end_matches("; it has: "));
            }
        }
        match plugin {
            "NodeResourcesFit" => profile.fit = self.fit(&args["scoringStrategy"], &path.child("scoringStrategy")),
            "PodTopologySpread" => profile.spread = self.spread(args, &path),
            "InterPodAffinity" => {
                let weight = args["hardPodAffinityWeight"].as_i64().unwrap_or(1);
                if !(0..=100).contains(&weight) {
                    self.causes.invalid(&path.child("hardPodAffinityWeight"), weight, "not in valid range [0-100]");
                }
                profile.hard_pod_affinity_weight = weight;
                profile.ignores_preferences_of_others = args["ignorePreferredTermsOfExistingPods"] == true;
            }
            "NodeAffinity" => self.added_affinity(&args["addedAffinity"], &path.child("addedAffinity"), profile),
            _ => {}
        }
    }

    fn fit(&mut self, value: &Value, path: &Path) -> Fit {
        let mut fit = Fit::default();
        let asked: Vec<(String, i64)> = items(&value["resources"])
            .map(|(index, resource)| {
                let weight = resource["weight"].as_i64().filter(|weight| *weight != 0).unwrap_or(1);
                if !(1..=100).contains(&weight) {
                    let told = format!("resource weight of {weight} not in valid range (0, 100]");
                    self.causes.invalid(&path.child("resources").index(index).child("weight"), weight, told);
                }
                (resource["name"].as_str().unwrap_or_default().to_owned(), weight)
            })
            .collect();
        if !asked.is_empty() {
            fit.resources = asked;
        }
        fit.strategy = match value["type"].as_str() {
            None | Some("LeastAllocated") => Strategy::LeastAllocated,
            Some("MostAllocated") => Strategy::MostAllocated,
            Some("RequestedToCapacityRatio") => {
                let path = path.child("requestedToCapacityRatio").child("shape");
                Strategy::RequestedToCapacityRatio(self.shape(&value["requestedToCapacityRatio"]["shape"], &path))
            }
            Some(other) => {
                let known = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
                self.causes.not_supported(&path.child("type"), other, &known);
                Strategy::LeastAllocated
            }
        };
        fit
    }

    fn shape(&mut self, value: &Value, path: &Path) -> Vec<(i64, i64)> {
        let mut shape: Vec<(i64, i64)> = Vec::new();
        for (index, point) in items(value) {
            let path = path.index(index);
            let (utilization, score) =
                (point["utilization"].as_i64().unwrap_or(0), point["score"].as_i64().unwrap_or(0));
            if !(0..=100).contains(&utilization) {
                self.causes.invalid(&path.child("utilization"), utilization, "not in valid range [0-100]");
            }
            if shape.last().is_some_and(|(before, _)| *before >= utilization) {
                let told = "utilization values must be sorted in increasing order";
                self.causes.invalid(&path.child("utilization"), utilization, told);
            }
            if !(0..=10).contains(&score) {
                self.causes.invalid(&path.child("score"), score, "not in valid range [0-10]");
            }
            shape.push((utilization, score));
        }
        if shape.is_empty() {
            self.causes.required(path, "at least one point must be specified");
        }
        shape
    }

    fn spread(&mut self, args: &Value, path: &Path) -> DefaultSpread {
        let given = args["defaultingType"].as_str();
        let list = path.child("defaultConstraints");
        let constraints: Vec<_> = items(&args["defaultConstraints"])
            .map(|(index, constraint)| {
                let path = list.index(index);
                let text = |field: &str| constraint[field].as_str().unwrap_or_default();
                let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
                if skew <= 0 {
                    self.causes.invalid(&path.child("maxSkew"), skew, "not in valid range (0, inf)");
                }
                if text("topologyKey").is_empty() {
                    self.causes.required(&path.child("topologyKey"), "can not be empty");
                }
                let when = text("whenUnsatisfiable");
                let known = ["DoNotSchedule", "ScheduleAnyway"];
                match when {
                    "" => self.causes.required(&path.child("whenUnsatisfiable"), "can not be empty"),
                    when if !known.contains(&when) => {
                        self.causes.not_supported(&path.child("whenUnsatisfiable"), when, &known);
                    }
                    _ => {}
                }
                if constraint.get("labelSelector").is_some() {
                    let told = "constraint must not define a selector, as they deduced for each pod";
                    self.causes.forbidden(&path.child("labelSelector"), told);
                }
                (text("topologyKey").to_owned(), skew, when == "DoNotSchedule")
            })
            .collect();
        match given {
            Some("List") => DefaultSpread { is_system: false, constraints },
            None | Some("System") => {
                if !constraints.is_empty() {
                    let told = "when .defaultingType is System";
                    self.causes.invalid(&list, args["defaultConstraints"].clone(), told);
                }
                DefaultSpread::default()
            }
            Some(other) => {
                self.causes.not_supported(&path.child("defaultingType"), other, &["System", "List"]);
                DefaultSpread::default()
            }
        }
    }

    fn added_affinity(&mut self, value: &Value, path: &Path, profile: &mut Profile) {
        if value.is_null() {
            return;
        }
        let affinity: NodeAffinity = match serde_json::from_value(value.clone()) {
            Ok(affinity) => affinity,
            Err(error) => return self.causes.invalid(path, value.clone(), error.to_string()),
        };
        let required = affinity.required_during_scheduling_ignored_during_execution;
        profile.added_node_terms =
            required.map(|required| required.node_selector_terms.iter().map(NodeTerm::read).collect());
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.into_iter().flatten();
        profile.added_node_preferences =
            preferred.map(|wish| (i64::from(wish.weight), NodeTerm::read(&wish.preference))).collect();
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    let filters = filters::ALL.into_iter().map(|filter| filter.name());
    let scores = scores::ALL.into_iter().map(|score| score.name());
    filters.chain(scores).chain(OTHERS.iter().copied())
}

fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// A plugin with nearly this name.
fn nearest(name: &str) -> Option<&'static str> {
    let start = |known: &&str| {
        let equal = known.bytes().zip(name.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
        equal * 3 >= known.len() && equal >= 4
    };
    names().find(start)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(profile: Value) -> String {
        let whole = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]});
        read(&whole).map(|_| ()).unwrap_err().message
    }

    #[test]
    fn what_cannot_be_is_told_by_its_place() {
        let unknown = refused(json!({"plugins": {"scores": {}}}));
        assert!(unknown.ends_with("unknown field \"profiles[0].plugins.scores\""), "{unknown}");
        let fit = |strategy: Value| json!({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]});
        for (profile, told) in [
            (
                json!({"plugins": {"score": {"disabled": [{"name": "NodeResourceFit"}]}}}),
                "plugin \"NodeResourceFit\" does not exist; did you mean",
            ),
            (fit(json!({"type": "Most"})), "scoringStrategy.type: Unsupported value: \"Most\""),
            (
                fit(json!({"type": "RequestedToCapacityRatio"})),
                "shape: Required value: at least one point must be specified",
            ),
            (
                json!({"percentageOfNodesToScore": 101}),
                "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            ),
            (
                json!({"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 200}}]}),
                "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid range [0-100]",
            ),
        ] {
            let message = refused(profile);
            assert!(message.contains(told), "{message}");
        }
    }

    #[test]
    fn a_profile_changes_plugins_and_weights() {
        let profile = json!({
            "schedulerName": "packer",
            "plugins": {
                "multiPoint": {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "TaintToleration", "weight": 9}]},
                "filter": {"disabled": [{"name": "NodeUnschedulable"}]},
                "postFilter": {"disabled": [{"name": "*"}]},
            },
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
        });
        let read = read(&json!({"profiles": [profile, {}]})).unwrap();
        let packer = read.profile("packer").unwrap();
        let weight = |name: &str| packer.scores().find(|(_, score, _)| score.name() == name).map(|(.., weight)| weight);
        assert_eq!(
            (weight("ImageLocality"), weight("TaintToleration"), weight("NodeAffinity")),
            (None, Some(9), Some(2))
        );
        assert!(!packer.filters().any(|filter| filter.name() == "NodeUnschedulable") && !packer.preempts);
        assert_eq!(packer.fit.strategy, Strategy::MostAllocated);
        assert_eq!(**read.profile(DEFAULT_SCHEDULER).unwrap(), Profile::default());
    }
}
