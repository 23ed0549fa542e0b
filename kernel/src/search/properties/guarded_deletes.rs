//! A delete without a uid is a risk; it is wrong once it hits another object than the one that was seen.

use cluster_core::api::request::Verb;

use super::{Property, Written, named};
use crate::grading::words::Words;

pub struct GuardedDeletes;

impl Property for GuardedDeletes {
    fn name(&self) -> &'static str {
        "guarded-deletes"
    }

    fn demands(&self) -> Words {
        Words::new("消すのは、見たものだけ", "it deletes what it has seen, and nothing else of that name")
    }

    fn on_write(&self, written: &Written<'_>) -> Result<(), Words> {
        if written.write.request.verb != Verb::Delete {
            return Ok(());
        }
        let hit = written.commits.iter().find_map(|commit| {
            let before = commit.before.as_ref()?;
            let is_own = match written.seen(commit) {
                Some(seen) => seen.uid() == before.uid(),
                // It was not seen, but was made for the very object that is reconciled.
                None => {
                    let made = written.lab.made.iter().find(|made| *made.uid == *before.uid());
                    written.main().zip(made).is_some_and(|(main, made)| *main.uid() == *made.owner)
                }
            };
            (!is_own).then_some(before)
        });
        match hit {
            None => Ok(()),
            Some(object) => Err(Words::new(
                format!("見たものとは別の、同じ名前の {} を消した", named(object)),
                format!("it deleted another {} than the one that it had seen", named(object)),
            )),
        }
    }
}
