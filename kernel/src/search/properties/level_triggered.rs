//! The specs are met again after what was made was disturbed, and after events were lost: it goes by what is there.

use super::{Property, Rest};
use crate::grading::words::Words;

pub struct LevelTriggered;

impl Property for LevelTriggered {
    fn name(&self) -> &'static str {
        "level-triggered"
    }

    fn demands(&self) -> Words {
        Words::new("どんな状態からでも望みどおりに戻る", "it gets to the specs from whatever state")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        if rest.lab.disturbed { rest.lab.met() } else { Ok(()) }
    }
}
