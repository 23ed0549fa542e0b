//! No more writes than the work needs, with something on top for each fault.

use super::{Property, Rest};
use crate::grading::words::Words;

pub struct FewWrites;

/// A fault may cost so many writes more.
const WRITES_A_FAULT: usize = 4;

impl Property for FewWrites {
    fn name(&self) -> &'static str {
        "few-writes"
    }

    fn demands(&self) -> Words {
        Words::new("必要なだけしか書かない", "it writes no more than is needed")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let Some(needed) = rest.lab.task.scenario.writes_max else { return Ok(()) };
        let most = needed + WRITES_A_FAULT * rest.lab.faults;
        let (writes, idle) = (rest.lab.tally.writes, rest.lab.tally.idle_writes);
        if writes > most {
            return Err(Words::new(
                format!("{most}回で済むところを{writes}回書いた"),
                format!("it made {writes} writes where {most} would do"),
            ));
        }
        if idle > most {
            return Err(Words::new(
                format!("何も変えない書き込みを{idle}回した"),
                format!("it made {idle} writes that changed nothing"),
            ));
        }
        Ok(())
    }
}
