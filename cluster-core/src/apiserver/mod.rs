//! Every write and every read goes through here: decode, default, admit, validate, write.
//! <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>

pub mod access;
pub mod admission;
pub mod aggregation;
pub mod callouts;
mod cel;
mod continuation;
pub mod custom;
pub mod decode;
pub mod defaults;
pub mod delete;
pub mod discovery;
pub mod fields;
pub mod managed;
mod owners;
pub mod patch;
pub mod policy;
pub mod read;
mod replicas;
mod size;
pub mod strategies;
pub mod strategy;
pub mod subresources;
pub mod table;
pub mod validation;
pub mod versions;
pub mod warnings;
pub mod watching;
pub mod write;

use std::sync::Arc;

pub(crate) use cel::library::time::parse_duration;
use k8s_openapi::api::core::v1::Binding;

use crate::api::kind::{KindRef, Resource};
use crate::api::kinds;
use crate::api::object::Object;
use crate::api::request::{Answer, Request, Response, Verb};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::listeners::Listeners;
use crate::random::Random;
use crate::store::{Change, Refusal, Store};
use crate::trace::{RequestEntry, Trace, What};

/// What the server draws on while it handles a request.
pub struct Moment<'a> {
    pub now: Time,
    pub random: &'a mut Random,
    pub trace: &'a mut Trace,
}

#[derive(Clone)]
pub struct ApiServer {
    pub store: Store,
    custom: custom::CustomKinds,
    policies: policy::Policies,
    addresses: strategies::service::addresses::Addresses,
    committed: Vec<Arc<Change>>,
    pod_specs: replicas::PodSpecs,
    /// The way to programs outside of the cluster, and those inside that can be asked.
    pub webhooks: Arc<dyn callouts::Webhooks>,
    pub listeners: Listeners,
    /// The key of ServiceAccounts' tokens; without one there are none.
    pub(crate) signer: Option<access::tokens::SharedSigner>,
    /// The key of the authority that signs certificates; without one none are.
    pub(crate) authority: Option<access::tokens::SharedSigner>,
    pub(crate) aggregation: aggregation::Aggregation,
}

impl Default for ApiServer {
    fn default() -> Self {
        ApiServer::new()
    }
}

impl ApiServer {
    pub fn new() -> ApiServer {
        ApiServer {
            // Behind the built-in kinds come those of the aggregated API, of which nothing is stored.
            store: Store::new(kinds::built_in().len() + aggregation::kinds().len()),
            custom: custom::CustomKinds::default(),
            policies: policy::Policies::default(),
            addresses: strategies::service::addresses::Addresses::default(),
            committed: Vec::new(),
            pod_specs: replicas::PodSpecs::default(),
            webhooks: Arc::new(callouts::Unreachable),
            listeners: Listeners::default(),
            signer: None,
            authority: None,
            aggregation: aggregation::Aggregation::default(),
        }
    }

    /// Answers one request. Refused writes are recorded in the trace, too.
    pub fn handle(&mut self, request: Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
        let answer = self.dispatch(&request, moment);
        let answer = answer.and_then(|answer| versions::present_response(self, answer, &request.kind));
        custom::lifecycle::settle(self, moment);
        if let Err(status) = &answer
            && !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch)
        {
            record_refusal(moment.trace, moment.now, &request, status);
        }
        answer
    }

    fn dispatch(&mut self, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
        access::check(self, request)?;
        if aggregation::is_of(&request.kind) {
            return aggregation::answer(self, request, moment.now);
        }
        if !matches!(request.subresource, "" | "status") {
            return subresources::handle(self, request, moment);
        }
        match request.verb {
            Verb::Get => read::get(self, request).map(answer),
            Verb::List => read::list(self, request).map(Response::List),
            Verb::Watch => Err(Status::bad_request("a watch is opened, not answered")),
            Verb::Create if request.kind.slot == Binding::kind().slot => {
                subresources::binding::create(self, request, moment)
            }
            Verb::Create => match access::reviews::answer(self, request, moment) {
                Some(answer) => answer,
                None => write::create(self, request, moment),
            },
            Verb::Update => write::update(self, request, moment),
            Verb::Patch(_) => write::patch(self, request, moment),
            Verb::Delete => delete::delete(self, request, moment),
            Verb::DeleteCollection => delete::delete_collection(self, request, moment),
        }
    }

    /// All kinds that are served now: the built-in ones, those of CustomResourceDefinitions, those of other servers.
    pub fn kinds(&self) -> impl Iterator<Item = &KindRef> {
        kinds::built_in().iter().chain(self.custom.kinds()).chain(self.aggregation.kinds())
    }

    /// The kinds of CustomResourceDefinitions. Those of the cluster's own definitions concern no controller.
    pub fn custom_kinds(&self) -> impl Iterator<Item = &KindRef> {
        self.custom.kinds().filter(|kind| !self.custom.is_own(kind))
    }

    /// Serves the kind of a definition that no object tells of.
    pub(crate) fn serve_own(&mut self, definition: &Object) {
        self.custom.serve_own(definition, &mut self.store);
    }

    /// The definition of this kind is being deleted.
    pub fn is_definition_terminating(&self, kind: &KindRef) -> bool {
        self.custom.is_terminating(kind)
    }

    /// The kind of an apiVersion and kind, as manifests name it.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&KindRef> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds().find(|known| *known.group == *group && *known.version == *version && *known.kind == *kind)
    }

    /// The kind of a group, version and plural resource, as URLs name it.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<&KindRef> {
        self.kinds().find(|known| *known.group == *group && *known.version == *version && *known.resource == *resource)
    }

    /// The revision of the newest change of a kind.
    pub fn last_revision_of(&self, slot: usize) -> u64 {
        self.store.log(slot).back().map_or(0, |change| change.revision)
    }

    /// The changes since the last call, for the watches to hear of.
    pub fn take_committed(&mut self) -> Vec<Arc<Change>> {
        std::mem::take(&mut self.committed)
    }

    /// Writes an object over the revision it was read at (`None`: it must not exist), and records that.
    fn put(
        &mut self,
        object: Object,
        expected: Option<u64>,
        request: &Request,
        moment: &mut Moment<'_>,
    ) -> Result<Object, Status> {
        let (kind, key) = (object.kind.clone(), object.key.clone());
        if request.options.dry_run {
            return match self.store.get(&kind, &key) {
                Some(existing) if expected.is_none() => Err(already_exists(existing)),
                _ => Ok(object),
            };
        }
        size::check(&object, request)?;
        let object = self.in_storage_version(object)?;
        let partition = fields::index_value(&object);
        let sequence = moment.trace.next_sequence();
        let change = self.store.put(object, expected, partition, sequence).map_err(|refusal| match refusal {
            Refusal::Exists(existing) => already_exists(&existing),
            Refusal::Missing => Status::not_found(&kind, &key.name),
            Refusal::Stale => Status::stale(&kind, &key.name),
        })?;
        let code = if expected.is_none() { 201 } else { 200 };
        self.commit(change.clone(), code, request, moment);
        self.one_in_version_of(&request.kind, change.object().clone())
    }

    /// Takes an object out of the store, and records that.
    fn remove(&mut self, object: &Object, request: &Request, moment: &mut Moment<'_>) -> Result<(), Status> {
        if request.options.dry_run {
            return Ok(());
        }
        let partition = fields::index_value(object);
        let sequence = moment.trace.next_sequence();
        let change = self
            .store
            .delete(&object.kind, &object.key, object.revision, partition, sequence)
            .map_err(|_| Status::stale(&object.kind, &object.key.name))?;
        self.commit(change, 200, request, moment);
        Ok(())
    }

    fn commit(&mut self, change: Arc<Change>, code: u16, request: &Request, moment: &mut Moment<'_>) {
        let entry = RequestEntry {
            verb: request.verb,
            kind: change.object().kind.clone(),
            key: change.key().clone(),
            subresource: request.subresource,
            code,
            reason: request.reason.clone(),
            revision: change.revision,
            before: change.before.clone(),
            after: change.after.clone(),
        };
        let what = What::Request(Box::new(entry));
        moment.trace.record(moment.now, &request.actor, request.causes.clone(), what);
        self.addresses.observe(&change);
        self.custom.observe(&change, &mut self.store);
        self.policies.observe(&change);
        self.aggregation.observe(&change);
        self.committed.push(change);
    }
}

fn already_exists(existing: &Object) -> Status {
    let mut status = Status::already_exists(&existing.kind, &existing.key.name);
    if existing.is_terminating() {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// An answer that shows an object as it is.
fn answer(object: Object) -> Response {
    Response::Object(Answer { object, created: false, deleted: false, warnings: Arc::new([]) })
}

pub fn record_refusal(trace: &mut Trace, now: Time, request: &Request, status: &Status) {
    record_unchanged(trace, now, request, status.code, Name::from(status.message.as_str()));
}

/// Records a request that has changed nothing.
pub fn record_unchanged(trace: &mut Trace, now: Time, request: &Request, code: u16, reason: Name) {
    let entry = RequestEntry {
        verb: request.verb,
        kind: request.kind.clone(),
        key: refused_key(request),
        subresource: request.subresource,
        code,
        reason,
        revision: 0,
        before: None,
        after: None,
    };
    trace.record(now, &request.actor, request.causes.clone(), What::Request(Box::new(entry)));
}

fn refused_key(request: &Request) -> Key {
    match &request.body {
        crate::api::request::Body::Object(object) if request.key.name.is_empty() => object.key.clone(),
        crate::api::request::Body::Json(body) if request.key.name.is_empty() => {
            let name = body.pointer("/metadata/name").and_then(|name| name.as_str()).unwrap_or_default();
            Key::new(request.key.namespace.clone(), name)
        }
        _ => request.key.clone(),
    }
}
