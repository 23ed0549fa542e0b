//! X.509: what a request for a certificate asks for, and the certificate that an authority makes of it.
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/>

mod der;
mod serving;

use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use crate::apiserver::access::tokens::TokenSigner;
use crate::clock::Time;

pub use serving::check_server;

/// How long before it is made a certificate begins to hold, for clocks that are late.
const BACKDATE: Duration = Duration::from_secs(300);
/// A certificate that lives shorter than this has its whole life before it.
const SHORT: Duration = Duration::from_secs(8 * 3600);

const ECDSA_WITH_SHA256: &[u32] = &[1, 2, 840, 10045, 4, 3, 2];
const EC_PUBLIC_KEY: &[u32] = &[1, 2, 840, 10045, 2, 1];
const PRIME256V1: &[u32] = &[1, 2, 840, 10045, 3, 1, 7];
const COMMON_NAME: &[u32] = &[2, 5, 4, 3];
const BASIC_CONSTRAINTS: &[u32] = &[2, 5, 29, 19];
const KEY_USAGE: &[u32] = &[2, 5, 29, 15];
const EXTENDED_KEY_USAGE: &[u32] = &[2, 5, 29, 37];
const SUBJECT_KEY: &[u32] = &[2, 5, 29, 14];
const AUTHORITY_KEY: &[u32] = &[2, 5, 29, 35];
const ALTERNATIVE_NAMES: &[u32] = &[2, 5, 29, 17];

/// The bits of key usages.
const KEY_USAGES: &[(&str, u8)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

const EXTENDED_KEY_USAGES: &[(&str, &[u32])] = &[
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

/// A request for a certificate (PKCS #10), as far as anybody looks at it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requested {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: Vec<String>,
    pub has_emails: bool,
    pub has_addresses: bool,
    pub has_uris: bool,
    /// Subject, public key and other names, as they stand there.
    subject: Vec<u8>,
    public_key: Vec<u8>,
    alternative_names: Option<Vec<u8>>,
}

/// Reads a request from its PEM.
///
/// # Errors
/// Why it is none.
pub fn read(pem: &[u8]) -> Result<Requested, String> {
    let block = parse_x509_pem(pem).ok().map(|(_, block)| block);
    let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let info = &request.certification_request_info;
    let texts = |values: &mut dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>>| {
        values.filter_map(|value| value.as_str().ok().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut read = Requested {
        common_name: texts(&mut info.subject.iter_common_name()).pop().unwrap_or_default(),
        organizations: texts(&mut info.subject.iter_organization()),
        subject: info.subject.as_raw().to_vec(),
        public_key: info.subject_pki.raw.to_vec(),
        ..Requested::default()
    };
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        let mut encoded = Vec::new();
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => {
                    read.dns_names.push((*name).to_owned());
                    encoded.extend(der::element(0x82, name.as_bytes()));
                }
                GeneralName::RFC822Name(name) => {
                    read.has_emails = true;
                    encoded.extend(der::element(0x81, name.as_bytes()));
                }
                GeneralName::URI(name) => {
                    read.has_uris = true;
                    encoded.extend(der::element(0x86, name.as_bytes()));
                }
                GeneralName::IPAddress(bytes) => {
                    read.has_addresses = true;
                    encoded.extend(der::element(0x87, bytes));
                }
                _ => {}
            }
        }
        read.alternative_names = Some(der::element(0x30, &encoded));
    }
    Ok(read)
}

/// Makes the certificate that was asked for, as PEM: for these usages, and for no longer than this.
pub fn issue(
    requested: &Requested,
    usages: &[String],
    lifetime: Duration,
    authority: &dyn TokenSigner,
    now: Time,
) -> String {
    let now = now.timestamp().as_second();
    let (back, life) = (BACKDATE.as_secs() as i64, i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX / 2));
    let until = if lifetime < SHORT { now + life } else { now + life - back };
    let key = key_of(authority);
    let bits: Vec<u8> = chosen(KEY_USAGES, usages);
    let purposes: Vec<Vec<u8>> = chosen(EXTENDED_KEY_USAGES, usages).into_iter().map(der::object_identifier).collect();
    let mut extensions = Vec::new();
    if !bits.is_empty() {
        extensions.push(extension(KEY_USAGE, true, &der::named_bits(&bits)));
    }
    if !purposes.is_empty() {
        extensions.push(extension(EXTENDED_KEY_USAGE, false, &der::element(0x30, &purposes.concat())));
    }
    extensions.push(extension(BASIC_CONSTRAINTS, true, &der::sequence(&[])));
    extensions.push(extension(AUTHORITY_KEY, false, &der::sequence(&[&der::element(0x80, &key_id(&key))])));
    if let Some(names) = &requested.alternative_names {
        extensions.push(extension(ALTERNATIVE_NAMES, false, names));
    }
    let validity = der::sequence(&[&moment(now - back), &moment(until)]);
    let bytes = signed(&validity, &requested.subject, &requested.public_key, &extensions, authority);
    pem(&bytes)
}

/// The authority's own certificate, in DER.
pub fn authority(signer: &dyn TokenSigner) -> Vec<u8> {
    const FROM: i64 = 1_577_836_800;
    const UNTIL: i64 = FROM + 50 * 365 * 24 * 3600;
    let key = key_of(signer);
    let extensions = [
        extension(KEY_USAGE, true, &der::named_bits(&[0, 2, 5])),
        extension(BASIC_CONSTRAINTS, true, &der::sequence(&[der::BOOLEAN_TRUE])),
        extension(SUBJECT_KEY, false, &der::octets(&key_id(&key))),
    ];
    let algorithm = der::sequence(&[&der::object_identifier(EC_PUBLIC_KEY), &der::object_identifier(PRIME256V1)]);
    let public_key = der::sequence(&[&algorithm, &der::bits(&key)]);
    signed(&der::sequence(&[&moment(FROM), &moment(UNTIL)]), &name(), &public_key, &extensions, signer)
}

/// A certificate in PEM.
pub fn pem(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn signed(
    validity: &[u8],
    subject: &[u8],
    public_key: &[u8],
    extensions: &[Vec<u8>],
    authority: &dyn TokenSigner,
) -> Vec<u8> {
    let algorithm = der::sequence(&[&der::object_identifier(ECDSA_WITH_SHA256)]);
    // The same request at the same time gets the same number.
    let mut serial = Sha256::digest([validity, subject, public_key].concat())[..16].to_vec();
    serial[0] &= 0x7f;
    let content = der::sequence(&[
        &der::tagged(0, &der::integer(&[2])),
        &der::integer(&serial),
        &algorithm,
        &name(),
        validity,
        subject,
        public_key,
        &der::tagged(3, &der::element(0x30, &extensions.concat())),
    ]);
    let signature = authority.sign(&content);
    let (r, s) = signature.split_at(signature.len() / 2);
    let signature = der::sequence(&[&der::integer(r), &der::integer(s)]);
    der::sequence(&[&content, &algorithm, &der::bits(&signature)])
}

/// `CN=kubernetes`
fn name() -> Vec<u8> {
    let common_name = der::sequence(&[&der::object_identifier(COMMON_NAME), &der::text("kubernetes")]);
    der::sequence(&[&der::set(&[&common_name])])
}

fn extension(id: &[u32], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { der::BOOLEAN_TRUE } else { &[] };
    der::sequence(&[&der::object_identifier(id), critical, &der::octets(value)])
}

fn moment(seconds: i64) -> Vec<u8> {
    der::time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// The entries of a table whose names are asked for.
fn chosen<T: Copy>(table: &[(&str, T)], names: &[String]) -> Vec<T> {
    table.iter().filter(|(name, _)| names.iter().any(|wanted| wanted == name)).map(|(_, entry)| *entry).collect()
}

/// The point of the authority's public key, uncompressed.
fn key_of(authority: &dyn TokenSigner) -> Vec<u8> {
    let key = authority.public_key();
    let part =
        |value: &Value| BASE64URL_NOPAD.decode(value.as_str().unwrap_or_default().as_bytes()).unwrap_or_default();
    [&[4][..], &part(&key["x"]), &part(&key["y"])].concat()
}

/// As RFC 7093 lets it be made.
fn key_id(key: &[u8]) -> Vec<u8> {
    Sha256::digest(key)[..20].to_vec()
}

#[cfg(test)]
pub mod testing {
    //! Requests that openssl made.

    pub const JANE: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHXMH8CAQAwHTEMMAoGA1UECgwDZGV2MQ0wCwYDVQQDDARqYW5lMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEKbhIarXN5jici+ex/mm9WjB2MHqsSzA6/NfRqgm2
FrnhGiqpPw4vdzUadH/o0zgSHjDYQCuP5AgpJ6rXhBICqaAAMAoGCCqGSM49BAMC
A0gAMEUCIDmOej6n3MM2Rh4XhtA5yIQXTf/MEvGccxDTAv3lJHjRAiEAz7F+Xl2v
1o8myixIF+NgHTG7YWWIawr7tXcHqo528u4=
-----END CERTIFICATE REQUEST-----
";
    pub const MASTER: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHjMIGKAgEAMCgxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARq
YW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4ELjOYK8D0HS0k3cfW1N+k5Q
J6IUbQF+A7FSxvZPCS2qTV98FIfcDk3Yp87b9fgs1CAiYq6IS6QTRpW6gjS7kaAA
MAoGCCqGSM49BAMCA0gAMEUCIDheiRJSYS6Vy4aIBFpJbpgrlFKcCFJh/KVL31wU
gD+SAiEAs8KhiEZi9QEh9acZc87XWHgTC2alxWd10it/EEt6gN4=
-----END CERTIFICATE REQUEST-----
";
    pub const NODE: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHvMIGWAgEAMDQxFTATBgNVBAoMDHN5c3RlbTpub2RlczEbMBkGA1UEAwwSc3lz
dGVtOm5vZGU6bm9kZS0xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEV1yq54CI
9tfd+cqEvgMfRKco3uLjKBFFlECnPcUex5Cj3bKA493cgPdvXHhsIQx/3k2wBXfl
zQE7cSypcz/IO6AAMAoGCCqGSM49BAMCA0gAMEUCIARWwGySTmmVx+notkFlM+a7
AFp7LOLNRPWvlE1XXFFeAiEA/J7mtRigZg8z6v2wDGi5i4MpNVO1KF+nNC7hzepX
0Ws=
-----END CERTIFICATE REQUEST-----
";
    pub const SERVING: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBGjCBwAIBADA0MRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxGzAZBgNVBAMMEnN5
c3RlbTpub2RlOm5vZGUtMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFdcqueA
iPbX3fnKhL4DH0SnKN7i4ygRRZRApz3FHseQo92ygOPd3ID3b1x4bCEMf95NsAV3
5c0BO3EsqXM/yDugKjAoBgkqhkiG9w0BCQ4xGzAZMBcGA1UdEQQQMA6CBm5vZGUt
MYcEwKgACzAKBggqhkjOPQQDAgNJADBGAiEA7uTJlkIQZyfk/llQqkUQmvEkZ6ad
7mPVP5LcR2WCMPACIQD9kEuuNCBKQvhFopHXo5Q05B26d+l1Xztj8y/+mwswnA==
-----END CERTIFICATE REQUEST-----
";

    /// An authority whose signatures are easily made.
    #[derive(Debug)]
    pub struct Plain;

    impl super::TokenSigner for Plain {
        fn sign(&self, message: &[u8]) -> Vec<u8> {
            [message.len().to_be_bytes(), message.len().to_be_bytes()].concat()
        }

        fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
            self.sign(message) == signature
        }

        fn public_key(&self) -> super::Value {
            let part = super::BASE64URL_NOPAD.encode(&[7; 32]);
            serde_json::json!({"alg": "ES256", "kid": "1", "x": part, "y": part})
        }
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::X509Certificate;

    use super::testing::*;
    use super::*;

    #[test]
    fn a_request_says_whom_it_is_for() {
        let jane = read(JANE.as_bytes()).unwrap();
        assert_eq!((jane.common_name.as_str(), jane.organizations), ("jane", vec!["dev".to_owned()]));
        let serving = read(SERVING.as_bytes()).unwrap();
        assert_eq!((serving.dns_names, serving.has_addresses), (vec!["node-1".to_owned()], true));
        assert_eq!(read(b"none"), Err("PEM block type must be CERTIFICATE REQUEST".into()));
        assert!(read(b"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n").is_err());
    }

    #[test]
    fn a_certificate_has_what_was_asked_for() {
        let usages = ["digital signature", "server auth"].map(str::to_owned);
        let text =
            issue(&read(SERVING.as_bytes()).unwrap(), &usages, Duration::from_secs(3600), &Plain, Time::from_secs(600));
        let (_, block) = parse_x509_pem(text.as_bytes()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&block.contents).unwrap();
        assert_eq!(certificate.subject().to_string(), "O=system:nodes, CN=system:node:node-1");
        assert_eq!(certificate.issuer().to_string(), "CN=kubernetes");
        let validity = certificate.validity();
        assert_eq!(validity.not_before.to_string(), "Jan  1 00:05:00 2026 +00:00");
        assert_eq!(validity.not_after.timestamp() - validity.not_before.timestamp(), 3900);
        assert!(certificate.key_usage().unwrap().unwrap().value.digital_signature());
        assert!(certificate.extended_key_usage().unwrap().unwrap().value.server_auth);
        assert_eq!(certificate.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 2);
        let der = authority(&Plain);
        assert!(X509Certificate::from_der(&der).unwrap().1.is_ca());
    }
}
