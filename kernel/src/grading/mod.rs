//! Grading: `kernetes grade`, and the checks behind `%check`.
//!
//! An exercise is data (`exercise.rs`). Its checks (`check.rs`) demand properties (`properties/`) of copies of the
//! learner's cluster (`lab.rs`), also after faults (`faults/`). A grade is a replay (`replay.rs`) of the cells that
//! answer an exercise (`submission.rs`), whose verdict (`verdict.rs`) the reports tell (`reports/`).

mod answer;
pub mod check;
pub mod exercise;
mod faults;
mod grade;
mod kind;
mod lab;
pub mod learner;
mod objects;
mod properties;
pub mod replay;
mod reports;
pub mod submission;
pub mod verdict;
pub mod words;

pub use grade::Grade;
