//! The registry from which machines pull, as far as a cluster's own objects say what it has: each Image declares a program
//! for the name of an image. The kind is no part of Kubernetes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::quantity;
use crate::apiserver::parse_duration;
use crate::runtime::images::{Declared, Registry, declared_name, digest};
use crate::runtime::programs::{Does, Exit, Handler, Memory, OnTerm, Program, Site};
use crate::watch::{EventType, WatchEvent, Watcher};
use crate::world::{Subscriber, World};

const API_VERSION: &str = "kernetes.dev/v1alpha1";
const KIND: &str = "Image";

/// How large an image is, and how often its memory grows, if nothing is said.
const SIZE_BYTES: u64 = 50 << 20;
const GROWTH_PERIOD: Duration = Duration::from_secs(10);
/// From SIGTERM to the end of a program of which nothing is said.
const TERM_DELAY: Duration = Duration::from_millis(50);

/// Lists what is declared and hears of what follows.
pub fn follow(world: &mut World) {
    let Some(kind) = world.apiserver.kind(API_VERSION, KIND).cloned() else { return };
    world.unsubscribe(&Subscriber::Registry);
    world.registry = Registry::default();
    for object in world.apiserver.store.list(&kind, "") {
        world.registry.declare(object.key.name.clone(), declared(object));
    }
    let revision = world.apiserver.store.revision();
    world.subscribe(Subscriber::Registry, Watcher::new(&kind, revision));
}

pub fn observe(events: &[WatchEvent], registry: &mut Registry) {
    for event in events {
        let object = &event.object;
        match event.event_type {
            EventType::Deleted => registry.withdraw(&object.key.name),
            _ => registry.declare(object.key.name.clone(), declared(object)),
        }
    }
}

fn declared(object: &Object) -> Declared {
    let value = object.to_json();
    let spec = Fields(&value["spec"]);
    let image = spec.0["image"].as_str().unwrap_or(&object.key.name);
    let pull = spec.of("pull");
    let is_there = pull.0["notFound"] != true;
    Declared {
        name: declared_name(image),
        program: is_there.then(|| Arc::new(program(&spec))),
        pull_takes: pull.duration("takes"),
        digest: digest(&format!("{image}{}", spec.0)),
    }
}

fn program(spec: &Fields<'_>) -> Program {
    let (memory, exit, sigterm) = (spec.of("memory"), spec.of("exit"), spec.of("sigterm"));
    let text = |value: &Value| Cow::Owned(value.as_str().unwrap_or_default().to_owned());
    let handlers: Vec<Handler> = spec.items("http").map(handler).collect();
    let (mut greeting, mut lines) = (Vec::new(), Vec::new());
    for line in spec.items("log") {
        match line.duration("every").filter(|every| !every.is_zero()) {
            Some(every) => lines.push((text(&line.0["line"]), every)),
            None => greeting.push(text(&line.0["line"])),
        }
    }
    let after = sigterm.duration("after").unwrap_or(TERM_DELAY);
    Program {
        size_bytes: spec.of("pull").bytes("size").unwrap_or(SIZE_BYTES),
        does: match handlers.is_empty() {
            true => Does::Wait,
            false => Does::Serve(handlers.iter().map(|handler| handler.port).collect(), Site::Handlers(handlers)),
        },
        start_delay: spec.duration("startDelay").unwrap_or_default(),
        greeting,
        lines,
        exit: exit.0.is_object().then(|| Exit { code: exit.code(), after: exit.duration("after").unwrap_or_default() }),
        memory: Memory {
            bytes: memory.bytes("initial").unwrap_or(0),
            growth_bytes: memory.bytes("growth").unwrap_or(0),
            every: memory.duration("every").filter(|every| !every.is_zero()).unwrap_or(GROWTH_PERIOD),
            bytes_max: memory.bytes("max"),
        },
        idle_millicores: spec.amount("cpu", quantity::millis).unwrap_or(0),
        request_micros: 200,
        on_term: match sigterm.0["ignored"] == true {
            true => OnTerm::Ignores,
            false => OnTerm::Exits { code: sigterm.code(), after },
        },
        ..Program::default()
    }
}

fn handler(of: Fields<'_>) -> Handler {
    let number = |field: &str| of.0[field].as_u64().and_then(|number| u16::try_from(number).ok());
    Handler {
        port: number("port").unwrap_or_default(),
        path: of.0["path"].as_str().unwrap_or("/").to_owned(),
        status: number("status").unwrap_or(200),
        body: of.0["body"].as_str().map(str::to_owned),
        delay: of.duration("delay").unwrap_or_default(),
        after: of.duration("after").unwrap_or_default(),
    }
}

/// A mapping that its schema has let pass.
struct Fields<'a>(&'a Value);

impl<'a> Fields<'a> {
    fn of(&self, field: &str) -> Fields<'a> {
        Fields(&self.0[field])
    }

    fn items(&self, field: &str) -> impl Iterator<Item = Fields<'a>> {
        self.0[field].as_array().into_iter().flatten().map(Fields)
    }

    fn code(&self) -> i32 {
        self.0["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(0)
    }

    fn duration(&self, field: &str) -> Option<Duration> {
        parse_duration(self.0[field].as_str()?)?.try_into().ok()
    }

    fn bytes(&self, field: &str) -> Option<u64> {
        self.amount(field, quantity::units)
    }

    fn amount(&self, field: &str, unit: fn(&Quantity) -> i64) -> Option<u64> {
        let text = match &self.0[field] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        u64::try_from(unit(&Quantity(text))).ok()
    }
}

/// The definition of the kind, as that of a custom resource.
pub fn definition() -> Object {
    let kind = KindRef::of::<CustomResourceDefinition>();
    let definition = json!({
        "metadata": {"name": "images.kernetes.dev"},
        "spec": {
            "group": "kernetes.dev",
            "scope": "Cluster",
            "names": {"plural": "images", "singular": "image", "kind": KIND, "listKind": "ImageList", "shortNames": ["img"]},
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema()},
                "additionalPrinterColumns": [
                    {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }],
        },
    });
    // The text above is a definition.
    Object::from_json(kind, definition)
        .unwrap_or_else(|_| Object::new::<CustomResourceDefinition>("", "", Default::default()))
}

fn schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let duration = |description: &str| json!({"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$", "description": format!("{description} Such as 500ms, 5s or 1m30s.")});
    let number = |least: i64, most: i64, description: &str| json!({"type": "integer", "format": "int32", "minimum": least, "maximum": most, "description": description});
    let amount = |description: &str| {
        json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
            "pattern": "^[0-9]+(\\.[0-9]+)?([KMGT]i?|k|m)?$",
            "description": description,
        })
    };
    let object = |description: &str, properties: Value| json!({"type": "object", "description": description, "properties": properties});
    let http = json!({
        "type": "array",
        "description": "What it answers over HTTP. Without any it listens nowhere.",
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": number(1, 65535, "The port on which it listens."),
                "path": json!({"type": "string", "pattern": "^/", "description": "The path that this is about, and all below it; the longest decides. /, if it is not there."}),
                "status": number(100, 599, "The status of the answer; 200, if it is not there."),
                "body": text("The body of the answer; if it is not there, a line with the pod's name."),
                "delay": duration("How long each answer takes."),
                "after": duration("Until the program has run for so long, the answer is 503."),
            },
        },
    });
    let log = json!({
        "type": "array",
        "description": "What it prints.",
        "items": {
            "type": "object",
            "required": ["line"],
            "properties": {
                "line": text("A line of its log."),
                "every": duration("It is printed again and again; without this once, at the start."),
            },
        },
    });
    let spec = json!({
        "type": "object",
        "description": "What the program in the image does.",
        "properties": {
            "image": text("The name of the image as pods write it: with a tag for this one, without for all tags. The object's own name, if it is not there."),
            "pull": object("What the registry does with the image.", json!({
                "size": amount("The size of the image; 50Mi, if it is not there."),
                "takes": duration("How long a node takes to fetch it."),
                "notFound": flag("The registry says that there is no such image."),
            })),
            "startDelay": duration("How long the program takes from its start until it listens and prints."),
            "http": http,
            "log": log,
            "memory": object("The memory that it takes. Above the limit of its container it is killed (OOMKilled).", json!({
                "initial": amount("What it takes from the beginning."),
                "growth": amount("What it takes in addition, again and again."),
                "every": duration("How often that is; every 10s, if it is not there."),
                "max": amount("It grows no further than this."),
            })),
            "cpu": amount("The CPU time that it takes, such as 250m."),
            "exit": object("It ends by itself.", json!({
                "code": number(0, 255, "The code with which it ends; 0, if it is not there."),
                "after": duration("How long after its start; at once, if it is not there."),
            })),
            "sigterm": object("What it does when it is told to stop.", json!({
                "ignored": flag("It goes on until it is killed."),
                "code": number(0, 255, "The code with which it ends; 0, if it is not there."),
                "after": duration("How long it takes until then."),
            })),
        },
    });
    json!({
        "type": "object",
        "description": "Image declares a program for the name of an image: what a container of it does. It is a part of the simulator, not of Kubernetes.",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec},
    })
}

#[cfg(test)]
mod tests;
