//! The notebooks that learners are given, one a language, beside the exercise that they are made from.

use std::path::Path;

use kernetes::exit::Failure;
use kernetes::grading::{exercise, learner};

use crate::{Built, LANGUAGES};

/// The notebooks of all exercises as they are made now.
pub fn build(root: &Path) -> Result<Vec<Built>, Failure> {
    let mut built = Vec::new();
    for exercise in exercise::all()? {
        for (language, name) in LANGUAGES {
            let path = root.join("exercises").join(&exercise.id).join(name).with_extension("ipynb");
            built.push(Built { path, json: learner::notebook(exercise, language)? });
        }
    }
    Ok(built)
}
