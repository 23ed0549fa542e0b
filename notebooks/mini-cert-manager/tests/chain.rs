//! The program as it runs against a cluster: `kernetes serve`, built before (`cargo build -p kernetes`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Names the program `kernetes`.
const KERNETES_VARIABLE: &str = "KERNETES";
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/debug/kernetes");
const PATIENCE: Duration = Duration::from_secs(30);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A cluster, and the program beside it.
struct Stage {
    certificates: Api<DynamicObject>,
    requests: Api<DynamicObject>,
    secrets: Api<Secret>,
    folder: TempDir,
    program: Child,
    _server: Child,
}

impl Stage {
    async fn set() -> Result<Stage, Failure> {
        let folder = tempfile::tempdir()?;
        let kernetes = std::env::var_os(KERNETES_VARIABLE).map_or_else(|| BUILT.into(), PathBuf::from);
        let mut server = Command::new(&kernetes)
            .args(["serve", "--kubeconfig-out"])
            .arg(folder.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}; build it, or set {KERNETES_VARIABLE}", kernetes.display()))?;
        let stdout = server.stdout.take().ok_or("the server has no stdout")?;
        BufReader::new(stdout).lines().next_line().await?.ok_or("the server does not say where it listens")?;

        let kubeconfig = Kubeconfig::read_from(folder.path().join("kubeconfig"))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let api = |kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind));
            Api::default_namespaced_with(client.clone(), &resource)
        };
        let program = start(folder.path())?;
        let stage = Stage {
            certificates: api("Certificate"),
            requests: api("CertificateRequest"),
            secrets: Api::default_namespaced(client.clone()),
            folder,
            program,
            _server: server,
        };
        // Before it has made the kinds known, they are not found.
        until("the kinds are served", async || Ok(stage.certificates.list(&Default::default()).await.ok())).await?;
        Ok(stage)
    }

    /// Makes a Certificate `name`, valid for so many seconds, whose Secret is `name-tls`.
    async fn wish(&self, name: &str, seconds: u32) -> Result<(), Failure> {
        let certificate = json!({
            "apiVersion": "example.com/v1",
            "kind": "Certificate",
            "metadata": {"name": name},
            "spec": {
                "secretName": format!("{name}-tls"),
                "dnsNames": [format!("{name}.example.com")],
                "durationSeconds": seconds,
                "renewBeforeSeconds": seconds / 2,
            },
        });
        self.certificates.create(&PostParams::default(), &serde_json::from_value(certificate)?).await?;
        Ok(())
    }

    /// Waits until the condition Ready has this status and reason.
    async fn told(&self, name: &str, status: &str, reason: &str) -> Result<Value, Failure> {
        until(&format!("{name} is {status} because of {reason}"), async || {
            let certificate = self.certificates.get(name).await?;
            let ready = &certificate.data["status"]["conditions"][0];
            Ok((ready["status"] == status && ready["reason"] == reason).then(|| ready.clone()))
        })
        .await
    }

    /// Waits for a Secret with a key and a certificate.
    async fn secret(&self, name: &str) -> Result<Secret, Failure> {
        until(&format!("the Secret {name}"), async || {
            Ok(self.secrets.get_opt(name).await?.filter(|secret| !text(secret, "tls.crt").is_empty()))
        })
        .await
    }

    async fn request_uids(&self) -> Result<BTreeSet<String>, kube::Error> {
        let requests = self.requests.list(&Default::default()).await?;
        Ok(requests.items.iter().filter_map(ResourceExt::uid).collect())
    }

    /// The UIDs in a folder of the authority.
    fn ledger(&self, name: &str) -> Result<BTreeSet<String>, Failure> {
        let mut uids = BTreeSet::new();
        for entry in std::fs::read_dir(self.folder.path().join("authority").join(name))? {
            let path = entry?.path();
            uids.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        Ok(uids)
    }

    async fn crash(&mut self) -> Result<(), Failure> {
        self.program.kill().await?;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.program = start(self.folder.path())?;
        Ok(())
    }
}

fn start(folder: &Path) -> Result<Child, Failure> {
    let program = Command::new(env!("CARGO_BIN_EXE_mini-cert-manager"))
        .arg("--authority")
        .arg(folder.join("authority"))
        .env("KUBECONFIG", folder.join("kubeconfig"))
        .kill_on_drop(true)
        .spawn()?;
    Ok(program)
}

/// Asks until the answer is there.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<Option<T>, kube::Error>) -> Result<T, Failure> {
    let asking = async {
        loop {
            if let Some(found) = ask().await? {
                return Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.map_err(|_| format!("never happened: {what}"))?
}

fn text(secret: &Secret, name: &str) -> String {
    let bytes = secret.data.as_ref().and_then(|data| data.get(name)).map(|bytes| bytes.0.clone());
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

#[tokio::test]
async fn a_certificate_becomes_a_secret_and_is_renewed_before_it_expires() -> Result<(), Failure> {
    let stage = Stage::set().await?;
    stage.wish("shop", 6).await?;
    stage.told("shop", "True", "Issued").await?;
    let first = stage.secret("shop-tls").await?;
    assert!(text(&first, "tls.key").contains("PRIVATE KEY"));
    assert_eq!(first.type_.as_deref(), Some("kubernetes.io/tls"));
    let certificate = stage.certificates.get("shop").await?;
    assert_eq!(first.owner_references()[0].uid, certificate.uid().unwrap_or_default());

    let renewed = until("a new certificate", async || {
        Ok(stage.secrets.get_opt("shop-tls").await?.filter(|now| text(now, "tls.crt") != text(&first, "tls.crt")))
    })
    .await?;
    assert_eq!(text(&renewed, "tls.key"), text(&first, "tls.key"));
    let certificate = stage.certificates.get("shop").await?;
    assert_eq!(certificate.metadata.generation, Some(1), "nobody has changed the wish");
    assert_eq!(certificate.data["status"]["conditions"][0]["status"], "True", "it was ready all the time");
    until("one request is left", async || Ok((stage.request_uids().await?.len() == 1).then_some(()))).await
}

#[tokio::test]
async fn what_a_certificate_led_to_goes_with_it() -> Result<(), Failure> {
    let stage = Stage::set().await?;
    stage.wish("shop", 3600).await?;
    stage.told("shop", "True", "Issued").await?;
    let request = stage.requests.get("shop-1").await?;
    assert_eq!(request.finalizers(), ["example.com/revoke"]);
    assert_eq!(stage.ledger("issued")?, stage.request_uids().await?);

    stage.certificates.delete("shop", &DeleteParams::default()).await?;
    until("the children are gone", async || {
        let gone = stage.requests.get_opt("shop-1").await?.is_none();
        Ok((gone && stage.secrets.get_opt("shop-tls").await?.is_none()).then_some(()))
    })
    .await?;
    assert!(stage.ledger("issued")?.is_empty());
    assert_eq!(stage.ledger("revoked")?, request.uid().into_iter().collect());
    Ok(())
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_not_touched() -> Result<(), Failure> {
    let stage = Stage::set().await?;
    let other = json!({"metadata": {"name": "shop-tls"}, "stringData": {"tls.crt": "theirs"}});
    let other = stage.secrets.create(&PostParams::default(), &serde_json::from_value(other)?).await?;
    stage.wish("shop", 3600).await?;
    let told = stage.told("shop", "False", "SecretTaken").await?;
    assert_eq!(told["message"], "the Secret shop-tls belongs to somebody else");
    assert_eq!(stage.secrets.get("shop-tls").await?, other);
    assert!(stage.ledger("issued")?.is_empty(), "nothing was ordered for it");

    stage.secrets.delete("shop-tls", &DeleteParams::default()).await?;
    stage.told("shop", "True", "Issued").await?;
    Ok(())
}

#[tokio::test]
async fn a_field_that_somebody_took_is_told_and_not_taken_back() -> Result<(), Failure> {
    let stage = Stage::set().await?;
    stage.wish("shop", 3600).await?;
    stage.told("shop", "True", "Issued").await?;
    // "theirs", in base64.
    let taken = json!({"apiVersion": "v1", "kind": "Secret", "data": {"tls.crt": "dGhlaXJz"}});
    let by_hand = PatchParams::apply("by-hand").force();
    stage.secrets.patch("shop-tls", &by_hand, &Patch::Apply(taken)).await?;
    let told = stage.told("shop", "False", "Conflict").await?;
    assert!(told["message"].as_str().is_some_and(|message| message.contains("by-hand")), "{told}");
    assert_eq!(text(&stage.secrets.get("shop-tls").await?, "tls.crt"), "theirs");

    stage.secrets.delete("shop-tls", &DeleteParams::default()).await?;
    stage.told("shop", "True", "Issued").await?;
    assert!(text(&stage.secret("shop-tls").await?, "tls.crt").contains("BEGIN CERTIFICATE"));
    Ok(())
}

#[tokio::test]
async fn after_a_crash_it_goes_on_with_what_is_there() -> Result<(), Failure> {
    let mut stage = Stage::set().await?;
    for name in ["stays", "goes"] {
        stage.wish(name, 3600).await?;
        stage.told(name, "True", "Issued").await?;
    }
    let key = text(&stage.secret("stays-tls").await?, "tls.key");

    stage.crash().await?;
    stage.wish("comes", 3600).await?;
    stage.secrets.delete("stays-tls", &DeleteParams::default()).await?;
    stage.certificates.delete("goes", &DeleteParams::default()).await?;
    let held = until("the request waits for its finalizer", async || {
        let request = stage.requests.get("goes-1").await?;
        Ok(request.metadata.deletion_timestamp.is_some().then_some(request))
    })
    .await?;

    stage.restart()?;
    stage.told("comes", "True", "Issued").await?;
    assert_ne!(text(&stage.secret("stays-tls").await?, "tls.key"), key, "a lost key is not used again");
    until("the request is gone", async || Ok(stage.requests.get_opt("goes-1").await?.is_none().then_some(()))).await?;
    assert!(held.uid().is_some_and(|uid| stage.ledger("revoked").is_ok_and(|revoked| revoked.contains(&uid))));
    until("no certificate is without its request", async || {
        let (requests, issued) = (stage.request_uids().await?, stage.ledger("issued").unwrap_or_default());
        Ok((requests.len() == 2 && requests == issued).then_some(()))
    })
    .await
}
