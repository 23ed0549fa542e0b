//! What a program needs of an API server, be it the cluster in this process or one that is reached over the network.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;
use k8s_openapi::api::core::v1::Pod;

pub trait Api {
    fn request(&mut self, request: Request) -> Result<Response, Status>;

    /// A get or a list, answered as a table.
    fn table(&mut self, request: Request) -> Result<Table, Status>;

    /// Discovery: the kinds that are served now, in its order.
    fn kinds(&mut self) -> Vec<KindRef>;

    /// The moment by the clock of this client, for ages.
    fn now(&self) -> Time;

    /// What a container has printed, as the `log` subresource of its pod gives it.
    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions) -> Result<String, Status>;

    /// Lets time pass. False if the person wants to wait no longer.
    fn wait(&mut self, duration: Duration) -> bool;

    /// True once the person wants nothing more to be done.
    fn interrupted(&self) -> bool {
        false
    }

    /// The cluster in this process, for the programs of its machines (docker, crictl, curl); a remote server has none.
    fn cluster(&mut self) -> Option<&mut Cluster> {
        None
    }
}

/// Which part of a log, and how.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Of the container before the last restart.
    pub previous: bool,
    /// Each line behind the moment at which it was printed.
    pub timestamps: bool,
    /// Only so many lines at the end.
    pub tail_lines: Option<usize>,
    /// Only what was printed within this time.
    pub since: Option<Duration>,
}

/// How long a request and the client's own work take.
const ROUND_TRIP: Duration = Duration::from_millis(4);

impl Api for Cluster {
    fn request(&mut self, request: Request) -> Result<Response, Status> {
        self.advance(ROUND_TRIP, |_| true);
        Cluster::request(self, request)
    }

    fn table(&mut self, request: Request) -> Result<Table, Status> {
        let kind = request.kind.clone();
        let objects = Api::request(self, request)?.items();
        Ok(Cluster::table(self, &kind, &objects))
    }

    fn kinds(&mut self) -> Vec<KindRef> {
        Cluster::kinds(self).cloned().collect()
    }

    fn now(&self) -> Time {
        Cluster::now(self)
    }

    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions) -> Result<String, Status> {
        let object = Api::request(self, client_request(pod))?.object();
        let node = object.as_ref().and_then(|pod| pod.spec::<Pod>().node_name.as_deref()).unwrap_or_default();
        let known = self.machine(node).into_iter().flat_map(|machine| machine.runtime.containers());
        let mut ran: Vec<_> = known
            .filter(|(_, ran)| ran.identity.pod == *pod && *ran.identity.name == *container)
            .map(|(_, ran)| ran)
            .collect();
        let last = ran.pop();
        let chosen = if options.previous { ran.pop() } else { last };
        let Some(chosen) = chosen else {
            let problem = match options.previous {
                true => format!("previous terminated container {container:?} in pod {:?} not found", &*pod.name),
                false => {
                    format!("container {container:?} in pod {:?} is waiting to start: ContainerCreating", &*pod.name)
                }
            };
            return Err(Status::bad_request(problem));
        };
        let now = Cluster::now(self);
        let recent = |at: Time| options.since.is_none_or(|since| now.since(at) <= since);
        let lines: Vec<String> = chosen
            .logs()
            .filter(|line| recent(line.at))
            .map(|line| match options.timestamps {
                true => format!("{} {}\n", line.at.timestamp(), line.text),
                false => format!("{}\n", line.text),
            })
            .collect();
        let skipped = options.tail_lines.map_or(0, |tail| lines.len().saturating_sub(tail));
        Ok(lines[skipped..].concat())
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.advance(duration, |_| true);
        true
    }

    fn cluster(&mut self) -> Option<&mut Cluster> {
        Some(self)
    }
}

fn client_request(pod: &Key) -> Request {
    Request::get::<Pod>(&"kubectl".into(), &pod.namespace, &pod.name)
}
