//! PodTemplates: a template that stands for itself.

use k8s_openapi::api::core::v1::PodTemplate;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::pod_template;
use crate::apiserver::{defaults, warnings};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        defaults::pod_template(object.spec_mut::<PodTemplate>().template.get_or_insert_default());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        if let Some(template) = &object.spec::<PodTemplate>().template {
            pod_template::validate(&mut causes, &Path::new("template"), template);
        }
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        match &new.spec::<PodTemplate>().template {
            Some(template) if old.is_none_or(|old| !old.same_spec(new)) => warnings::pod_template("template", template),
            _ => Vec::new(),
        }
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}
