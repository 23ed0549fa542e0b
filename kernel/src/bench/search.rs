//! `search`: every schedule of one controller with five children, one edit, one crash and one other fault.

use cluster_core::api::kind::KindRef;
use cluster_core::{Cluster, Config};
use kernetes_controller::{Controller, Key, Object as _, Plan, Time, View, Watches, child_of};
use serde_json::{Map, Value, json};

use super::{peak_rss_mib, rounded, timed};
use crate::rust_cells::native;
use crate::search::scenario::{Act, Edit, Scenario, object};
use crate::search::{Bounds, Subject, Task, search};

const CHILDREN: u64 = 5;

/// As many ConfigMaps as a Secret's annotation says.
struct Keeper;

impl Controller for Keeper {
    fn watches(&self) -> Watches {
        Watches::of("v1", "Secret").owns("v1", "ConfigMap")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(owner) = view.get("v1", "Secret", key) else { return plan };
        let wanted = owner.annotation("children").and_then(|count| count.parse().ok()).unwrap_or(0);
        let children = view.owned("v1", "ConfigMap", &owner);
        for name in (0..wanted).map(|index: usize| format!("{}-{index}", owner.name())) {
            if !children.iter().any(|child| child.name() == name) {
                plan.create(child_of(&owner, object("v1", "ConfigMap", &name, json!({}))), "too few");
            }
        }
        for child in children.iter().skip(wanted) {
            plan.delete(child, "too many");
        }
        plan
    }
}

pub fn run() -> Result<Map<String, Value>, String> {
    let cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    let kinds: Vec<KindRef> = cluster.kinds().cloned().collect();
    let owner = |count: u64| {
        object("v1", "Secret", "owner", json!({"metadata": {"annotations": {"children": count.to_string()}}}))
    };
    let scenario = Scenario {
        start: vec![owner(CHILDREN)],
        edits: vec![Edit::new("one less", Act::Patch(owner(CHILDREN - 1)))],
        ..Scenario::new("five children")
    };
    let controller = native("keeper", Keeper, kinds.iter()).map_err(|error| error.evalue)?;
    let task = Task::new(&cluster, scenario, vec![Subject::new(controller)])?;
    let bounds = Bounds {
        faults: 2,
        crashes: 1,
        others: 1,
        deviations: 0,
        steps_max: 3_000_000,
        states_max: 400_000,
        walks: 0,
        ..Bounds::default()
    };
    let (report, wall) = timed(|| search(&task, &bounds));
    if let Some(story) = report.failure {
        return Err(story.to_string());
    }
    let coverage = report.coverage;
    Ok(Map::from_iter([
        ("steps_per_s".into(), rounded(coverage.steps as f64 / wall.as_secs_f64())),
        ("wall_s".into(), rounded(wall.as_secs_f64())),
        ("steps".into(), json!(coverage.steps)),
        ("states".into(), json!(coverage.states)),
        ("is_exhausted".into(), json!(coverage.is_exhausted())),
        ("peak_rss_mib".into(), peak_rss_mib()),
    ]))
}
