//! `kernetes bench`: one JSON line a benchmark, each figure's unit in its name.

mod cell;
mod cold_start;
mod complete;
mod fork;
mod http;
mod pods;
mod search;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::exit::{Answer, Failure, Outcome};
use crate::output::{Output, Sink};

/// A benchmark: one file and one line in [`ALL`].
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Server) -> Result<Map<String, Value>, String>,
}

/// The API server that the benchmarks of HTTP go to.
#[derive(clap::Args)]
pub struct Server {
    /// An API server to measure in place of our own
    #[arg(long, value_name = "URL", requires = "token")]
    server: Option<String>,
    /// The bearer token for it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "cold-start",
        about: "from the start of the kernel to its first reply, beside ipykernel",
        run: |_| cold_start::run(),
    },
    Benchmark {
        name: "cell",
        about: "a cell with a Deployment of 3 replicas to settled, and its picture",
        run: |_| cell::run(),
    },
    Benchmark { name: "pods-10k", about: "a Deployment of 10,000 pods on 1,000 nodes to Ready", run: |_| pods::run() },
    Benchmark {
        name: "complete",
        about: "completion and help at a cursor in a cluster of 10,000 pods",
        run: |_| complete::run(),
    },
    Benchmark { name: "fork", about: "a copy of a cluster of 10,000 pods", run: |_| fork::run() },
    Benchmark {
        name: "search",
        about: "every schedule of a controller with five children, one edit, one crash and one other fault",
        run: |_| search::run(),
    },
    Benchmark { name: "http-get", about: "GETs of one object, many at a time", run: http::get },
    Benchmark { name: "http-create", about: "creates of small objects, many at a time", run: http::create },
    Benchmark { name: "http-list", about: "lists of 5,000 objects", run: http::list },
    Benchmark { name: "http-patch", about: "merge patches, many at a time", run: http::patch },
    Benchmark { name: "http-watch", about: "1,000 changes that 100 watchers hear of", run: http::watch },
];

/// Measure speed; one JSON line each
#[derive(clap::Args)]
pub struct Bench {
    /// Which one, or a family such as `http`; all if not said
    name: Option<String>,
    #[command(flatten)]
    server: Server,
}

impl Bench {
    pub fn start(self) -> Outcome {
        let is_meant = |bench: &&Benchmark| {
            self.name.as_deref().is_none_or(|name| {
                bench.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            })
        };
        let chosen: Vec<&Benchmark> = ALL.iter().filter(is_meant).collect();
        if chosen.is_empty() {
            let known: Vec<String> = ALL.iter().map(|bench| format!("  {}  {}", bench.name, bench.about)).collect();
            return Err(Failure::Usage(format!("there is no such benchmark; there are:\n{}", known.join("\n"))));
        }
        for bench in chosen {
            let figures =
                (bench.run)(&self.server).map_err(|error| Failure::Fault(format!("{}: {error}", bench.name)))?;
            let mut line = Map::from_iter([("name".to_owned(), json!(bench.name))]);
            line.extend(figures);
            println!("{}", Value::Object(line));
        }
        Ok(Answer::Yes)
    }
}

/// Takes a cell's outputs and drops them.
struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: Output) {}
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn milliseconds(duration: Duration) -> Value {
    rounded(duration.as_secs_f64() * 1e3)
}

/// Three digits behind the point are enough for a person.
fn rounded(figure: f64) -> Value {
    json!((figure * 1e3).round() / 1e3)
}

fn median(durations: Vec<Duration>) -> Duration {
    percentile(durations, 50)
}

fn percentile(mut durations: Vec<Duration>, percent: usize) -> Duration {
    durations.sort();
    let last = durations.len().saturating_sub(1);
    durations.get((durations.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// The most memory that this process has used so far.
fn peak_rss_mib() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.map_or(Value::Null, |kib: f64| rounded(kib / 1024.0))
}
