//! RuntimeClasses. <https://kubernetes.io/docs/concepts/containers/runtime-class/>

use k8s_openapi::api::node::v1::RuntimeClass;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{metadata, names, resources};

pub struct Rules;

impl Strategy for Rules {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (class, mut causes) = (object.spec::<RuntimeClass>(), Causes::new());
        causes.invalid_each(&Path::new("handler"), &class.handler, names::dns_label(&class.handler));
        let fixed = class.overhead.iter().filter_map(|overhead| overhead.pod_fixed.as_ref()).flatten();
        for (name, amount) in fixed {
            let path = Path::new("overhead.podFixed").key(name);
            resources::resource_name(&mut causes, &path, name);
            resources::amount(&mut causes, &path, name, amount);
        }
        if let Some(selector) = class.scheduling.as_ref().and_then(|scheduling| scheduling.node_selector.as_ref()) {
            metadata::labels(&mut causes, selector, &Path::new("scheduling.nodeSelector"));
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let handler = |class: &Object| class.spec::<RuntimeClass>().handler.clone();
        causes.immutable(&Path::new("handler"), &handler(old), &handler(new));
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}
