use std::fmt;

use serde_json::Value;

use crate::{Plan, Time, View};

/// A control loop: looks at one object and says what to write so that the world comes closer to its spec.
/// See <https://kubernetes.io/docs/concepts/architecture/controller/>.
pub trait Controller {
    /// The kinds that wake this controller.
    fn watches(&self) -> Watches;

    /// Called when the object `key`, or one it owns, may have changed; it is not told what changed. The object may be
    /// gone. Called again with the same view, it answers with the same plan.
    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan;
}

/// Names one object of the kind that a controller reconciles.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for an object without a namespace, such as a Node.
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(out, "{}", self.name),
            namespace => write!(out, "{namespace}/{}", self.name),
        }
    }
}

/// An `apiVersion` (`v1`, `apps/v1`, `example.com/v1`) and a `kind`.
pub(crate) type Kind = (String, String);

/// Which kinds a controller watches. It sees no others: a [`View`] answers for these alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watches {
    pub main: Kind,
    pub owned: Vec<Kind>,
    pub also: Vec<Kind>,
}

impl Watches {
    /// The kind whose objects are the keys of [`Controller::reconcile`].
    pub fn of(api_version: &str, kind: &str) -> Watches {
        Watches { main: (api_version.to_owned(), kind.to_owned()), owned: Vec::new(), also: Vec::new() }
    }

    /// A kind of children: a change of one wakes the object that its controlling owner reference names.
    pub fn owns(mut self, api_version: &str, kind: &str) -> Watches {
        self.owned.push((api_version.to_owned(), kind.to_owned()));
        self
    }

    /// Another kind to look at: a change of one wakes every main object of its namespace.
    pub fn also(mut self, api_version: &str, kind: &str) -> Watches {
        self.also.push((api_version.to_owned(), kind.to_owned()));
        self
    }

    /// Starts a controller that is but a function: it is handed the object itself, and not called for one that is gone.
    /// `name` is what [`run`](crate::run()) makes of it.
    pub fn run(self, name: &str, reconcile: impl Fn(&Value, &View, Time) -> Plan + Send + 'static) {
        crate::run(name, Function { watches: self, reconcile });
    }
}

struct Function<F> {
    watches: Watches,
    reconcile: F,
}

impl<F: Fn(&Value, &View, Time) -> Plan> Controller for Function<F> {
    fn watches(&self) -> Watches {
        self.watches.clone()
    }

    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
        let (api_version, kind) = &self.watches.main;
        let object = view.get(api_version, kind, key);
        object.map_or_else(Plan::done, |object| (self.reconcile)(&object, view, now))
    }
}

impl fmt::Display for Watches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.main.0, self.main.1)?;
        for (word, kinds) in [("owns", &self.owned), ("also", &self.also)] {
            for (api_version, kind) in kinds {
                write!(out, ", {word} {api_version} {kind}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Object, json};

    #[test]
    fn a_function_is_handed_the_object_while_it_is_there() {
        let controller = Function {
            watches: Watches::of("v1", "Pod"),
            reconcile: |pod: &Value, _: &View, now: Time| {
                let mut plan = Plan::new();
                plan.delete(pod, format!("{} is old at {now}", pod.name()));
                plan
            },
        };
        let view = View::from([json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})]);
        let told = |name: &str| controller.reconcile(&Key::new("", name), &view, Time::default()).to_string();
        assert_eq!(told("web"), "delete Pod web: web is old at 1970-01-01T00:00:00Z\n");
        assert_eq!(told("gone"), "nothing to write\n");
    }
}
