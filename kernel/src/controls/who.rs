//! Who took part: of all that an object's coming led to, what each component heard of and what it did.

use cluster_core::api::request::Verb;
use cluster_core::trace::{ContainerPhase, Entry, RequestEntry, What};

use super::Args;
use crate::output::{CellError, Output, Sink};
use crate::plots::actors::{consequences, told};
use crate::session::Session;
use crate::text;

const KINDS_SHOWN_MAX: usize = 6;

/// One component, all its nodes' instances together.
struct Part {
    actor: String,
    heard: Vec<String>,
    did: Vec<String>,
}

pub fn who(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let target = args.one()?;
    let (kind, key) = session.newest(target)?;
    let japanese = session.language().is_japanese();
    let trace = session.cluster.trace();
    let about = |entry: &&Entry| matches!(&entry.what, What::Request(r) if r.kind.slot == kind.slot && r.key == key);
    let Some(first) = trace.iter().find(about) else {
        let message = match japanese {
            true => format!("{target} についての記録はありません"),
            false => format!("there is no record of {target}"),
        };
        return Err(CellError::new("NotFound", message));
    };
    // What else the same order asked for belongs to it.
    let root = first.causes.as_slice().first().copied().unwrap_or(first.sequence);
    let mut parts: Vec<Part> = Vec::new();
    for entry in consequences(trace, root) {
        let Some(deed) = deed(entry, japanese) else { continue };
        let actor = entry.actor.split('/').next().unwrap_or_default();
        let index = parts.iter().position(|part| part.actor == actor).unwrap_or_else(|| {
            parts.push(Part { actor: actor.to_owned(), heard: Vec::new(), did: Vec::new() });
            parts.len() - 1
        });
        let part = &mut parts[index];
        add(&mut part.did, deed);
        for heard in told(trace, entry).into_iter().filter_map(heard) {
            add(&mut part.heard, heard);
        }
    }
    let list = |words: &[String]| if words.is_empty() { "-".to_owned() } else { words.join(", ") };
    let rows: Vec<Vec<String>> =
        parts.iter().map(|part| vec![part.actor.clone(), list(&part.heard), list(&part.did)]).collect();
    let columns = match japanese {
        true => ["だれが", "何を見て", "何をしたか"],
        false => ["WHO", "HEARD OF", "DID"],
    };
    sink.put(Output::Stdout(text::table(&columns.map(str::to_owned), &rows) + "\n"));
    Ok(())
}

/// The kinds that each controller watches, then how many watches they share, and how many it would be without that.
pub fn watches(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let japanese = session.language().is_japanese();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (controller, kinds) in session.cluster.watched() {
        if args.words.is_empty() || args.words.contains(&&**controller) {
            let mut names: Vec<String> = Vec::new();
            kinds.iter().for_each(|kind| add(&mut names, kind.kind.to_string()));
            // A few loops watch nearly every kind.
            let more = names.len().saturating_sub(KINDS_SHOWN_MAX);
            names.truncate(KINDS_SHOWN_MAX);
            let more = if more > 0 { format!(" … (+{more})") } else { String::new() };
            rows.push(vec![controller.to_string(), names.join(", ") + &more]);
        }
    }
    if rows.is_empty() {
        return Err(args.wrong());
    }
    let columns = if japanese { ["だれが", "何を見張るか"] } else { ["WHO", "WATCHES"] };
    let (shared, separate) = session.cluster.watch_counts();
    let sum = match japanese {
        true => format!("別々に見張れば {separate} 本、キャッシュを分け合うので {shared} 本"),
        false => format!("{separate} watches if each had its own, {shared} because they share a cache"),
    };
    let table = text::table(&columns.map(str::to_owned), &rows);
    let sum = if args.words.is_empty() { format!("\n{sum}\n") } else { String::new() };
    sink.put(Output::Stdout(format!("{table}\n{sum}")));
    Ok(())
}

fn add(words: &mut Vec<String>, word: String) {
    if !words.contains(&word) {
        words.push(word);
    }
}

/// What a component was told, if this was its cause.
fn heard(cause: &Entry) -> Option<String> {
    match &cause.what {
        What::Cell(_) => Some("cell".into()),
        What::Request(request) => Some(request.kind.kind.to_string()),
        _ => None,
    }
}

fn deed(entry: &Entry, japanese: bool) -> Option<String> {
    let say = |ja: &str, en: &str| if japanese { ja.to_owned() } else { en.to_owned() };
    match &entry.what {
        What::Request(request) if request.is_write() => written(request, japanese),
        What::Container(container) if container.phase == ContainerPhase::Started => {
            Some(say("コンテナを起動", "started containers"))
        }
        What::Rules { .. } => Some(say("ノードの転送規則", "rules of its node")),
        _ => None,
    }
}

fn written(request: &RequestEntry, japanese: bool) -> Option<String> {
    if matches!(&*request.kind.kind, "Event" | "Lease") {
        return None;
    }
    let verb = match (request.verb, &request.before, &request.after) {
        _ if request.subresource == "binding" => ("割り当て", "bound"),
        (_, None, _) => ("作成", "created"),
        (Verb::Delete, ..) | (_, _, None) => ("削除", "deleted"),
        _ if request.subresource == "status" => ("状態を報告", "reported"),
        _ => ("変更", "changed"),
    };
    Some(format!("{} {}", if japanese { verb.0 } else { verb.1 }, request.kind.kind))
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn each_component_is_told_with_what_it_saw_and_did() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let told = run(&mut session, "%who deployment/web");
        let line = |actor: &str| {
            let line = told.lines().find(|line| line.starts_with(actor)).unwrap_or_else(|| panic!("{actor}: {told}"));
            line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("kubectl"), ["kubectl", "cell", "created Deployment"]);
        assert_eq!(line("replicaset-controller")[1..], ["ReplicaSet, Pod", "created Pod, reported ReplicaSet"]);
        assert_eq!(line("kube-scheduler")[1..], ["Pod", "bound Pod"]);
        assert_eq!(line("kubelet")[1..], ["Pod", "reported Pod, started containers"]);
    }

    #[test]
    fn watches_are_counted_with_and_without_a_shared_cache() {
        let mut session = session();
        let told = run(&mut session, "%watches replicaset-controller");
        assert!(told.ends_with("replicaset-controller   ReplicaSet, Pod\n"), "{told}");
        let told = run(&mut session, "%watches");
        let numbers: Vec<usize> =
            told.lines().last().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[1] < numbers[0], "{told}");
        assert!(run(&mut session, "%watches nobody").starts_with("UsageError: "));
    }

    #[test]
    fn what_nobody_knows_is_told() {
        assert_eq!(run(&mut session(), "%who deployment/x"), "NotFound: there is no record of deployment/x");
    }
}
