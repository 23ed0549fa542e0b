//! CustomResourceDefinitions: names that fit together, one stored version; accepted as soon as they are written.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
};

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::custom::schema;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::{ApiServer, Moment};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<CustomResourceDefinition>();
        let kind = spec.names.kind.clone();
        spec.names.singular.get_or_insert_with(|| kind.to_lowercase());
        spec.names.list_kind.get_or_insert_with(|| format!("{kind}List"));
        let none = || CustomResourceConversion { strategy: "None".into(), ..Default::default() };
        spec.conversion.get_or_insert_with(none);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        let names = object.spec::<CustomResourceDefinition>().names.clone();
        let stored = stored_versions(object);
        let condition = |name: &str, reason: &str, message: &str| CustomResourceDefinitionCondition {
            type_: name.into(),
            status: "True".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: Some(moment.now.to_meta()),
            ..Default::default()
        };
        let status = object.status_mut::<CustomResourceDefinition>();
        status.accepted_names = Some(CustomResourceDefinitionNames { ..names });
        status.stored_versions = Some(stored);
        status.conditions = Some(vec![
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]);
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let spec = object.spec::<CustomResourceDefinition>();
        let mut causes = Vec::new();
        let required = [
            ("spec.group", &spec.group),
            ("spec.names.plural", &spec.names.plural),
            ("spec.names.kind", &spec.names.kind),
        ];
        causes
            .extend(required.iter().filter(|(_, text)| text.is_empty()).map(|(field, _)| Cause::required(*field, "")));
        let scopes = ["Cluster", "Namespaced"];
        if !scopes.contains(&spec.scope.as_str()) {
            causes.push(Cause::unsupported("spec.scope", spec.scope.as_str(), &scopes));
        }
        let name = format!("{}.{}", spec.names.plural, spec.group);
        if causes.is_empty() && *object.key.name != *name {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            causes.push(Cause::invalid("metadata.name", &*object.key.name, detail));
        }
        if spec.versions.iter().filter(|version| version.storage).count() != 1 {
            let detail = "must have exactly one version marked as storage version";
            causes.push(Cause::invalid("spec.versions", serde_json::json!(spec.versions), detail));
        }
        for (index, version) in spec.versions.iter().enumerate() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            match version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) {
                None => causes.push(Cause::required(field, "schemas are required")),
                Some(schema) => schema::structural(schema, &field, &mut causes),
            }
        }
        causes
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn stored_versions(object: &Object) -> Vec<String> {
    let versions = &object.spec::<CustomResourceDefinition>().versions;
    versions.iter().filter(|version| version.storage).map(|version| version.name.clone()).collect()
}
