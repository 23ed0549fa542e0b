//! The server's certificate, made anew at each start and signed by an authority of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// What a server needs to be trusted.
pub struct Identity {
    pub server: Arc<ServerConfig>,
    /// The authority's certificate, for kubeconfigs.
    pub authority_pem: String,
}

/// Names under which pods and people reach an API server.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// # Errors
/// The text of the library that failed; nothing that a person does leads there.
pub fn identity(address: IpAddr) -> Result<Identity, String> {
    let wrong = |error: rcgen::Error| error.to_string();
    let authority_key = KeyPair::generate().map_err(wrong)?;
    let mut authority = CertificateParams::new(Vec::new()).map_err(wrong)?;
    authority.distinguished_name.push(DnType::CommonName, "kubernetes");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_certificate = authority.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate().map_err(wrong)?;
    let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(wrong)?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    for ip in [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), Ipv4Addr::new(10, 96, 0, 1).into()] {
        params.subject_alt_names.push(SanType::IpAddress(ip));
    }
    let certificate = params.signed_by(&key, &issuer).map_err(wrong)?;

    let chain = vec![certificate.der().clone(), authority_certificate.der().clone()];
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, private.into())
        .map_err(|error| error.to_string())?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity { server: Arc::new(server), authority_pem: authority_certificate.pem() })
}
