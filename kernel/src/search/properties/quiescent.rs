//! In the end nothing is left to do, and looking at everything once more writes nothing.

use super::{Broken, Property, Rest};
use crate::grading::words::Words;

pub struct Quiescent;

const NAME: &str = "quiescent";

impl Property for Quiescent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn demands(&self) -> Words {
        Words::new(
            "いつかは落ち着き、もう一度見ても何も書かない",
            "it comes to rest, and writes nothing when it looks once more",
        )
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        let writes = rest.resynced.tally.writes - rest.lab.tally.writes;
        if writes == 0 {
            return Ok(());
        }
        Err(Words::new(
            format!("何も変わっていないのに、もう一度見ただけで{writes}回書いた"),
            format!("nothing had changed, and yet looking once more made {writes} writes"),
        ))
    }
}

/// The same state was there before, or there is no end in sight.
pub fn broken(is_repeated: bool, steps: usize) -> Broken {
    let found = match is_repeated {
        true => Words::new(
            format!("同じ状態を繰り返していて、{steps}歩たっても落ち着かない"),
            format!("it goes round in circles: after {steps} steps a state comes back that was there before"),
        ),
        false => Words::new(
            format!("{steps}歩たっても落ち着かない"),
            format!("it does not come to rest within {steps} steps"),
        ),
    };
    Broken { property: NAME, found }
}
