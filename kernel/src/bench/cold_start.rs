//! How long a person waits for a new kernel, ours and ipykernel in turn, as jupyter_client sees it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

const SCRIPT: &str = include_str!("cold_start.py");

pub fn run() -> Result<Map<String, Value>, String> {
    let python = python()
        .ok_or("no Python with jupyter_client and ipykernel: run `tests/run --setup` first, or set KERNETES_PYTHON")?;
    let kernel = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(python).arg("-c").arg(SCRIPT).arg(kernel).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The project's own environment, looked for from here upwards.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("KERNETES_PYTHON") {
        return Some(python.into());
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(Path::new(".kernetes/venv/bin/python"))).find(|python| python.exists())
}
