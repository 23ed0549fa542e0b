//! At rest, restarting the controllers changes nothing, not even a revision.

use super::{Property, Rest};
use crate::grading::words::Words;

pub struct Idempotent;

impl Property for Idempotent {
    fn name(&self) -> &'static str {
        "idempotent"
    }

    fn demands(&self) -> Words {
        Words::new("再起動しても何も変わらない", "a restart changes nothing")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let (before, after) = (rest.resynced.cluster.revision(), rest.restarted.cluster.revision());
        if before == after {
            return Ok(());
        }
        let writes = after - before;
        Err(Words::new(
            format!("落ち着いたあとの再起動で、{writes}回の書き込みがあった"),
            format!("a restart at rest led to {writes} writes"),
        ))
    }
}
