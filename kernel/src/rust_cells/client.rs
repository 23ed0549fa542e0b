//! A controller of the crate that cells import, as the cluster sees it: one more client, with informers of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::request::{Body, PatchType, Propagation, Request, Verb};
use cluster_core::controllers::cache::View;
use cluster_core::controllers::controller::{Controller, Enqueue, EventNote, Plan, Watch};
use kernetes_controller::wire::Ask;
use kernetes_controller::{self as cell, Object as _, Time, Value};

use super::RemoteController;
use crate::output::CellError;

type Kinds = BTreeMap<(String, String), KindRef>;

/// So many versions' JSON is kept.
const TOLD_MAX: usize = 4096;

/// What the informers know of what was asked; or why that can't be said.
pub type Answer = Result<Vec<Arc<Value>>, String>;

/// Whoever decides for a controller.
pub trait Mind: Send + Sync {
    /// What to write for a key. `answer` says what the informers know.
    fn reconcile(
        &self,
        key: cell::Key,
        now: Time,
        answer: &mut dyn FnMut(&Ask) -> Answer,
    ) -> Result<cell::Plan, String>;
}

impl RemoteController {
    /// The controller as a client of a cluster that serves these kinds. Fails if it watches a kind that is not served.
    pub fn client<'a>(self, kinds: impl Iterator<Item = &'a KindRef>) -> Result<Arc<dyn Controller>, CellError> {
        let (name, watches) = (self.name.clone(), self.watches.clone());
        Ok(Arc::new(Client::new(name, &watches, Box::new(self), kinds)?))
    }
}

impl Mind for RemoteController {
    fn reconcile(
        &self,
        key: cell::Key,
        now: Time,
        answer: &mut dyn FnMut(&Ask) -> Answer,
    ) -> Result<cell::Plan, String> {
        RemoteController::reconcile(self, key, now, answer)
    }
}

/// A controller that is compiled into this program, as a client like one of a cell. Fails if it watches a kind that is
/// not served.
pub fn native<'a>(
    name: &str,
    controller: impl cell::Controller + Send + Sync + 'static,
    kinds: impl Iterator<Item = &'a KindRef>,
) -> Result<Arc<dyn Controller>, CellError> {
    let watches = controller.watches();
    Ok(Arc::new(Client::new(name.to_owned(), &watches, Box::new(Native(controller)), kinds)?))
}

struct Native<C>(C);

impl<C: cell::Controller + Send + Sync> Mind for Native<C> {
    fn reconcile(
        &self,
        key: cell::Key,
        now: Time,
        answer: &mut dyn FnMut(&Ask) -> Answer,
    ) -> Result<cell::Plan, String> {
        let watches = self.0.watches();
        let kinds: BTreeSet<_> = [watches.main].into_iter().chain(watches.owned).chain(watches.also).collect();
        let mut objects = Vec::new();
        for kind in kinds {
            objects.extend(answer(&Ask::List(kind))?);
        }
        let view = cell::View::from(objects);
        catch_unwind(AssertUnwindSafe(|| self.0.reconcile(&key, &view, now))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            format!("its reconcile panicked: {}", text.unwrap_or("without a message"))
        })
    }
}

struct Client {
    name: String,
    mind: Box<dyn Mind>,
    main: KindRef,
    watches: Vec<(KindRef, Wakes)>,
    /// All kinds that were served when it joined.
    kinds: Kinds,
    told: Told,
}

/// The JSON of versions that were asked for: a controller looks at the same ones again and again.
#[derive(Default)]
struct Told(Mutex<HashMap<usize, (Object, Arc<Value>)>>);

impl Told {
    fn json(&self, object: &Object) -> Arc<Value> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOLD_MAX {
            known.clear();
        }
        let (_, json) = known.entry(object.address()).or_insert_with(|| (object.clone(), Arc::new(object.to_json())));
        json.clone()
    }
}

/// Which main objects a change wakes.
#[derive(Clone, Copy)]
enum Wakes {
    Itself,
    Owner,
    Each,
}

impl Controller for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |(kind, wakes): &(KindRef, Wakes)| match wakes {
            Wakes::Itself => Watch::itself(kind),
            Wakes::Owner => Watch::owner(kind, &self.main),
            Wakes::Each => Watch::new(kind, Enqueue::Each(self.main.clone())),
        };
        self.watches.iter().map(watch).collect()
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let cell_key = cell::Key::new(&*key.namespace, &*key.name);
        let now = Time(view.now.timestamp().as_millisecond());
        let plan = self.mind.reconcile(cell_key, now, &mut |ask| self.answer(ask, view));
        plan.and_then(|plan| self.plan(plan, view)).unwrap_or_else(Plan::failed)
    }
}

impl Client {
    fn new<'a>(
        name: String,
        watched: &cell::Watches,
        mind: Box<dyn Mind>,
        kinds: impl Iterator<Item = &'a KindRef>,
    ) -> Result<Client, CellError> {
        let kinds: Kinds = kinds.map(|kind| ((kind.api_version(), kind.kind.to_string()), kind.clone())).collect();
        let served = |(api_version, kind): &(String, String)| {
            kinds.get(&(api_version.clone(), kind.clone())).cloned().ok_or_else(|| {
                let message = format!("the controller {name} watches {}", not_served(api_version, kind));
                CellError::new("NoSuchKind", message)
            })
        };
        let main = served(&watched.main)?;
        let mut watches = vec![(main.clone(), Wakes::Itself)];
        for kind in &watched.owned {
            watches.push((served(kind)?, Wakes::Owner));
        }
        for kind in &watched.also {
            watches.push((served(kind)?, Wakes::Each));
        }
        Ok(Client { name, mind, main, watches, kinds, told: Told::default() })
    }

    fn kind(&self, api_version: &str, kind: &str) -> Result<&KindRef, String> {
        let known = self.kinds.get(&(api_version.to_owned(), kind.to_owned()));
        known.ok_or_else(|| format!("its plan names {}", not_served(api_version, kind)))
    }

    /// What the informers know.
    fn answer(&self, ask: &Ask, view: &View<'_>) -> Answer {
        let (api_version, name) = ask.kind();
        let watched = self.watches.iter().map(|(kind, _)| kind);
        let kind =
            { watched }.find(|kind| kind.api_version() == *api_version && *kind.kind == **name).ok_or_else(|| {
                format!("it does not watch {api_version} {name}: add .also({api_version:?}, {name:?}) to its watches")
            })?;
        let json = |object| self.told.json(object);
        Ok(match ask {
            Ask::Get(_, key) => view.get_of(kind, &core_key(key)).into_iter().map(json).collect(),
            Ask::List(_) => view.list_of(kind, "").map(json).collect(),
            Ask::Owned(_, uid) => view.controlled_of(kind, uid).map(json).collect(),
        })
    }

    fn plan(&self, planned: cell::Plan, view: &View<'_>) -> Result<Plan, String> {
        let mut plan = Plan { requeue_after: planned.requeue_after, error: planned.retry, ..Plan::done() };
        for write in planned.writes {
            let kind = self.kind(write.object.api_version(), write.object.kind())?;
            if write.verb == cell::Verb::Event {
                plan.event(event(kind, &write, view)?);
                continue;
            }
            let tolerated: &[&str] = if write.verb == cell::Verb::Delete { &["NotFound"] } else { &[] };
            let reason = write.reason.clone();
            plan.write(self.request(kind, write), reason).tolerate(tolerated);
        }
        Ok(plan)
    }

    /// A write as the apiserver takes it from any client, as JSON, so that it is checked like any other.
    fn request(&self, kind: &KindRef, write: cell::Write) -> Request {
        let uid = write.object.uid().to_owned();
        let revision = write.object.meta()["resourceVersion"].as_str().and_then(|revision| revision.parse().ok());
        let key = core_key(&write.object.key());
        let (verb, subresource, key, body) = match write.verb {
            cell::Verb::Create => (Verb::Create, "", Key::new(key.namespace, ""), write.object),
            cell::Verb::Update => (Verb::Update, "", key, write.object),
            cell::Verb::UpdateStatus => (Verb::Update, "status", key, write.object),
            cell::Verb::Apply => (Verb::Patch(PatchType::Apply), "", key, write.object),
            cell::Verb::Patch => (Verb::Patch(PatchType::Merge), "", key, write.body),
            cell::Verb::Delete | cell::Verb::Event => (Verb::Delete, "", key, Value::Null),
        };
        // The runner puts its name in.
        let mut request = Request::new(&"".into(), verb, kind, key);
        request.subresource = subresource;
        request.options.field_manager.clone_from(&self.name);
        match verb {
            Verb::Delete => {
                request.options.propagation = Some(Propagation::Background);
                request.options.precondition_uid = (!uid.is_empty()).then_some(uid);
                request.options.precondition_revision = revision;
            }
            // A controller takes the fields that it applies, as Kubernetes advises:
            // https://kubernetes.io/docs/reference/using-api/server-side-apply/#using-server-side-apply-in-a-controller
            Verb::Patch(PatchType::Apply) => request.options.force = true,
            _ => {}
        }
        if verb != Verb::Delete {
            request.body = Body::Json(body);
        }
        request
    }
}

fn event(kind: &KindRef, write: &cell::Write, view: &View<'_>) -> Result<EventNote, String> {
    let known = view.get_of(kind, &core_key(&write.object.key())).filter(|known| known.uid() == write.object.uid());
    let regarding = known.cloned().map_or_else(|| Object::from_json(kind, write.object.clone()), Ok);
    let text = |field: &str| write.body[field].as_str().unwrap_or_default();
    let regarding = regarding.map_err(|error| format!("an event about an object that is none: {}", error.message))?;
    let note = match text("type") {
        "Warning" => EventNote::warning,
        _ => EventNote::normal,
    };
    Ok(note(&regarding, forever(text("reason")), text("message").to_owned()))
}

/// Reasons of events are few and stand in the code; a cell's are kept as if they did.
fn forever(word: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    match words.get(word) {
        Some(known) => known,
        None => {
            let word: &'static str = Box::leak(Box::from(word));
            words.insert(word);
            word
        }
    }
}

fn core_key(key: &cell::Key) -> Key {
    Key::new(key.namespace.as_str(), key.name.as_str())
}

fn not_served(api_version: &str, kind: &str) -> String {
    format!(
        "{api_version} {kind}, a kind that the cluster did not serve when the controller joined: apply its CustomResourceDefinition, then run this cell again"
    )
}

#[cfg(test)]
mod tests {
    use cluster_core::api::kinds;
    use cluster_core::controllers::cache::Caches;
    use cluster_core::controllers::controller::Step;
    use kernetes_controller::{Duration, Watches, child_of, json};

    use super::*;

    fn remote(watches: Watches) -> RemoteController {
        RemoteController { name: "pool-controller".to_owned(), watches, shared: Arc::default() }
    }

    fn client() -> Client {
        let kinds: Kinds =
            kinds::built_in().iter().map(|kind| ((kind.api_version(), kind.kind.to_string()), kind.clone())).collect();
        let main = kinds[&("apps/v1".to_owned(), "ReplicaSet".to_owned())].clone();
        let pod = kinds[&("v1".to_owned(), "Pod".to_owned())].clone();
        let watches = vec![(main.clone(), Wakes::Itself), (pod, Wakes::Owner)];
        let remote = remote(Watches::of("apps/v1", "ReplicaSet").owns("v1", "Pod"));
        Client { name: remote.name.clone(), mind: Box::new(remote), main, watches, kinds, told: Told::default() }
    }

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-of-{name}")}})
    }

    #[test]
    fn a_kind_that_is_not_served_is_named() {
        let watches = Watches::of("apps/v1", "ReplicaSet").owns("example.com/v1", "Pool");
        let error = remote(watches).client(kinds::built_in().iter()).err().expect("an unknown kind");
        assert!(error.evalue.contains("watches example.com/v1 Pool, a kind that"), "{}", error.evalue);
    }

    #[test]
    fn each_write_becomes_the_request_that_kubectl_would_send() {
        let owner = object("apps/v1", "ReplicaSet", "web");
        let pod = object("v1", "Pod", "web-0");
        let mut plan = cell::Plan::new();
        plan.create(child_of(&owner, pod.clone()), "too few")
            .update_status(&owner, json!({"replicas": 1}), "counted")
            .apply(pod.clone(), "shape")
            .patch(&pod, json!({"metadata": {"labels": {"a": "b"}}}), "label")
            .delete(&pod, "too many")
            .delete_by_name(&pod, "whoever");
        let plan = plan.requeue_after(Duration::from_secs(30));
        let plan = client().plan(plan, &Caches::default().view(cluster_core::clock::Time::ZERO)).expect("a plan");
        let lines: Vec<String> = plan
            .steps
            .iter()
            .map(|step| {
                let Step::Write(write) = step else { panic!("no write") };
                let request = &write.request;
                let (verb, subresource) = (request.verb.as_str(), request.subresource);
                let uid = request.options.precondition_uid.as_deref().unwrap_or("-");
                format!("{verb} {}/{subresource} {} {uid}: {}", request.kind.resource, request.key, request.reason)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "create pods/ shop/ -: too few",
                "update replicasets/status shop/web -: counted",
                "patch pods/ shop/web-0 -: shape",
                "patch pods/ shop/web-0 -: label",
                "delete pods/ shop/web-0 uid-of-web-0: too many",
                "delete pods/ shop/web-0 -: whoever",
            ]
        );
        assert_eq!(plan.requeue_after, Some(Duration::from_secs(30)));
    }

    #[test]
    fn an_event_names_its_object_and_keeps_its_words() {
        let mut plan = cell::Plan::new();
        plan.warn(&object("v1", "Pod", "web-0"), "Odd", "looks odd");
        let plan = client().plan(plan, &Caches::default().view(cluster_core::clock::Time::ZERO)).expect("a plan");
        let [Step::Event(note)] = plan.steps.as_slice() else { panic!("no event") };
        assert_eq!((note.warning, note.reason, note.message.as_str()), (true, "Odd", "looks odd"));
        assert_eq!((note.regarding.key.to_string().as_str(), note.regarding.uid()), ("shop/web-0", "uid-of-web-0"));
    }

    #[test]
    fn it_sees_only_what_it_watches() {
        let caches = Caches::default();
        let view = caches.view(cluster_core::clock::Time::ZERO);
        let list = |api_version: &str, kind: &str| {
            client().answer(&Ask::List((api_version.to_owned(), kind.to_owned())), &view)
        };
        assert_eq!(list("v1", "Pod"), Ok(vec![]));
        let error = list("v1", "Secret").expect_err("not watched");
        assert_eq!(error, "it does not watch v1 Secret: add .also(\"v1\", \"Secret\") to its watches");
    }

    #[test]
    fn a_plan_with_an_unknown_kind_fails_as_a_whole() {
        let mut plan = cell::Plan::new();
        plan.create(object("v1", "Pod", "a"), "").create(object("example.com/v1", "Pool", "b"), "");
        let error = client().plan(plan, &Caches::default().view(cluster_core::clock::Time::ZERO)).expect_err("unknown");
        assert!(error.starts_with("its plan names example.com/v1 Pool"), "{error}");
    }
}
