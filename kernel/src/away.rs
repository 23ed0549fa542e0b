//! A real cluster that cells speak to in place of the one in this process.
//!
//! Requests go to its API server; what its watches tell is kept in a mirror, a cluster in which nothing runs, and that
//! is what pictures, `%until` and completion look at. Its time is the wall clock's, from the moment of `%cluster use`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::clock::Time;
use cluster_core::watch::EventType;
use serde_json::Value;

use crate::commands::Api;
use crate::commands::kubectl::config;
use crate::commands::remote::observe::{Observer, Told};
use crate::commands::remote::{Remote, open};

/// So long the first lists may take.
const LISTS_MAX: Duration = Duration::from_secs(15);
/// What is not worth watching: events tell of others, leases of nothing but time.
const UNWATCHED: &[&str] = &["Event", "Lease"];

pub struct Away {
    pub remote: Remote,
    /// The kubeconfig, with the context that is used as the current one.
    pub kubeconfig: String,
    /// The simulation that waits until it is used again.
    pub simulation: Cluster,
    observer: Observer,
    since: Instant,
    /// The server's own revision of each object, by the slot of its kind.
    revisions: BTreeMap<(usize, Key), u64>,
}

impl Away {
    /// Connects by a kubeconfig, by its current context if none is named, and takes in what there is. Returns the
    /// mirror, too.
    ///
    /// # Errors
    /// The kubeconfig can't be read, or the server can't be reached: in kubectl's words.
    pub fn go(kubeconfig: &str, context: Option<&str>, left: Cluster) -> Result<(Away, Cluster), String> {
        let (mut remote, _) = open(kubeconfig, context)?;
        let text = std::fs::read_to_string(kubeconfig).map_err(|error| format!("{kubeconfig}: {error}"))?;
        let text = context.map_or_else(|| text.clone(), |context| config::with_current(&text, context));
        let served = remote.kinds().map_err(|status| status.message)?;
        let mut mirror = Cluster::mirror();
        let watched = |kind: &&KindRef| {
            let known = mirror.kind(&kind.api_version(), &kind.kind).is_some();
            known && kind.allows("list") && kind.allows("watch") && !UNWATCHED.contains(&&*kind.kind)
        };
        let watched: Vec<KindRef> = served.iter().filter(watched).cloned().collect();
        let mut waiting: Vec<usize> = watched.iter().map(|kind| kind.slot).collect();
        let observer = remote.observe(watched);
        let since = Instant::now();
        let mut away = Away { remote, kubeconfig: text, simulation: left, observer, since, revisions: BTreeMap::new() };
        while !waiting.is_empty() && since.elapsed() < LISTS_MAX {
            let Some(told) = away.observer.next(LISTS_MAX.saturating_sub(since.elapsed())) else { break };
            if let Told::All(kind, _) | Told::Refused(kind) = &told {
                waiting.retain(|slot| *slot != kind.slot);
            }
            away.take(told, Time::ZERO, &mut mirror);
        }
        away.since = Instant::now();
        Ok((away, mirror))
    }

    /// How long it has been used.
    pub fn now(&self) -> Time {
        Time::ZERO + self.since.elapsed()
    }

    /// Takes in what is told within this time. Says how much of it is more than a node's report of itself.
    pub fn take_in(&mut self, mirror: &mut Cluster, within: Duration) -> usize {
        let mut worth = 0;
        let mut told = self.observer.next(within);
        while let Some(one) = told {
            worth += self.take(one, self.now(), mirror);
            told = self.observer.next(Duration::ZERO);
        }
        mirror.run_until(self.now(), |_| true);
        worth
    }

    fn take(&mut self, told: Told, at: Time, mirror: &mut Cluster) -> usize {
        match told {
            Told::One(event, kind, value) => self.observe(at, &kind, value, event == EventType::Deleted, mirror),
            Told::Refused(_) => 0,
            Told::All(kind, values) => {
                let named =
                    |value: &Value, field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
                let there: Vec<Key> =
                    values.iter().map(|value| Key::new(named(value, "namespace"), named(value, "name"))).collect();
                let known: Vec<Object> = mirror.list_of(&kind, "").cloned().collect();
                let gone = known.into_iter().filter(|object| !there.contains(&object.key));
                let mut worth = 0;
                for mut object in gone {
                    self.revisions.remove(&(kind.slot, object.key.clone()));
                    object.revision = 0;
                    mirror.witness(at, &"somebody".into(), "", object, true);
                    worth += 1;
                }
                for value in values {
                    worth += self.observe(at, &kind, value, false, mirror);
                }
                worth
            }
        }
    }

    fn observe(&mut self, at: Time, kind: &KindRef, value: Value, gone: bool, mirror: &mut Cluster) -> usize {
        let (actor, subresource) = last_writer(&value);
        // An object of a newer server may hold what is not known here.
        let Ok(object) = Object::from_json(kind, value) else { return 0 };
        let place = (kind.slot, object.key.clone());
        let fresh = if gone {
            self.revisions.remove(&place).is_some()
        } else {
            self.revisions.insert(place, object.revision) != Some(object.revision)
        };
        if !fresh {
            return 0;
        }
        let actor = if gone { "somebody" } else { actor.as_str() };
        mirror.witness(at, &actor.into(), subresource, object, gone);
        usize::from(&*kind.kind != "Node")
    }
}

/// Who wrote an object last, and by which subresource: as far as its managed fields tell.
fn last_writer(value: &Value) -> (String, &'static str) {
    let entries = value.pointer("/metadata/managedFields").and_then(Value::as_array);
    let last =
        entries.and_then(|entries| entries.iter().max_by_key(|entry| entry["time"].as_str().unwrap_or_default()));
    let text = |field: &str| last.and_then(|entry| entry[field].as_str()).unwrap_or_default();
    let subresource = match text("subresource") {
        "status" => "status",
        "scale" => "scale",
        _ => "",
    };
    let manager = if text("manager").is_empty() { "somebody" } else { text("manager") };
    (manager.to_owned(), subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_tell_who_wrote_last() {
        let entry =
            |manager: &str, time: &str, part: &str| json!({"manager": manager, "time": time, "subresource": part});
        let fields = [
            entry("kubectl-create", "2026-01-01T00:00:00Z", ""),
            entry("kubelet", "2026-01-01T00:00:09Z", "status"),
            entry("kubectl-scale", "2026-01-01T00:00:05Z", "scale"),
        ];
        assert_eq!(last_writer(&json!({"metadata": {"managedFields": fields}})), ("kubelet".into(), "status"));
        assert_eq!(last_writer(&json!({"metadata": {}})), ("somebody".into(), ""));
    }
}
