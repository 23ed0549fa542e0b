//! The token with which a client asks for the next page of a list: where the last one ended, and at which revision.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks>

use std::sync::LazyLock;

use data_encoding::{BASE64URL_NOPAD, Encoding};
use serde_json::json;

use crate::api::Key;
use crate::api::request::Request;
use crate::api::status::Status;
use crate::apiserver::decode::text;

const VERSION: &str = "meta.k8s.io/v1";

/// base64url without padding that, like Go's, does not mind bits left over at the end.
static TOKEN: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = BASE64URL_NOPAD.specification();
    specification.check_trailing_bits = false;
    specification.encoding().unwrap_or(BASE64URL_NOPAD)
});

#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// `None`: at the present, whatever the pages before showed.
    pub revision: Option<u64>,
    pub after: Key,
    /// The list is of one namespace, which the token then does not name.
    in_namespace: bool,
}

impl Continuation {
    pub fn after(key: &Key, revision: u64, namespace: &str) -> Continuation {
        Continuation { revision: Some(revision), after: key.clone(), in_namespace: !namespace.is_empty() }
    }

    /// The same place in a list that is no longer consistent.
    pub fn inconsistent(&self, namespace: &str) -> Continuation {
        Continuation { revision: None, after: self.after.clone(), in_namespace: !namespace.is_empty() }
    }

    /// The place that the options ask to go on from.
    ///
    /// # Errors
    /// 400 for a token that this server has not made, or beside a resource version.
    pub fn of(request: &Request) -> Result<Option<Continuation>, Status> {
        let options = &request.options;
        if options.continue_token.is_empty() {
            return Ok(None);
        }
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let invalid = |problem: String| Status::bad_request(format!("invalid continue token: {problem}"));
        let mut read = Continuation::read(&options.continue_token).map_err(invalid)?;
        if !request.key.namespace.is_empty() {
            read.after.namespace = request.key.namespace.clone();
        }
        Ok(Some(read))
    }

    fn read(token: &str) -> Result<Continuation, String> {
        let bytes = TOKEN.decode(token.trim_end_matches('=').as_bytes()).map_err(|error| {
            format!("continue key is not valid: illegal base64 data at input byte {}", error.position)
        })?;
        let value = text::parse(&bytes).map_err(|problem| format!("continue key is not valid: {problem}"))?.value;
        if value["v"] != VERSION {
            let version = value["v"].as_str().unwrap_or_default();
            return Err(format!(
                "continue key is not valid: server does not recognize this encoded version {version:?}"
            ));
        }
        let revision = match value["rv"].as_i64() {
            Some(-1) => None,
            Some(revision) if revision > 0 => Some(revision.unsigned_abs()),
            _ => {
                let problem = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
                return Err(format!("continue key is not valid: {problem}"));
            }
        };
        let start = value["start"].as_str().and_then(|start| start.strip_suffix('\0')).unwrap_or_default();
        let (namespace, name) = start.split_once('/').unwrap_or(("", start));
        if name.is_empty() {
            return Err("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)".into());
        }
        Ok(Continuation { revision, after: Key::new(namespace, name), in_namespace: namespace.is_empty() })
    }

    pub fn to_token(&self) -> String {
        let start = match self.in_namespace || self.after.namespace.is_empty() {
            true => format!("{}\0", self.after.name),
            false => format!("{}/{}\0", self.after.namespace, self.after.name),
        };
        let revision = self.revision.map_or(-1, |revision| revision as i64);
        BASE64URL_NOPAD.encode(json!({"v": VERSION, "rv": revision, "start": start}).to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn page(namespace: &str, token: &str) -> Result<Option<Continuation>, Status> {
        let mut request = Request::list::<ConfigMap>(&"kubectl".into(), namespace);
        request.options.continue_token = token.into();
        Continuation::of(&request)
    }

    #[test]
    fn a_token_leads_back_to_its_place() {
        let key = Key::new("shop", "web");
        let token = Continuation::after(&key, 7, "").to_token();
        let read = page("", &token).unwrap().unwrap();
        assert_eq!((read.revision, read.after), (Some(7), key.clone()));
        let token = Continuation::after(&key, 7, "shop").inconsistent("shop").to_token();
        let read = page("shop", &token).unwrap().unwrap();
        assert_eq!((read.revision, read.after), (None, key));
    }

    #[test]
    fn other_texts_are_refused() {
        for (token, problem) in [
            ("nonsense", "continue key is not valid: invalid character '\\u009e' looking for beginning of value"),
            ("a!", "continue key is not valid: illegal base64 data at input byte 1"),
            ("e30", "continue key is not valid: server does not recognize this encoded version \"\""),
        ] {
            let status = page("shop", token).unwrap_err();
            assert_eq!(status.message, format!("invalid continue token: {problem}"), "{token}");
        }
    }
}
