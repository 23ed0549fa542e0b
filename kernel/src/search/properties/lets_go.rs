//! What is deleted goes in the end: no finalizer holds it for ever.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/>

use super::{Property, Rest, named};
use crate::grading::words::Words;

pub struct LetsGo;

impl Property for LetsGo {
    fn name(&self) -> &'static str {
        "lets-go"
    }

    fn demands(&self) -> Words {
        Words::new("消されるものは、いつかは消える", "what is deleted goes in the end")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let store = rest.lab.cluster.store();
        let mains = rest.lab.task.subjects.iter().filter_map(|subject| subject.main());
        match mains.flat_map(|kind| store.list(kind, "")).find(|object| object.is_terminating()) {
            None => Ok(()),
            Some(object) => Err(Words::new(
                format!("消されるはずの {} が、いつまでも消えない", named(object)),
                format!("{} was deleted, and never goes", named(object)),
            )),
        }
    }
}
