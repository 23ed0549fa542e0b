use std::sync::Arc;

use serde_json::Value;

use crate::wire::{Ask, Dialog};
use crate::{Key, Object};

/// The world as the controller's informers know it: possibly a little old, never mixed up.
pub struct View {
    source: Source,
}

enum Source {
    Objects(Vec<Arc<Value>>),
    Cluster(Dialog),
}

impl View {
    /// The object, if the informers know it.
    pub fn get(&self, api_version: &str, kind: &str, key: &Key) -> Option<Value> {
        self.ask(Ask::Get(kind_of(api_version, kind), key.clone())).pop()
    }

    /// All objects of a kind, in every namespace, sorted by namespace and name.
    pub fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        self.ask(Ask::List(kind_of(api_version, kind)))
    }

    /// The objects of a kind in one namespace, sorted by name.
    pub fn list_in(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let mut objects = self.list(api_version, kind);
        objects.retain(|object| object.namespace() == namespace);
        objects
    }

    /// The objects of a kind whose controlling owner reference names `owner`, sorted by name.
    pub fn owned(&self, api_version: &str, kind: &str, owner: &Value) -> Vec<Value> {
        self.ask(Ask::Owned(kind_of(api_version, kind), owner.uid().to_owned()))
    }

    pub(crate) fn of_cluster(dialog: Dialog) -> View {
        View { source: Source::Cluster(dialog) }
    }

    pub(crate) fn dialog(&self) -> Option<&Dialog> {
        match &self.source {
            Source::Cluster(dialog) => Some(dialog),
            Source::Objects(_) => None,
        }
    }

    fn ask(&self, ask: Ask) -> Vec<Value> {
        match &self.source {
            Source::Cluster(dialog) => dialog.ask(&ask),
            Source::Objects(objects) => ask.among(objects).map(|object| Value::clone(object)).collect(),
        }
    }
}

/// A view of objects of one's own, to try a controller without a cluster.
impl<I: IntoIterator<Item: Into<Arc<Value>>>> From<I> for View {
    fn from(objects: I) -> View {
        let mut objects: Vec<Arc<Value>> = objects.into_iter().map(Into::into).collect();
        objects.sort_by_cached_key(|object| object.key());
        View { source: Source::Objects(objects) }
    }
}

fn kind_of(api_version: &str, kind: &str) -> (String, String) {
    (api_version.to_owned(), kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{child_of, json};

    #[test]
    fn a_view_of_ones_own_objects_answers_like_the_cluster() {
        let pool = json!({"apiVersion": "example.com/v1", "kind": "Pool",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}});
        let pod =
            |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}});
        let view = View::from([pod("z"), child_of(&pool, pod("b")), child_of(&pool, pod("a")), pool.clone()]);
        assert_eq!(view.get("example.com/v1", "Pool", &Key::new("shop", "web")), Some(pool.clone()));
        assert_eq!(view.get("v1", "Pod", &Key::new("default", "a")), None);
        let names = |objects: Vec<Value>| objects.iter().map(|object| object.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(view.owned("v1", "Pod", &pool)), ["a", "b"]);
        assert_eq!(names(view.list_in("v1", "Pod", "shop")), ["a", "b", "z"]);
        assert!(view.list("v1", "Secret").is_empty());
    }
}
