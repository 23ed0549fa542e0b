//! `kernetes lab`: JupyterLab with this kernel, set up in the project's own folder.
//!
//! Everything stands in `.kernetes/` of the current folder: a Python environment with the pinned JupyterLab and the
//! kernelspec, and what Jupyter itself keeps (settings, trust, running servers). Deleting the folder undoes it all.

use std::fmt::Display;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::exit::{Failure, Outcome};
use crate::jupyter;

/// What is installed into the environment; the same file serves the project's tests.
const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// Settings of JupyterLab itself: it asks the network for no news and no updates.
const OVERRIDES: &str = r#"{
  "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}
}
"#;

/// Open JupyterLab on the lessons, with the kernel installed (sets up what it needs in `.kernetes/`)
#[derive(clap::Args)]
pub struct Lab {
    /// The folder to open [default: `notebooks` if there is one, else the current folder]
    dir: Option<PathBuf>,
    /// Arguments for `jupyter lab` itself, after `--`
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Lab {
    pub fn start(self) -> Outcome {
        let here = std::env::current_dir().map_err(fault("the current folder"))?;
        let lessons = here.join("notebooks");
        let trusted = self.dir.is_none() && lessons.is_dir();
        let dir = match self.dir {
            Some(dir) => dir,
            None if trusted => lessons,
            None => here.clone(),
        };
        if !dir.is_dir() {
            return Err(Failure::Usage(format!("{}: no such folder; give the folder to open", dir.display())));
        }
        let environment = Environment::new(&here.join(".kernetes"));
        environment.set_up()?;
        if trusted {
            environment.trust(&dir)?;
        }
        build_rust_cells(&here);
        step(format_args!("opening JupyterLab on {}", dir.display()));
        let mut jupyter = environment.program("jupyter");
        jupyter.args(["lab", "--allow-root", "--ServerApp.root_dir"]);
        jupyter.arg(dir.canonicalize().map_err(fault(dir.display()))?);
        // This process becomes JupyterLab: signals and the exit code are then its own.
        Err(fault("jupyter lab")(jupyter.args(&self.arguments).exec()))
    }
}

/// Starts to build the program that runs `%%rust` cells, in the background, if it is not there: it takes some minutes, and
/// a lesson that needs it comes later.
fn build_rust_cells(here: &Path) {
    let folder = here.join("kernel/rust-cells");
    if !folder.join("Cargo.toml").exists() || folder.join("target/release/kernetes-rust-cells").exists() {
        return;
    }
    let Ok(log) = std::fs::File::create(here.join(".kernetes/rust-cells.log")) else { return };
    let mut cargo = Command::new("nice");
    cargo.args(["cargo", "build", "--release", "--quiet", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let started = cargo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
    if started.is_ok() {
        step("building what Rust cells need, in the background (once; some minutes; .kernetes/rust-cells.log)");
    }
}

/// A Python virtual environment (<https://docs.python.org/3/library/venv.html>) and the folder of Jupyter's own files.
struct Environment {
    root: PathBuf,
    jupyter: PathBuf,
}

impl Environment {
    fn new(home: &Path) -> Self {
        Environment { root: home.join("venv"), jupyter: home.join("jupyter") }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.root.join("bin").join(name));
        command
            .env("JUPYTER_CONFIG_DIR", self.jupyter.join("config"))
            .env("JUPYTER_DATA_DIR", self.jupyter.join("data"))
            .env("JUPYTER_RUNTIME_DIR", self.jupyter.join("runtime"));
        command
    }

    /// Lets the pictures in the lessons' committed outputs be shown before a cell has run
    /// (<https://jupyter-server.readthedocs.io/en/latest/operators/security.html#security-in-notebook-documents>).
    fn trust(&self, lessons: &Path) -> Result<(), Failure> {
        let notebooks = notebooks(lessons).map_err(fault(lessons.display()))?;
        if notebooks.is_empty() {
            return Ok(());
        }
        step(format_args!("trusting the {} notebooks of the lessons", notebooks.len()));
        let mut trust = self.program("jupyter");
        trust.arg("trust").args(notebooks).stdout(Stdio::null());
        finish(&mut trust, "jupyter could not trust the lessons")
    }

    /// Creates the environment, or reuses the one that is there, if its requirements are still the same and it has not been
    /// moved: its programs know where they stand.
    fn set_up(&self) -> Result<(), Failure> {
        let installed = self.root.join("requirements.txt");
        let requirements = format!("{REQUIREMENTS}# for {}\n", self.root.display());
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == requirements) {
            step(format_args!("using the Python environment in {}", self.root.display()));
        } else {
            self.create()?;
            step("installing JupyterLab into it (once; this can take a minute or two)");
            let wanted = self.root.join("wanted.txt");
            write(&wanted, &requirements)?;
            let mut pip = self.program("python");
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&wanted);
            finish(&mut pip, "pip could not install JupyterLab; it needs the network this once")?;
            let settings = self.root.join("share/jupyter/lab/settings");
            std::fs::create_dir_all(&settings).map_err(fault(settings.display()))?;
            write(&settings.join("overrides.json"), OVERRIDES)?;
            // Last, so that a set-up that was cut short is not taken for a whole one.
            std::fs::rename(&wanted, &installed).map_err(fault(installed.display()))?;
        }
        step("installing the kernel into it");
        jupyter::install::install_into(&self.root)
    }

    fn create(&self) -> Result<(), Failure> {
        step(format_args!("making a Python environment in {}", self.root.display()));
        let made =
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(&self.root).stdout(Stdio::null()).status();
        let hint = match made {
            Ok(status) if status.success() => return Ok(()),
            Ok(_) => "python3 can't make a virtual environment here; on Debian and Ubuntu: apt install python3-venv",
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                "python3 is not installed; JupyterLab needs it. On Debian and Ubuntu: apt install python3-venv"
            }
            Err(error) => return Err(fault("python3")(error)),
        };
        // A half-made environment would only mislead the next start.
        let _ = std::fs::remove_dir_all(&self.root);
        Err(Failure::Fault(hint.to_owned()))
    }
}

/// The notebooks in a folder and below it, but for hidden folders.
fn notebooks(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        } else if entry.file_type()?.is_dir() {
            found.extend(notebooks(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "ipynb") {
            found.push(path);
        }
    }
    Ok(found)
}

fn step(what: impl Display) {
    println!("kernetes lab: {what}");
}

fn fault(place: impl Display) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::Fault(format!("{place}: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(fault(path.display()))
}

fn finish(command: &mut Command, otherwise: &str) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Fault(format!("{otherwise} ({status})"))),
        Err(error) => Err(Failure::Fault(format!("{otherwise} ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_environment_is_pinned() {
        let mut requirements = REQUIREMENTS.lines().filter(|line| !line.starts_with('#'));
        assert!(requirements.all(|line| line.contains("==")));
    }

    #[test]
    fn a_folder_that_is_not_there_is_wrong_usage() {
        let lab = Lab { dir: Some("no/such/folder".into()), arguments: Vec::new() };
        let told = "no/such/folder: no such folder; give the folder to open".to_owned();
        assert_eq!(lab.start(), Err(Failure::Usage(told)));
    }
}
