//! A swarm of runs, each drawn from its seed: a small cluster, what users wish of it and change their minds about, and
//! what breaks. Every commit is looked at ([`invariants`]); in the end all is mended, and what is wished must be there
//! within a bound of virtual time ([`goals`]). Each run goes without a random half of all that can happen, for some faults
//! are only seen where others don't hide them.
//!
//! `KERNETES_SWARM=1000..2000 cargo test -p cluster-core --test swarm` runs other seeds, a single number runs one.
//! `KERNETES_SWARM_STORY=500` tells of so many entries of the trace, and of a single seed also if it goes well.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "it stands outside of the cluster: it is asked for seeds, and runs them side by side"
)]

mod containers;
mod edits;
mod faults;
mod goals;
mod invariants;
mod limits;
mod manifests;
mod run;
mod story;
mod workloads;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use run::Run;

/// What is run if nobody asks for other seeds.
const SEEDS: Range<u64> = 0..200;
/// Of so many seeds one is run twice and forked.
const TWICE_OF: u64 = 20;

/// The seeds that are asked for: `7`, `100..200`.
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("KERNETES_SWARM") else { return SEEDS };
    let number = |text: &str| text.trim().parse::<u64>().expect("KERNETES_SWARM is a seed or a range of seeds");
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&asked)..number(&asked) + 1,
    }
}

/// Runs seeds on all processors, and gives back the stories of those that failed.
fn failures(seeds: Range<u64>, check: fn(u64) -> Result<Run, String>) -> Vec<String> {
    let next = AtomicU64::new(seeds.start);
    let tells_all = seeds.end - seeds.start == 1 && std::env::var(story::ASKED).is_ok();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut stories = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return stories;
            }
            match check(seed) {
                Err(story) => stories.push(story),
                Ok(run) if tells_all => println!("{}", run.told("it went well")),
                Ok(_) => {}
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run that panics is a story")).collect()
    })
}

fn assert_none(stories: &[String]) {
    assert!(stories.is_empty(), "{} of the runs failed:\n\n{}", stories.len(), stories.join("\n"));
}

#[test]
fn whatever_happens_to_a_cluster_it_comes_to_what_is_wished() {
    assert_none(&failures(seeds(), run::check));
}

#[test]
fn a_seed_names_a_run_and_a_fork_goes_on_like_it() {
    let seeds = seeds();
    let chosen = seeds.start / TWICE_OF..seeds.end.div_ceil(TWICE_OF);
    assert_none(&failures(chosen, |index| run::check_twice(index * TWICE_OF)));
}
