//! `%%static NODE` cells: the manifest of a static pod, put into the folder that the node's kubelet watches.

use super::{Language, manifest};
use crate::controls;
use crate::output::{CellError, Completeness, Output, Sink};
use crate::session::Session;
use crate::yaml;

pub struct StaticPod;

const USAGE: &str = "usage: %%static NODE, and below it the manifest of a Pod";

/// The cell's first line behind its name, and the rest of it, which stands on the lines where it stood.
fn parts(code: &str) -> Option<(&str, String)> {
    let from = code.len() - code.trim_start().len();
    let (line, rest) = code[from..].split_once('\n').unwrap_or((&code[from..], ""));
    let node = line.strip_prefix("%%static").filter(|node| node.is_empty() || node.starts_with(char::is_whitespace))?;
    let above = code[..from].matches('\n').count() + 1;
    Some((node.trim(), "\n".repeat(above) + rest))
}

impl Language for StaticPod {
    fn name(&self) -> &'static str {
        "static"
    }

    fn claims(&self, code: &str) -> bool {
        parts(code).is_some()
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        controls::cluster::possible("static", session)?;
        let usage = || CellError::new("UsageError", USAGE);
        let (node, text) = parts(code).filter(|(node, _)| !node.is_empty()).ok_or_else(usage)?;
        let documents = yaml::read(&text).map_err(|error| manifest::syntax_error(code, &error))?;
        let [document] = documents.as_slice() else { return Err(usage()) };
        let name = document.value.pointer("/metadata/name").and_then(|name| name.as_str()).unwrap_or_default();
        let file = format!("{name}.yaml");
        let before = session.cluster.clone();
        session.cluster.record_fault(format!("{file} is put into the folder of static pods of {node}"));
        if let Err(message) = session.cluster.put_manifest(node, &file, Some(document.value.clone())) {
            session.cluster = before;
            return Err(CellError::new("BadManifest", message));
        }
        sink.put(Output::Stdout(format!("{node}:/etc/kubernetes/manifests/{file}\n")));
        session.settle(sink)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match parts(code) {
            Some((_, text)) if text.trim().is_empty() => Completeness::Incomplete { indent: String::new() },
            Some((_, text)) => manifest::Manifest.is_complete(&text),
            None => Completeness::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    const POD: &str =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: nginx}]}\n";

    #[test]
    fn a_manifest_in_the_folder_runs_until_it_is_taken_away() {
        let mut session = session();
        let told = run(&mut session, &format!("%%static node-1\n{POD}"));
        assert!(told.starts_with("node-1:/etc/kubernetes/manifests/web.yaml\n"), "{told}");
        assert!(run(&mut session, "kubectl get pods").contains("web-node-1   1/1     Running"));
        assert_eq!(run(&mut session, "%static node-1"), "web.yaml\n");
        run(&mut session, "kubectl delete pod web-node-1");
        assert!(run(&mut session, "kubectl get pods").contains("web-node-1   1/1     Running"));
        run(&mut session, "%static node-1 rm web.yaml");
        assert_eq!(run(&mut session, "kubectl get pods -o name"), "");
    }

    #[test]
    fn what_is_no_pod_is_refused() {
        let mut session = session();
        assert!(run(&mut session, "%%static node-1\nkind: Service\nmetadata: {name: a}").starts_with("BadManifest: "));
        assert!(run(&mut session, &format!("%%static node-9\n{POD}")).ends_with("there is no node node-9"));
        assert!(run(&mut session, "%%static").starts_with("UsageError: "));
        assert!(run(&mut session, "%%static node-1\na: [").starts_with("ManifestError: "));
    }
}
