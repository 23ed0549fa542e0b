//! ServiceAccounts. <https://kubernetes.io/docs/concepts/security/service-accounts/>

use crate::apiserver::strategy::Strategy;

pub struct Rules;

impl Strategy for Rules {
    fn returns_deleted(&self) -> bool {
        true
    }
}
