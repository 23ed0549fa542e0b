//! The OpenAPI documents as bytes: made when they are first asked for, kept as long as nothing can change them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response as HttpResponse, StatusCode, header};
use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::status::Status;
use cluster_core::apiserver::discovery::{self, Group, Version, digest, is_custom, openapi};
use serde_json::{Value, json};

use super::documents::tagged;
use super::handle::{Gateway, gone, text};
use super::query::Query;
use super::{accept, answer};

/// What stands behind `/openapi/v2` in [`Documents`]; the others have the names of the new index.
const WHOLE: &str = "v2";

/// The documents that describe built-in resources alone.
#[derive(Default)]
pub struct Documents {
    kept: Mutex<BTreeMap<String, Document>>,
}

#[derive(Clone)]
struct Document {
    digest: Arc<str>,
    bytes: Bytes,
}

impl Document {
    fn new(value: &Value) -> Document {
        let bytes = Bytes::from(value.to_string());
        Document { digest: digest(&bytes).into(), bytes }
    }
}

impl Documents {
    /// A document, made anew if custom resources have a part in it.
    fn get(&self, name: &str, custom: bool, make: impl FnOnce() -> Value) -> Document {
        let Ok(mut kept) = self.kept.lock() else { return Document::new(&make()) };
        match kept.get(name) {
            Some(document) if !custom => document.clone(),
            _ => {
                let document = Document::new(&make());
                if !custom {
                    kept.insert(name.to_owned(), document.clone());
                }
                document
            }
        }
    }

    fn of_version(&self, group: &Group<'_>, version: &Version<'_>) -> Document {
        let custom = version.kinds.iter().any(|kind| is_custom(kind));
        self.get(&openapi::name(group, version), custom, || openapi::document(group, version))
    }

    /// Where each document is, and in which state.
    fn index(&self, kinds: &[KindRef]) -> Value {
        let mut paths = BTreeMap::new();
        for group in discovery::groups(kinds.iter()) {
            for version in &group.versions {
                let (name, document) = (openapi::name(&group, version), self.of_version(&group, version));
                let url = format!("/openapi/v3/{name}?hash={}", document.digest);
                paths.insert(name, json!({"serverRelativeURL": url}));
            }
        }
        json!({"paths": paths})
    }

    fn named(&self, name: &str, kinds: &[KindRef]) -> Option<Document> {
        let groups = discovery::groups(kinds.iter());
        let versions = groups.iter().flat_map(|group| group.versions.iter().map(move |version| (group, version)));
        let (group, version) = versions.into_iter().find(|(group, version)| openapi::name(group, version) == name)?;
        Some(self.of_version(group, version))
    }

    fn whole(&self, kinds: &[KindRef]) -> Document {
        let custom = kinds.iter().any(is_custom);
        self.get(WHOLE, custom, || openapi::v2::whole(&discovery::groups(kinds.iter())))
    }
}

/// Answers for what follows `/openapi/`.
pub async fn respond(
    gateway: &Gateway,
    head: &Parts,
    query: &Query,
    path: &[&str],
) -> Result<HttpResponse<Body>, Status> {
    accept::negotiate(text(&head.headers, header::ACCEPT), true)?;
    let kinds = |cluster: &mut Cluster| cluster.kinds().cloned().collect::<Vec<KindRef>>();
    let kinds = gateway.live.ask(kinds).await.map_err(gone)?;
    let documents = &gateway.openapi;
    // Documents are large: they are made beside the threads that talk with clients.
    tokio::task::block_in_place(|| match path {
        ["v2"] => Ok(written(head, &documents.whole(&kinds))),
        ["v3"] => Ok(written(head, &Document::new(&documents.index(&kinds)))),
        ["v3", name @ ..] => Ok(match documents.named(&name.join("/"), &kinds) {
            Some(document) => at_hash(head, query.get("hash"), &document),
            None => answer::bytes(StatusCode::NOT_FOUND, "", Body::empty()),
        }),
        _ => Err(Status::unknown_path()),
    })
}

fn written(head: &Parts, document: &Document) -> HttpResponse<Body> {
    let mut response = tagged(&head.headers, "application/json", &document.digest, document.bytes.clone());
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// A document in the state that the index named may be kept for ever; one in another state is elsewhere.
fn at_hash(head: &Parts, hash: Option<&str>, document: &Document) -> HttpResponse<Body> {
    match hash {
        None => written(head, document),
        Some(hash) if *hash == *document.digest => {
            let mut response = written(head, document);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            response
        }
        Some(_) => {
            let mut response = answer::bytes(StatusCode::MOVED_PERMANENTLY, "", Body::empty());
            let place = format!("{}?hash={}", head.uri.path(), document.digest);
            response.headers_mut().extend(HeaderValue::from_str(&place).map(|place| (header::LOCATION, place)));
            response
        }
    }
}
