//! The same edits end alike, in whatever order things happen.

use super::{Property, Rest};
use crate::grading::words::Words;

pub struct Confluent;

impl Property for Confluent {
    fn name(&self) -> &'static str {
        "confluent"
    }

    fn demands(&self) -> Words {
        Words::new(
            "同じ操作なら、どんな順で進んでも同じ結果になる",
            "the same edits end alike, in whatever order things happen",
        )
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let is_other = |usual: u64| usual != rest.lab.content();
        if !rest.lab.task.scenario.confluent || !rest.usual_content.is_some_and(is_other) {
            return Ok(());
        }
        Err(Words::new(
            "同じ操作をしたのに、何事もないときとは違う結果になった",
            "the same edits ended otherwise than they do when nothing is late and nothing fails",
        ))
    }
}
