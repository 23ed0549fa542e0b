//! How long a person waits for a new kernel, ours and ipykernel in turn, as jupyter_client sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

const SCRIPT: &str = include_str!("cold_start.py");

pub fn run() -> Result<Map<String, Value>, String> {
    let missing =
        "no Python with jupyter_client and ipykernel: run `kernetes lab` or `tests/run` once, or set KERNETES_PYTHON";
    let python = python().ok_or(missing)?;
    let kernel = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(python).arg("-c").arg(SCRIPT).arg(kernel).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The environment of `kernetes lab`, or else of the tests, looked for from here upwards.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("KERNETES_PYTHON") {
        return Some(python.into());
    }
    let here = std::env::current_dir().ok()?;
    let places = [".kernetes/venv/bin/python", "target/tests/venv/bin/python"].map(Path::new);
    here.ancestors().flat_map(|folder| places.map(|place| folder.join(place))).find(|python| python.exists())
}
