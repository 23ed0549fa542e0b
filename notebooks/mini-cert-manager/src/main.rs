//! A small cert-manager, written with kube-rs: Certificate → CertificateRequest → Secret.
//!
//! Two controllers that know nothing of one another. `certificates` asks, and keeps what it gets; `signer` signs. What they
//! have to say to each other stands in CertificateRequests, so that either may crash at any time.

mod api;
mod authority;
mod certificates;
mod keys;
mod signer;

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use authority::Authority;
use clap::Parser;
use kube::Client;

/// The field manager of all that is applied.
const MANAGER: &str = "mini-cert-manager";
/// After a failure.
const RETRY: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Keep Certificates (example.com/v1) in Secrets, signed and valid, in the cluster of the current kubeconfig
#[derive(Parser)]
struct Arguments {
    /// The folder of the certificate authority; a new authority is made if it is empty
    #[arg(long, value_name = "FOLDER")]
    authority: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let authority = Authority::open(&arguments.authority)?;
    let client = Client::try_default().await?;
    api::install(&client).await?;
    tokio::join!(certificates::run(client.clone()), signer::run(client, authority));
    Ok(())
}

/// Says what went wrong; the controller tries again by itself.
fn told<T, E: Display>(controller: &str, outcome: Result<T, E>) {
    if let Err(error) = outcome {
        eprintln!("{controller}: {error}");
    }
}
