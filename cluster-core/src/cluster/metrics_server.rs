//! The loop of metrics-server: every 15 seconds it reads all kubelets that it reaches. What a container used is the
//! difference of two readings.
//! <https://github.com/kubernetes-sigs/metrics-server>

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{
    APIService, APIServiceCondition, APIServiceSpec, ServiceReference,
};

use super::Cluster;
use crate::HashMap;
use crate::api::Name;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::apiserver::aggregation::{API_SERVICE, GROUP, ResourceMetrics, Usage, VERSION};
use crate::clock::{Class, Time};
use crate::kubelet::metrics::{ContainerUsage, SYSTEM_MEMORY_BYTES, SYSTEM_MILLICORES};
use crate::runtime::usage::CORE_NANOS;
use crate::trace::Actor;
use crate::world::Event;

/// `--metric-resolution`
const RESOLUTION: Duration = Duration::from_secs(15);
/// A container that is younger than the resolution is measured from its start on, once it has run for this long.
const FRESH_MIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(super) struct MetricsServer {
    /// Counts starts, so that what an earlier process wanted comes to nothing.
    incarnation: u64,
    /// When each container was read last, and the CPU time that it had taken.
    last: Option<HashMap<Name, (Time, u64)>>,
}

impl Cluster {
    /// Starts or stops the loop; says in its APIService whether somebody answers.
    pub(super) fn switch_metrics(&mut self, run: bool) {
        let incarnation = self.metrics.incarnation + 1;
        self.metrics = MetricsServer { incarnation, ..MetricsServer::default() };
        let served = run.then(|| Arc::new(ResourceMetrics::default()));
        self.world.apiserver.aggregation.metrics = served;
        if run {
            self.world.after(Duration::ZERO, Class::Background, Event::Scrape(incarnation));
        }
        self.tell_availability(run);
    }

    /// What installing metrics-server brings and kube-apiserver's aggregator finds out.
    fn tell_availability(&mut self, available: bool) {
        let actor: Actor = "kube-apiserver".into();
        let spec = APIServiceSpec {
            group: Some(GROUP.into()),
            version: Some(VERSION.into()),
            group_priority_minimum: 100,
            version_priority: 100,
            insecure_skip_tls_verify: Some(true),
            service: Some(ServiceReference {
                namespace: Some("kube-system".into()),
                name: Some("metrics-server".into()),
                port: None,
            }),
            ..APIServiceSpec::default()
        };
        let mut service = Object::new::<APIService>("", API_SERVICE, spec);
        service.metadata_mut().labels = Some([("k8s-app".to_owned(), "metrics-server".to_owned())].into());
        // That it is there already, or that nobody answers, changes nothing: the status is written if there is one.
        let _ = self.world.request(Request::create(&actor, service).because("metrics-server is installed"));
        let known = self.world.request(Request::get::<APIService>(&actor, "", API_SERVICE));
        let Some(mut service) = known.ok().and_then(|answer| answer.object()) else { return };
        let (status, reason, message) = match available {
            true => ("True", "Passed", "all checks passed"),
            false => (
                "False",
                "FailedDiscoveryCheck",
                "failing or missing response from https://metrics-server.kube-system.svc:443/apis/metrics.k8s.io/v1beta1: connection refused",
            ),
        };
        service.status_mut::<APIService>().conditions = Some(vec![APIServiceCondition {
            type_: "Available".into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: Some(self.now().to_meta()),
        }]);
        let _ = self.world.request(Request::update_status(&actor, service).because("whether metrics-server answers"));
    }

    /// Reads all kubelets that can be reached.
    pub(super) fn scrape(&mut self, incarnation: u64) {
        if incarnation != self.metrics.incarnation {
            return;
        }
        let now = self.now();
        let mut metrics = ResourceMetrics { at: now, ..ResourceMetrics::default() };
        let mut read = HashMap::default();
        for (node, machine) in &self.machines {
            if !machine.powered || self.world.faults.unreachable(&format!("kubelet/{node}")).is_some() {
                continue;
            }
            let mut all = Usage {
                cpu_nanos: SYSTEM_MILLICORES * CORE_NANOS / 1000,
                memory_bytes: SYSTEM_MEMORY_BYTES + machine.runtime.memory_bytes(),
            };
            // A pod is told of once all its containers have been measured.
            let (mut pods, mut unmeasured) = (BTreeMap::<_, Vec<_>>::new(), BTreeSet::new());
            for container in machine.kubelet.usage(&machine.runtime, now) {
                match rate(&container, self.metrics.last.as_ref().and_then(|last| last.get(&container.id)), now) {
                    Some(cpu_nanos) => {
                        all.cpu_nanos += cpu_nanos;
                        let usage = Usage { cpu_nanos, memory_bytes: container.memory_bytes };
                        pods.entry(container.pod.clone()).or_default().push((container.container, usage));
                    }
                    None => {
                        unmeasured.insert(container.pod.clone());
                    }
                }
                read.insert(container.id, (now, container.cpu_nanos));
            }
            pods.retain(|pod, _| !unmeasured.contains(pod));
            metrics.pods.extend(pods);
            if self.metrics.last.is_some() {
                metrics.nodes.insert(node.clone(), all);
            }
        }
        self.metrics.last = Some(read);
        self.world.apiserver.aggregation.metrics = Some(Arc::new(metrics));
        self.world.after(RESOLUTION, Class::Background, Event::Scrape(incarnation));
    }
}

/// The CPU time that a container took a second since it was last read; `None` if that can't be said yet.
fn rate(container: &ContainerUsage, last: Option<&(Time, u64)>, now: Time) -> Option<u64> {
    let age = now.since(container.started_at);
    let (since, spent_nanos) = match last {
        Some((at, before)) => (now.since(*at), container.cpu_nanos.saturating_sub(*before)),
        None if (FRESH_MIN..RESOLUTION).contains(&age) => (age, container.cpu_nanos),
        None => return None,
    };
    let nanos = u128::from(spent_nanos) * u128::from(CORE_NANOS) / since.as_nanos().max(1);
    u64::try_from(nanos).ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::Config;
    use crate::api::Key;
    use crate::api::kind::KindRef;
    use crate::api::request::Verb;
    use crate::apiserver::aggregation::{node_metrics, pod_metrics};
    use crate::controllers::metrics_server::NAME;
    use crate::controllers::testing::{create, delete, settle, user};

    fn cluster(containers: Value) -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        settle(&mut cluster);
        let labels = json!({"app": "web"});
        let spec = json!({"nodeName": "node-1", "containers": containers});
        create::<Pod>(&mut cluster, json!({"metadata": {"name": "web", "labels": labels}, "spec": spec}));
        settle(&mut cluster);
        cluster
    }

    fn listed(cluster: &mut Cluster, kind: &KindRef) -> Result<Vec<Value>, String> {
        let request = Request::new(&user(), Verb::List, kind, Key::new("", ""));
        let answer = cluster.request(request).map_err(|status| status.message)?;
        Ok(answer.items().iter().map(Object::to_json).collect())
    }

    fn wait(cluster: &mut Cluster, seconds: u64) {
        cluster.advance(Duration::from_secs(seconds), |_| true);
    }

    #[test]
    fn there_is_an_api_only_while_metrics_server_answers() {
        let mut cluster = cluster(json!([{"name": "c", "image": "nginx"}]));
        let missing = "the server could not find the requested resource (get pods.metrics.k8s.io)";
        assert_eq!(listed(&mut cluster, pod_metrics()), Err(missing.to_owned()));
        assert!(cluster.kind("metrics.k8s.io/v1beta1", "PodMetrics").is_none());
        assert!(cluster.is_stopped(NAME) && cluster.start(NAME));
        assert!(cluster.kind("metrics.k8s.io/v1beta1", "PodMetrics").is_some());
        assert_eq!(listed(&mut cluster, pod_metrics()), Ok(Vec::new()));
        wait(&mut cluster, 16);
        let pods = listed(&mut cluster, pod_metrics()).unwrap();
        assert_eq!(pods[0]["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(pods[0]["containers"], json!([{"name": "c", "usage": {"cpu": "0", "memory": "2Mi"}}]));
        assert_eq!(pods[0]["window"], "15s");
        let nodes = listed(&mut cluster, node_metrics()).unwrap();
        assert_eq!(nodes[0]["usage"], json!({"cpu": "40m", "memory": "402Mi"}));
        cluster.stop(NAME);
        let away = "the server is currently unable to handle the request (get pods.metrics.k8s.io)";
        assert_eq!(listed(&mut cluster, pod_metrics()), Err(away.to_owned()));
        let available = |cluster: &Cluster| {
            let service = cluster.get::<APIService>("", API_SERVICE).unwrap();
            service.status::<APIService>().conditions.clone().unwrap()[0].status.clone()
        };
        assert_eq!(available(&cluster), "False");
        cluster.start(NAME);
        assert_eq!(available(&cluster), "True");
        delete::<APIService>(&mut cluster, API_SERVICE).unwrap();
        assert_eq!(listed(&mut cluster, pod_metrics()), Err(missing.to_owned()));
    }

    #[test]
    fn use_is_what_programs_take_within_their_limits() {
        let stress = json!(["stress", "--cpu", "2"]);
        let limits = json!({"limits": {"cpu": "1500m"}});
        let mut cluster = cluster(json!([
            {"name": "busy", "image": "vish/stress", "args": stress, "resources": limits},
            {"name": "web", "image": "hpa-example"}
        ]));
        cluster.start(NAME);
        wait(&mut cluster, 16);
        assert!(cluster.fill_cpu("default", "web", "web", 250));
        wait(&mut cluster, 30);
        let pods = listed(&mut cluster, pod_metrics()).unwrap();
        let of = |index: usize| pods[0]["containers"][index]["usage"]["cpu"].clone();
        assert_eq!((of(0), of(1)), ("1500m".into(), "251m".into()));
    }

    #[test]
    fn a_node_that_cannot_be_reached_has_no_metrics() {
        let mut cluster = cluster(json!([{"name": "c", "image": "nginx"}]));
        cluster.start(NAME);
        cluster.partition("node-1");
        wait(&mut cluster, 31);
        let nodes = listed(&mut cluster, node_metrics()).unwrap();
        let names: Vec<&str> = nodes.iter().filter_map(|node| node["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["node-2"]);
        assert_eq!(listed(&mut cluster, pod_metrics()), Ok(Vec::new()));
    }
}
