//! The specs are met at rest, and stay met when everything is looked at once more, and after a restart.

use super::{Property, Rest};
use crate::grading::words::Words;

pub struct Stable;

impl Property for Stable {
    fn name(&self) -> &'static str {
        "stable"
    }

    fn demands(&self) -> Words {
        Words::new("望みどおりになり、そのまま続く", "the specs are met, and stay met")
    }

    fn at_rest(&self, rest: &Rest<'_>) -> Result<(), Words> {
        if !rest.lab.disturbed {
            rest.lab.met()?;
        }
        rest.resynced.met().map_err(|found| {
            Words::new(
                format!("もう一度見たあと: {}", found.ja),
                format!("after it has looked once more: {}", found.en),
            )
        })?;
        rest.restarted.met().map_err(|found| {
            Words::new(format!("再起動のあと: {}", found.ja), format!("after a restart: {}", found.en))
        })
    }
}
