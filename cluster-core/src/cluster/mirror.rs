//! A cluster that is only looked at: nothing runs in it, and what somebody else's API server tells of its objects
//! becomes store and trace, so that pictures and questions work as they do on a cluster of one's own.

use super::Cluster;
use crate::api::object::Object;
use crate::api::request::Verb;
use crate::apiserver::fields;
use crate::clock::Time;
use crate::controllers::runner::Runner;
use crate::runtime::host::Host;
use crate::scheduler::Scheduler;
use crate::trace::{Actor, Causes, RequestEntry, What};
use crate::world::{Settings, Subscriber, World};

impl Cluster {
    /// A cluster without objects, machines and components, at the beginning of its time.
    pub fn mirror() -> Cluster {
        Cluster {
            world: World::new(0, Settings::default()),
            manager: Runner::new(Subscriber::Manager, Vec::new()),
            clients: imbl::OrdMap::new(),
            scheduler: Scheduler::default(),
            machines: imbl::OrdMap::new(),
            kubelet_configuration: Default::default(),
            host: Host::default(),
            metrics: Default::default(),
            traffic: Default::default(),
        }
    }

    /// Takes in that an object of a built-in kind is so from this moment on, or that it is `gone`. Who did that, by
    /// which subresource, is the teller's guess; why, nobody knows.
    pub fn witness(&mut self, at: Time, actor: &Actor, subresource: &'static str, object: Object, gone: bool) {
        self.world.advance_to(at.max(self.world.now));
        let (kind, key) = (object.kind.clone(), object.key.clone());
        let store = &mut self.world.apiserver.store;
        let before = store.get(&kind, &key).cloned();
        let known = before.as_ref().map(|before| before.revision);
        let sequence = self.world.trace.next_sequence();
        let (verb, change) = match (known, gone) {
            (None, true) => return,
            (Some(known), true) => (Verb::Delete, store.delete(&kind, &key, known, None, sequence)),
            (None, false) => (Verb::Create, store.put(object.clone(), None, fields::index_value(&object), sequence)),
            (known, false) => (Verb::Update, store.put(object.clone(), known, fields::index_value(&object), sequence)),
        };
        let Ok(change) = change else { return };
        let entry = RequestEntry {
            verb,
            kind,
            key,
            subresource,
            code: if verb == Verb::Create { 201 } else { 200 },
            reason: Default::default(),
            // The other server's, where it tells one.
            revision: if object.revision > 0 { object.revision } else { change.revision },
            before,
            after: (!gone).then_some(object),
        };
        self.world.record(actor, Causes::None, What::Request(Box::new(entry)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::api::kind::KindRef;

    #[test]
    fn what_is_told_stands_in_store_and_trace() {
        let map = |revision: &str, colour: &str| {
            let value = json!({"metadata": {"name": "a", "namespace": "default", "resourceVersion": revision},
                "data": {"colour": colour}});
            Object::from_json(KindRef::of::<ConfigMap>(), value).unwrap()
        };
        let mut mirror = Cluster::mirror();
        let moment = Time::ZERO + Duration::from_secs(3);
        mirror.witness(moment, &"ann".into(), "", map("70", "red"), false);
        mirror.witness(moment, &"ben".into(), "", map("72", "blue"), false);
        mirror.witness(Time::ZERO, &"ann".into(), "", map("75", "blue"), true);
        mirror.witness(moment, &"ann".into(), "", map("75", "blue"), true);
        assert_eq!(mirror.list::<ConfigMap>("").count(), 0);
        let told: Vec<(Verb, u64, Time)> =
            mirror.trace().writes().map(|(entry, write)| (write.verb, write.revision, entry.at)).collect();
        assert_eq!(told, [(Verb::Create, 70, moment), (Verb::Update, 72, moment), (Verb::Delete, 75, moment)]);
    }
}
