use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Object;

/// What a controller wants written, in order, and when it wants to look again.
///
/// The cluster sends the writes one at a time, so that others may act in between. It stops at the first refusal and calls
/// [`crate::Controller::reconcile`] again after a backoff; so it does if the plan itself says [`Plan::retry`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub writes: Vec<Write>,
    pub requeue_after: Option<Duration>,
    /// Why this was not what was wanted, if it was not.
    pub retry: Option<String>,
}

/// One request to the API server, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub verb: Verb,
    /// The object as it should be; for a patch, a delete and an event: the object that is meant.
    pub object: Value,
    /// A patch's changes; an event's `type`, `reason` and `message`; null otherwise.
    pub body: Value,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    UpdateStatus,
    /// Server-side apply, with the controller's name as field manager.
    Apply,
    /// JSON merge patch.
    Patch,
    /// With the uid and the resourceVersion in `object` as preconditions if it has them.
    Delete,
    Event,
}

impl Plan {
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Nothing to write.
    pub fn done() -> Plan {
        Plan::default()
    }

    pub fn create(&mut self, object: Value, reason: impl Into<String>) -> &mut Plan {
        self.push(Verb::Create, object, Value::Null, reason)
    }

    /// Replaces the object. Refused (409) if someone has written it since `metadata.resourceVersion`.
    pub fn update(&mut self, object: Value, reason: impl Into<String>) -> &mut Plan {
        self.push(Verb::Update, object, Value::Null, reason)
    }

    /// Replaces the status of the object. Refused (409) if someone has written the object since it was seen.
    pub fn update_status(&mut self, object: &Value, status: Value, reason: impl Into<String>) -> &mut Plan {
        let mut object = object.clone();
        object["status"] = status;
        self.push(Verb::UpdateStatus, object, Value::Null, reason)
    }

    /// Server-side apply: `object` holds the fields that this controller wants to own, and only these.
    pub fn apply(&mut self, object: Value, reason: impl Into<String>) -> &mut Plan {
        self.push(Verb::Apply, object, Value::Null, reason)
    }

    /// JSON merge patch: the fields in `changes` are set, null removes.
    pub fn patch(&mut self, object: &Value, changes: Value, reason: impl Into<String>) -> &mut Plan {
        self.push(Verb::Patch, reference(object), changes, reason)
    }

    /// Deletes exactly the object that was seen: refused (409) if another of the same name has taken its place.
    pub fn delete(&mut self, object: &Value, reason: impl Into<String>) -> &mut Plan {
        let mut target = reference(object);
        if !object.uid().is_empty() {
            target["metadata"]["uid"] = json!(object.uid());
        }
        self.push(Verb::Delete, target, Value::Null, reason)
    }

    /// Deletes exactly the object that was seen, as it was seen: refused (409) if someone has written it since.
    pub fn delete_unchanged(&mut self, object: &Value, reason: impl Into<String>) -> &mut Plan {
        let mut target = reference(object);
        for precondition in ["uid", "resourceVersion"] {
            target["metadata"][precondition] = object["metadata"][precondition].clone();
        }
        self.push(Verb::Delete, target, Value::Null, reason)
    }

    /// Deletes whatever has this name by then.
    pub fn delete_by_name(&mut self, object: &Value, reason: impl Into<String>) -> &mut Plan {
        self.push(Verb::Delete, reference(object), Value::Null, reason)
    }

    /// Tells people about `object`: `reason` is one CamelCase word, the message a sentence.
    pub fn event(&mut self, object: &Value, reason: impl Into<String>, message: impl Into<String>) -> &mut Plan {
        self.tell("Normal", object, reason, message)
    }

    /// Like [`Plan::event`], of type Warning.
    pub fn warn(&mut self, object: &Value, reason: impl Into<String>, message: impl Into<String>) -> &mut Plan {
        self.tell("Warning", object, reason, message)
    }

    /// Asks to be called again for this key after `delay`, even if nothing changes.
    pub fn requeue_after(mut self, delay: Duration) -> Plan {
        self.requeue_after = Some(delay);
        self
    }

    /// Something outside of the cluster failed: after the writes, asks to be called again with a backoff, that is later and
    /// later until it goes well.
    pub fn retry(mut self, why: impl Into<String>) -> Plan {
        self.retry = Some(why.into());
        self
    }

    fn tell(
        &mut self,
        type_: &str,
        object: &Value,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Plan {
        let (reason, message) = (reason.into(), message.into());
        let mut regarding = reference(object);
        regarding["metadata"]["uid"] = json!(object.uid());
        let body = json!({"type": type_, "reason": reason, "message": message});
        self.push(Verb::Event, regarding, body, message)
    }

    fn push(&mut self, verb: Verb, object: Value, body: Value, reason: impl Into<String>) -> &mut Plan {
        self.writes.push(Write { verb, object, body, reason: reason.into() });
        self
    }
}

/// As much of the object as names it.
fn reference(object: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": {"name": object.name()},
    });
    if !object.namespace().is_empty() {
        reference["metadata"]["namespace"] = json!(object.namespace());
    }
    reference
}

impl Verb {
    pub const ALL: [(Verb, &'static str); 7] = [
        (Verb::Create, "create"),
        (Verb::Update, "update"),
        (Verb::UpdateStatus, "update status"),
        (Verb::Apply, "apply"),
        (Verb::Patch, "patch"),
        (Verb::Delete, "delete"),
        (Verb::Event, "event"),
    ];

    pub fn as_str(self) -> &'static str {
        Verb::ALL.iter().find(|(verb, _)| *verb == self).map_or("", |(_, word)| word)
    }
}

/// One line a write: `create Pod shop/web-0: too few Pods`.
impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.writes.is_empty() {
            writeln!(out, "nothing to write")?;
        }
        for Write { verb, object, reason, .. } in &self.writes {
            writeln!(out, "{} {} {}: {reason}", verb.as_str(), object.kind(), object.key())?;
        }
        if let Some(delay) = self.requeue_after {
            writeln!(out, "look again after {delay:?}")?;
        }
        match &self.retry {
            Some(why) => writeln!(out, "try again later: {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1",
            "resourceVersion": "7"}, "spec": {"containers": []}})
    }

    #[test]
    fn a_plan_reads_as_one_line_a_write() {
        let mut plan = Plan::new();
        plan.create(pod(), "too few Pods").delete(&pod(), "too many Pods");
        let plan = plan.requeue_after(Duration::from_secs(30));
        assert_eq!(
            plan.to_string(),
            "create Pod shop/web-0: too few Pods\ndelete Pod shop/web-0: too many Pods\nlook again after 30s\n"
        );
        let failed = Plan::done().retry("no answer");
        assert_eq!(failed.to_string(), "nothing to write\ntry again later: no answer\n");
    }

    #[test]
    fn a_delete_means_the_object_that_was_seen() {
        let mut plan = Plan::new();
        plan.delete(&pod(), "").delete_by_name(&pod(), "").delete_unchanged(&pod(), "");
        assert_eq!(plan.writes[0].object.uid(), "u-1");
        assert_eq!(plan.writes[1].object.uid(), "");
        assert!(
            plan.writes[0].object.spec().is_null() && plan.writes[0].object["metadata"]["resourceVersion"].is_null()
        );
        assert_eq!(plan.writes[2].object["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn a_status_keeps_the_revision_it_was_computed_from() {
        let mut plan = Plan::new();
        plan.update_status(&pod(), json!({"phase": "Running"}), "it runs");
        assert_eq!(plan.writes[0].object["metadata"]["resourceVersion"], "7");
        assert_eq!(plan.writes[0].object.status(), &json!({"phase": "Running"}));
    }
}
