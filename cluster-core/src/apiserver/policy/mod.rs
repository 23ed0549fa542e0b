//! Admission policies: rules in CEL about requests, written as objects of the API, and changes to what is written.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>,
//! <https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>

mod environment;
mod expressions;
mod matching;
mod mutating;
mod params;
#[cfg(test)]
mod tests;
mod validating;

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};

pub use expressions::{check_conditions, check_mutating, check_validating, meets_conditions};
pub use mutating::admit;
pub use validating::validate;

use crate::api::Name;
use crate::api::object::{Object, Part};
use crate::api::request::Request;
use crate::store::Change;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    /// A connection to a pod: a command, a port.
    Connect,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// A request that policies look at.
pub struct Attributes<'a> {
    pub request: &'a Request,
    pub operation: Operation,
    /// The object before an update or a deletion.
    pub old: Option<&'a Object>,
}

/// The policies that exist now, compiled when they are written.
#[derive(Clone, Default)]
pub struct Policies {
    validating: imbl::OrdMap<Name, Compiled<validating::Policy>>,
    validating_bindings: imbl::OrdMap<Name, Object>,
    mutating: imbl::OrdMap<Name, Compiled<mutating::Policy>>,
    mutating_bindings: imbl::OrdMap<Name, Object>,
}

/// A policy, and the spec that it was compiled from.
struct Compiled<P> {
    spec: Part,
    policy: Arc<P>,
}

impl<P> Clone for Compiled<P> {
    fn clone(&self) -> Compiled<P> {
        Compiled { spec: self.spec.clone(), policy: self.policy.clone() }
    }
}

impl Policies {
    /// Follows policies and bindings as they are written and deleted.
    pub fn observe(&mut self, change: &Change) {
        let object = change.object();
        if object.is::<ValidatingAdmissionPolicy>() {
            follow(&mut self.validating, change, |object| {
                validating::Policy::of(object.spec::<ValidatingAdmissionPolicy>())
            });
        } else if object.is::<MutatingAdmissionPolicy>() {
            follow(&mut self.mutating, change, |object| mutating::Policy::of(object.spec::<MutatingAdmissionPolicy>()));
        } else if object.is::<ValidatingAdmissionPolicyBinding>() {
            keep(&mut self.validating_bindings, change);
        } else if object.is::<MutatingAdmissionPolicyBinding>() {
            keep(&mut self.mutating_bindings, change);
        }
    }

    /// The policies that are in force: each with one of its bindings.
    fn validating(&self) -> impl Iterator<Item = (&Name, &Arc<validating::Policy>, &Object)> {
        self.validating.iter().flat_map(|(name, compiled)| {
            let bound = |binding: &&Object| *binding.spec::<ValidatingAdmissionPolicyBinding>().policy_name == **name;
            self.validating_bindings.values().filter(bound).map(move |binding| (name, &compiled.policy, binding))
        })
    }

    fn mutating(&self) -> impl Iterator<Item = (&Name, &Arc<mutating::Policy>, &Object)> {
        self.mutating.iter().flat_map(|(name, compiled)| {
            let bound = |binding: &&Object| {
                binding.spec::<MutatingAdmissionPolicyBinding>().policy_name.as_deref() == Some(&**name)
            };
            self.mutating_bindings.values().filter(bound).map(move |binding| (name, &compiled.policy, binding))
        })
    }
}

fn follow<P>(known: &mut imbl::OrdMap<Name, Compiled<P>>, change: &Change, compile: fn(&Object) -> P) {
    let name = &change.key().name;
    match &change.after {
        None => {
            known.remove(name);
        }
        Some(object) if known.get(name).is_some_and(|known| Arc::ptr_eq(&known.spec, object.spec_part())) => {}
        Some(object) => {
            let policy = Arc::new(compile(object));
            known.insert(name.clone(), Compiled { spec: object.spec_part().clone(), policy });
        }
    }
}

fn keep(known: &mut imbl::OrdMap<Name, Object>, change: &Change) {
    match &change.after {
        None => known.remove(&change.key().name),
        Some(object) => known.insert(change.key().name.clone(), object.clone()),
    };
}
