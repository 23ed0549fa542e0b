//! Paths of files, inside of a volume or on a node.

use super::field::{Causes, Path};

/// A path that leads upwards is none that a volume can show.
pub fn no_backsteps(causes: &mut Causes, path: &Path, target: &str) {
    if target.split('/').any(|part| part == "..") {
        causes.invalid(path, target, "must not contain '..'");
    }
}

/// A path below some directory.
pub fn descending(causes: &mut Causes, path: &Path, target: &str) {
    if target.starts_with('/') {
        causes.invalid(path, target, "must be a relative path");
    }
    no_backsteps(causes, path, target);
}

/// A path below the directory of a volume, whose own files start with two dots.
pub fn not_reserved(causes: &mut Causes, path: &Path, target: &str) {
    descending(causes, path, target);
    if target.starts_with("..") && !target.starts_with("../") {
        causes.invalid(path, target, "must not start with '..'");
    }
}

/// The permissions of a file.
pub fn file_mode(causes: &mut Causes, path: &Path, mode: Option<i32>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        causes.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
