//! Simple paths into objects: `.spec.replicas`, and what a schema says stands there.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

/// The steps of `.spec.color`; `None` if it is no such path.
pub fn steps(path: &str) -> Option<Vec<&str>> {
    let steps: Vec<&str> = path.strip_prefix('.')?.split('.').collect();
    let simple = |step: &&str| {
        !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    steps.iter().all(simple).then_some(steps)
}

/// The schema of the field that a path leads to.
pub fn schema_at<'a>(schema: &'a JSONSchemaProps, path: &str) -> Option<&'a JSONSchemaProps> {
    steps(path)?.into_iter().try_fold(schema, |schema, step| schema.properties.as_ref()?.get(step))
}
