//! When an object is gone, so is everything that was made for it, outside of the cluster too.

use super::{Property, Rest, named};
use crate::grading::words::Words;

pub struct NoOrphan;

impl Property for NoOrphan {
    fn name(&self) -> &'static str {
        "no-orphan"
    }

    fn demands(&self) -> Words {
        Words::new(
            "消えたもののために作ったものが残らない",
            "nothing is left of what was made for something that is gone",
        )
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let store = rest.lab.cluster.store();
        let mains = rest.lab.task.subjects.iter().filter_map(|subject| subject.main());
        let owners: Vec<&str> = mains.flat_map(|kind| store.list(kind, "")).map(|owner| owner.uid()).collect();
        let left = rest.lab.made.iter().find_map(|made| {
            let object = store.get(&made.kind, &made.key).filter(|object| *object.uid() == *made.uid)?;
            let is_left = match object.controller() {
                Some(owner) => *owner.uid == *made.owner,
                // Who had an owner and has none was set free, as `--cascade=orphan` asks for.
                None => !made.had_owner,
            };
            (is_left && !owners.contains(&&*made.owner)).then_some(object)
        });
        match left {
            None => Ok(()),
            Some(object) => Err(Words::new(
                format!("{} が、持ち主がいなくなったのに残っている", named(object)),
                format!("{} is left, although what it was made for is gone", named(object)),
            )),
        }
    }
}
