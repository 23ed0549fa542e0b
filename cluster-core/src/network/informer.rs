//! What a kube-proxy has been told about Services and EndpointSlices. A thousand proxies are told the same things, so
//! what they hold is shared wherever it is equal.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::proxy::SERVICE_NAME_LABEL;
use super::rules::{ServiceRules, Table};
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::store::{Store, in_namespace, position_after};
use crate::watch::{EventType, WatchEvent};

#[derive(Clone, Debug, Default)]
pub struct Informer {
    services: Told,
    slices: Told,
}

/// The objects of one kind as far as the watch has told of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) objects: imbl::OrdMap<Key, Object>,
    revision: u64,
    /// Nothing was lost or repeated on the way: these are the objects as they were at the revision.
    faithful: bool,
}

impl Informer {
    pub fn list(store: &Store) -> Informer {
        let list = |kind| Told::list(kind, store);
        Informer { services: list(KindRef::of::<Service>()), slices: list(KindRef::of::<EndpointSlice>()) }
    }

    /// Takes events of one watch.
    pub fn apply(&mut self, events: &[WatchEvent], store: &Store) {
        let Some(kind) = events.first().map(|event| &event.object.kind) else { return };
        let told = if kind.slot == KindRef::of::<Service>().slot { &mut self.services } else { &mut self.slices };
        told.apply(kind, events, store);
    }

    pub fn services(&self) -> impl Iterator<Item = &Object> {
        self.services.objects.values()
    }

    /// The rules for a Service, as far as is known.
    pub fn rules(&self, service: &Key) -> Option<ServiceRules> {
        let object = self.services.objects.get(service)?;
        ServiceRules::of(object, slices_of(&self.slices.objects, service))
    }

    /// Two informers with the same moment hold the same; `None` for one that has been told otherwise.
    fn moment(&self) -> Option<(u64, u64)> {
        (self.services.faithful && self.slices.faithful).then_some((self.services.revision, self.slices.revision))
    }
}

/// The slices of a Service among all.
pub fn slices_of<'a>(slices: &'a imbl::OrdMap<Key, Object>, service: &'a Key) -> impl Iterator<Item = &'a Object> {
    in_namespace(slices, &service.namespace)
        .filter(|slice| slice.label(SERVICE_NAME_LABEL).is_some_and(|name| *name == *service.name))
}

impl Told {
    pub(super) fn list(kind: &KindRef, store: &Store) -> Told {
        Told {
            objects: store.objects(kind).clone(),
            // That of the newest change of the kind, so that all who list between two changes are at one moment.
            revision: store.log(kind.slot).back().map_or(store.compacted(), |change| change.revision),
            faithful: true,
        }
    }

    pub(super) fn apply(&mut self, kind: &KindRef, events: &[WatchEvent], store: &Store) {
        let Some(last) = events.last().map(|event| event.change.revision) else { return };
        let log = store.log(kind.slot);
        let first = position_after(log, self.revision);
        let is_at = |at, event: &WatchEvent| log.get(at).is_some_and(|change| change.revision == event.change.revision);
        let all_there =
            self.revision >= store.compacted() && events.iter().zip(first..).all(|(event, at)| is_at(at, event));
        let up_to = position_after(log, last);
        self.faithful &= all_there && up_to.checked_sub(first) == Some(events.len());
        self.revision = last;
        if self.faithful && up_to == log.len() {
            // It has heard of everything: it holds what the store holds, and can share it.
            self.objects = store.objects(kind).clone();
            return;
        }
        for event in events {
            match event.event_type {
                EventType::Added | EventType::Modified => {
                    self.objects.insert(event.object.key.clone(), event.object.clone());
                }
                EventType::Deleted => {
                    self.objects.remove(&event.object.key);
                }
            }
        }
    }
}

/// The newest tables of rules, by the moment of the informers they were made from, so that the first proxy to come to a
/// moment works for all.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    newest: imbl::OrdMap<(u64, u64), Table>,
}

const TABLES_MAX: usize = 8;

impl Tables {
    pub fn get_or_make(&mut self, informer: &Informer, make: impl FnOnce() -> Table) -> Table {
        let Some(moment) = informer.moment() else { return make() };
        if let Some(table) = self.newest.get(&moment) {
            return table.clone();
        }
        let table = make();
        self.newest.insert(moment, table.clone());
        if self.newest.len() > TABLES_MAX
            && let Some((oldest, _)) = self.newest.get_min().cloned()
        {
            self.newest.remove(&oldest);
        }
        table
    }
}
