//! The cluster as a cell asks it: every request is caused by the cell, and waits can be interrupted.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;
use cluster_core::runtime::shell::Exec;
use cluster_core::trace::Sequence;

use crate::commands::Api;
use crate::commands::api::{self, LogOptions, Tell, Write};

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
