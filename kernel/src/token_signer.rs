//! The key that signs tokens of ServiceAccounts: ECDSA on P-256 (ES256). That of a notebook is drawn from its seed, so
//! that it issues the same tokens each time.

use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cluster_core::apiserver::access::tokens::TokenSigner;
use cluster_core::random::Random;
use p256::ecdsa::signature::{Signer, Verifier};
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Makes its key when it is first used: most notebooks issue no tokens.
#[derive(Debug)]
struct Key {
    seed: u64,
    made: OnceLock<SigningKey>,
}

/// The signer of a seed. Whoever knows the seed can forge its tokens: it is for one who talks to nobody else.
pub fn of_seed(seed: u64) -> Arc<dyn TokenSigner> {
    Arc::new(Key { seed, made: OnceLock::new() })
}

/// A signer whose key nobody can guess.
pub fn unguessable() -> Arc<dyn TokenSigner> {
    let part = || uuid::Uuid::new_v4().into_bytes();
    let made = OnceLock::from(key_of(|| [part(), part()].concat()));
    Arc::new(Key { seed: 0, made })
}

/// Nearly every number of 256 bits is a key; draws until one is.
fn key_of(mut draw: impl FnMut() -> Vec<u8>) -> SigningKey {
    loop {
        if let Ok(key) = SigningKey::from_slice(&draw()) {
            return key;
        }
    }
}

impl Key {
    fn key(&self) -> &SigningKey {
        self.made.get_or_init(|| {
            let mut random = Random::new(self.seed);
            key_of(|| (0..4).flat_map(|_| random.draw().to_be_bytes()).collect())
        })
    }
}

impl TokenSigner for Key {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: Signature = self.key().sign(message);
        signature.to_bytes().to_vec()
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.key().verifying_key().verify(message, &signature).is_ok())
    }

    fn public_key(&self) -> Value {
        let point = self.key().verifying_key().to_sec1_point(false);
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (x, y) = (point.x().map(|x| text(x)), point.y().map(|y| text(y)));
        let kid = text(&Sha256::digest(point.as_bytes()));
        json!({"use": "sig", "kty": "EC", "kid": kid, "crv": "P-256", "alg": "ES256", "x": x, "y": y})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_belongs_to_its_message_and_seed() {
        let signer = of_seed(1);
        let signature = signer.sign(b"claims");
        assert_eq!(signature, of_seed(1).sign(b"claims"));
        assert!(signer.verifies(b"claims", &signature));
        assert!(!signer.verifies(b"claimed", &signature));
        assert!(!of_seed(2).verifies(b"claims", &signature));
        assert!(!signer.verifies(b"claims", b"short"));
    }
}
