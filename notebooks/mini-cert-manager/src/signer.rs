//! CertificateRequest → its status. Knows the authority, and nothing of Certificates and Secrets.
//!
//! It is the one that has something outside of the cluster, and so the one with a finalizer: a request goes only when its
//! certificate is revoked.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::api::{CertificateRequest, CertificateRequestStatus};
use crate::authority::{self, Authority};
use crate::{MANAGER, RETRY, told};

const FINALIZER: &str = "example.com/revoke";

struct Signer {
    client: Client,
    authority: Authority,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("the authority: {0}")]
    Authority(#[from] authority::Error),
    #[error("the request has no creationTimestamp")]
    NeverCreated,
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<Error>>),
}

pub async fn run(client: Client, authority: Authority) {
    let requests: Api<CertificateRequest> = Api::all(client.clone());
    Controller::new(requests, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(RETRY), Arc::new(Signer { client, authority }))
        .for_each(|outcome| async { told("signer", outcome) })
        .await;
}

async fn reconcile(request: Arc<CertificateRequest>, signer: Arc<Signer>) -> Result<Action, Error> {
    let requests = Api::namespaced(signer.client.clone(), &request.namespace().unwrap_or_default());
    let outcome = finalizer(&requests, FINALIZER, request, |event| async {
        match event {
            Event::Apply(request) => sign(&request, &requests, &signer.authority).await,
            Event::Cleanup(request) => revoke(&request, &signer.authority),
        }
    });
    outcome.await.map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn sign(
    request: &CertificateRequest,
    requests: &Api<CertificateRequest>,
    authority: &Authority,
) -> Result<Action, Error> {
    if request.status.is_some() {
        return Ok(Action::await_change());
    }
    // Counted from what the request says, not from now: asked again, the answer is the same.
    let created = request.creation_timestamp().ok_or(Error::NeverCreated)?.0;
    let not_after = created + SignedDuration::from_secs(request.spec.duration_seconds.into());
    let certificate = authority.sign(&request.uid().unwrap_or_default(), &request.spec.request, not_after)?;
    let status = json!({
        "apiVersion": "example.com/v1",
        "kind": "CertificateRequest",
        "status": CertificateRequestStatus { certificate, not_after: Time(not_after) },
    });
    requests.patch_status(&request.name_any(), &PatchParams::apply(MANAGER), &Patch::Apply(status)).await?;
    Ok(Action::await_change())
}

fn revoke(request: &CertificateRequest, authority: &Authority) -> Result<Action, Error> {
    authority.revoke(&request.uid().unwrap_or_default())?;
    Ok(Action::await_change())
}
