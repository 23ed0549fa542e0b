//! The verbs of `kubectl config` that are about clusters.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::super::super::files::Trouble;
use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::verb::Call;
use super::{Kubeconfig, arguments, show_help};

pub fn set(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = arguments(call)?;
    if name.is_empty() {
        return message("you must specify a non-empty cluster name");
    }
    let authority = call.parsed.text("certificate-authority").map(str::to_owned);
    let has_authority = authority.as_deref().is_some_and(|path| !path.is_empty());
    let (embeds, is_insecure) = (call.parsed.switch("embed-certs"), call.parsed.switch("insecure-skip-tls-verify"));
    if is_insecure && has_authority {
        return message("you cannot specify a certificate authority and insecure mode at the same time");
    }
    if embeds && !has_authority {
        return message("you must specify a --certificate-authority to embed");
    }
    let mut config = Kubeconfig::read(call)?;
    let known = config.entry("clusters", &name).clone();
    let mut cluster = Entry(if known.is_object() { known } else { json!({"server": ""}) });
    if let Some(server) = call.parsed.text("server") {
        cluster.0["server"] = server.into();
        cluster.remove("tls-server-name");
    }
    for field in ["tls-server-name", "proxy-url"] {
        if let Some(text) = call.parsed.text(field) {
            cluster.set(field, text);
        }
    }
    if call.parsed.has("insecure-skip-tls-verify") {
        cluster.remove("insecure-skip-tls-verify");
        if is_insecure {
            cluster.0["insecure-skip-tls-verify"] = true.into();
            cluster.remove("certificate-authority");
            cluster.remove("certificate-authority-data");
        }
    }
    if let Some(path) = authority {
        if !path.is_empty() {
            cluster.remove("insecure-skip-tls-verify");
        }
        cluster.set_file(call, &config, "certificate-authority", &path, embeds)?;
    }
    config.put("clusters", &name, cluster.0);
    config.write(call)?;
    call.line(format!("Cluster {name:?} set."));
    Ok(())
}

pub fn delete(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = call.parsed.args.as_slice() else {
        show_help(call);
        return Ok(());
    };
    let name = name.clone();
    Kubeconfig::read_to_delete(call, "clusters", &name)?.delete(call, "clusters", &name)
}

/// What a kubeconfig holds under a name: a map without empty fields.
pub struct Entry(pub Value);

impl Entry {
    pub fn remove(&mut self, field: &str) {
        self.0.as_object_mut().map(|fields| fields.remove(field));
    }

    pub fn set(&mut self, field: &str, text: &str) {
        match text {
            "" => self.remove(field),
            text => self.0[field] = text.into(),
        }
    }

    /// A field that names a file, or holds it: `client-key` or `client-key-data`.
    pub fn set_file(
        &mut self,
        call: &Call<'_, '_>,
        config: &Kubeconfig,
        field: &str,
        path: &str,
        embeds: bool,
    ) -> Outcome {
        let data = format!("{field}-data");
        if embeds && !path.is_empty() {
            let text = call.context.files.read(path).map_err(|trouble| {
                let trouble = match trouble {
                    Trouble::Missing => format!("stat {path}: {trouble}"),
                    Trouble::Other(_) => format!("open {path}: {trouble}"),
                };
                Failure::Message(format!("could not stat {field} file {path}: {trouble}"))
            })?;
            self.0[data] = BASE64_STANDARD.encode(text).into();
            self.remove(field);
        } else {
            self.set(field, &config.place_of(path));
            if !path.is_empty() {
                self.remove(&data);
            }
        }
        Ok(())
    }
}
