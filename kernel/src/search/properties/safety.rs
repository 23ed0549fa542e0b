//! What the scenario says must never be.

use super::Property;
use crate::grading::words::Words;

pub struct Safety;

pub const NAME: &str = "safety";

impl Property for Safety {
    fn name(&self) -> &'static str {
        NAME
    }

    fn demands(&self) -> Words {
        Words::new("どの瞬間にも、あってはならない状態にならない", "what must never be is at no moment so")
    }
}
