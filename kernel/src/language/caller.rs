//! The cluster as a cell asks it: every request is caused by the cell, and waits can be interrupted. Either the one in
//! this process, or one elsewhere.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::Method;
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;
use cluster_core::runtime::shell::Exec;
use cluster_core::trace::Sequence;

use crate::away::Away;
use crate::commands::Api;
use crate::commands::api::{self, LogOptions, Tell, Write};
use crate::commands::remote::Remote;

/// What the requests of a cell go to.
pub fn api<'a>(
    cluster: &'a mut Cluster,
    away: Option<&'a mut Away>,
    cell: Sequence,
    interrupted: &'a dyn Fn() -> bool,
) -> Box<dyn Api + 'a> {
    match away {
        Some(away) => Box::new(Visitor { remote: &mut away.remote, interrupted }),
        None => Box::new(Caller::new(cluster, cell, interrupted)),
    }
}

pub struct Caller<'a> {
    cluster: &'a mut Cluster,
    cell: Sequence,
    interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Caller<'a> {
    pub fn new(cluster: &'a mut Cluster, cell: Sequence, interrupted: &'a dyn Fn() -> bool) -> Caller<'a> {
        Caller { cluster, cell, interrupted }
    }
}

impl Api for Caller<'_> {
    fn request(&mut self, request: Request) -> Result<Response, Status> {
        Api::request(self.cluster, request.caused_by(self.cell.into()))
    }

    fn table(&mut self, request: Request) -> Result<Table, Status> {
        Api::table(self.cluster, request.caused_by(self.cell.into()))
    }

    fn watch(&mut self, request: Request, tell: Tell<'_>) -> Result<(), Status> {
        api::watch(self, request, tell)
    }

    fn kinds(&mut self) -> Result<Vec<KindRef>, Status> {
        Api::kinds(self.cluster)
    }

    fn now(&self) -> Time {
        Api::now(self.cluster)
    }

    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status> {
        Api::logs(self.cluster, pod, container, options, write)
    }

    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status> {
        Api::exec(self.cluster, pod, container, command, stdin)
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.cluster.advance(duration, |_| !(self.interrupted)());
        !self.interrupted()
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }

    fn cluster(&mut self) -> Option<&mut Cluster> {
        Some(self.cluster)
    }
}

/// Somebody else's API server.
struct Visitor<'a> {
    remote: &'a mut Remote,
    interrupted: &'a dyn Fn() -> bool,
}

impl Api for Visitor<'_> {
    fn request(&mut self, request: Request) -> Result<Response, Status> {
        self.remote.request(request)
    }

    fn table(&mut self, request: Request) -> Result<Table, Status> {
        self.remote.table(request)
    }

    fn watch(&mut self, request: Request, tell: Tell<'_>) -> Result<(), Status> {
        let (stop, interrupted) = (self.remote.stopper(), self.interrupted);
        self.remote.watch(request, &mut |event, table| {
            tell(event, table);
            if interrupted() {
                stop.store(true, Ordering::Relaxed);
            }
        })
    }

    fn kinds(&mut self) -> Result<Vec<KindRef>, Status> {
        self.remote.kinds()
    }

    fn now(&self) -> Time {
        self.remote.now()
    }

    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status> {
        let (stop, interrupted) = (self.remote.stopper(), self.interrupted);
        self.remote.logs(pod, container, options, &mut |text| {
            write(text);
            if interrupted() {
                stop.store(true, Ordering::Relaxed);
            }
        })
    }

    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status> {
        self.remote.exec(pod, container, command, stdin)
    }

    fn raw(&mut self, method: &Method, uri: &str, body: String, write: Write<'_>) -> Result<(), Status> {
        self.remote.raw(method, uri, body, write)
    }

    fn address(&self) -> String {
        self.remote.address()
    }

    fn version(&mut self) -> Result<String, Status> {
        self.remote.version()
    }

    fn wait(&mut self, duration: Duration) -> bool {
        self.remote.wait(duration) && !self.interrupted()
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}
