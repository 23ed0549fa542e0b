//! The file with which clients find the server and prove who they are.
//! <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

pub fn text(server: &str, authority_pem: &str, token: &str) -> String {
    crate::yaml::print(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "kubernetes",
            "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(authority_pem)},
        }],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "admin@kubernetes", "context": {"cluster": "kubernetes", "user": "admin"}}],
        "current-context": "admin@kubernetes",
    }))
}

/// Writes the file whole or not at all, readable by its owner alone.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file is made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
