//! From a kubeconfig and kubectl's flags to a client.
//! <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::Remote;
use crate::commands::kubectl::{self, Parsed};

/// Where kubectl looks when nothing says where the server is.
const NOWHERE: &str = "http://localhost:8080";
/// In a cell, for a watch or a log that is followed.
const QUIET_MAX: Duration = Duration::from_secs(10);

/// The server that the flags mean, or else `KUBECONFIG`, or else `~/.kube/config`; and the namespace that it says.
///
/// # Errors
/// What kubectl says after `error: `.
pub fn connect(flags: &Parsed) -> Result<(Remote, String), String> {
    connected(async {
        let mut config = config(flags).await?;
        adjust(&mut config, flags)?;
        Ok(config)
    })
}

/// No server, for what asks none.
pub fn nowhere() -> Result<(Remote, String), String> {
    connected(async { Ok(Config::new(axum::http::Uri::from_static(NOWHERE))) })
}

/// What a cell uses: the server of a kubeconfig, by its current context or another.
///
/// # Errors
/// What kubectl says after `error: `.
pub fn open(kubeconfig: &str, context: Option<&str>) -> Result<(Remote, String), String> {
    let mut words = vec![format!("--kubeconfig={kubeconfig}")];
    words.extend(context.map(|context| format!("--context={context}")));
    let (remote, namespace) = connect(&kubectl::global_flags(&words))?;
    Ok((Remote { quiet_max: Some(QUIET_MAX), ..remote }, namespace))
}

fn connected(config: impl Future<Output = Result<Config, String>>) -> Result<(Remote, String), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let (client, config) = runtime.block_on(async {
        let config = config.await?;
        let client = Client::try_from(config.clone()).map_err(|error| error.to_string())?;
        Ok::<_, String>((client, config))
    })?;
    let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let namespace = config.default_namespace.clone();
    let (kinds, stopped) = (Vec::new(), Arc::default());
    Ok((Remote { runtime, client, config, address, kinds, quiet_max: None, stopped }, namespace))
}

async fn config(flags: &Parsed) -> Result<Config, String> {
    let nowhere = || Config::new(axum::http::Uri::from_static(NOWHERE));
    let file = match flags.text("kubeconfig") {
        Some(path) => match std::fs::exists(path) {
            Ok(true) => Kubeconfig::read_from(path),
            _ => return Err(format!("stat {path}: no such file or directory")),
        },
        None => Kubeconfig::read(),
    };
    let file = match file {
        Ok(file) => file,
        // A file that nobody named on the command line need not be there.
        Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == ErrorKind::NotFound => return Ok(nowhere()),
        Err(error) => return Err(format!("error loading config file: {error}")),
    };
    let text = |flag: &str| flags.text(flag).map(str::to_owned);
    let options = KubeConfigOptions { context: text("context"), cluster: text("cluster"), user: text("user") };
    for (what, wanted, known) in [
        ("context", &options.context, file.contexts.iter().map(|known| &known.name).collect::<Vec<_>>()),
        ("cluster", &options.cluster, file.clusters.iter().map(|known| &known.name).collect()),
        ("auth info", &options.user, file.auth_infos.iter().map(|known| &known.name).collect()),
    ] {
        if let Some(wanted) = wanted
            && !known.contains(&wanted)
        {
            return Err(match what {
                "context" => {
                    format!("Error in configuration: context was not found for specified context: {wanted}")
                }
                "cluster" => format!("no server found for cluster {wanted:?}"),
                _ => format!("{what} {wanted:?} does not exist"),
            });
        }
    }
    if options.context.is_none() && file.current_context.as_deref().unwrap_or_default().is_empty() {
        return Ok(nowhere());
    }
    Config::from_custom_kubeconfig(file, &options).await.map_err(|error| error.to_string())
}

/// What the flags say of the connection itself.
fn adjust(config: &mut Config, flags: &Parsed) -> Result<(), String> {
    if let Some(server) = flags.text("server") {
        let url = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        config.cluster_url = url.parse::<axum::http::Uri>().map_err(|error| format!("--server {server}: {error}"))?;
    }
    if let Some(token) = flags.text("token") {
        config.auth_info.token = Some(token.to_owned().into());
    }
    if flags.switch("insecure-skip-tls-verify") {
        config.accept_invalid_certs = true;
        config.root_cert = None;
    }
    if let Some(path) = flags.text("certificate-authority") {
        config.root_cert_file = Some(path.into());
    }
    if let Some(name) = flags.text("tls-server-name") {
        config.tls_server_name = Some(name.to_owned());
    }
    if let Some(text) = flags.text("request-timeout") {
        let seconds = text.parse().map(Duration::from_secs).ok();
        let timeout = seconds.or_else(|| flags.duration("request-timeout")).ok_or(
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)",
        )?;
        config.read_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
    // Whoever types wants to know at once.
    config.default_retry = false;
    Ok(())
}
