//! How many replicas one resource metric asks for: what pods use over what they should, times the pods that count.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details>

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerSpec};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::super::pods;
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::request::Response;
use crate::api::status::Status;
use crate::clock::Time;

/// `--horizontal-pod-autoscaler-tolerance`
const TOLERANCE: f64 = 0.1;
/// `--horizontal-pod-autoscaler-cpu-initialization-period`
const CPU_INITIALIZATION_PERIOD: Duration = Duration::from_secs(300);
/// `--horizontal-pod-autoscaler-initial-readiness-delay`
const INITIAL_READINESS_DELAY: Duration = Duration::from_secs(30);

/// What a metric asks for. Amounts are thousandths of the resource's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub replicas: i32,
    /// Percent of the request, if that is the target.
    pub utilization: Option<i32>,
    /// A pod's use, on an average.
    pub average: i64,
}

/// The deviation that is let be, downwards and upwards.
#[derive(Clone, Copy, Debug)]
pub struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    pub fn of(spec: &HorizontalPodAutoscalerSpec) -> Tolerances {
        let behavior = spec.behavior.as_ref();
        let of = |rules: Option<&HPAScalingRules>| {
            let wanted = rules.and_then(|rules| rules.tolerance.as_ref());
            wanted.map_or(TOLERANCE, |wanted| quantity::millis(wanted) as f64 / 1000.0)
        };
        Tolerances {
            down: of(behavior.and_then(|behavior| behavior.scale_down.as_ref())),
            up: of(behavior.and_then(|behavior| behavior.scale_up.as_ref())),
        }
    }

    fn hold(&self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What is measured: a resource, of one container or of all.
pub struct Question<'a> {
    pub resource: &'a str,
    /// Empty for the whole pod.
    pub container: &'a str,
    /// The pods of the target.
    pub pods: &'a [&'a Object],
    pub current: i32,
    pub tolerances: Tolerances,
    pub now: Time,
}

#[derive(Clone, Copy, Debug)]
struct Metric {
    at: Time,
    window: Duration,
    value: i64,
}

type Metrics<'a> = BTreeMap<&'a str, Metric>;

/// The target: a share of what pods request, in percent, or an amount a pod.
#[derive(Clone, Copy)]
pub enum Target {
    Utilization(i32),
    Average(i64),
}

impl<'a> Question<'a> {
    /// # Errors
    /// Why there is nothing to reckon with, in the words of the real controller.
    pub fn answer(&self, target: Target, metrics: &'a Result<Response, Status>) -> Result<Proposal, String> {
        let resource = self.resource;
        let metrics = self.read(metrics);
        let metrics = metrics.map_err(|why| format!("unable to get metrics for resource {resource}: {why}"))?;
        if self.pods.is_empty() {
            return Err("no pods returned by selector while calculating replica count".into());
        }
        self.reckon(target, metrics)
    }

    fn read(&self, answer: &'a Result<Response, Status>) -> Result<Metrics<'a>, String> {
        let items = match answer {
            Ok(Response::List(list)) => list.items.as_slice(),
            Ok(Response::Object(_)) => &[],
            Err(status) => {
                return Err(format!("unable to fetch metrics from resource metrics API: {}", status.message));
            }
        };
        if items.is_empty() {
            return Err("no metrics returned from resource metrics API".into());
        }
        Ok(items.iter().filter_map(|object| Some((&*object.key.name, self.metric(object)?))).collect())
    }

    /// `None` if the resource of one of the containers is missing.
    fn metric(&self, object: &Object) -> Option<Metric> {
        let told = object.spec_part().downcast_ref::<Value>()?;
        let mut amounts = told["containers"]
            .as_array()?
            .iter()
            .filter(|container| self.container.is_empty() || container["name"] == self.container);
        let amount = |container: &Value| quantity::parse(container["usage"][self.resource].as_str()?);
        let first = amount(amounts.next()?)?;
        let value = amounts.try_fold(first, |sum, container| Some(sum + amount(container)?))?;
        let seconds = told["window"].as_str()?.trim_end_matches('s').parse().ok()?;
        let at = Time::from_timestamp(told["timestamp"].as_str()?.parse().ok()?);
        Some(Metric { at, window: Duration::from_secs_f64(seconds), value: i64::try_from(value).ok()? })
    }

    fn reckon(&self, target: Target, mut metrics: Metrics<'a>) -> Result<Proposal, String> {
        let groups = self.group(&metrics);
        metrics.retain(|pod, _| !groups.unready.contains(pod) && !groups.ignored.contains(pod));
        let requests = match target {
            Target::Utilization(_) => self.requests()?,
            Target::Average(_) => BTreeMap::new(),
        };
        if metrics.is_empty() {
            return Err("did not receive metrics for targeted pods (pods might be unready)".into());
        }
        let (ratio, utilization, average) = measure(target, &metrics, &requests)?;
        let proposal = |replicas| Ok(Proposal { replicas, utilization, average });
        let rebalances = !groups.unready.is_empty() && ratio > 1.0;
        if !rebalances && groups.missing.is_empty() {
            return match self.tolerances.hold(ratio) {
                true => proposal(self.current),
                false => proposal((ratio * f64::from(groups.ready)).ceil() as i32),
            };
        }
        // Pods of which nothing is known are taken to be as they would have to be for nothing to change.
        for pod in groups.missing {
            let value = match target {
                _ if ratio > 1.0 => 0,
                Target::Utilization(percent) if ratio < 1.0 => {
                    requests.get(pod).copied().unwrap_or(0) * i64::from(percent.max(100)) / 100
                }
                Target::Average(amount) if ratio < 1.0 => amount,
                Target::Average(_) => 0,
                Target::Utilization(_) => continue,
            };
            metrics.insert(pod, Metric { at: self.now, window: Duration::ZERO, value });
        }
        for pod in groups.unready.into_iter().filter(|_| rebalances) {
            metrics.insert(pod, Metric { at: self.now, window: Duration::ZERO, value: 0 });
        }
        let (again, ..) = measure(target, &metrics, &requests)?;
        if self.tolerances.hold(again) || ratio < 1.0 && again > 1.0 || ratio > 1.0 && again < 1.0 {
            return proposal(self.current);
        }
        let replicas = (again * metrics.len() as f64).ceil() as i32;
        let turns = again < 1.0 && replicas > self.current || again > 1.0 && replicas < self.current;
        proposal(if turns { self.current } else { replicas })
    }

    fn group(&self, metrics: &Metrics<'_>) -> Groups<'a> {
        let mut groups = Groups::default();
        for &pod in self.pods {
            let (name, phase) = (&*pod.key.name, pod.status::<Pod>().phase.as_deref().unwrap_or_default());
            if pod.is_terminating() || phase == "Failed" {
                groups.ignored.push(name);
            } else if phase == "Pending" {
                groups.unready.push(name);
            } else {
                match metrics.get(name) {
                    None => groups.missing.push(name),
                    Some(metric) if self.resource == "cpu" && self.is_unready(pod, *metric) => {
                        groups.unready.push(name);
                    }
                    Some(_) => groups.ready += 1,
                }
            }
        }
        groups
    }

    /// A pod that starts up uses CPU for that; it tells nothing of the load.
    fn is_unready(&self, pod: &Object, metric: Metric) -> bool {
        let started = pod.status::<Pod>().start_time.as_ref().map(Time::from);
        let (Some(started), Some(ready)) = (started, pods::condition(pod, "Ready")) else { return true };
        let turned = ready.last_transition_time.as_ref().map_or(Time::ZERO, Time::from);
        let is_false = ready.status == "False";
        if started + CPU_INITIALIZATION_PERIOD > self.now {
            return is_false || metric.at < turned + metric.window;
        }
        is_false && started + INITIAL_READINESS_DELAY > turned
    }

    /// What each pod requests, in thousandths.
    fn requests(&self) -> Result<BTreeMap<&'a str, i64>, String> {
        self.pods.iter().map(|pod| Ok((&*pod.key.name, self.request(pod)?))).collect()
    }

    fn request(&self, pod: &Object) -> Result<i64, String> {
        let (spec, name, resource) = (pod.spec::<Pod>(), &pod.key.name, self.resource);
        let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        if let Some(requests) = whole.filter(|requests| self.container.is_empty() && !requests.is_empty()) {
            let request = requests.get(resource).map(quantity::millis);
            return request.ok_or_else(|| format!("missing pod-level request for {resource} in Pod {name}"));
        }
        let mut sum = 0;
        for container in lasting(spec).filter(|known| self.container.is_empty() || known.name == self.container) {
            let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            let request: Option<&Quantity> = requests.and_then(|requests| requests.get(resource));
            sum += request.map(quantity::millis).ok_or_else(|| {
                format!("missing request for {resource} in container {} of Pod {name}", container.name)
            })?;
        }
        Ok(sum)
    }
}

/// The containers that run as long as their pod does.
fn lasting(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let sidecars = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always")))
}

/// Pods by what their metrics are worth.
#[derive(Default)]
struct Groups<'a> {
    ready: i32,
    unready: Vec<&'a str>,
    missing: Vec<&'a str>,
    ignored: Vec<&'a str>,
}

/// Use over target, use in percent of what is requested, and a pod's use on an average.
fn measure(
    target: Target,
    metrics: &Metrics<'_>,
    requests: &BTreeMap<&str, i64>,
) -> Result<(f64, Option<i32>, i64), String> {
    match target {
        Target::Utilization(percent) => {
            let known = metrics.iter().filter_map(|(pod, metric)| Some((metric.value, *requests.get(pod)?)));
            let (used, requested) =
                known.clone().fold((0, 0), |(used, sum), (value, asked)| (used + value, sum + asked));
            if requested == 0 {
                return Err("no metrics returned matched known pods".into());
            }
            let utilization = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
            let average = used / i64::try_from(known.count()).unwrap_or(1).max(1);
            Ok((f64::from(utilization) / f64::from(percent), Some(utilization), average))
        }
        Target::Average(amount) => {
            let used: i64 = metrics.values().map(|metric| metric.value).sum();
            let average = used / i64::try_from(metrics.len()).unwrap_or(1).max(1);
            Ok((average as f64 / amount as f64, None, average))
        }
    }
}
