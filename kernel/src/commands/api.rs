//! What a program needs of an API server, be it the cluster in this process or one that is reached over the network.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Request, Response};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;

pub trait Api {
    fn request(&mut self, request: Request) -> Result<Response, Status>;

    /// A get or a list, answered as a table.
    fn table(&mut self, request: Request) -> Result<Table, Status>;

    /// Discovery: the kinds that are served now, in its order.
    fn kinds(&mut self) -> Vec<KindRef>;

    /// The moment by the clock of this client, for ages.
    fn now(&self) -> Time;

    /// Lets time pass. False if the person wants to wait no longer.
    fn wait(&mut self, duration: Duration) -> bool;
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

    fn wait(&mut self, duration: Duration) -> bool {
        self.advance(duration, |_| true);
        true
    }
}
