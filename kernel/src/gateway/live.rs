//! A cluster that lives: one thread owns it, lets its time follow the wall clock, and does what others ask in between.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use cluster_core::Cluster;
use cluster_core::apiserver::watching::{Batch, OpenWatch};
use tokio::sync::oneshot;

/// The thread looks up so often though nothing is due, to let go of watches whose clients have left.
const IDLE_MAX: Duration = Duration::from_millis(250);
/// So many events at most travel to a watch at a time.
const BATCH_EVENTS_MAX: usize = 256;

type Job = Box<dyn FnOnce(&mut Cluster) + Send>;

enum Ask {
    Job(Job),
    Watch(Waiting),
}

/// A watch that waits for what comes next.
struct Waiting {
    watch: OpenWatch,
    tell: oneshot::Sender<(OpenWatch, Batch)>,
}

/// The cluster's owner has ended, with its process.
#[derive(Debug)]
pub struct Gone;

/// The way to a live cluster; clones lead to the same one.
#[derive(Clone)]
pub struct Live {
    asks: mpsc::Sender<Ask>,
}

impl Live {
    /// Gives the cluster a thread; `speed` virtual seconds pass in a second.
    pub fn start(cluster: Cluster, speed: f64) -> std::io::Result<Live> {
        let (asks, asked) = mpsc::channel();
        std::thread::Builder::new().name("cluster".into()).spawn(move || live(cluster, speed, &asked))?;
        Ok(Live { asks })
    }

    /// Does something with the cluster, on its thread.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Cluster) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (tell, answer) = oneshot::channel();
        let job = Box::new(move |cluster: &mut Cluster| {
            // Whoever asked may have gone.
            let _ = tell.send(question(cluster));
        });
        self.asks.send(Ask::Job(job)).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }

    /// Waits until a watch has events, or an end.
    pub async fn next(&self, watch: OpenWatch) -> Result<(OpenWatch, Batch), Gone> {
        let (tell, answer) = oneshot::channel();
        self.asks.send(Ask::Watch(Waiting { watch, tell })).map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

fn live(mut cluster: Cluster, speed: f64, asked: &mpsc::Receiver<Ask>) {
    let (begun, began) = (Instant::now(), cluster.now());
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut next = None;
    loop {
        for ask in next.into_iter().chain(asked.try_iter()) {
            match ask {
                Ask::Job(job) => done(job, &mut cluster),
                Ask::Watch(watch) => waiting.push(watch),
            }
        }
        let now = began + begun.elapsed().mul_f64(speed);
        let turn = Instant::now();
        // A cluster that has much to do still answers.
        cluster.run_until(now, |_| turn.elapsed() < Duration::from_millis(2));
        let idle = match cluster.next_due() {
            Some(due) if due <= now => Duration::ZERO,
            Some(due) => due.since(now).div_f64(speed).min(IDLE_MAX),
            None => IDLE_MAX,
        };
        waiting = waiting.into_iter().filter_map(|waiting| answered(waiting, &cluster)).collect();
        next = match asked.recv_timeout(idle) {
            Ok(ask) => Some(ask),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
    }
}

/// A job that panics loses its own answer; what it had done until then stands, and the cluster goes on.
fn done(job: Job, cluster: &mut Cluster) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| job(cluster)));
}

/// Answers a watch that has something; gives it back if it goes on waiting.
fn answered(mut waiting: Waiting, cluster: &Cluster) -> Option<Waiting> {
    if waiting.tell.is_closed() {
        return None;
    }
    match waiting.watch.next_batch(cluster.apiserver(), BATCH_EVENTS_MAX) {
        Batch::Events(events) if events.is_empty() => Some(waiting),
        batch => {
            let _ = waiting.tell.send((waiting.watch, batch));
            None
        }
    }
}
