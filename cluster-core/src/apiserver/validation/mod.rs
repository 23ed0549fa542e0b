//! Validation: what must hold of an object before it is written. One file a subject, and [`field`] to say what is wrong.

pub mod field;
pub mod metadata;
pub mod names;
