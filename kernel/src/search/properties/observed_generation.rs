//! In the end the status speaks of the newest generation: `observedGeneration` says so.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/>

use super::{Property, Rest, named};
use crate::grading::words::Words;

pub struct ObservedGeneration;

impl Property for ObservedGeneration {
    fn name(&self) -> &'static str {
        "observed-generation"
    }

    fn demands(&self) -> Words {
        Words::new("statusは最新の世代のことを言う", "the status speaks of the newest generation")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        if rest.lab.task.scenario.ready.is_none() {
            return Ok(());
        }
        let store = rest.lab.cluster.store();
        let Some(main) = rest.lab.task.subjects.first().and_then(|subject| subject.main()) else { return Ok(()) };
        for object in store.list(main, "") {
            let generation = object.metadata().generation.unwrap_or(0);
            let observed = object.to_json()["status"]["observedGeneration"].as_i64();
            if observed != Some(generation) {
                let name = named(object);
                let observed = observed.map_or("-".to_owned(), |observed| observed.to_string());
                return Err(Words::new(
                    format!("{name} は世代{generation}なのに、statusのobservedGenerationは{observed}のまま"),
                    format!("{name} is at generation {generation}, and its observedGeneration stays at {observed}"),
                ));
            }
        }
        Ok(())
    }
}
