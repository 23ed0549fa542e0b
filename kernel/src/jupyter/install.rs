//! `kernetes install`: tells Jupyter that the kernel is there, by a kernelspec.
//! See <https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs>.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use jupyter_zmq_client::dirs::user_data_dir;
use serde_json::{Value, json};

use crate::exit::{Answer, Failure, Outcome};

/// What notebooks call the kernel.
pub const NAME: &str = "kernetes";
pub const DISPLAY_NAME: &str = "Kubernetes (Kernetes)";
pub const LANGUAGE: &str = "kubernetes";

/// A file of the kernelspec that the Python wheel carries.
macro_rules! spec {
    ($file:literal) => {
        include_bytes!(concat!("../../wheel/data/share/jupyter/kernels/kernetes/", $file))
    };
}

const KERNELSPEC: &[u8] = spec!("kernel.json");
const LOGOS: [(&str, &[u8]); 3] = [
    ("logo-svg.svg", spec!("logo-svg.svg")),
    ("logo-32x32.png", spec!("logo-32x32.png")),
    ("logo-64x64.png", spec!("logo-64x64.png")),
];

/// Tell Jupyter about the kernel
#[derive(clap::Args)]
pub struct Install {
    /// For this user (the default)
    #[arg(long, group = "place")]
    user: bool,
    /// Under DIR/share/jupyter
    #[arg(long, group = "place", value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// In the active virtual environment (VIRTUAL_ENV or CONDA_PREFIX)
    #[arg(long, group = "place")]
    sys_prefix: bool,
    /// The name that notebooks refer to
    #[arg(long, default_value = NAME, value_parser = kernel_name)]
    name: String,
}

fn kernel_name(name: &str) -> Result<String, String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed) {
        true => Ok(name.to_owned()),
        false => Err("expected ASCII letters, digits, `.`, `_` and `-`".to_owned()),
    }
}

impl Install {
    pub fn start(self) -> Outcome {
        let folder = self.data_folder()?.join("kernels").join(&self.name);
        write_kernelspec(&folder).map_err(Failure::Fault)?;
        println!("{}", folder.display());
        Ok(Answer::Yes)
    }

    fn data_folder(&self) -> Result<PathBuf, Failure> {
        let below = |prefix: &Path| prefix.join("share").join("jupyter");
        if let Some(prefix) = &self.prefix {
            return Ok(below(prefix));
        }
        if self.sys_prefix {
            let environment = env::var_os("VIRTUAL_ENV").or_else(|| env::var_os("CONDA_PREFIX"));
            return environment.map(|prefix| below(Path::new(&prefix))).ok_or_else(|| {
                Failure::Usage("no virtual environment is active: activate one, or use --prefix DIR".to_owned())
            });
        }
        match env::var_os("JUPYTER_DATA_DIR") {
            Some(folder) => Ok(folder.into()),
            None => user_data_dir()
                .map_err(|error| Failure::Fault(format!("cannot find Jupyter's folder of this user: {error}"))),
        }
    }
}

/// Makes the kernel known to the Jupyter that lives in `prefix`.
pub fn install_into(prefix: &Path) -> Result<(), Failure> {
    write_kernelspec(&prefix.join("share/jupyter/kernels").join(NAME)).map_err(Failure::Fault)
}

/// Fills a kernelspec's folder, over what an older version of the program left there.
fn write_kernelspec(folder: &Path) -> Result<(), String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program's own path: {error}"))?;
    let program = program.to_str().ok_or_else(|| format!("{} is not UTF-8, which Jupyter needs", program.display()))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    for (name, bytes) in LOGOS {
        write(name, bytes)?;
    }
    // Last, since it is what makes Jupyter look at the folder.
    let spec = kernelspec(program).map_err(|error| format!("the kernelspec: {error}"))?;
    write("kernel.json", format!("{spec:#}\n").as_bytes())
}

/// The wheel's, but for where the program is.
fn kernelspec(program: &str) -> serde_json::Result<Value> {
    let mut spec: Value = serde_json::from_slice(KERNELSPEC)?;
    spec["argv"] = json!([program, "kernel", "{connection_file}"]);
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jupyter::kernel_info::PROTOCOL_VERSION;

    #[test]
    fn a_prefix_gets_a_kernelspec_that_starts_this_program() {
        let prefix = env::temp_dir().join(format!("kernetes-{}", uuid::Uuid::new_v4()));
        for _ in 0..2 {
            let install =
                Install { user: false, prefix: Some(prefix.clone()), sys_prefix: false, name: "lab".to_owned() };
            assert_eq!(install.start(), Ok(Answer::Yes));
        }
        let folder = prefix.join("share/jupyter/kernels/lab");
        let spec: Value = serde_json::from_slice(&fs::read(folder.join("kernel.json")).unwrap()).unwrap();
        assert_eq!(spec["argv"][0], env::current_exe().unwrap().to_str().unwrap());
        assert_eq!((&spec["language"], &spec["display_name"]), (&json!(LANGUAGE), &json!(DISPLAY_NAME)));
        assert_eq!(spec["kernel_protocol_version"], PROTOCOL_VERSION);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        fs::remove_dir_all(prefix).unwrap();
    }

    #[test]
    fn a_name_is_one_that_jupyter_accepts() {
        assert!(kernel_name("kernetes-1.36").is_ok());
        assert!(kernel_name("../elsewhere").is_err());
        assert!(kernel_name("a b").is_err());
    }
}
