//! The file with which clients find the server and prove who they are.
//! <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::tls::Identity;

/// The administrator comes twice: with a token, which is what `current-context` means, and with a certificate.
pub fn text(server: &str, identity: &Identity, token: &str) -> String {
    let (certificate, key) = &identity.administrator_pem;
    let context =
        |user: &str| json!({"name": format!("{user}@kubernetes"), "context": {"cluster": "kubernetes", "user": user}});
    crate::yaml::print(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "kubernetes",
            "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(&identity.authority_pem)},
        }],
        "users": [
            {"name": "admin", "user": {"token": token}},
            {"name": "kubernetes-admin", "user": {
                "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
            }},
        ],
        "contexts": [context("admin"), context("kubernetes-admin")],
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
