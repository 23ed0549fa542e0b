//! How a watch begins and what it tells: the state it starts from, then each change, and marks of how far it has come.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::collections::VecDeque;

use crate::api::object::Object;
use crate::api::request::{Options, Request};
use crate::api::status::{Cause, Status};
use crate::apiserver::{ApiServer, access, custom, fields, read, versions};
use crate::store::Store;
use crate::watch::{EventType, TooOld, WatchEvent, Watcher};

/// What a client hears of.
#[derive(Clone, Debug)]
pub enum Told {
    Event(EventType, Object),
    /// Everything up to this revision has been told. `initial` ends the state that the watch began with.
    Bookmark {
        revision: u64,
        initial: bool,
    },
}

/// What a watch has at a moment.
#[derive(Clone, Debug)]
pub enum Batch {
    /// Maybe none.
    Events(Vec<Told>),
    /// The watch is over: its history has been compacted.
    End(Status),
}

/// A watch of a client from outside, as far as it has read.
#[derive(Clone, Debug)]
pub struct OpenWatch {
    pub watcher: Watcher,
    pub bookmarks: bool,
    /// What is selected of a kind whose versions a program converts: it selects in the version that is asked for.
    selection: Option<Box<Watcher>>,
    initial: VecDeque<Told>,
    /// Why there is nothing to tell.
    too_old: Option<TooOld>,
    /// The newest revision that the client has heard of.
    told: u64,
}

impl ApiServer {
    /// Opens a watch: from the state as it is if no revision (or `0`) is asked for, else from the changes after it.
    ///
    /// # Errors
    /// Options that do not go together (422), a revision that is no number (500), a field that can't be selected on.
    pub fn open_watch(&self, request: &Request) -> Result<OpenWatch, Status> {
        access::check(self, request)?;
        let options = &request.options;
        check(options)?;
        read::check_labels(&options.labels)?;
        fields::check(&request.kind, &options.fields)?;
        let revision = match options.resource_version.as_str() {
            "" => 0,
            text => read::revision(text)?,
        };
        let current = self.store.revision();
        let mut watcher = Watcher::new(&request.kind, current);
        watcher.namespace = request.key.namespace.clone();
        watcher.labels = options.labels.clone();
        watcher.fields = options.fields.clone();
        let mut initial = VecDeque::new();
        read::reached(revision, &self.store)?;
        let selection = custom::has_converter(&request.kind).then(|| Box::new(watcher.clone()));
        if selection.is_some() {
            (watcher.labels, watcher.fields) = Default::default();
        }
        if options.send_initial_events.unwrap_or(revision == 0) {
            let stored = self.store.list(&request.kind, &request.key.namespace);
            let chosen: Vec<Object> = match &selection {
                Some(selection) => {
                    let seen = self.in_version_of(&request.kind, stored.cloned().collect())?;
                    seen.into_iter().filter(|object| selection.selects(object)).collect()
                }
                None => {
                    let selected = stored.filter(|object| watcher.selects(object));
                    selected.map(|object| versions::present(object.clone(), &request.kind)).collect()
                }
            };
            initial.extend(chosen.into_iter().map(|object| Told::Event(EventType::Added, object)));
            if options.send_initial_events == Some(true) {
                initial.push_back(Told::Bookmark { revision: current, initial: true });
            }
        } else if revision > 0 {
            watcher.revision = revision;
        }
        let (told, compacted) = (watcher.revision, self.store.compacted());
        let too_old = (told < compacted).then_some(TooOld { requested: told, compacted });
        Ok(OpenWatch { watcher, bookmarks: options.bookmarks, selection, initial, too_old, told })
    }
}

impl OpenWatch {
    /// What there is to tell now, at most `events_max`.
    pub fn next_batch(&mut self, server: &ApiServer, events_max: usize) -> Batch {
        if let Some(too_old) = &self.too_old {
            return Batch::End(expired(too_old));
        }
        let mut events = Vec::new();
        while events.len() < events_max
            && let Some(told) = self.initial.pop_front()
        {
            events.push(told);
        }
        while events.len() < events_max {
            match self.watcher.next(&server.store) {
                Ok(Some(event)) => {
                    self.told = event.object.revision;
                    match self.present(event, server) {
                        Ok(told) => events.extend(told),
                        Err(status) => return Batch::End(status),
                    }
                }
                Ok(None) => break,
                Err(_) if !events.is_empty() => break,
                Err(too_old) => return Batch::End(expired(&too_old)),
            }
        }
        Batch::Events(events)
    }

    /// An event in the version that is asked for, if it concerns what is selected there.
    fn present(&self, event: WatchEvent, server: &ApiServer) -> Result<Option<Told>, Status> {
        let kind = &self.watcher.kind;
        let Some(selection) = &self.selection else {
            return Ok(Some(Told::Event(event.event_type, versions::present(event.object, kind))));
        };
        let seen = |object: &Option<Object>| {
            object.as_ref().map(|object| server.one_in_version_of(kind, object.clone())).transpose()
        };
        let (before, after) = (seen(&event.change.before)?, seen(&event.change.after)?);
        let passage = selection.passage(before.as_ref(), after.as_ref(), event.change.revision);
        Ok(passage.map(|(event_type, object)| Told::Event(event_type, object)))
    }

    /// How far the watch has come, if everything that concerns it has been told and it is further than it was known.
    pub fn bookmark(&mut self, store: &Store) -> Option<Told> {
        let revision = store.revision();
        // A copy reads ahead: what it finds is for the next batch to tell.
        let mut ahead = self.watcher.clone();
        if !self.initial.is_empty() || revision <= self.told || !matches!(ahead.next(store), Ok(None)) {
            return None;
        }
        ahead.revision = revision;
        (self.watcher, self.told) = (ahead, revision);
        Some(Told::Bookmark { revision, initial: false })
    }
}

fn expired(too_old: &TooOld) -> Status {
    Status::expired(format!("too old resource version: {} ({})", too_old.requested, too_old.compacted))
}

fn check(options: &Options) -> Result<(), Status> {
    let matching = options.resource_version_match.as_str();
    let mut causes = Vec::new();
    let mut forbid = |detail| causes.push(Cause::forbidden("resourceVersionMatch", detail));
    match options.send_initial_events {
        Some(_) if matching != "NotOlderThan" => {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        None if !matching.is_empty() => {
            forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        _ => {}
    }
    if options.send_initial_events.is_some() && !matches!(matching, "" | "NotOlderThan") {
        causes.push(Cause::unsupported("resourceVersionMatch", matching, &["NotOlderThan"]));
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    use super::*;
    use crate::api::Key;
    use crate::api::kind::Resource;
    use crate::api::request::{Response, Verb};
    use crate::api::selector::Selector;
    use crate::apiserver::Moment;
    use crate::clock::Time;
    use crate::random::Random;
    use crate::trace::{Actor, Trace};

    const NAMESPACES: [&str; 2] = ["default", "shop"];

    /// A server with writers, all drawn from a seed.
    struct Swarm {
        server: ApiServer,
        random: Random,
        trace: Trace,
        actor: Actor,
    }

    impl Swarm {
        fn new(seed: u64) -> Swarm {
            let (random, trace) = (Random::new(seed), Trace::default());
            let mut swarm = Swarm { server: ApiServer::new(), random, trace, actor: "writer".into() };
            for name in NAMESPACES {
                let namespace = Object::new::<Namespace>("", name, Default::default());
                swarm.ask(Request::create(&"writer".into(), namespace)).unwrap();
            }
            swarm
        }

        fn ask(&mut self, request: Request) -> Result<Response, Status> {
            let mut random = self.random.clone();
            let mut moment = Moment { now: Time::ZERO, random: &mut random, trace: &mut self.trace };
            let answer = self.server.handle(request, &mut moment);
            self.random = random;
            self.server.take_committed();
            answer
        }

        /// A create, an update or a delete; some of them are refused.
        fn write(&mut self) {
            let namespace = NAMESPACES[self.random.below(2) as usize];
            let name = format!("map-{}", self.random.below(6));
            let mut object = Object::new::<ConfigMap>(namespace, &name, ConfigMap::default());
            let tier = if self.random.below(2) == 0 { "front" } else { "back" };
            object.metadata_mut().labels = Some(BTreeMap::from([("tier".to_owned(), tier.to_owned())]));
            let text = self.random.below(1000).to_string();
            object.spec_mut::<ConfigMap>().data = Some(BTreeMap::from([("text".to_owned(), text)]));
            let _ = match self.random.below(3) {
                0 => self.ask(Request::create(&self.actor.clone(), object)),
                1 => self.ask(Request::update(&self.actor.clone(), object)),
                _ => self.ask(Request::delete(&self.actor.clone(), ConfigMap::kind(), Key::new(namespace, name))),
            };
        }

        fn writes(&mut self) {
            for _ in 0..self.random.below(8) {
                self.write();
            }
        }

        /// What the client looks at: maybe one namespace, maybe one tier.
        fn request(&mut self, verb: Verb) -> Request {
            let namespace = ["", "shop"][self.random.below(2) as usize];
            let mut request = Request::new(&"reader".into(), verb, ConfigMap::kind(), Key::new(namespace, ""));
            let labels = ["", "tier=front", "tier notin (front)"][self.random.below(3) as usize];
            request.options.labels = Selector::parse(labels).unwrap();
            request
        }

        /// A list in pages of a drawn size, while others write.
        fn list(&mut self, request: &Request) -> (u64, BTreeMap<Key, u64>) {
            let mut seen = BTreeMap::new();
            let mut page = request.clone();
            page.options.limit = (self.random.below(2) == 0).then(|| 1 + self.random.below(3) as usize);
            loop {
                let Response::List(list) = self.ask(page.clone()).unwrap() else { panic!("a list is no object") };
                for object in list.items {
                    let twice = seen.insert(object.key.clone(), object.revision);
                    assert_eq!(twice, None, "{} stands on two pages", object.key.name);
                }
                if list.continue_token.is_empty() {
                    return (list.revision, seen);
                }
                page.options.continue_token = list.continue_token;
                self.writes();
            }
        }

        fn selected(&self, request: &Request) -> BTreeMap<Key, u64> {
            let objects = self.server.store.list(&request.kind, &request.key.namespace);
            let selected = objects.filter(|object| request.options.labels.matches(object.metadata().labels.as_ref()));
            selected.map(|object| (object.key.clone(), object.revision)).collect()
        }
    }

    /// Applies what a watch tells to what its client knows.
    fn hear(known: &mut BTreeMap<Key, u64>, newest: &mut u64, told: Told, seed: u64) {
        match told {
            Told::Event(event_type, object) => {
                assert!(object.revision > *newest, "seed {seed}: {} came after {newest}", object.revision);
                *newest = object.revision;
                let before = match event_type {
                    EventType::Deleted => known.remove(&object.key),
                    _ => known.insert(object.key.clone(), object.revision),
                };
                assert_eq!(before.is_none(), event_type == EventType::Added, "seed {seed}: {event_type:?}");
            }
            Told::Bookmark { revision, .. } => {
                assert!(revision >= *newest, "seed {seed}: a bookmark leads back");
                *newest = revision;
            }
        }
    }

    #[test]
    fn a_watch_goes_on_where_a_list_ended_without_gap_or_repetition() {
        for seed in 0..3000 {
            let mut swarm = Swarm::new(seed);
            swarm.writes();
            let mut request = swarm.request(Verb::List);
            let (mut newest, mut known) = swarm.list(&request);
            swarm.writes();
            request.options.resource_version = newest.to_string();
            let mut watch = swarm.server.open_watch(&request).unwrap();
            for _ in 0..4 {
                swarm.writes();
                let events_max = 1 + swarm.random.below(5) as usize;
                let Batch::Events(events) = watch.next_batch(&swarm.server, events_max) else {
                    panic!("nothing was compacted")
                };
                for told in events {
                    hear(&mut known, &mut newest, told, seed);
                }
                if swarm.random.below(3) == 0
                    && let Some(bookmark) = watch.bookmark(&swarm.server.store)
                {
                    hear(&mut known, &mut newest, bookmark, seed);
                    // Whoever comes back with a bookmark's revision misses nothing.
                    request.options.resource_version = newest.to_string();
                    watch = swarm.server.open_watch(&request).unwrap();
                }
            }
            while let Batch::Events(events) = watch.next_batch(&swarm.server, 100)
                && !events.is_empty()
            {
                for told in events {
                    hear(&mut known, &mut newest, told, seed);
                }
            }
            assert_eq!(known, swarm.selected(&request), "seed {seed}");
        }
    }

    #[test]
    fn compaction_does_not_end_a_watch_that_missed_nothing() {
        let mut swarm = Swarm::new(1);
        let request = swarm.request(Verb::List);
        let mut watch = swarm.server.open_watch(&request).unwrap();
        watch.next_batch(&swarm.server, 100);
        let namespace = Object::new::<Namespace>("", "later", Default::default());
        swarm.server.store.put(namespace, None, None, 1).unwrap();
        let revision = swarm.server.store.revision();
        swarm.server.store.compact(revision);
        assert!(matches!(watch.next_batch(&swarm.server, 100), Batch::Events(events) if events.is_empty()));
    }

    #[test]
    fn a_watch_from_compacted_history_ends() {
        let mut swarm = Swarm::new(1);
        for _ in 0..20 {
            swarm.write();
        }
        let mut request = swarm.request(Verb::List);
        request.options.resource_version = "2".into();
        let revision = swarm.server.store.revision();
        swarm.server.store.compact(revision);
        let mut watch = swarm.server.open_watch(&request).unwrap();
        let Batch::End(status) = watch.next_batch(&swarm.server, 10) else { panic!("history is gone") };
        assert_eq!((status.code, status.reason), (410, "Expired"));
        assert_eq!(status.message, format!("too old resource version: 2 ({revision})"));
    }
}
