//! The two kinds: the wish, and one request on the way to it.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Failure, MANAGER};

/// How long the API server may take to serve a new kind.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// A certificate that shall always be there, and valid.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Certificate",
    namespaced,
    status = "CertificateStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[0].status"}"#,
    printcolumn = r#"{"name": "Until", "type": "string", "jsonPath": ".status.notAfter"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The Secret for the certificate and its key.
    pub secret_name: String,
    pub dns_names: Vec<String>,
    pub duration_seconds: u32,
    /// So long before it expires a certificate is renewed.
    pub renew_before_seconds: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// `Ready`
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// What the authority is asked to sign. The key is not in it: it never leaves the Secret.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "CertificateRequest",
    namespaced,
    status = "CertificateRequestStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestSpec {
    /// Counts the requests of one Certificate, from 1.
    pub revision: u32,
    /// A certificate signing request (PKCS #10) as PEM.
    pub request: String,
    pub duration_seconds: u32,
}

/// There is none until it is signed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestStatus {
    /// As PEM.
    pub certificate: String,
    pub not_after: Time,
}

/// Teaches the API server both kinds, and waits until it serves them.
pub async fn install(client: &Client) -> Result<(), Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in [Certificate::crd(), CertificateRequest::crd()] {
        let name = definition.name_any();
        definitions.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(definition)).await?;
        let established = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(ESTABLISHED_WITHIN, established).await??;
    }
    Ok(())
}
