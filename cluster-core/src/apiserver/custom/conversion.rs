//! Custom resources in another version than the one they are stored in: by what that version knows, or by a program that
//! their definition names.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion>

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, WebhookClientConfig,
};
use serde_json::{Map, Value, json};

use super::{Entry, as_kind, completed, in_version, place, read};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::apiserver::callouts::Target;

const GROUP: &str = "apiextensions.k8s.io";
const TIMEOUT: Duration = Duration::from_secs(30);

/// The program that converts the objects of a definition.
pub struct Converter {
    client: WebhookClientConfig,
    /// The first version of ConversionReview that both sides know.
    review_version: Option<&'static str>,
}

impl Converter {
    /// `None` if the definition leaves it to the server.
    pub fn of(conversion: &CustomResourceConversion) -> Option<Converter> {
        let webhook = conversion.webhook.as_ref().filter(|_| conversion.strategy == "Webhook")?;
        let known = |version: &String| ["v1", "v1beta1"].into_iter().find(|known| known == version);
        Some(Converter {
            client: webhook.client_config.clone()?,
            review_version: webhook.conversion_review_versions.iter().find_map(known),
        })
    }

    /// Asks for the objects in another version, all at once.
    fn convert(&self, values: &[Value], api_version: &str, server: &ApiServer) -> Result<Vec<Value>, String> {
        let review_version = self.review_version.ok_or("no supported conversion review versions")?;
        let of = values.first().map(title).unwrap_or_default();
        let failed = |why: String| format!("conversion webhook for {of} failed: {why}");
        // Whatever is different for each question.
        let uid = values.first().map(|value| text(value, "/metadata/uid")).unwrap_or_default();
        let review_api_version = format!("{GROUP}/{review_version}");
        let review = json!({
            "kind": "ConversionReview", "apiVersion": review_api_version,
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": values},
        });
        let review = Target::from(&self.client).post(server, TIMEOUT, review).map_err(failed)?;
        let converted = answer(&review, &review_api_version, uid).map_err(failed)?;
        if converted.len() != values.len() {
            let (found, expected) = (converted.len(), values.len());
            return Err(format!("conversion webhook for {of} returned {found} objects, expected {expected}"));
        }
        let checked = values.iter().zip(converted).enumerate().map(|(index, (original, converted))| {
            restored(original, converted, api_version).map_err(|(what, why)| {
                format!("conversion webhook for {of} returned invalid {what} at index {index}: {why}")
            })
        });
        checked.collect()
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `example.com/v1, Kind=Shirt`
fn title(value: &Value) -> String {
    format!("{}, Kind={}", text(value, "/apiVersion"), text(value, "/kind"))
}

/// The objects that came back.
fn answer(review: &Value, api_version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let (found_version, found_kind) = (text(review, "/apiVersion"), text(review, "/kind"));
    if (found_version, found_kind) != (api_version, "ConversionReview") {
        let expected = format!("{api_version}, Kind=ConversionReview");
        return Err(format!("expected webhook response of {expected}, got {found_version}, Kind={found_kind}"));
    }
    let response = review.get("response").filter(|response| response.is_object()).ok_or("no response provided")?;
    let found = text(response, "/uid");
    if found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    match (text(response, "/result/status"), text(response, "/result/message")) {
        ("Success", _) => {}
        (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => return Err(message.to_owned()),
    }
    Ok(response.get("convertedObjects").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// A converted object with the metadata of the original, of which a program may change labels and annotations. An error
/// tells what is wrong, and how.
fn restored(original: &Value, mut converted: Value, api_version: &str) -> Result<Value, (&'static str, String)> {
    let wrong = |why: String| Err(("converted object", why));
    let (group_version, kind) = (text(&converted, "/apiVersion"), text(&converted, "/kind"));
    if group_version != api_version {
        return wrong(format!("invalid groupVersion (expected {api_version}, received {group_version})"));
    }
    let expected = text(original, "/kind");
    if kind != expected {
        return wrong(format!("invalid kind (expected {expected}, received {kind})"));
    }
    for (name, pointer) in [("name", "/metadata/name"), ("namespace", "/metadata/namespace"), ("UID", "/metadata/uid")]
    {
        let (before, after) = (text(original, pointer), text(&converted, pointer));
        if before != after {
            return wrong(format!("must have the same {name}: {before} != {after}"));
        }
    }
    let Some(Value::Object(sent)) = converted.get("metadata") else {
        return Err(("metadata in object", "missing metadata in converted object".into()));
    };
    let mut metadata = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match sent.get(field) {
            None | Some(Value::Null) => metadata.remove(field),
            Some(Value::Object(texts)) if texts.values().all(Value::is_string) => {
                metadata.insert(field.to_owned(), Value::Object(Map::clone(texts)))
            }
            Some(_) => {
                let why = format!("metadata.{field} must be an object of strings in converted object");
                return Err(("metadata in object", why));
            }
        };
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(converted)
}

impl ApiServer {
    /// Objects of a kind as requests for one of its versions see them.
    ///
    /// # Errors
    /// 500 if a program that has to convert them does not.
    pub fn in_version_of(&self, kind: &KindRef, objects: Vec<Object>) -> Result<Vec<Object>, Status> {
        match place(kind).and_then(|place| place.definition.converter.as_ref()) {
            None => Ok(objects.into_iter().map(|object| as_kind(object, kind)).collect()),
            Some(converter) => self.converted(converter, kind, objects),
        }
    }

    /// One of them.
    ///
    /// # Errors
    /// As of [`ApiServer::in_version_of`].
    pub fn one_in_version_of(&self, kind: &KindRef, object: Object) -> Result<Object, Status> {
        if kind.definition.is_none() || object.kind.is(kind) {
            return Ok(object);
        }
        let mut converted = self.in_version_of(kind, vec![object])?;
        converted.pop().ok_or_else(|| Status::unexplained("no objects returned"))
    }

    /// A custom resource as it is stored: in the storage version of its definition.
    ///
    /// # Errors
    /// As of [`ApiServer::in_version_of`].
    pub fn in_storage_version(&self, object: Object) -> Result<Object, Status> {
        let Some(Entry { definition, kinds, .. }) = self.custom.entry(&object.kind) else { return Ok(object) };
        let kind = &kinds[definition.storage];
        match &definition.converter {
            Some(converter) if object.kind.version != kind.version => {
                let mut converted = self.converted(converter, kind, vec![object])?;
                converted.pop().ok_or_else(|| Status::unexplained("no objects returned"))
            }
            _ => Ok(in_version(object, kind)),
        }
    }

    fn converted(&self, converter: &Converter, kind: &KindRef, objects: Vec<Object>) -> Result<Vec<Object>, Status> {
        let Some(place) = place(kind) else { return Ok(objects) };
        let is_other = |object: &&Object| object.kind.version != kind.version;
        let values: Vec<Value> =
            objects.iter().filter(is_other).map(|object| completed(object, &place.definition)).collect();
        let converted = match values.is_empty() {
            true => Vec::new(),
            false => converter.convert(&values, &kind.api_version(), self).map_err(Status::unexplained)?,
        };
        let mut converted = converted.into_iter();
        let present = |object: Object| match is_other(&&object).then(|| converted.next()).flatten() {
            Some(value) => with_texts_of(value, object, kind),
            None => as_kind(object, kind),
        };
        Ok(objects.into_iter().map(present).collect())
    }
}

/// A converted object with labels and annotations of its own.
fn with_texts_of(value: Value, original: Object, kind: &KindRef) -> Object {
    let texts = |field: &str| -> Option<BTreeMap<String, String>> {
        serde_json::from_value(value.get("metadata")?.get(field)?.clone()).ok()
    };
    let (labels, annotations) = (texts("labels"), texts("annotations"));
    let mut object = read(original, value, kind);
    let metadata = object.metadata();
    if metadata.labels != labels || metadata.annotations != annotations {
        let metadata = object.metadata_mut();
        (metadata.labels, metadata.annotations) = (labels, annotations);
    }
    object
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    use super::*;
    use crate::api::Key;
    use crate::api::kind::Resource;
    use crate::api::request::{Body, PatchType, Request, Response, Verb};
    use crate::api::selector::FieldSelector;
    use crate::apiserver::callouts::{Call, Webhooks};
    use crate::apiserver::watching::{Batch, Told};
    use crate::{Cluster, Config};

    /// `spec.size` of v1 is `spec.length` of v2.
    struct Tailor;

    impl Webhooks for Tailor {
        fn call(&self, call: &Call) -> Result<Value, String> {
            let request = &call.review["request"];
            let convert = |object: &Value| {
                let mut object = object.clone();
                object["apiVersion"] = request["desiredAPIVersion"].clone();
                if let Some(Value::Object(spec)) = object.get_mut("spec") {
                    for (from, to) in [("size", "length"), ("length", "size")] {
                        if let Some(value) = spec.remove(from) {
                            spec.insert(to.to_owned(), value);
                            break;
                        }
                    }
                }
                object
            };
            let objects: Vec<Value> = request["objects"].as_array().unwrap().iter().map(convert).collect();
            let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
            Ok(json!({"apiVersion": call.review["apiVersion"], "kind": "ConversionReview", "response": response}))
        }
    }

    fn shirts() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        cluster.set_webhooks(Arc::new(Tailor));
        let version = |name: &str, field: &str| {
            let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
            json!({"name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                "selectableFields": [{"jsonPath": format!(".spec.{field}")}]})
        };
        let webhook = json!({"clientConfig": {"url": "https://tailor/"}, "conversionReviewVersions": ["v1"]});
        let definition = json!({"metadata": {"name": "shirts.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "shirts", "kind": "Shirt"},
            "versions": [version("v1", "size"), version("v2", "length")],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        }});
        let definition = Object::from_json(CustomResourceDefinition::kind(), definition).unwrap();
        cluster.request(Request::create(&"kubectl".into(), definition)).unwrap();
        cluster
    }

    fn ask(cluster: &mut Cluster, version: &str, verb: Verb, body: Value) -> Result<Value, Status> {
        let kind = cluster.kind(&format!("example.com/{version}"), "Shirt").unwrap().clone();
        let request = Request::new(&"kubectl".into(), verb, &kind, Key::new("default", "a"));
        match cluster.request(Request { body: Body::Json(body), ..request })? {
            Response::Object(answer) => Ok(answer.object.to_json()),
            Response::List(_) => panic!("one object"),
        }
    }

    fn shirt(version: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Shirt", "metadata": {"name": "a"}, "spec": spec})
    }

    #[test]
    fn every_version_is_read_and_written_by_way_of_the_stored_one() {
        let mut cluster = shirts();
        let made = ask(&mut cluster, "v2", Verb::Create, shirt("v2", json!({"length": 40}))).unwrap();
        assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("example.com/v2"), &json!({"length": 40})));
        let older = ask(&mut cluster, "v1", Verb::Get, Value::Null).unwrap();
        assert_eq!(older["spec"], json!({"size": 40}));
        let patch = json!({"spec": {"length": 42}, "metadata": {"labels": {"fit": "slim"}}});
        let newer = ask(&mut cluster, "v2", Verb::Patch(PatchType::Merge), patch).unwrap();
        assert_eq!(newer["spec"], json!({"length": 42}));
        let older = ask(&mut cluster, "v1", Verb::Get, Value::Null).unwrap();
        assert_eq!((&older["spec"]["size"], &older["metadata"]["labels"]["fit"]), (&json!(42), &json!("slim")));
    }

    #[test]
    fn lists_and_watches_select_in_the_version_that_is_asked_for() {
        let mut cluster = shirts();
        ask(&mut cluster, "v1", Verb::Create, shirt("v1", json!({"size": 40}))).unwrap();
        let kind = cluster.kind("example.com/v2", "Shirt").unwrap().clone();
        let mut request = Request::new(&"kubectl".into(), Verb::List, &kind, Key::new("default", ""));
        request.options.fields = FieldSelector::parse("spec.length=40").unwrap();
        let Response::List(list) = cluster.request(request.clone()).unwrap() else { panic!("a list") };
        assert_eq!(list.items[0].to_json()["spec"], json!({"length": 40}));
        request.verb = Verb::Watch;
        let mut watch = cluster.open_watch(&request).unwrap();
        let mut told = |cluster: &Cluster| {
            let Batch::Events(events) = watch.next_batch(cluster.apiserver(), 10) else { panic!("it goes on") };
            events
                .iter()
                .map(|told| match told {
                    Told::Event(event, object) => format!("{event:?} {}", object.to_json()["spec"]),
                    Told::Bookmark { .. } => "bookmark".into(),
                })
                .collect::<Vec<String>>()
        };
        assert_eq!(told(&cluster), ["Added {\"length\":40}"]);
        ask(&mut cluster, "v1", Verb::Patch(PatchType::Merge), json!({"spec": {"size": 41}})).unwrap();
        assert_eq!(told(&cluster), ["Deleted {\"length\":40}"]);
    }

    #[test]
    fn who_converts_nothing_is_told_of() {
        let mut cluster = shirts();
        ask(&mut cluster, "v1", Verb::Create, shirt("v1", json!({"size": 40}))).unwrap();
        cluster.set_webhooks(Arc::new(crate::apiserver::callouts::Unreachable));
        let status = ask(&mut cluster, "v2", Verb::Get, Value::Null).unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (
                500,
                "conversion webhook for example.com/v1, Kind=Shirt failed: Post \"https://tailor/?timeout=30s\": dial tcp: \
                 network is unreachable"
            )
        );
        assert!(ask(&mut cluster, "v1", Verb::Get, Value::Null).is_ok());
    }
}
