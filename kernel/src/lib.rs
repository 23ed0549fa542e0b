//! The program `kernetes`: Jupyter, cell languages, kubectl, plots, grading, around a cluster-core cluster.

pub mod commands;
pub mod exit;
pub mod jupyter;
pub mod lab;
pub mod notebook;
pub mod output;
pub mod plots;
pub mod rust_cells;
pub mod session;
pub mod text;
pub mod yaml;
