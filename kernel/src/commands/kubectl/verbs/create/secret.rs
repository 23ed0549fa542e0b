//! `kubectl create secret`: one word below it for each of the usual types.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring::sign::any_supported_type;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::{switch, text};
use super::super::super::verb::{Call, Verb};
use super::super::group;
use super::sources::{self, FROM_ENV_FILE, FROM_FILE, FROM_LITERAL};
use super::{create_flags, generated, name_of};

pub const SECRET: Verb = Verb { name: "create secret", aliases: &[], flags: &[], run: group::on_stderr };

pub const GENERIC: Verb = Verb {
    name: "create secret generic",
    aliases: &[],
    flags: create_flags![FROM_LITERAL, FROM_FILE, FROM_ENV_FILE, switch("append-hash"), text("type")],
    run: generic,
};

pub const DOCKER_REGISTRY: Verb = Verb {
    name: "create secret docker-registry",
    aliases: &[],
    flags: create_flags![
        FROM_FILE,
        switch("append-hash"),
        text("docker-server"),
        text("docker-username"),
        text("docker-password"),
        text("docker-email"),
    ],
    run: docker_registry,
};

pub const TLS: Verb = Verb {
    name: "create secret tls",
    aliases: &[],
    flags: create_flags![text("cert"), text("key"), switch("append-hash")],
    run: tls,
};

const FAILING: &str = "failed to create secret ";

fn encoded(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default()
}

fn generic(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let data = sources::data(call, "Secret", &name)?;
    let mut secret = json!({"metadata": {"name": name}});
    if !data.is_empty() {
        secret["data"] = data.iter().map(|(key, value)| (key.clone(), encoded(value))).collect();
    }
    if let Some(type_) = call.parsed.text("type") {
        secret["type"] = type_.into();
    }
    generated::<Secret>(call, secret, FAILING)
}

fn docker_registry(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let text = |flag: &str| call.parsed.text(flag).unwrap_or_default().to_owned();
    let (user, password, email) = (text("docker-username"), text("docker-password"), text("docker-email"));
    let server = call.parsed.text("docker-server").unwrap_or("https://index.docker.io/v1/");
    let mut secret = json!({"metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson"});
    if call.parsed.has("from-file") {
        let data = sources::data(call, "Secret", &name)?;
        secret["data"] = data.iter().map(|(key, value)| (key.clone(), encoded(value))).collect();
    } else {
        if user.is_empty() || password.is_empty() || server.is_empty() {
            return message(
                "either --from-file or the combination of --docker-username, --docker-password and --docker-server is required",
            );
        }
        let authorization = encoded(&format!("{user}:{password}"));
        let field = |name: &str, value: Value| format!("{name:?}:{value}");
        let mut fields = vec![field("username", user.into()), field("password", password.into())];
        if !email.is_empty() {
            fields.push(field("email", email.into()));
        }
        fields.push(field("auth", authorization));
        let config = format!("{{\"auths\":{{{server:?}:{{{}}}}}}}", fields.join(","));
        secret["data"] = json!({".dockerconfigjson": encoded(&config)});
    }
    generated::<Secret>(call, secret, FAILING)
}

fn tls(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let (Some(certificate), Some(key)) = (call.parsed.text("cert"), call.parsed.text("key")) else {
        return message("key and cert must be specified");
    };
    let read = |path: &str| {
        let text = call.context.files.read(path);
        text.map_err(|trouble| Failure::Message(format!("Cannot read file {path}, open {path}: {trouble}")))
    };
    let (certificate, key) = (read(certificate)?, read(key)?);
    check_pair(&certificate, &key)?;
    let secret = json!({
        "metadata": {"name": name}, "type": "kubernetes.io/tls",
        "data": {"tls.crt": encoded(&certificate), "tls.key": encoded(&key)},
    });
    generated::<Secret>(call, secret, FAILING)
}

/// That the texts are a certificate and its key, in the words of Go's `tls.X509KeyPair`.
fn check_pair(certificate: &str, key: &str) -> Outcome {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(certificate.as_bytes()).filter_map(Result::ok).collect();
    if chain.is_empty() {
        return message(match PrivateKeyDer::from_pem_slice(certificate.as_bytes()) {
            Ok(_) => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
            }
            Err(_) => "tls: failed to find any PEM data in certificate input",
        });
    }
    let Ok(key_der) = PrivateKeyDer::from_pem_slice(key.as_bytes()) else {
        return message(match CertificateDer::from_pem_slice(key.as_bytes()) {
            Ok(_) => "tls: found a certificate rather than a key in the PEM for the private key",
            Err(_) => "tls: failed to find any PEM data in key input",
        });
    };
    let Ok(signing) = any_supported_type(&key_der) else { return message("tls: failed to parse private key") };
    match CertifiedKey::new(chain, signing).keys_match() {
        Ok(()) => Ok(()),
        Err(tokio_rustls::rustls::Error::InconsistentKeys(_)) => message("tls: private key does not match public key"),
        Err(error) => message(format!("x509: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_and_its_key_belong_together() {
        let pair = || rcgen::generate_simple_self_signed(["web.example".to_owned()]).unwrap();
        let (one, other) = (pair(), pair());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let problem = |certificate: &str, key: &str| check_pair(certificate, key).unwrap_err().text("");
        assert!(check_pair(&certificate, &key).is_ok());
        assert_eq!(
            problem(&certificate, &other.signing_key.serialize_pem()),
            "error: tls: private key does not match public key\n"
        );
        assert_eq!(problem("text", &key), "error: tls: failed to find any PEM data in certificate input\n");
        assert!(problem(&key, &certificate).contains("may have been switched"));
        assert!(problem(&certificate, &certificate).contains("found a certificate rather than a key"));
    }
}
