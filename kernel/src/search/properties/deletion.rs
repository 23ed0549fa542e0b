//! Nothing is made for an object that was seen on its way out, and its finalizer goes after the clean-up.

use super::{Property, Written, named};
use crate::grading::words::Words;

pub struct Deletion;

impl Property for Deletion {
    fn name(&self) -> &'static str {
        "deletion"
    }

    fn demands(&self) -> Words {
        Words::new(
            "消されるものには何も作らず、片付けてから手放す",
            "for what is deleted nothing is made, and it is let go after the clean-up",
        )
    }

    fn on_write(&self, written: &Written<'_>) -> Result<(), Words> {
        let Some(main) = written.main() else { return Ok(()) };
        for commit in written.commits {
            let owns = |object: &cluster_core::api::object::Object| {
                object.controller().is_some_and(|owner| owner.uid == main.uid())
            };
            let is_made = commit.before.is_none();
            let is_adopted = commit.after.as_ref().is_some_and(owns) && !commit.before.as_ref().is_some_and(owns);
            if main.is_terminating() && (is_made || is_adopted) {
                let (owner, child) = (named(main), commit.object().map_or_else(String::new, named));
                return Err(Words::new(
                    format!("{owner} が消されるところなのを見たのに、そのために {child} を作った（または引き取った）"),
                    format!("it saw that {owner} was being deleted, and still made or adopted {child} for it"),
                ));
            }
            if written.is_about_main(commit) && is_let_go(commit) {
                let store = written.lab.cluster.store();
                let external = |kind: &str| written.lab.task.scenario.external.contains(&kind);
                let left =
                    written.lab.made.iter().filter(|made| *made.owner == *main.uid() && external(&made.kind.kind));
                let left = left
                    .filter_map(|made| store.get(&made.kind, &made.key).filter(|object| *object.uid() == *made.uid));
                if let Some(object) = left.min_by_key(|object| object.key.clone()) {
                    let (owner, left) = (named(main), named(object));
                    return Err(Words::new(
                        format!("{left} がまだあるのに、{owner} のfinalizerを外した"),
                        format!("the finalizer of {owner} was taken away while {left} was still there"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// An object on its way out has lost a finalizer.
fn is_let_go(commit: &cluster_core::trace::RequestEntry) -> bool {
    let Some(before) = commit.before.as_ref().filter(|before| before.is_terminating()) else { return false };
    let count = |object: &cluster_core::api::object::Object| object.metadata().finalizers.as_ref().map_or(0, Vec::len);
    commit.after.as_ref().map_or(0, count) < count(before)
}
