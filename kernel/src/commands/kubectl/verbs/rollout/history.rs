//! `kubectl rollout history`

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::Value;

use super::super::super::describe::template;
use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::flags::{integer, text};
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::output::OUTPUT;
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::{annotation, named, replica_sets};

pub const VERB: Verb = Verb {
    name: "rollout history",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, integer("revision"), text("selector").short('l')],
    run,
};

const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (items, failures) = named(call)?;
    for item in items {
        let revisions = revisions(call, &item)?;
        match call.parsed.integer("revision").filter(|revision| *revision > 0) {
            Some(wanted) => {
                let Some((_, revision)) = revisions.iter().find(|(number, _)| *number == wanted) else {
                    return message("unable to find the specified revision");
                };
                let mut pod_template = revision.pointer("/spec/template").cloned().unwrap_or_default();
                if let Some(cause) = annotation(revision, CHANGE_CAUSE) {
                    pod_template["metadata"]["annotations"][CHANGE_CAUSE] = cause.into();
                }
                call.line(format!("{} with revision #{wanted}", item.title()));
                let text = template(&pod_template);
                call.line(text);
            }
            None => {
                call.line(format!("{} ", item.title()));
                call.line("REVISION  CHANGE-CAUSE");
                for (number, revision) in &revisions {
                    let cause =
                        annotation(revision, CHANGE_CAUSE).filter(|cause| !cause.is_empty()).unwrap_or("<none>");
                    call.line(format!("{number:<8}  {cause}"));
                }
                call.line("");
            }
        }
    }
    all_of(failures)
}

/// The revisions that are kept, with what was wanted then.
pub fn revisions(call: &mut Call<'_, '_>, item: &Item) -> Result<Vec<(i64, Value)>, Failure> {
    match &*item.kind.kind {
        "Deployment" => Ok(replica_sets(call, item)?.into_iter().filter(|(number, _)| *number > 0).collect()),
        "DaemonSet" | "StatefulSet" => {
            let all = call.list(KindRef::of::<ControllerRevision>(), &item.namespace, Options::default())?;
            let uid = item.value.pointer("/metadata/uid");
            let owned = all.into_iter().filter(|revision| revision.pointer("/metadata/ownerReferences/0/uid") == uid);
            let mut revisions: Vec<(i64, Value)> = owned
                .map(|mut revision| {
                    let number = revision["revision"].as_i64().unwrap_or(0);
                    revision["spec"] = revision.pointer("/data/spec").cloned().unwrap_or_default();
                    (number, revision)
                })
                .collect();
            revisions.sort_by_key(|(number, _)| *number);
            Ok(revisions)
        }
        kind => message(format!("no history viewer has been implemented for {kind:?}")),
    }
}
