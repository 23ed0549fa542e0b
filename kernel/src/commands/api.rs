//! What a program needs of an API server, be it the cluster in this process or one that is reached over the network.

use std::time::Duration;

use axum::http::Method;
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response, Verb};
use cluster_core::api::selector::FieldTerm;
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::apiserver::watching::{Batch, Told};
use cluster_core::clock::Time;
pub use cluster_core::cluster::containers::LogOptions;
use cluster_core::runtime::shell::Exec;
use cluster_core::watch::EventType;
use regex::Regex;

/// The release of the cluster in this process.
const SERVER_VERSION: &str = "v1.36.2";

/// Takes text as it comes.
pub type Write<'a> = &'a mut dyn FnMut(&str);

/// Takes what a watch tells: what there was at its start, or an event. Rows hold whole objects.
pub type Tell<'a> = &'a mut dyn FnMut(Option<EventType>, Table);

/// In a cluster whose time is virtual, a watch is over when nothing has come for so long, and after this time at most:
/// nobody may be there to interrupt it.
const WATCH_QUIET: Duration = Duration::from_secs(60);
const WATCH_MAX: Duration = Duration::from_secs(600);
/// How often a watch is looked into, and how much is taken at once.
const GLANCE: Duration = Duration::from_millis(20);
const EVENTS_MAX: usize = 1000;
/// A port of this machine, 0 for any free one, and the port of a pod to which it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    pub local: u16,
    pub remote: u16,
}

/// The API on a port of this machine, or on a socket, for whoever reaches that.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub address: String,
    /// 0 for any free one.
    pub port: u16,
    pub socket: Option<String>,
    /// Where the API is found, between slashes.
    pub prefix: String,
    /// A folder that is served, too, and where.
    pub folder: Option<String>,
    pub folder_prefix: String,
    /// Everything passes without one.
    pub filter: Option<Filter>,
}

/// Which requests a proxy lets pass.
#[derive(Clone, Debug)]
pub struct Filter {
    pub hosts: Vec<Regex>,
    pub paths: Vec<Regex>,
    pub rejected_paths: Vec<Regex>,
    pub rejected_methods: Vec<Regex>,
}

impl Filter {
    pub fn passes(&self, method: &str, host: &str, path: &str) -> bool {
        let matches = |patterns: &[Regex], text: &str| patterns.iter().any(|pattern| pattern.is_match(text));
        let host = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        !matches(&self.rejected_paths, path)
            && !matches(&self.rejected_methods, method)
            && matches(&self.hosts, host)
            && matches(&self.paths, path)
    }
}

pub trait Api {
    fn request(&mut self, request: Request) -> Result<Response, Status>;

    /// A get or a list, answered as a table.
    fn table(&mut self, request: Request) -> Result<Table, Status>;

    /// A get or a list, answered as a table, and then all changes, until the server or the person ends it.
    fn watch(&mut self, request: Request, tell: Tell<'_>) -> Result<(), Status>;

    /// Discovery: the kinds that are served now, in its order.
    fn kinds(&mut self) -> Result<Vec<KindRef>, Status>;

    /// The moment by the clock of this client, for ages.
    fn now(&self) -> Time;

    /// Writes what a container has printed, as the `log` subresource of its pod gives it.
    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status>;

    /// Runs a command in a container to its end; `stdin` is what it reads.
    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status>;

    /// Sends a request by its path and writes down the answer as it comes. The cluster in this process is asked by its
    /// own means.
    fn raw(&mut self, method: &Method, uri: &str, body: String, write: Write<'_>) -> Result<(), Status> {
        let _ = (method, uri, body, write);
        Err(Status::unknown_path())
    }

    /// Opens ports of this machine, of these addresses, that lead to ports of a pod, until the person wants no more.
    /// Tells where it listens.
    ///
    /// # Errors
    /// That a port can't be opened: that of a cell never can.
    fn forward(&mut self, _: &Key, _: &[String], _: &[Forward], _: Write<'_>) -> Result<(), Status> {
        Err(Status::bad_request("a notebook opens no ports; curl reaches pods and services from a cell"))
    }

    /// Serves the API, until the person wants no more. Tells where.
    ///
    /// # Errors
    /// That a port can't be opened: that of a cell never can.
    fn proxy(&mut self, _: &Proxy, _: Write<'_>) -> Result<(), Status> {
        Err(Status::bad_request("a notebook opens no ports; kubectl get --raw PATH asks the same from a cell"))
    }

    /// The server's address.
    fn address(&self) -> String {
        "https://10.0.0.1:6443".into()
    }

    /// The release of the server, as `v1.36.2`.
    fn version(&mut self) -> Result<String, Status> {
        Ok(SERVER_VERSION.into())
    }

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

    fn watch(&mut self, request: Request, tell: Tell<'_>) -> Result<(), Status> {
        watch(self, request, tell)
    }

    fn kinds(&mut self) -> Result<Vec<KindRef>, Status> {
        Ok(Cluster::kinds(self).cloned().collect())
    }

    fn now(&self) -> Time {
        Cluster::now(self)
    }

    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status> {
        self.advance(ROUND_TRIP, |_| true);
        let (lines, _) = self.log(pod, container, options)?;
        write(&options.limited(options.text(&lines), &mut options.bytes_max()));
        Ok(())
    }

    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status> {
        self.run_with_input(pod, container, command, stdin.as_bytes())
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.advance(duration, |_| true);
        true
    }

    fn cluster(&mut self) -> Option<&mut Cluster> {
        Some(self)
    }
}

/// Watches the cluster in this process, while its time goes by.
pub fn watch(api: &mut dyn Api, request: Request, tell: Tell<'_>) -> Result<(), Status> {
    let kind = request.kind.clone();
    let response = api.request(request.clone())?;
    let Some(cluster) = api.cluster() else { return Ok(()) };
    let mut changes = changes_after(request);
    changes.options.resource_version = match &response {
        Response::List(list) => list.revision.to_string(),
        Response::Object(_) => cluster.revision().to_string(),
    };
    tell(None, Cluster::table(cluster, &kind, &response.items()));
    let mut open = cluster.open_watch(&changes)?;
    let start = cluster.now();
    let mut last = start;
    loop {
        let Some(cluster) = api.cluster() else { return Ok(()) };
        let now = cluster.now();
        match open.next_batch(cluster.apiserver(), EVENTS_MAX) {
            Batch::Events(events) => {
                for told in events {
                    if let Told::Event(event, object) = told {
                        tell(Some(event), Cluster::table(cluster, &kind, &[object]));
                        last = now;
                    }
                }
            }
            Batch::End(status) => return Err(status),
        }
        if now.since(last) >= WATCH_QUIET || now.since(start) >= WATCH_MAX || !api.wait(GLANCE) {
            return Ok(());
        }
    }
}

/// The watch for what a get or a list has found: of a single object, the one of its name.
pub fn changes_after(request: Request) -> Request {
    let mut changes = Request { verb: Verb::Watch, ..request };
    if !changes.key.name.is_empty() {
        let name = FieldTerm { path: "metadata.name".into(), equals: true, value: changes.key.name.to_string() };
        changes.options.fields.0.push(name);
        changes.key = Key::new(changes.key.namespace.clone(), "");
    }
    changes
}
