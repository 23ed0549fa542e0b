//! What a Rust cell imports to write a controller.
