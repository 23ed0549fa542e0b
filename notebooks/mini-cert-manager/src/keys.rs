//! Keys, and the signing requests made with them.

use rcgen::{CertificateParams, CertificateSigningRequestParams, DistinguishedName, Error, KeyPair, PublicKeyData};

/// A new private key as PEM.
pub fn generate() -> Result<String, Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// Asks for a certificate for these names and the key; as PEM.
pub fn request(key: &str, names: &[String]) -> Result<String, Error> {
    params(names)?.serialize_request(&KeyPair::from_pem(key)?)?.pem()
}

/// Whether a request was made with this key.
pub fn is_of_key(request: &str, key: &str) -> bool {
    match (CertificateSigningRequestParams::from_pem(request), KeyPair::from_pem(key)) {
        (Ok(request), Ok(key)) => request.public_key.der_bytes() == key.der_bytes(),
        _ => false,
    }
}

/// Whether a request asks for exactly these names.
pub fn is_for_names(request: &str, names: &[String]) -> bool {
    match (CertificateSigningRequestParams::from_pem(request), params(names)) {
        (Ok(request), Ok(params)) => request.params.subject_alt_names == params.subject_alt_names,
        _ => false,
    }
}

fn params(names: &[String]) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_knows_its_key_and_its_names() {
        let [key, other] = [(); 2].map(|()| generate().expect("a key"));
        let names = ["shop.example.com".to_owned()];
        let request = request(&key, &names).expect("a request");
        assert!(is_of_key(&request, &key) && !is_of_key(&request, &other) && !is_of_key("", &key));
        assert!(is_for_names(&request, &names) && !is_for_names(&request, &["example.com".to_owned()]));
    }
}
