//! What the scheduler found when it last looked for a pod's node: the filter that refused a node, or the node's points.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/>

use std::cmp::Reverse;

use cluster_core::api::{Key, Name};
use cluster_core::scheduler::{NodeVerdict, Verdict};

use crate::session::Session;
use crate::text;

/// So many nodes are told of.
const ROWS_MAX: usize = 12;

/// A table of nodes, those with the most points first; `None` if the scheduler has not looked at any for this pod.
pub fn nodes(session: &Session, pod: &Key) -> Option<String> {
    let verdict = session.cluster.scheduler().verdict(pod).filter(|verdict| !verdict.nodes.is_empty())?;
    let say = |japanese: &'static str, english: &'static str| session.language().say(japanese, english).to_owned();
    let mut nodes: Vec<_> = verdict.nodes.iter().collect();
    nodes.sort_by_key(|(node, found)| match found {
        NodeVerdict::Passed { total, .. } => (Reverse(*total), verdict.outcome.as_ref() != Ok(node)),
        NodeVerdict::Rejected { .. } => (Reverse(-1), true),
    });
    let row = |(node, found): &(Name, NodeVerdict)| {
        let (result, why) = match found {
            NodeVerdict::Rejected { plugin, reasons } => {
                (say("除外", "refused"), format!("{plugin}: {}", reasons.join(", ")))
            }
            NodeVerdict::Passed { points, total } => {
                let chosen = verdict.outcome.as_ref() == Ok(node);
                let word = if chosen { say("採用", "chosen") } else { say("通過", "passed") };
                (format!("{word} {total}"), told(points, &verdict, &say))
            }
        };
        vec![node.to_string(), result, why]
    };
    let mut rows: Vec<Vec<String>> = nodes.iter().take(ROWS_MAX).map(|node| row(node)).collect();
    if nodes.len() > ROWS_MAX {
        rows.push(vec!["…".into(), format!("({})", nodes.len() - ROWS_MAX)]);
    }
    let columns = [say("ノード", "NODE"), say("判定", "RESULT"), say("プラグイン", "PLUGINS")];
    Some(text::table(&columns, &rows))
}

/// The plugins that gave a node points.
fn told(
    points: &[(&'static str, i64)],
    verdict: &Verdict,
    say: &dyn Fn(&'static str, &'static str) -> String,
) -> String {
    let passed = verdict.nodes.iter().filter(|(_, found)| matches!(found, NodeVerdict::Passed { .. }));
    if passed.count() == 1 {
        return say("残ったのはこのノードだけなので採点しない", "the only one left, so nothing is scored");
    }
    let given = points.iter().filter(|(_, points)| *points != 0).map(|(plugin, points)| format!("{plugin} {points}"));
    given.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn why_tells_the_points_and_the_refusals_of_each_node() {
        let mut session = session();
        run(&mut session, "kubectl cordon node-2");
        run(&mut session, "kubectl run web --image=nginx");
        let told = run(&mut session, "%why pod/web");
        let line = |node: &str| told.lines().rev().find(|line| line.starts_with(node)).unwrap_or_default();
        assert!(line("node-2").ends_with("refused      NodeUnschedulable: node(s) were unschedulable"), "{told}");
        assert!(told.contains("chosen ") && told.contains("passed "), "{told}");
        assert!(line("node-1").contains("TaintToleration 300, NodeResourcesFit "), "{told}");
    }

    #[test]
    fn why_tells_a_pending_pod_which_plugin_refused_which_node() {
        let mut session = session();
        let spec = "spec: {nodeSelector: {disk: ssd}, containers: [{name: web, image: nginx}]}";
        run(&mut session, &format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n{spec}"));
        let told = run(&mut session, "%why pod/web");
        let refused = "NodeAffinity: node(s) didn't match Pod's node affinity/selector";
        assert_eq!(told.lines().filter(|line| line.ends_with(refused)).count(), 3, "{told}");
    }
}
