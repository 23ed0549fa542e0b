//! root-ca-certificate-publisher-controller: every namespace has the certificate by which pods know the apiserver.
//! <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::namespace;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::store::Change;

const NAME: &str = "kube-root-ca.crt";

/// A certificate authority that signs nothing: inside of the cluster, connections are not encrypted.
pub const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBgTCCASegAwIBAgIUCLISvQTdrwm/8LPtNwbSZ4OADPwwCgYIKoZIzj0EAwIw\n\
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAgFw0yNjExMzAwNTI1MTlaGA8yMTI2MTEw\n\
NjA1MjUxOVowFTETMBEGA1UEAwwKa3ViZXJuZXRlczBZMBMGByqGSM49AgEGCCqG\n\
SM49AwEHA0IABKWn+uWY9XP56OtornqRhEbX7cJbPRhbVNbWaka6Z8bwD7mMPBtI\n\
OOXnhVZtQP4iji9t0x3EyH+tpa5UEaq9ggejUzBRMB0GA1UdDgQWBBS0hp58qxZ5\n\
EmzTf4UxBMNGjkoj7zAfBgNVHSMEGDAWgBS0hp58qxZ5EmzTf4UxBMNGjkoj7zAP\n\
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIH0JSRWnDbaUoeyb3Djn\n\
sTrKQh+RTB6c4V/LaYf1Y6TvAiEAn+fH3T1307ylpfn7HYb9admr22ATldxJz1S4\n\
0nior88=\n\
-----END CERTIFICATE-----\n\
";

pub struct RootCaPublisher;

impl Controller for RootCaPublisher {
    fn name(&self) -> &str {
        "root-ca-certificate-publisher-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let touched = |_: &View<'_>, change: &Change| match &*change.key().name {
            NAME => namespace::of_change(change),
            _ => Vec::new(),
        };
        vec![Watch::itself(Namespace::kind()), Watch::with(ConfigMap::kind(), touched)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if !view.get::<Namespace>(key).is_some_and(namespace::is_active) {
            return plan;
        }
        let data = Some(BTreeMap::from([("ca.crt".to_owned(), CERTIFICATE.to_owned())]));
        match view.get::<ConfigMap>(&Key::new(key.name.clone(), NAME)) {
            None => {
                let wanted = ConfigMap { data, ..ConfigMap::default() };
                let mut map = Object::new::<ConfigMap>(&key.name, NAME, wanted);
                let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
                                   internal endpoints such as the internal service IP or kubernetes.default.svc. No \
                                   other usage is guaranteed across distributions of Kubernetes clusters.";
                let annotations = map.metadata_mut().annotations.get_or_insert_default();
                annotations.insert("kubernetes.io/description".into(), description.into());
                plan.create(map, "every namespace has it").tolerate(&["AlreadyExists", "NamespaceTerminating"]);
            }
            Some(known) if known.spec::<ConfigMap>().data != data => {
                let mut map = known.clone();
                map.spec_mut::<ConfigMap>().data = data;
                plan.update(map, "it must hold the right certificate");
            }
            Some(_) => {}
        }
        plan
    }
}
