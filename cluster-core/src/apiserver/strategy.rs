//! What is special about a kind when it is written. Each kind's own is one file in `strategies/` and one line below.

use std::sync::LazyLock;

use super::strategies;
use super::validation::names;
use super::{ApiServer, Moment};
use crate::api::kind::{KindRef, Resource};
use crate::api::kinds;
use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::api::user::User;

/// The rules of one kind. The defaults of this trait hold for kinds without any.
pub trait Strategy: Sync {
    /// What is wrong with the name of an object of this kind.
    fn check_name(&self, name: &str) -> Vec<String> {
        names::dns_subdomain(name)
    }

    /// Fills in what the writer left out.
    fn default(&self, _object: &mut Object) {}

    /// Notes who makes an object, for kinds that keep that.
    fn keep_requestor(&self, _object: &mut Object, _user: &User) {}

    /// Last changes before a new object is checked: what the server decides, like a ClusterIP.
    fn prepare_create(
        &self,
        _object: &mut Object,
        _server: &ApiServer,
        _moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Carries over from the old object what a writer can't change, and adds what the server decides.
    fn prepare_update(
        &self,
        _old: &Object,
        _new: &mut Object,
        _server: &ApiServer,
        _moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        Ok(())
    }

    /// Carries over from the old object what a writer of the status can't change, beside the spec. Most kinds take the
    /// metadata as it comes; see [`keep_metadata`] for those that do not.
    fn prepare_status_update(&self, _old: &Object, _new: &mut Object, _moment: &Moment<'_>) {}

    /// For kinds that end in their own time: what the first delete does to the object instead of deleting it. False for
    /// all others.
    fn begin_end(&self, _object: &mut Object, _moment: &Moment<'_>) -> bool {
        false
    }

    fn validate(&self, _object: &Object) -> Vec<Cause> {
        Vec::new()
    }

    /// What must hold of a new object, when that is more than must hold of every one.
    fn validate_create(&self, object: &Object) -> Vec<Cause> {
        self.validate(object)
    }

    /// All that must hold of an object that is written over `old`, in the order of the API's checks.
    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = self.validate(new);
        causes.extend(self.validate_update(old, new));
        causes
    }

    /// What may not change.
    fn validate_update(&self, _old: &Object, _new: &Object) -> Vec<Cause> {
        Vec::new()
    }

    /// Why the object may not be deleted.
    fn check_delete(&self, _object: &Object) -> Result<(), Status> {
        Ok(())
    }

    /// A new object comes with the status that its writer gave it.
    fn keeps_new_status(&self) -> bool {
        false
    }

    /// What is wrong with a status that is written by itself.
    fn validate_status_update(&self, _old: &Object, _new: &Object) -> Vec<Cause> {
        Vec::new()
    }

    /// What the writer of a granted write should know. `old` is what it replaces.
    fn warnings(&self, _old: Option<&Object>, _new: &Object) -> Vec<String> {
        Vec::new()
    }

    /// `metadata.generation` counts its changes, from 1.
    fn tracks_generation(&self) -> bool {
        false
    }

    /// This change is one that `metadata.generation` counts.
    fn changes_generation(&self, old: &Object, new: &Object) -> bool {
        self.tracks_generation() && !new.same_spec(old)
    }

    /// A PUT of an object that does not exist creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// A PUT has to say which resourceVersion it changes.
    fn needs_resource_version(&self) -> bool {
        false
    }

    /// A delete answers with the object that it deleted instead of a Status.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// How long a deletion waits for whoever must confirm it. `None` for kinds that nobody has to end.
    fn grace_period_seconds(&self, _object: &Object, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// Its dependents are left alone unless a delete says what becomes of them.
    fn orphans_dependents(&self) -> bool {
        false
    }
}

/// For kinds whose status can be written, but with it no metadata.
pub fn keep_metadata(old: &Object, new: &mut Object) {
    if new.metadata() != old.metadata() {
        let kept = old.metadata();
        let metadata = new.metadata_mut();
        metadata.labels = kept.labels.clone();
        metadata.annotations = kept.annotations.clone();
        metadata.finalizers = kept.finalizers.clone();
        metadata.owner_references = kept.owner_references.clone();
    }
}

/// Kinds without rules of their own.
struct Plain;

impl Strategy for Plain {}

static BY_SLOT: LazyLock<Vec<&'static dyn Strategy>> = LazyLock::new(|| {
    let mut by_slot: Vec<&'static dyn Strategy> = vec![&Plain; kinds::built_in().len()];
    for (kind, strategy) in strategies::all() {
        by_slot[kind.slot] = strategy;
    }
    by_slot
});

pub fn strategy(kind: &KindRef) -> &'static dyn Strategy {
    BY_SLOT.get(kind.slot).copied().unwrap_or(&strategies::custom_resource::Rules)
}

/// A line of the table of strategies.
pub fn entry<K: Resource>(strategy: &'static dyn Strategy) -> (&'static KindRef, &'static dyn Strategy) {
    (K::kind(), strategy)
}
