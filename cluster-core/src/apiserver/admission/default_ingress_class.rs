//! DefaultIngressClass: an Ingress that says nothing about its class gets the default one.
//! <https://kubernetes.io/docs/concepts/services-networking/ingress/#default-ingress-class>

use k8s_openapi::api::networking::v1::{Ingress, IngressClass};

use super::default_storage_class::default_of;
use super::{Attributes, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;

const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// How Ingresses named their class before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";

pub struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Ingress::kind()])
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let has_class = object.spec::<Ingress>().ingress_class_name.is_some();
        if !attributes.creates() || has_class || object.annotation(CLASS).is_some() {
            return Ok(());
        }
        if let Some(class) = default_of(attributes.server, IngressClass::kind(), &[IS_DEFAULT]) {
            object.spec_mut::<Ingress>().ingress_class_name = Some(class.key.name.to_string());
        }
        Ok(())
    }
}
