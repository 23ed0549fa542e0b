//! The server's certificate, made anew at each start and signed by an authority of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use cluster_core::api::user::{MASTERS, User};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What a server needs to be trusted.
pub struct Identity {
    pub server: Arc<ServerConfig>,
    /// The authority's certificate, for kubeconfigs.
    pub authority_pem: String,
    /// Certificate and key of the administrator, who may come with them instead of a token.
    pub administrator_pem: (String, String),
}

/// Names under which pods and people reach an API server.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Clients may also come with certificates that `issuer` has signed, the authority of CertificateSigningRequests, in DER.
///
/// # Errors
/// The text of the library that failed; nothing that a person does leads there.
pub fn identity(address: IpAddr, issuer_der: Option<Vec<u8>>) -> Result<Identity, String> {
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
    let mut authorities = RootCertStore::empty();
    authorities.add(authority_certificate.der().clone()).map_err(|error| error.to_string())?;
    if let Some(der) = issuer_der {
        authorities.add(der.into()).map_err(|error| error.to_string())?;
    }
    let clients = WebPkiClientVerifier::builder(authorities.into()).allow_unauthenticated().build();
    let mut server = ServerConfig::builder()
        .with_client_cert_verifier(clients.map_err(|error| error.to_string())?)
        .with_single_cert(chain, private.into())
        .map_err(|error| error.to_string())?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity {
        server: Arc::new(server),
        authority_pem: authority_certificate.pem(),
        administrator_pem: client(&issuer, "kubernetes-admin", MASTERS).map_err(wrong)?,
    })
}

/// The certificate of a user in a group, and its key.
fn client(issuer: &Issuer<'_, KeyPair>, user: &str, group: &str) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// The user that a client's certificate names: its common name, in the groups that its organizations are.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>
pub fn user_of(certificate: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    Some(User::authenticated(name, groups))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cluster_core::certificates;
    use cluster_core::clock::Time;
    use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};

    use super::*;

    #[test]
    fn a_certificate_that_was_requested_lets_its_user_in() {
        let authority = crate::token_signer::of_seed(1);
        let mut wanted = CertificateParams::new(Vec::new()).unwrap();
        wanted.distinguished_name.push(DnType::CommonName, "jane");
        wanted.distinguished_name.push(DnType::OrganizationName, "dev");
        let request = wanted.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let asked = certificates::read(request.as_bytes()).unwrap();
        let day = Duration::from_secs(24 * 3600);
        let issued = certificates::issue(&asked, &["client auth".to_owned()], day, &*authority, Time::ZERO);
        let (_, pem) = x509_parser::pem::parse_x509_pem(issued.as_bytes()).unwrap();
        let mut authorities = RootCertStore::empty();
        authorities.add(certificates::authority(&*authority).into()).unwrap();
        let verifier = WebPkiClientVerifier::builder(authorities.into()).build().unwrap();
        let at = |seconds: u64| UnixTime::since_unix_epoch(Duration::from_secs(1_767_225_600 + seconds));
        let certificate = CertificateDer::from(pem.contents.clone());
        verifier.verify_client_cert(&certificate, &[], at(60)).unwrap();
        assert!(verifier.verify_client_cert(&certificate, &[], at(25 * 3600)).is_err());
        let user = user_of(&pem.contents).unwrap();
        assert_eq!((user.name.as_str(), user.groups.join(" ")), ("jane", "dev system:authenticated".into()));
    }

    #[test]
    fn a_certificate_names_its_user_and_groups() {
        let identity = identity(Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(identity.administrator_pem.0.as_bytes()).unwrap();
        let user = user_of(&pem.contents).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.join(" ")),
            ("kubernetes-admin", "system:masters system:authenticated".into())
        );
        assert_eq!(user_of(b"none"), None);
    }
}
