//! Paths of the API: which resource, object and subresource a URL means.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris>

use percent_encoding::percent_decode_str;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    Resource(Place),
    /// Discovery, health, OpenAPI and what there is not.
    Other,
}

/// A collection (no name), an object, or a subresource of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    pub subresource: String,
    /// What follows the subresource: the path that a proxy passes on.
    pub rest: String,
    /// The old way to watch: `/api/v1/watch/pods`.
    pub watch: bool,
}

/// Subresources of a namespace, which is itself a place for others.
const NAMESPACE_SUBRESOURCES: &[&str] = &["status", "finalize"];

pub fn route(path: &str) -> Route {
    let decoded: Vec<String> = path
        .trim_start_matches('/')
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let mut parts = decoded.iter().map(String::as_str);
    let mut place = Place::default();
    match parts.next() {
        Some("api") => {}
        Some("apis") => match parts.next() {
            Some(group) => place.group = group.into(),
            None => return Route::Other,
        },
        _ => return Route::Other,
    }
    let Some(version) = parts.next() else { return Route::Other };
    place.version = version.into();
    let mut rest: Vec<&str> = parts.collect();
    // A slash at the end names nothing more.
    if rest.last() == Some(&"") {
        rest.pop();
    }
    if rest.first() == Some(&"watch") {
        place.watch = true;
        rest.remove(0);
    }
    if let ["namespaces", namespace, more @ ..] = rest.as_slice()
        && let Some(resource) = more.first()
        && (!NAMESPACE_SUBRESOURCES.contains(resource) || more.len() > 1)
    {
        place.namespace = (*namespace).into();
        rest = more.to_vec();
    }
    match rest.as_slice() {
        [] => return Route::Other,
        [resource, more @ ..] => {
            place.resource = (*resource).into();
            place.name = more.first().copied().unwrap_or_default().into();
            place.subresource = more.get(1).copied().unwrap_or_default().into();
            place.rest = more.get(2..).unwrap_or_default().join("/");
        }
    }
    Route::Resource(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_resource() {
        for (path, expected) in [
            ("/api/v1/namespaces/default/pods", "/v1 default pods - -"),
            ("/api/v1/pods", "/v1 - pods - -"),
            ("/api/v1/namespaces/default/pods/web/log", "/v1 default pods web log"),
            ("/apis/apps/v1/namespaces/a/deployments/web/scale", "apps/v1 a deployments web scale"),
            ("/api/v1/namespaces", "/v1 - namespaces - -"),
            ("/api/v1/namespaces/a", "/v1 - namespaces a -"),
            ("/api/v1/namespaces/a/", "/v1 - namespaces a -"),
            ("/api/v1/namespaces/a/finalize", "/v1 - namespaces a finalize"),
            ("/api/v1/watch/namespaces/a/pods/b", "/v1 a pods b -"),
            ("/api/v1/nodes/node%2D1", "/v1 - nodes node-1 -"),
        ] {
            let Route::Resource(place) = route(path) else { panic!("{path} names no resource") };
            let or = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            let (namespace, name) = (or(&place.namespace), or(&place.name));
            let shown = format!(
                "{}/{} {namespace} {} {name} {}",
                place.group,
                place.version,
                place.resource,
                or(&place.subresource)
            );
            assert_eq!(shown, expected, "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_resources() {
        for path in ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v3/api/v1"] {
            assert_eq!(route(path), Route::Other, "{path}");
        }
    }
}
