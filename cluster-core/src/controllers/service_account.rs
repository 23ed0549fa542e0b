//! serviceaccount-controller: every namespace has the ServiceAccount `default`.
//! <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::namespace;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;

pub struct ServiceAccountController;

impl Controller for ServiceAccountController {
    fn name(&self) -> &str {
        "serviceaccount-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let missed = |_: &View<'_>, change: &crate::store::Change| match &change.after {
            None => namespace::of_change(change),
            Some(_) => Vec::new(),
        };
        vec![Watch::itself(Namespace::kind()), Watch::with(ServiceAccount::kind(), missed)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let name = Key::new(key.name.clone(), "default");
        let active = view.get::<Namespace>(key).is_some_and(namespace::is_active);
        if active && view.get::<ServiceAccount>(&name).is_none() {
            let account = Object::new::<ServiceAccount>(&key.name, "default", ServiceAccount::default());
            plan.create(account, "every namespace has one").tolerate(&["AlreadyExists", "NamespaceTerminating"]);
        }
        plan
    }
}
