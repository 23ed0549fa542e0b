//! serviceaccount-token-controller: fills the Secrets that ask for a token of a ServiceAccount that does not expire, and
//! deletes them when the account is gone.
//! <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#token-controller>

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::root_ca;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::apiserver::access::tokens::{self, TokenSigner};
use crate::store::Change;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

pub struct TokensController;

impl Controller for TokensController {
    fn name(&self) -> &str {
        "serviceaccount-token-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(Secret::kind()), Watch::with(ServiceAccount::kind(), secrets_of)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(secret) = view.get::<Secret>(key).filter(|secret| is_token(secret)) else { return plan };
        let Some(name) = secret.annotation(NAME).filter(|name| !name.is_empty()) else { return plan };
        let uid = secret.annotation(UID).unwrap_or_default();
        let account = Key::new(key.namespace.clone(), name);
        match view.get::<ServiceAccount>(&account).filter(|account| uid.is_empty() || account.uid() == uid) {
            None => {
                plan.unless_exists(ServiceAccount::kind(), account, uid);
                plan.delete(secret, "its ServiceAccount is gone");
            }
            Some(_) if secret.is_terminating() => {}
            Some(account) => fill(secret, account, &mut plan),
        }
        plan
    }
}

fn is_token(secret: &Object) -> bool {
    secret.spec::<Secret>().type_.as_deref() == Some(TYPE)
}

fn secrets_of(view: &View<'_>, change: &Change) -> Vec<Key> {
    let account = change.key();
    let names = |secret: &&Object| is_token(secret) && secret.annotation(NAME) == Some(&*account.name);
    view.list::<Secret>(&account.namespace).filter(names).map(|secret| secret.key.clone()).collect()
}

/// What is there already stays, but for another cluster's certificate.
fn fill(secret: &Object, account: &Object, plan: &mut Plan) {
    let mut filled = secret.clone();
    let annotations = filled.metadata_mut().annotations.get_or_insert_default();
    annotations.insert(UID.into(), account.uid().to_owned());
    let data = filled.spec_mut::<Secret>().data.get_or_insert_default();
    let has_token = is_filled(data, "token");
    data.insert("ca.crt".into(), ByteString(root_ca::CERTIFICATE.into()));
    if !is_filled(data, "namespace") {
        data.insert("namespace".into(), ByteString(secret.key.namespace.as_bytes().to_vec()));
    }
    if has_token && filled.same(secret) {
        return;
    }
    let write = plan.update(filled, "it asks for a token");
    if !has_token {
        write.sign(sign);
    }
}

fn is_filled(data: &BTreeMap<String, ByteString>, field: &str) -> bool {
    data.get(field).is_some_and(|value| !value.0.is_empty())
}

fn sign(secret: &mut Object, signer: &dyn TokenSigner) {
    let token = tokens::of_secret(signer, secret);
    secret.spec_mut::<Secret>().data.get_or_insert_default().insert("token".into(), ByteString(token.into_bytes()));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{control_plane, create, delete, settle};
    use super::*;
    use crate::apiserver::access::tokens::SharedSigner;
    use crate::{Cluster, Config};

    #[derive(Debug)]
    struct Plain;

    impl TokenSigner for Plain {
        fn sign(&self, message: &[u8]) -> Vec<u8> {
            message.iter().rev().copied().collect()
        }

        fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
            self.sign(message) == signature
        }

        fn public_key(&self) -> Value {
            json!({"alg": "plain"})
        }
    }

    fn secret(cluster: &mut Cluster, account: &str) {
        let metadata = json!({"name": "t", "annotations": {NAME: account}});
        create::<Secret>(cluster, json!({"metadata": metadata, "type": TYPE}));
    }

    #[test]
    fn a_secret_gets_a_token_and_goes_with_its_account() {
        let without = ["kubelet", "kube-proxy", "kube-scheduler"].map(String::from).to_vec();
        let signer: SharedSigner = std::sync::Arc::new(Plain);
        let mut cluster = Cluster::new(Config { without, signer: Some(signer), ..Config::default() });
        let robot = create::<ServiceAccount>(&mut cluster, json!({"metadata": {"name": "robot"}}));
        secret(&mut cluster, "robot");
        settle(&mut cluster);
        let filled = cluster.get::<Secret>("default", "t").unwrap();
        assert_eq!(filled.annotation(UID), Some(robot.uid()));
        let data = filled.spec::<Secret>().data.clone().unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "namespace", "token"]);
        let token = String::from_utf8(data["token"].0.clone()).unwrap();
        assert_eq!(cluster.authenticate(&token).unwrap().name, "system:serviceaccount:default:robot");
        delete::<ServiceAccount>(&mut cluster, "robot").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Secret>("default", "t").is_none());
        assert!(cluster.authenticate(&token).is_err());
    }

    #[test]
    fn a_secret_of_nobody_is_deleted() {
        let mut cluster = control_plane();
        secret(&mut cluster, "nobody");
        settle(&mut cluster);
        assert!(cluster.get::<Secret>("default", "t").is_none());
    }
}
