//! A certificate authority outside of the cluster: a folder with its key, and what it has signed.
//!
//! ```text
//! ca.key  ca.crt  issued/UID.pem  revoked/UID.pem
//! ```
//! Each order has a name (the UID of its CertificateRequest). To sign an order again gives the same certificate, and to
//! revoke one again does nothing: whoever crashed before it could note the answer may simply ask again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    SerialNumber,
};
use time::OffsetDateTime;

pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Crypto(#[from] rcgen::Error),
    #[error("{0} is not the UID of an order")]
    Order(String),
    #[error("a certificate can't be valid until {0}")]
    Validity(Timestamp),
}

impl Authority {
    /// The authority of this folder; a new one if the folder has none.
    pub fn open(folder: &Path) -> Result<Authority, Error> {
        for name in ["issued", "revoked"] {
            let folder = folder.join(name);
            fs::create_dir_all(&folder).map_err(|error| Error::File(folder, error))?;
        }
        let path = folder.join("ca.key");
        let key = match read(&path)? {
            Some(key) => KeyPair::from_pem(&key)?,
            None => {
                let key = KeyPair::generate()?;
                write(&path, &key.serialize_pem())?;
                key
            }
        };
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "mini-cert-manager");
        let issuer = CertifiedIssuer::self_signed(params, key)?;
        let path = folder.join("ca.crt");
        if read(&path)?.is_none() {
            write(&path, &issuer.pem())?;
        }
        Ok(Authority { folder: folder.to_owned(), issuer })
    }

    /// The certificate (PEM) for a signing request (PEM).
    pub fn sign(&self, order: &str, request: &str, not_after: Timestamp) -> Result<String, Error> {
        let issued = self.place("issued", order)?;
        if let Some(certificate) = read(&issued)? {
            return Ok(certificate);
        }
        let mut request = CertificateSigningRequestParams::from_pem(request)?;
        request.params.serial_number = Some(serial_number(order)?);
        request.params.not_before = OffsetDateTime::UNIX_EPOCH;
        request.params.not_after =
            OffsetDateTime::from_unix_timestamp(not_after.as_second()).map_err(|_| Error::Validity(not_after))?;
        let certificate = request.signed_by(&self.issuer)?.pem();
        write(&issued, &certificate)?;
        Ok(certificate)
    }

    /// An order that was never signed is none to revoke.
    pub fn revoke(&self, order: &str) -> Result<(), Error> {
        let (issued, revoked) = (self.place("issued", order)?, self.place("revoked", order)?);
        match fs::rename(&issued, revoked) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::File(issued, error)),
            _ => Ok(()),
        }
    }

    fn place(&self, folder: &str, order: &str) -> Result<PathBuf, Error> {
        // An order that is no number could name a file anywhere.
        serial_number(order)?;
        Ok(self.folder.join(folder).join(order).with_extension("pem"))
    }
}

/// A UID is 128 bits, of which the first says here that the number is positive.
fn serial_number(order: &str) -> Result<SerialNumber, Error> {
    let number = u128::from_str_radix(&order.replace('-', ""), 16).map_err(|_| Error::Order(order.to_owned()))?;
    Ok(SerialNumber::from_slice(&(number >> 1).to_be_bytes()))
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::File(path.to_owned(), error)),
    }
}

/// Whole or not at all, and for this user's eyes only.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let unfinished = path.with_extension("unfinished");
    let written = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|error| Error::File(path.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    const ORDER: &str = "0f5c7a70-6a3e-4a56-9f0e-5d2f4d7c9a11";

    #[test]
    fn an_order_is_signed_once_however_often_it_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let request = keys::generate().and_then(|key| keys::request(&key, &["shop.example.com".to_owned()]));
        let sign = |order: &str| {
            let authority = Authority::open(folder.path()).expect("an authority");
            authority.sign(order, request.as_deref().expect("a request"), Timestamp::UNIX_EPOCH)
        };
        let first = sign(ORDER).expect("signed");
        assert!(first.starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(sign(ORDER).expect("signed"), first, "also by the same authority opened anew");
        assert_ne!(sign("0f5c7a70-6a3e-4a56-9f0e-5d2f4d7c9a12").expect("signed"), first);

        let authority = Authority::open(folder.path()).expect("an authority");
        for _ in 0..2 {
            authority.revoke(ORDER).expect("revoked");
        }
        assert!(folder.path().join(format!("revoked/{ORDER}.pem")).is_file());
        let error = authority.revoke("../ca").expect_err("no order");
        assert_eq!(error.to_string(), "../ca is not the UID of an order");
    }
}
