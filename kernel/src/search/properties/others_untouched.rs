//! What belongs to another owner, or to nobody, is not written to.

use super::{Property, Written, named};
use crate::grading::words::Words;

pub struct OthersUntouched;

impl Property for OthersUntouched {
    fn name(&self) -> &'static str {
        "others-untouched"
    }

    fn demands(&self) -> Words {
        Words::new("自分のものでないものには書かない", "it does not write to what is not its own")
    }

    fn on_write(&self, written: &Written<'_>) -> Result<(), Words> {
        let scenario = &written.lab.task.scenario;
        let Some(main) = written.main() else { return Ok(()) };
        for commit in written.commits.iter().filter(|commit| !written.is_about_main(commit)) {
            let Some(before) = &commit.before else { continue };
            if scenario.shared.contains(&&*commit.kind.kind) {
                continue;
            }
            let is_ours = match before.controller() {
                Some(owner) => owner.uid == main.uid(),
                // An owner is not known to what lies outside, so whoever made it may write to it.
                None => {
                    let made = written.lab.made.iter().find(|made| *made.uid == *before.uid());
                    made.is_some_and(|made| *made.owner == *main.uid() && !made.had_owner)
                        || is_adoption(commit, main.uid()) && scenario.adopts
                }
            };
            if !is_ours {
                let (owner, object) = (named(main), named(before));
                return Err(Words::new(
                    format!("{owner} のために、{owner} のものではない {object} に書いた"),
                    format!("for {owner} it wrote to {object}, which does not belong to {owner}"),
                ));
            }
        }
        Ok(())
    }
}

fn is_adoption(commit: &cluster_core::trace::RequestEntry, uid: &str) -> bool {
    commit.after.as_ref().and_then(|after| after.controller()).is_some_and(|owner| owner.uid == uid)
}
