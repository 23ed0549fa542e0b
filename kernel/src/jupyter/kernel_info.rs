//! What the kernel says about itself.

use serde_json::{Value, json};

use super::install::LANGUAGE;

pub const PROTOCOL_VERSION: &str = "5.4";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const KUBERNETES_VERSION: &str = "1.36";

/// The content of a `kernel_info_reply`. One media type colours a whole notebook: that of manifests.
pub fn content() -> Value {
    json!({
        "status": "ok",
        "protocol_version": PROTOCOL_VERSION,
        "implementation": "kernetes",
        "implementation_version": VERSION,
        "banner": format!(
            "Kernetes {VERSION}: a Kubernetes {KUBERNETES_VERSION} cluster in this kernel. Write a manifest or a kubectl command."
        ),
        "language_info": {
            "name": LANGUAGE,
            "version": KUBERNETES_VERSION,
            "mimetype": "text/x-yaml",
            "file_extension": ".yaml",
            "codemirror_mode": "yaml",
            "pygments_lexer": "yaml",
            "nbconvert_exporter": "script",
        },
        "help_links": [
            {"text": "Kubernetes documentation", "url": "https://kubernetes.io/docs/"},
            {"text": "kubectl reference", "url": "https://kubernetes.io/docs/reference/kubectl/"},
            {"text": "Kubernetes API reference", "url": "https://kubernetes.io/docs/reference/kubernetes-api/"},
        ],
        "supported_features": ["iopub_welcome"],
        "debugger": false,
    })
}
