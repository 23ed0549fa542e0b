//! Custom resources: defaults and validation by the schema of their definition.

use serde_json::Value;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::custom::schema;
use crate::apiserver::strategy::Strategy;

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let Some(schema) = object.kind.schema.clone() else { return };
        let mut value = object.to_json();
        let before = value.clone();
        schema::default(&mut value, &schema);
        if value != before
            && let Ok(filled) = Object::from_json(&object.kind, value)
        {
            object.set_spec_part(filled.spec_part().clone());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let Some(schema) = &object.kind.schema {
            let mut value = object.to_json();
            // The server itself looks after these.
            if let Value::Object(fields) = &mut value {
                fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind" | "metadata"));
            }
            schema::validate(&value, schema, "", &mut causes);
        }
        causes
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}
