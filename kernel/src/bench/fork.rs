//! A copy of a cluster of 10,000 pods, and one step in it, so that nothing is put off that a fork has to pay.

use serde_json::{Map, Value, json};

use super::{median, peak_rss_mib, pods, rounded, timed};

const FORKS: usize = 1000;

pub fn run() -> Result<Map<String, Value>, String> {
    let (cluster, _) = pods::cluster(1000, 10_000)?;
    let mut copies = Vec::new();
    let mut stepped = Vec::new();
    for _ in 0..FORKS {
        let (mut fork, wall) = timed(|| cluster.clone());
        copies.push(wall);
        stepped.push(timed(|| fork.step()).1);
    }
    Ok(Map::from_iter([
        ("fork_us".into(), rounded(median(copies).as_secs_f64() * 1e6)),
        ("first_step_us".into(), rounded(median(stepped).as_secs_f64() * 1e6)),
        ("forks".into(), json!(FORKS)),
        ("peak_rss_mib".into(), peak_rss_mib()),
    ]))
}
