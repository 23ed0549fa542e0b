//! `Ready` with `observedGeneration` g says that generation g was met at some moment between read and write.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/#object-spec-and-status>

use cluster_core::api::object::Object;

use super::{Property, Written, named};
use crate::grading::words::Words;

pub struct HonestStatus;

impl Property for HonestStatus {
    fn name(&self) -> &'static str {
        "honest-status"
    }

    fn demands(&self) -> Words {
        Words::new("statusは本当のことしか言わない", "the status says what is so")
    }

    fn on_write(&self, written: &Written<'_>) -> Result<(), Words> {
        if written.lab.task.scenario.ready.is_none() {
            return Ok(());
        }
        for commit in written.commits.iter().filter(|commit| written.is_about_main(commit)) {
            let Some(after) = &commit.after else { continue };
            let same = commit.before.as_ref().is_some_and(|before| before.same_status(after));
            let Some(generation) = claim(after).filter(|_| !same) else { continue };
            let read = oldest_read(written);
            let held = &written.lab.held;
            let first = held.iter().rposition(|held| held.revision <= read).unwrap_or(0);
            let from = held.get(first).map_or(0, |held| held.revision);
            let was_met =
                held.iter().filter(|held| held.revision >= from && held.revision < commit.revision.max(1) + 1);
            let was_met = was_met
                .filter(|held| *held.uid == *after.uid())
                .any(|held| held.is_met && held.generation == generation);
            if !was_met {
                let name = named(after);
                return Err(Words::new(
                    format!("{name} のstatusは世代{generation}がReadyだと言うが、そうだったことはない"),
                    format!(
                        "the status of {name} says that generation {generation} is Ready, which it was at no moment between read and write"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The oldest revision that the controller may have read.
fn oldest_read(written: &Written<'_>) -> u64 {
    let kinds = written.lab.task.subjects[written.part].kinds();
    kinds.map(|kind| written.run.view.revision(kind.slot)).min().unwrap_or(0)
}

/// The generation that the status says is Ready.
fn claim(object: &Object) -> Option<i64> {
    let json = object.to_json();
    let condition = json["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")?;
    (condition["status"] == "True").then_some(())?;
    condition["observedGeneration"].as_i64().or_else(|| json["status"]["observedGeneration"].as_i64())
}
