//! What a program needs of an API server, be it the cluster in this process or one that is reached over the network.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;
pub use cluster_core::cluster::containers::LogOptions;
use cluster_core::runtime::shell::Exec;

/// The release of the cluster in this process.
const SERVER_VERSION: &str = "v1.36.2";

/// Takes text as it comes.
pub type Write<'a> = &'a mut dyn FnMut(&str);

pub trait Api {
    fn request(&mut self, request: Request) -> Result<Response, Status>;

    /// A get or a list, answered as a table.
    fn table(&mut self, request: Request) -> Result<Table, Status>;

    /// Discovery: the kinds that are served now, in its order.
    fn kinds(&mut self) -> Result<Vec<KindRef>, Status>;

    /// The moment by the clock of this client, for ages.
    fn now(&self) -> Time;

    /// Writes what a container has printed, as the `log` subresource of its pod gives it.
    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status>;

    /// Runs a command in a container to its end; `stdin` is what it reads.
    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status>;

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

    fn exec(&mut self, pod: &Key, container: &str, command: &[String], _: &str) -> Result<Exec, Status> {
        self.run_in_container(pod, container, command)
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.advance(duration, |_| true);
        true
    }

    fn cluster(&mut self) -> Option<&mut Cluster> {
        Some(self)
    }
}
