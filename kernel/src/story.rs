//! What happened, in a few lines: the trace told by who did what to which objects.

use std::time::Duration;

use cluster_core::api::Key;
use cluster_core::api::request::Verb;
use cluster_core::clock::Time;
use cluster_core::trace::{ContainerPhase, Entry, RequestEntry, Sequence, Trace, What};
use k8s_openapi::api::core::v1::Pod;

use crate::text;

const LINES_MAX: usize = 32;
const NAMES_MAX: usize = 3;
/// Deeds of one kind are told together if they lie within this time.
const TOGETHER: Duration = Duration::from_secs(1);

/// One line: the first moment, who, what was done, to which things.
#[derive(Debug, PartialEq)]
struct Line {
    at: Time,
    actor: String,
    deed: String,
    names: Vec<String>,
    /// Those of the pods that it is about.
    pods: Vec<Option<Key>>,
}

/// The story since an entry, with times counted from `start`. Empty if nothing worth telling happened.
pub fn tell(trace: &Trace, since: Sequence, start: Time, japanese: bool) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for entry in trace.since(since) {
        let Some((deed, name)) = deed(entry, japanese) else { continue };
        let actor = entry.actor.split('/').next().unwrap_or_default().to_owned();
        // What has come to the same pod since, or long after, is not told as if it had come before.
        let told = lines
            .iter()
            .rposition(|line| line.actor == actor && line.deed == deed && entry.at.since(line.at) < TOGETHER);
        let pod = pod(entry);
        let is_in_order =
            |index: &usize| !lines[index + 1..].iter().any(|line| pod.is_some() && line.pods.contains(&pod));
        match told.filter(is_in_order) {
            Some(index) => {
                let line = &mut lines[index];
                line.pods.push(pod);
                if !line.names.contains(&name) {
                    line.names.push(name);
                }
            }
            None => lines.push(Line { at: entry.at, actor, deed, names: vec![name], pods: vec![pod] }),
        }
    }
    let hidden = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    let mut rows: Vec<Vec<String>> = lines.into_iter().map(|line| line.cells(start)).collect();
    if hidden > 0 {
        let more = if japanese { format!("ほか{hidden}行") } else { format!("{hidden} more lines") };
        rows.push(vec![String::new(), "…".into(), more]);
    }
    match rows.split_first() {
        None => String::new(),
        Some((first, rest)) => text::table(first, rest),
    }
}

/// What the lab does, as the trace words it, and in Japanese; `*` stands for whom it is done to.
const DOINGS: &[(&str, &str)] = &[
    ("* started", "*を動かした"),
    ("* stopped", "*を止めた"),
    ("a container of * is killed", "*のコンテナを強制終了した"),
    ("* lost power", "*の電源が切れた"),
    ("* got power again", "*の電源が入った"),
    ("* cut off from the control plane", "*をコントロールプレーンから切り離した"),
    ("* reaches the control plane again", "*がコントロールプレーンに再び届く"),
    ("docker's next * exit event(s) will be lost", "dockerへの次の知らせ*個を失わせる"),
    ("* joins", "*を加えた"),
    ("etcd restored from *", "etcdを*の内容に戻した"),
    ("all fault rules taken away*", "落とす・遅らせる規則をすべてやめた*"),
];

fn doing_in_japanese(text: &str) -> String {
    let worded = |(english, japanese): &(&str, &str)| {
        let (before, behind) = english.split_once('*')?;
        let whom = text.strip_prefix(before)?.strip_suffix(behind)?;
        Some(japanese.replace('*', whom))
    };
    DOINGS.iter().find_map(worded).unwrap_or_else(|| text.to_owned())
}

/// The pod that something happened to, or to a container of.
fn pod(entry: &Entry) -> Option<Key> {
    match &entry.what {
        What::Container(container) => Some(container.pod.clone()),
        What::Request(request) if &*request.kind.kind == "Pod" => Some(request.key.clone()),
        _ => None,
    }
}

impl Line {
    fn cells(self, start: Time) -> Vec<String> {
        let many = self.names.len();
        let shown = self.names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
        let names = if many > NAMES_MAX { format!("{shown} … (×{many})") } else { shown };
        let after = Time::from_micros(self.at.since(start).as_micros() as u64);
        vec![format!("+{after}"), self.actor, format!("{} {names}", self.deed)]
    }
}

/// What an entry did, and to what; nothing for heartbeats, Events and reads.
fn deed(entry: &Entry, japanese: bool) -> Option<(String, String)> {
    let say = |ja: &str, en: &str| if japanese { ja.to_owned() } else { en.to_owned() };
    match &entry.what {
        What::Request(write) if write.is_write() => write_deed(write, japanese),
        What::Request(refused) if !is_routine(refused) && !matches!(refused.code, 200 | 404 | 409) => Some((
            format!("{} {} ({})", say("拒否された", "was refused"), refused.verb.as_str(), refused.code),
            match &*refused.key.name {
                "" => refused.kind.resource.to_string(),
                name => format!("{}/{name}", refused.kind.singular),
            },
        )),
        What::Container(container) => {
            let name = if container.container.is_empty() || container.pod.namespace.is_empty() {
                container.pod.name.to_string()
            } else {
                format!("{}/{}", container.pod.name, container.container)
            };
            let deed = match &container.phase {
                ContainerPhase::Pulled => format!("{} {}", say("イメージ取得", "pulled"), container.image),
                ContainerPhase::PullFailed { .. } => {
                    format!("{} {}", say("イメージを取得できない", "could not pull"), container.image)
                }
                ContainerPhase::Started => say("コンテナ起動", "started container"),
                ContainerPhase::Exited { code, reason } => {
                    format!("{} ({code} {reason})", say("コンテナ終了", "container exited"))
                }
                ContainerPhase::BackingOff { seconds } => {
                    format!("{} {seconds}s", say("再起動まで待機", "waits before a restart"))
                }
                _ => return None,
            };
            Some((deed, name))
        }
        What::Fault(text) if japanese => Some(("実験:".to_owned(), doing_in_japanese(text))),
        What::Fault(text) => Some(("lab:".to_owned(), text.to_string())),
        _ => None,
    }
}

/// Heartbeats and Events tell of other things and are not told themselves.
fn is_routine(request: &RequestEntry) -> bool {
    matches!(&*request.kind.kind, "Event" | "Lease")
}

fn write_deed(write: &RequestEntry, japanese: bool) -> Option<(String, String)> {
    let say = |ja: &str, en: &str| if japanese { ja.to_owned() } else { en.to_owned() };
    if is_routine(write) {
        return None;
    }
    let object = write.object()?;
    let name = format!("{}/{}", write.kind.singular, write.key.name);
    let deed = match (write.verb, write.subresource, &write.before, &write.after) {
        (_, "binding", _, Some(pod)) => {
            let node = pod.spec::<Pod>().node_name.clone().unwrap_or_default();
            return Some((say("割り当て", "bound"), format!("{} → {node}", write.key.name)));
        }
        (_, _, None, _) => say("作成", "created"),
        (_, _, Some(_), None) => say("削除完了", "removed"),
        // That its time has become shorter goes without saying.
        (Verb::Delete, _, Some(before), _) if before.is_terminating() => return None,
        (Verb::Delete, ..) => say("削除を指示", "marked for deletion"),
        (_, "status", Some(before), Some(after)) if object.is::<Pod>() => match (pod_state(before), pod_state(after)) {
            (was, is) if was == is => return None,
            (_, is) => format!("{} {is}:", say("報告", "reports")),
        },
        (_, "status", ..) => return None,
        _ if write.before.as_ref().is_some_and(|before| before.same_spec(object)) => return None,
        _ => match (replicas(write.before.as_ref()), replicas(write.after.as_ref())) {
            (Some(was), Some(is)) if was != is => format!("{} {was} → {is}:", say("台数変更", "scaled")),
            _ => say("変更", "changed"),
        },
    };
    Some((deed, name))
}

fn replicas(object: Option<&cluster_core::api::object::Object>) -> Option<i64> {
    object?.to_json().pointer("/spec/replicas")?.as_i64()
}

fn pod_state(pod: &cluster_core::api::object::Object) -> &str {
    let status = pod.status::<Pod>();
    let ready = status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    match status.phase.as_deref() {
        Some("Running") if ready => "Ready",
        Some(phase) => phase,
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;

    #[test]
    fn doings_of_the_lab_are_told_in_the_readers_language() {
        let mut cluster = Cluster::new(Config::default());
        let (since, start) = (cluster.trace().len() as Sequence, cluster.now());
        cluster.stop("kube-scheduler");
        cluster.power_off("node-1");
        let told = |japanese: bool| tell(cluster.trace(), since, start, japanese);
        assert_eq!(told(true), "+0.000s   learner   実験: kube-schedulerを止めた, node-1の電源が切れた");
        assert_eq!(told(false), "+0.000s   learner   lab: kube-scheduler stopped, node-1 lost power");
        assert_eq!(doing_in_japanese("something else"), "something else");
    }
}
