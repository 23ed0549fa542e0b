//! Controls of clusters: copies beside the present one, what differs between them, and a session in a file.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::Value;

use super::Args;
use crate::output::{CellError, Output, Sink};
use crate::session::Session;
use crate::settings::Language;
use crate::text;

/// Where `%save` writes if not told otherwise.
const FILE: &str = "session.kernetes.json";
/// So many changed fields of an object are told of.
const PATHS_MAX: usize = 6;

pub fn fork(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?.to_owned();
    session.keep_fork(&name)?;
    let at = session.cluster.now();
    let text = match session.language().is_japanese() {
        true => format!("{at} の時点のクラスタを {name} として取っておきました\n"),
        false => format!("the cluster as it is at {at} is kept as {name}\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn switch(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?.to_owned();
    let text = session.switch_to(&name)?;
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn restore(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?;
    let snapshot = session.fork(name)?.clone();
    session.cluster.restore_etcd(&snapshot, name);
    session.settle(sink)
}

/// The clusters that there are, the present one marked.
pub fn clusters(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if !args.words.is_empty() {
        return Err(args.wrong());
    }
    let row = |(index, (name, cluster)): (usize, (&str, &Cluster))| {
        let (nodes, pods) = (cluster.list::<Node>("").count(), cluster.list::<Pod>("").count());
        let mark = if index == 0 { "*" } else { "" };
        let numbers = [cluster.revision().to_string(), nodes.to_string(), pods.to_string()];
        [mark.to_owned(), name.to_owned(), cluster.now().to_string()].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = session.clusters().enumerate().map(row).collect();
    let columns = match session.language() {
        Language::Ja => ["", "名前", "仮想時間", "リビジョン", "ノード", "Pod"],
        Language::En => ["", "NAME", "TIME", "REVISION", "NODES", "PODS"],
    };
    sink.put(Output::Stdout(text::table(&columns.map(str::to_owned), &rows) + "\n"));
    Ok(())
}

pub fn diff(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (first, second) = match args.words.as_slice() {
        [first] => (session.fork(first)?, &session.cluster),
        [first, second] => (session.fork(first)?, session.fork(second)?),
        _ => return Err(args.wrong()),
    };
    let nothing = session.language().say("違いはありません", "no difference");
    sink.put(Output::Stdout(told_differences(first, second, nothing)));
    Ok(())
}

/// A line for each object that came, went or changed between two clusters.
pub fn told_differences(first: &Cluster, second: &Cluster, nothing: &str) -> String {
    let mut lines = Vec::new();
    for kind in second.kinds().filter(|kind| !matches!(&*kind.kind, "Event" | "Lease")) {
        let (before, after) = (first.store().objects(kind), second.store().objects(kind));
        let name = |object: &Object| format!("{}/{}", kind.singular, object.key.name);
        for (key, object) in after {
            match before.get(key) {
                None => lines.push(format!("+ {}", name(object))),
                Some(old) if !old.same(object) => {
                    let mut paths = Vec::new();
                    changed_paths(&old.to_json(), &object.to_json(), "", &mut paths);
                    paths.retain(|path| path != "metadata.resourceVersion");
                    paths.truncate(PATHS_MAX);
                    lines.push(format!("~ {}: {}", name(object), paths.join(", ")));
                }
                Some(_) => {}
            }
        }
        for (_, object) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
            lines.push(format!("- {}", name(object)));
        }
    }
    if lines.is_empty() { format!("{nothing}\n") } else { lines.join("\n") + "\n" }
}

/// The paths at which two values differ.
fn changed_paths(old: &Value, new: &Value, path: &str, paths: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let fields: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for field in fields {
                let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                let (old, new) = (old.get(field).unwrap_or(&Value::Null), new.get(field).unwrap_or(&Value::Null));
                changed_paths(old, new, &path, paths);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                changed_paths(old, new, &format!("{path}[{index}]"), paths);
            }
        }
        (old, new) if old != new => paths.push(path.to_owned()),
        _ => {}
    }
}

/// Writes the cells that have made the session into a file of the notebook's folder.
pub fn save(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let file = file(args)?;
    let Some(saved) = session.saved() else { return Ok(()) };
    session.files.write(file, &saved).map_err(|trouble| CellError::new("FileError", format!("{file}: {trouble}")))?;
    let (at, revision) = (session.cluster.now(), session.cluster.revision());
    let text = match session.language() {
        Language::Ja => format!("{file} に書きました（{at}、リビジョン {revision}）。%load で続きから始められます\n"),
        Language::En => format!("written to {file} ({at}, revision {revision}); %load goes on from there\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

/// Lives through a saved session again.
pub fn load(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let file = file(args)?;
    let text = session.files.read(file);
    let text = text.map_err(|trouble| CellError::new("FileError", format!("{file}: {trouble}")))?;
    let Some(replayed) = session.replay(&text, sink)? else { return Ok(()) };
    let (cells, at, revision) = (replayed.cells, session.cluster.now(), session.cluster.revision());
    let mut told = match session.language() {
        Language::Ja => format!("{cells}個のセルをもう一度実行しました（{at}、リビジョン {revision}）\n"),
        Language::En => format!("ran {cells} cells again ({at}, revision {revision})\n"),
    };
    if let Some((at, revision)) = replayed.promised {
        told += &match session.language() {
            Language::Ja => format!(
                "保存したときは {at}、リビジョン {revision} でした。止めたセルか、変わったファイルか、版の違いのせいです\n"
            ),
            Language::En => format!(
                "it was saved at {at}, revision {revision}: a cell was interrupted, a file has changed, or it is another version\n"
            ),
        };
    }
    sink.put(Output::Stdout(told));
    Ok(())
}

fn file<'a>(args: &Args<'a>) -> Result<&'a str, CellError> {
    match args.words.as_slice() {
        [] => Ok(FILE),
        [file] => Ok(file),
        _ => Err(args.wrong()),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn clusters_go_their_own_ways() {
        let mut session = session();
        run(&mut session, "kubectl create configmap a --from-literal=a=b");
        run(&mut session, "%fork other");
        let told = run(&mut session, "%%cluster other\nkubectl create configmap b --from-literal=a=b");
        assert!(told.starts_with("configmap/b created"), "{told}");
        assert!(run(&mut session, "kubectl get configmap b").contains("exit code 1"));
        run(&mut session, "kubectl delete configmap a");
        assert_eq!(run(&mut session, "%diff main other"), "+ configmap/a\n+ configmap/b\n");
        let told = run(&mut session, "%clusters");
        assert!(told.contains("*   main") && told.contains("    other"), "{told}");
        run(&mut session, "%switch other");
        run(&mut session, "kubectl delete configmap b");
        run(&mut session, "%switch main");
        assert_eq!(run(&mut session, "%diff other"), "- configmap/a\n");
        assert!(run(&mut session, "%%cluster none\nkubectl get pods").starts_with("NotFound: there is no copy"));
        assert!(run(&mut session, "%fork main").starts_with("AlreadyExists"));
        run(&mut session, "%rewind 6");
        assert_eq!(run(&mut session, "%diff other"), "- configmap/a\n- configmap/b\n");
    }

    #[test]
    fn manifests_go_to_the_cluster_that_is_named() {
        let mut session = session();
        run(&mut session, "%fork other");
        let cell = "%%cluster other\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
        assert!(run(&mut session, cell).starts_with("configmap/c created"));
        assert_eq!(run(&mut session, "%diff main other"), "+ configmap/c\n");
        let told = run(&mut session, "%%cluster other\napiVersion: v1\nkind: ConfigMap\nmetadata: {nam: c}\n");
        assert!(told.contains("unknown field \"metadata.nam\""), "{told}");
    }

    #[test]
    fn a_session_is_written_to_a_file_and_lived_through_again() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        run(&mut session, "kubectl delete pods --all");
        run(&mut session, "%rewind");
        run(&mut session, "kubectl scale deployment web --replicas=3");
        run(&mut session, "%advance 10s");
        assert!(run(&mut session, "%save").starts_with("written to session.kernetes.json"));
        let (at, pods) = (session.cluster.now(), run(&mut session, "kubectl get pods -o name"));
        run(&mut session, "%seed 7");
        assert!(run(&mut session, "%load").starts_with("ran 3 cells again"));
        assert_eq!(session.cluster.now(), at);
        assert_eq!(run(&mut session, "kubectl get pods -o name"), pods);
        assert!(run(&mut session, "%rewind 3").contains("kubectl scale deployment web"));
        assert!(run(&mut session, "%load none.json").contains("no such file"));
        session.files.write("bad.json", "{\"seed\": true}").unwrap();
        assert!(run(&mut session, "%load bad.json").contains("line 1 column"));
    }
}
