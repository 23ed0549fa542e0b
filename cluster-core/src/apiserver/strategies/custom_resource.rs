//! Custom resources: defaults, values and rules as the schema of their definition says.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation>

use serde_json::Value;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::custom::{self, rules, schema, values};
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::{ApiServer, Moment};

pub struct Rules;

/// Kinds of fault that leave rules unchecked, since rules rely on the schema.
const BLOCKING: &[&str] = &[
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let kind = object.kind.clone();
        let Some(schema) = custom::version(&kind).and_then(|version| version.schema.as_ref()) else { return };
        let mut value = object.to_json();
        let before = value.clone();
        schema::default(&mut value, schema);
        if value != before
            && let Ok(filled) = Object::from_json(&kind, value)
        {
            object.set_spec_part(filled.spec_part().clone());
            object.set_status_part(filled.status_part().clone());
        }
    }

    fn prepare_create(&self, object: &mut Object, server: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        if server.is_definition_terminating(&object.kind) {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(Status::method_not_allowed(message));
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        validate(object, None).into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        validate(new, Some(old)).into()
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        validate(new, Some(old)).into()
    }

    /// With a status subresource the generation counts all changes but those of status and metadata, without one all but
    /// those of metadata.
    fn changes_generation(&self, old: &Object, new: &Object) -> bool {
        !new.same_spec(old) || !new.kind.has_subresource("status") && !new.same_status(old)
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn validate(object: &Object, old: Option<&Object>) -> Causes {
    let mut causes = Causes::new();
    let Some(version) = custom::version(&object.kind) else { return causes };
    let Some(schema) = &version.schema else { return causes };
    let whole = object.to_json();
    let old = old.map(Object::to_json);
    let (fields, old_fields) = (without_metadata(&whole), old.as_ref().map(without_metadata));
    values::validate(&fields, old_fields.as_ref(), schema, "", &mut causes);
    if let Some(scale) = &version.scale {
        validate_scale(&whole, &scale.spec_replicas_path, &mut causes);
        validate_scale(&whole, &scale.status_replicas_path, &mut causes);
    }
    values::validate_embedded(&fields, schema, &Path::default(), &mut causes);
    let mut before = Causes::new();
    if let Some(old) = &old_fields {
        values::validate_lists(old, schema, &Path::default(), &mut before);
    }
    if before.is_empty() {
        values::validate_lists(&fields, schema, &Path::default(), &mut causes);
    }
    if !schema.rules.anywhere {
        return causes;
    }
    let told: Vec<Cause> = causes.clone().into();
    if told.iter().any(|cause| BLOCKING.contains(&cause.reason)) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors \
                      to complete validation";
        causes.invalid(&Path::default(), Value::Null, detail);
    } else {
        rules::validate(&whole, old.as_ref(), schema, &mut causes);
    }
    causes
}

/// The server itself looks after these.
fn without_metadata(whole: &Value) -> Value {
    let mut fields = whole.clone();
    if let Value::Object(fields) = &mut fields {
        fields.retain(|field, _| !schema::is_resource_field(field));
    }
    fields
}

/// What the scale subresource takes for numbers of replicas are such.
fn validate_scale(whole: &Value, path: &str, causes: &mut Causes) {
    let Some(replicas) = path.trim_start_matches('.').split('.').try_fold(whole, |value, step| value.get(step)) else {
        return;
    };
    let field = Path::new(path);
    match replicas.as_i64() {
        Some(count) if count < 0 => causes.invalid(&field, count, "should be a non-negative integer"),
        Some(count) if count > i64::from(i32::MAX) => {
            causes.invalid(&field, count, format!("should be less than or equal to {}", i32::MAX));
        }
        _ => {}
    }
}
