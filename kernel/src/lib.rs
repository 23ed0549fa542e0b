//! The program `kernetes`: Jupyter, cell languages, kubectl, plots, grading, around a cluster-core cluster.

pub mod away;
pub mod bench;
pub mod commands;
pub mod controls;
pub mod exit;
pub mod gateway;
pub mod grading;
pub mod jupyter;
pub mod lab;
pub mod language;
pub mod notebook;
pub mod output;
pub mod plots;
pub mod progress;
pub mod rust_cells;
pub mod search;
pub mod session;
pub mod settings;
pub mod story;
pub mod text;
pub mod token_signer;
mod wall_clock;
pub mod yaml;
