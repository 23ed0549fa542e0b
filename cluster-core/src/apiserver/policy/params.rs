//! The parameters of a policy: the objects that its binding refers to.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#parameter-resources>

use k8s_openapi::api::admissionregistration::v1::{ParamKind, ParamRef};

use crate::api::Key;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::apiserver::ApiServer;
use crate::apiserver::cel::value::Value;

/// The parameters, each of which the policy is evaluated with; one `None` if it takes none. An error is a text that
/// says what can't be configured.
pub fn collect(
    server: &ApiServer,
    kind: &Option<ParamKind>,
    reference: &Option<ParamRef>,
    namespace: &str,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(wanted), Some(reference)) = (kind, reference) else { return Ok(vec![None]) };
    let (version, name) =
        (wanted.api_version.as_deref().unwrap_or_default(), wanted.kind.as_deref().unwrap_or_default());
    let Some(kind) = server.kind(version, name) else {
        let text = "failed to find resource referenced by paramKind";
        return Err(format!("failed to configure policy: {text}: '{version}, Kind={name}'"));
    };
    let fixed = reference.namespace.as_deref().unwrap_or_default();
    let namespace = match (kind.namespaced, fixed) {
        (false, "") => "",
        (false, _) => {
            let text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(format!("failed to configure binding: {text}"));
        }
        (true, "") if namespace.is_empty() => {
            let text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(format!("failed to configure binding: {text}"));
        }
        (true, "") => namespace,
        (true, fixed) => fixed,
    };
    let selector = reference.selector.as_ref().map(Selector::of);
    let found: Vec<Object> = match (reference.name.as_deref().filter(|name| !name.is_empty()), selector) {
        (Some(name), _) => server.store.get(kind, &Key::new(namespace, name)).cloned().into_iter().collect(),
        (None, Some(selector)) => {
            let objects = server.store.list(kind, namespace);
            objects.filter(|object| selector.matches(object.metadata().labels.as_ref())).cloned().collect()
        }
        (None, None) => Vec::new(),
    };
    if found.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
        let text = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(format!("failed to configure binding: {text}"));
    }
    let found = server.in_version_of(kind, found).map_err(|status| status.message)?;
    Ok(found.iter().map(|object| Some(Value::from_json(&object.to_json()))).collect())
}
