//! What becomes of a CustomResourceDefinition after it is written: its names are accepted unless others have them, its
//! kind is served, and when it is deleted its objects go first. This is the server's own work, not a controller's.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition, CustomResourceDefinitionNames,
    CustomResourceDefinitionStatus,
};

use super::definition::approval;
use crate::api::cause::Actor;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::apiserver::{ApiServer, Moment, delete};

/// Holds a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

const ACTOR: &str = "kube-apiserver";

/// A condition is true.
pub fn has_condition(definition: &Object, name: &str) -> bool {
    let conditions = definition.status::<CustomResourceDefinition>().conditions.as_deref().unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == name && condition.status == "True")
}

/// Sets a condition; its time moves only with its status.
pub fn set_condition(
    status: &mut CustomResourceDefinitionStatus,
    (type_, value, reason, message): (&str, &str, &str, &str),
    moment: &Moment<'_>,
) {
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let unchanged = known.as_ref().is_some_and(|known| known.status == value);
    let since = known.as_ref().filter(|_| unchanged).and_then(|known| known.last_transition_time.clone());
    let condition = CustomResourceDefinitionCondition {
        type_: type_.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: since.or_else(|| Some(moment.now.to_meta())),
        observed_generation: None,
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Brings all definitions to rest after a write.
pub fn settle(server: &mut ApiServer, moment: &mut Moment<'_>) {
    while std::mem::take(&mut server.custom.unsettled) {
        let definitions: Vec<Object> =
            server.store.list(KindRef::of::<CustomResourceDefinition>(), "").cloned().collect();
        for definition in definitions {
            let settled = if definition.is_terminating() {
                finalize(server, definition, moment)
            } else {
                accept_names(server, definition, moment)
            };
            if settled.is_none() {
                // A write that was refused will not be granted the next time.
                return;
            }
        }
    }
}

fn write(server: &mut ApiServer, definition: Object, moment: &mut Moment<'_>) -> Option<Object> {
    let request = Request::update_status(&Actor::from(ACTOR), definition.clone());
    server.put(definition.clone(), Some(definition.revision), &request, moment).ok()
}

fn accept_names(server: &mut ApiServer, mut definition: Object, moment: &mut Moment<'_>) -> Option<()> {
    let before = definition.clone();
    let spec = definition.spec::<CustomResourceDefinition>().clone();
    let approval = approval(&definition);
    let taken = Taken::by_others(server, &definition, &spec.group);
    let status = definition.status_mut::<CustomResourceDefinition>();
    let mut names = status.accepted_names.clone().unwrap_or_default();
    let conflict = taken.accept(&spec.names, &mut names);
    status.accepted_names = Some(names);
    let established =
        status.conditions.iter().flatten().any(|known| known.type_ == "Established" && known.status == "True");
    match &conflict {
        Some((reason, message)) => {
            set_condition(status, ("NamesAccepted", "False", reason, message), moment);
            if !established {
                set_condition(status, ("Established", "False", "NotAccepted", "not all names are accepted"), moment);
            }
        }
        None => {
            set_condition(status, ("NamesAccepted", "True", "NoConflicts", "no conflicts found"), moment);
            if !established {
                let condition = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted");
                set_condition(status, condition, moment);
            }
        }
    }
    if let Some((value, reason, message)) = approval {
        set_condition(status, ("KubernetesAPIApprovalPolicyConformant", value, reason, &message), moment);
    }
    if definition.same(&before) {
        return Some(());
    }
    write(server, definition, moment).map(|_| ())
}

/// The names that the other definitions of a group have.
#[derive(Default)]
struct Taken {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl Taken {
    fn by_others(server: &ApiServer, definition: &Object, group: &str) -> Taken {
        let mut taken = Taken::default();
        for other in server.store.list(&definition.kind, "") {
            if other.key == definition.key || other.spec::<CustomResourceDefinition>().group != group {
                continue;
            }
            let Some(names) = &other.status::<CustomResourceDefinition>().accepted_names else { continue };
            taken.resources.push(names.plural.clone());
            taken.resources.extend(names.singular.clone());
            taken.resources.extend(names.short_names.iter().flatten().cloned());
            taken.kinds.push(names.kind.clone());
            taken.kinds.extend(names.list_kind.clone());
        }
        taken
    }

    /// Takes over the names that are free; of those that are not, the last one's reason and message.
    fn accept(
        &self,
        wanted: &CustomResourceDefinitionNames,
        names: &mut CustomResourceDefinitionNames,
    ) -> Option<(&'static str, String)> {
        let in_use = |name: &str, taken: &[String]| {
            taken.iter().any(|taken| !name.is_empty() && taken == name).then(|| format!("{name:?} is already in use"))
        };
        let mut conflict = None;
        match in_use(&wanted.plural, &self.resources) {
            Some(message) => conflict = Some(("PluralConflict", message)),
            None => names.plural = wanted.plural.clone(),
        }
        match in_use(wanted.singular.as_deref().unwrap_or_default(), &self.resources) {
            Some(message) => conflict = Some(("SingularConflict", message)),
            None => names.singular = wanted.singular.clone(),
        }
        let short = wanted.short_names.iter().flatten().filter_map(|name| in_use(name, &self.resources));
        match short.collect::<Vec<_>>().as_slice() {
            [] => names.short_names = wanted.short_names.clone(),
            [one] => conflict = Some(("ShortNamesConflict", one.clone())),
            more => conflict = Some(("ShortNamesConflict", format!("[{}]", more.join(", ")))),
        }
        match in_use(&wanted.kind, &self.kinds) {
            Some(message) => conflict = Some(("KindConflict", message)),
            None => names.kind = wanted.kind.clone(),
        }
        match in_use(wanted.list_kind.as_deref().unwrap_or_default(), &self.kinds) {
            Some(message) => conflict = Some(("ListKindConflict", message)),
            None => names.list_kind = wanted.list_kind.clone(),
        }
        names.categories = wanted.categories.clone();
        conflict
    }
}

/// Deletes the objects of a definition, and lets go of it when there are none.
fn finalize(server: &mut ApiServer, mut definition: Object, moment: &mut Moment<'_>) -> Option<()> {
    let held = definition.metadata().finalizers.iter().flatten().any(|finalizer| finalizer == CLEANUP);
    let kind = server.custom.by_definition.get(&definition.key).and_then(|entry| entry.kinds.first()).cloned();
    let (true, Some(kind)) = (held, kind) else { return Some(()) };
    let in_progress = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
    let before = definition.clone();
    set_condition(definition.status_mut::<CustomResourceDefinition>(), in_progress, moment);
    if !definition.same(&before) {
        definition = write(server, definition, moment)?;
    }
    let objects: Vec<Object> =
        server.store.list(&kind, "").filter(|object| !object.is_terminating()).cloned().collect();
    for object in objects {
        let request = Request::delete(&Actor::from(ACTOR), &kind, object.key.clone())
            .because("its CustomResourceDefinition is deleted");
        // What can't be deleted keeps the definition.
        let _ = delete::delete(server, &request, moment);
    }
    if server.store.list(&kind, "").next().is_some() {
        return Some(());
    }
    let done = ("Terminating", "False", "InstanceDeletionCompleted", "removed all instances");
    set_condition(definition.status_mut::<CustomResourceDefinition>(), done, moment);
    let metadata = definition.metadata_mut();
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != CLEANUP);
    }
    if metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()) {
        return write(server, definition, moment).map(|_| ());
    }
    let request = Request::delete(&Actor::from(ACTOR), &definition.kind, definition.key.clone());
    server.remove(&definition, &request, moment).ok()
}

#[cfg(test)]
mod tests;
