//! `kernetes bench`: one JSON line a benchmark, each figure's unit in its name.

mod cell;
mod cold_start;
mod fork;
mod pods;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::exit::{Answer, Failure, Outcome};
use crate::output::{Output, Sink};

/// A benchmark: one file and one line in [`ALL`].
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn() -> Result<Map<String, Value>, String>,
}

pub const ALL: &[Benchmark] = &[
    Benchmark {
        name: "cold-start",
        about: "from the start of the kernel to its first reply, beside ipykernel",
        run: cold_start::run,
    },
    Benchmark {
        name: "cell",
        about: "a cell with a Deployment of 3 replicas to settled, and its picture",
        run: cell::run,
    },
    Benchmark { name: "pods-10k", about: "a Deployment of 10,000 pods on 1,000 nodes to Ready", run: pods::run },
    Benchmark { name: "fork", about: "a copy of a cluster of 10,000 pods", run: fork::run },
];

/// Measure speed; one JSON line each
#[derive(clap::Args)]
pub struct Bench {
    /// Which one; all if not said
    name: Option<String>,
}

impl Bench {
    pub fn start(self) -> Outcome {
        let chosen: Vec<&Benchmark> =
            ALL.iter().filter(|bench| self.name.as_deref().is_none_or(|name| name == bench.name)).collect();
        if chosen.is_empty() {
            let known: Vec<String> = ALL.iter().map(|bench| format!("  {}  {}", bench.name, bench.about)).collect();
            return Err(Failure::Usage(format!("there is no such benchmark; there are:\n{}", known.join("\n"))));
        }
        for bench in chosen {
            let figures = (bench.run)().map_err(|error| Failure::Fault(format!("{}: {error}", bench.name)))?;
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

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// The most memory that this process has used so far.
fn peak_rss_mib() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.map_or(Value::Null, |kib: f64| rounded(kib / 1024.0))
}
