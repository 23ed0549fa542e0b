//! Certificate → CertificateRequest, and what was signed → Secret. Knows nothing of the authority.
//!
//! Each time it looks at all there is and does what is missing, so it does not matter where it stopped the last time. It
//! asks the API server and no cache: a cache that lags would make it order a certificate twice.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::api::{
    Certificate, CertificateRequest, CertificateRequestSpec, CertificateRequestStatus, CertificateStatus,
};
use crate::{MANAGER, RETRY, keys, told};

/// Names the Certificate of a request.
const LABEL: &str = "example.com/certificate";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("a key: {0}")]
    Key(#[from] rcgen::Error),
    #[error("the Secret {0} belongs to somebody else")]
    SecretTaken(String),
}

impl Error {
    /// The reason in the condition.
    fn reason(&self) -> &'static str {
        match self {
            Error::SecretTaken(_) => "SecretTaken",
            Error::Kube(kube::Error::Api(status)) if status.is_conflict() => "Conflict",
            Error::Kube(_) | Error::Key(_) => "Failed",
        }
    }
}

pub async fn run(client: Client) {
    let certificates: Api<Certificate> = Api::all(client.clone());
    let requests: Api<CertificateRequest> = Api::all(client.clone());
    let secrets: Api<Secret> = Api::all(client.clone());
    Controller::new(certificates, watcher::Config::default())
        .owns(requests, watcher::Config::default())
        .owns(secrets, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(RETRY), Arc::new(client))
        .for_each(|outcome| async { told("certificates", outcome) })
        .await;
}

/// One Certificate, and where its children are.
struct Desk<'a> {
    certificate: &'a Certificate,
    owner: Vec<OwnerReference>,
    certificates: Api<Certificate>,
    requests: Api<CertificateRequest>,
    secrets: Api<Secret>,
}

async fn reconcile(certificate: Arc<Certificate>, client: Arc<Client>) -> Result<Action, Error> {
    if certificate.meta().deletion_timestamp.is_some() {
        // The garbage collector takes the children.
        return Ok(Action::await_change());
    }
    let namespace = certificate.namespace().unwrap_or_default();
    let desk = Desk {
        certificate: &certificate,
        owner: certificate.controller_owner_ref(&()).into_iter().collect(),
        certificates: Api::namespaced((*client).clone(), &namespace),
        requests: Api::namespaced((*client).clone(), &namespace),
        secrets: Api::namespaced((*client).clone(), &namespace),
    };
    match desk.work().await {
        Ok(action) => Ok(action),
        Err(error) => {
            desk.tell(None, false, error.reason(), &error.to_string()).await?;
            Err(error)
        }
    }
}

impl Desk<'_> {
    async fn work(&self) -> Result<Action, Error> {
        let spec = &self.certificate.spec;
        let key = match self.own_secret().await?.as_ref().and_then(key_of) {
            Some(key) => key,
            None => keys::generate()?,
        };
        // Newest first. After the loss of a key what was signed for it is of no use.
        let requests = self.requests().await?;
        let mut signed = requests.iter().filter_map(|request| Some((request, request.status.as_ref()?)));
        let held = signed.find(|(request, _)| keys::is_of_key(&request.spec.request, &key));
        let (in_use, held) = (held.map(|(request, _)| request.spec.revision), held.map(|(_, status)| status));
        let valid = held.is_some_and(|status| status.not_after.0 > Timestamp::now());

        // The key is safe in its Secret before anybody is asked to sign for it.
        self.keep(&key, held.map_or("", |status| status.certificate.as_str())).await?;

        let newest = requests.first();
        let fits = |request: &&CertificateRequest| {
            keys::is_of_key(&request.spec.request, &key) && keys::is_for_names(&request.spec.request, &spec.dns_names)
        };
        let renewal = newest.and_then(|request| request.status.as_ref()).map(|status| self.renewal(status));
        let due = renewal.is_some_and(|renewal| renewal <= Timestamp::now());
        if newest.filter(fits).is_none() || due {
            self.ask(newest.map_or(1, |request| request.spec.revision + 1), &key).await?;
            self.tell(held, valid, "Issuing", "waits for the signer").await?;
            return Ok(Action::await_change());
        }
        let (Some(in_use), Some(renewal)) = (in_use, renewal) else {
            self.tell(held, valid, "Issuing", "waits for the signer").await?;
            return Ok(Action::await_change());
        };
        self.clear_away(&requests, in_use).await?;
        self.tell(held, valid, "Issued", "the Secret is up to date").await?;
        let wait = renewal.duration_since(Timestamp::now());
        Ok(Action::requeue(wait.try_into().unwrap_or(RETRY)))
    }

    /// The Secret, if there is one. Somebody else's is not touched.
    async fn own_secret(&self) -> Result<Option<Secret>, Error> {
        let secret = self.secrets.get_opt(&self.certificate.spec.secret_name).await?;
        let uid = self.certificate.uid();
        let is_own = |secret: &Secret| {
            secret
                .owner_references()
                .iter()
                .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
        };
        match secret {
            Some(secret) if !is_own(&secret) => Err(Error::SecretTaken(secret.name_any())),
            secret => Ok(secret),
        }
    }

    async fn requests(&self) -> Result<Vec<CertificateRequest>, Error> {
        let of_this = ListParams::default().labels(&format!("{LABEL}={}", self.certificate.name_any()));
        let mut requests = self.requests.list(&of_this).await?.items;
        requests.retain(|request| request.meta().deletion_timestamp.is_none());
        requests.sort_by_key(|request| std::cmp::Reverse(request.spec.revision));
        Ok(requests)
    }

    fn renewal(&self, status: &CertificateRequestStatus) -> Timestamp {
        status.not_after.0 - SignedDuration::from_secs(self.certificate.spec.renew_before_seconds.into())
    }

    /// Without force: a field that somebody has taken on purpose is not taken back.
    async fn keep(&self, key: &str, certificate: &str) -> Result<(), Error> {
        let name = &self.certificate.spec.secret_name;
        let data = [("tls.key", key), ("tls.crt", certificate)];
        let secret = Secret {
            metadata: self.metadata(name),
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data.map(|(name, text)| (name.to_owned(), ByteString(text.into()))).into()),
            ..Secret::default()
        };
        self.secrets.patch(name, &PatchParams::apply(MANAGER), &Patch::Apply(secret)).await?;
        Ok(())
    }

    /// Its name is the same for the same revision: to ask twice is no second order.
    async fn ask(&self, revision: u32, key: &str) -> Result<(), Error> {
        let spec = &self.certificate.spec;
        let name = self.certificate.name_any();
        let mut request = CertificateRequest::new(
            &format!("{name}-{revision}"),
            CertificateRequestSpec {
                revision,
                request: keys::request(key, &spec.dns_names)?,
                duration_seconds: spec.duration_seconds,
            },
        );
        request.metadata = self.metadata(&request.name_any());
        request.labels_mut().insert(LABEL.to_owned(), name);
        self.requests.create(&PostParams::default(), &request).await?;
        Ok(())
    }

    /// What is older than the certificate in use.
    async fn clear_away(&self, requests: &[CertificateRequest], revision: u32) -> Result<(), Error> {
        for request in requests.iter().filter(|request| request.spec.revision < revision) {
            self.requests.delete(&request.name_any(), &DeleteParams::default()).await?;
        }
        Ok(())
    }

    async fn tell(
        &self,
        held: Option<&CertificateRequestStatus>,
        ready: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), Error> {
        let status = if ready { "True" } else { "False" };
        let known = self.certificate.status.clone().unwrap_or_default();
        let before = known.conditions.iter().find(|condition| condition.status == status);
        let condition = Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: self.certificate.meta().generation,
            last_transition_time: before.map_or_else(now, |condition| condition.last_transition_time.clone()),
        };
        let told = CertificateStatus {
            not_after: held.map(|status| status.not_after.clone()),
            renewal_time: held.map(|status| Time(self.renewal(status))),
            conditions: vec![condition],
        };
        if told != known {
            let status = json!({"apiVersion": "example.com/v1", "kind": "Certificate", "status": told});
            let name = self.certificate.name_any();
            self.certificates.patch_status(&name, &PatchParams::apply(MANAGER), &Patch::Apply(status)).await?;
        }
        Ok(())
    }

    fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.to_owned()), owner_references: Some(self.owner.clone()), ..ObjectMeta::default() }
    }
}

fn key_of(secret: &Secret) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get("tls.key")?.0.clone()).ok()
}

/// To the second, as the API keeps it.
fn now() -> Time {
    Time(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH))
}
