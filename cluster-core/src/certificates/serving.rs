//! Whether a server is whom a client asks for, as far as names say: signatures and dates are not looked at.

use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

/// Whether a server that shows these certificates (PEM, its own first) has this host name, by authorities that are trusted
/// (PEM).
///
/// # Errors
/// In the words of Go's crypto/x509.
pub fn check_server(shown: &str, trusted: &[u8], host: &str) -> Result<(), String> {
    let (shown, trusted) = (blocks(shown.as_bytes()), blocks(trusted));
    let (shown, trusted) = (certificates(&shown), certificates(&trusted));
    let Some((own, between)) = shown.split_first() else { return Err("x509: malformed certificate".into()) };
    check_name(own, host)?;
    let mut last = own;
    // Each is signed by the next, and the last by one that is trusted.
    for _ in 0..=between.len() {
        if trusted.iter().any(|known| known.as_raw() == last.as_raw() || has_signed(known, last)) {
            return Ok(());
        }
        match between.iter().find(|next| has_signed(next, last)) {
            Some(next) => last = next,
            None => break,
        }
    }
    Err("x509: certificate signed by unknown authority".into())
}

fn blocks(pem: &[u8]) -> Vec<Pem> {
    Pem::iter_from_buffer(pem).filter_map(Result::ok).filter(|block| block.label == "CERTIFICATE").collect()
}

fn certificates(blocks: &[Pem]) -> Vec<X509Certificate<'_>> {
    blocks.iter().filter_map(|block| block.parse_x509().ok()).collect()
}

/// By their names and the ids of their keys.
fn has_signed(authority: &X509Certificate<'_>, signed: &X509Certificate<'_>) -> bool {
    let key = |certificate: &X509Certificate<'_>, of_issuer: bool| {
        certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) if !of_issuer => Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) if of_issuer => {
                id.key_identifier.as_ref().map(|id| id.0.to_vec())
            }
            _ => None,
        })
    };
    let keys_differ = match (key(authority, false), key(signed, true)) {
        (Some(own), Some(wanted)) => own != wanted,
        _ => false,
    };
    authority.subject().as_raw() == signed.issuer().as_raw() && !keys_differ
}

fn check_name(certificate: &X509Certificate<'_>, host: &str) -> Result<(), String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names: Vec<&str> = names
        .iter()
        .flat_map(|names| &names.value.general_names)
        .filter_map(|name| if let GeneralName::DNSName(name) = name { Some(*name) } else { None })
        .collect();
    if names.iter().any(|name| is_name_of(name, host)) {
        return Ok(());
    }
    let has_common_name = certificate.subject().iter_common_name().next().is_some();
    Err(match names.as_slice() {
        [] if has_common_name => "x509: certificate relies on legacy Common Name field, use SANs instead".into(),
        [] => format!("x509: certificate is not valid for any names, but wanted to match {host}"),
        names => format!("x509: certificate is valid for {}, not {host}", names.join(", ")),
    })
}

/// A star stands for the first part of a name.
fn is_name_of(name: &str, host: &str) -> bool {
    let rest = |name: &str| name.split_once('.').map(|(_, rest)| rest.to_ascii_lowercase());
    name.eq_ignore_ascii_case(host) || name.starts_with("*.") && rest(name) == rest(host)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certificates::testing::{Plain, SERVING};
    use crate::certificates::{authority, issue, pem, read};
    use crate::clock::Time;

    #[test]
    fn a_server_is_known_by_its_name_and_its_authority() {
        let usages = ["server auth".to_owned()];
        let own = issue(&read(SERVING.as_bytes()).unwrap(), &usages, Duration::from_secs(3600), &Plain, Time::ZERO);
        let trusted = pem(&authority(&Plain));
        assert_eq!(check_server(&own, trusted.as_bytes(), "node-1"), Ok(()));
        assert_eq!(check_server(&own, own.as_bytes(), "node-1"), Ok(()), "it is trusted itself");
        let other = "x509: certificate is valid for node-1, not hook.default.svc";
        assert_eq!(check_server(&own, trusted.as_bytes(), "hook.default.svc"), Err(other.into()));
        let unknown = "x509: certificate signed by unknown authority";
        assert_eq!(check_server(&own, b"", "node-1"), Err(unknown.into()));
    }

    #[test]
    fn a_star_stands_for_one_part() {
        assert!(is_name_of("*.default.svc", "hook.default.svc"));
        assert!(!is_name_of("*.svc", "hook.default.svc"));
    }
}
