//! Deletion: at once, or in two steps where finalizers or a grace period hold the object.
//! <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;

use super::strategy::strategy;
use super::{ApiServer, Moment, admission, read};
use crate::api::Key;
use crate::api::object::Object;
use crate::api::request::{Answer, Propagation, Request, Response};
use crate::api::status::Status;
use crate::clock::Time;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
     to remove them or set propagationPolicy=Orphan to suppress this warning";

pub fn delete(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    check_preconditions(&old, request)?;
    strategy(&request.kind).check_delete(&old)?;
    let mut warnings = Vec::new();
    admission::validate_delete(server, request, &old, &mut warnings, moment)?;
    if request.options.propagation.is_none() {
        warnings.extend(old.is::<Job>().then(|| JOB_WARNING.to_owned()));
    }
    let mut response = carry_out(server, request, old, moment)?;
    if let Response::Object(answer) = &mut response {
        answer.warnings = warnings.into();
    }
    Ok(response)
}

/// Deletes an object that may be deleted, or marks it for those who hold it.
pub fn carry_out(
    server: &mut ApiServer,
    request: &Request,
    old: Object,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    let strategy = strategy(&request.kind);
    let mut object = old.clone();
    if !old.is_terminating() && strategy.begin_end(&mut object, moment) {
        object.metadata_mut().deletion_timestamp = Some(moment.now.to_meta());
        propagate(&mut object, request.options.propagation);
        return write(server, request, old, object, moment);
    }
    if has_spec_finalizers(&old) {
        return Ok(super::answer(old));
    }
    let grace = match strategy.grace_period_seconds(&old, request.options.grace_period_seconds) {
        None => None,
        Some(seconds) => match give(&mut object, seconds, request.options.grace_period_seconds, moment.now) {
            Grace::Pending => return Ok(super::answer(old)),
            Grace::Over => None,
            Grace::Given(seconds) => Some(seconds),
        },
    };
    let wish = request.options.propagation;
    let default = strategy.orphans_dependents() && !is_held_by_collector(&old);
    propagate(&mut object, wish.or(default.then_some(Propagation::Orphan)));
    let held = object.metadata().finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    if held && grace.is_none() {
        mark(&mut object, moment.now);
    }
    if held || grace.is_some_and(|seconds| seconds > 0) {
        return write(server, request, old, object, moment);
    }
    // Whoever is allowed no time to end is told so all the same.
    let mut last = match grace {
        Some(_) => server.put(object, Some(old.revision), request, moment)?,
        None => old,
    };
    server.remove(&last, request, moment)?;
    if !request.options.dry_run {
        last.revision = server.store.revision();
    }
    let deleted = !strategy.returns_deleted();
    Ok(Response::Object(Answer { object: last, created: false, deleted, warnings: [].into() }))
}

fn write(
    server: &mut ApiServer,
    request: &Request,
    old: Object,
    object: Object,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    if object.same(&old) {
        return Ok(super::answer(old));
    }
    server.put(object, Some(old.revision), request, moment).map(super::answer)
}

pub fn delete_collection(
    server: &mut ApiServer,
    request: &Request,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    let list = read::list(server, request)?;
    for object in &list.items {
        let one = Request { key: object.key.clone(), ..request.clone() };
        match delete(server, &one, moment) {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
    }
    Ok(Response::List(list))
}

/// The object is the one that was meant, and as it was then.
pub fn check_preconditions(old: &Object, request: &Request) -> Result<(), Status> {
    let Key { name, .. } = &old.key;
    let uid = request.options.precondition_uid.as_deref().filter(|uid| *uid != old.uid());
    let revision = request.options.precondition_revision.filter(|revision| *revision != old.revision);
    if old.is::<Namespace>() {
        let refused = |field: &str, wanted: &str, known: &str| {
            let detail =
                format!("Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {known}");
            Err(Status::conflict(&old.kind, name, &detail))
        };
        return match (uid, revision) {
            (Some(uid), _) => refused("UID", uid, old.uid()),
            (None, Some(revision)) => refused("ResourceVersion", &revision.to_string(), &old.revision.to_string()),
            (None, None) => Ok(()),
        };
    }
    if let Some(uid) = uid {
        let detail = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            old.uid()
        );
        return Err(Status::precondition_failed(&old.kind, name, &detail));
    }
    if let Some(revision) = revision {
        let detail = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            old.revision
        );
        return Err(Status::precondition_failed(&old.kind, name, &detail));
    }
    Ok(())
}

/// Foreground and orphan deletions are held by a finalizer that the garbage collector takes away. Another wish replaces
/// it; no wish leaves it.
fn propagate(object: &mut Object, propagation: Option<Propagation>) {
    let wanted = match propagation {
        None => return,
        Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
    };
    let known = object.metadata().finalizers.as_deref().unwrap_or_default();
    if known.iter().map(String::as_str).filter(is_of_collector).eq(wanted) {
        return;
    }
    let others = known.iter().filter(|finalizer| !is_of_collector(&finalizer.as_str())).cloned();
    let finalizers: Vec<String> = others.chain(wanted.map(str::to_owned)).collect();
    object.metadata_mut().finalizers = (!finalizers.is_empty()).then_some(finalizers);
}

/// The finalizer is one that the garbage collector takes away.
fn is_of_collector(finalizer: &&str) -> bool {
    matches!(*finalizer, ORPHAN | FOREGROUND)
}

fn is_held_by_collector(object: &Object) -> bool {
    object.metadata().finalizers.iter().flatten().map(String::as_str).any(|finalizer| is_of_collector(&finalizer))
}

/// What becomes of the time that a deletion leaves.
enum Grace {
    Given(i64),
    /// An earlier deletion runs, and this one asks for nothing sooner.
    Pending,
    /// An earlier deletion has left no time.
    Over,
}

/// Sets the time at which the object is due to go. A later deletion can only shorten it.
fn give(object: &mut Object, seconds: i64, asked: Option<i64>, now: Time) -> Grace {
    let metadata = object.metadata();
    let (known, due) = (metadata.deletion_grace_period_seconds.unwrap_or(0), metadata.deletion_timestamp.clone());
    let Some(due) = due else {
        let generation = next_generation(object);
        let metadata = object.metadata_mut();
        metadata.generation = generation;
        metadata.deletion_timestamp = Some((now + Duration::from_secs(seconds.max(0).unsigned_abs())).to_meta());
        metadata.deletion_grace_period_seconds = Some(seconds);
        return Grace::Given(seconds);
    };
    if known == 0 {
        return Grace::Over;
    }
    let Some(mut period) = asked.map(|seconds| if seconds < 0 { 1 } else { seconds }).filter(|&asked| asked < known)
    else {
        return Grace::Pending;
    };
    let sooner = Duration::from_secs((known - period).unsigned_abs());
    let due = Time::from(&due) - sooner;
    if due < now && period > 0 {
        // Its time is up, yet somebody else ends it.
        period = 1;
    }
    let metadata = object.metadata_mut();
    metadata.deletion_timestamp = Some(due.max(now).to_meta());
    metadata.deletion_grace_period_seconds = Some(period);
    Grace::Given(period)
}

/// Marks what is held by finalizers alone.
fn mark(object: &mut Object, now: Time) {
    let due = object.metadata().deletion_timestamp.clone();
    let generation = if due.is_none() { next_generation(object) } else { object.metadata().generation };
    let at = due.filter(|due| Time::from(due) <= now).unwrap_or_else(|| now.to_meta());
    let metadata = object.metadata_mut();
    metadata.generation = generation;
    metadata.deletion_timestamp = Some(at);
    metadata.deletion_grace_period_seconds = Some(0);
}

/// The first mark counts as a change of what is wished.
fn next_generation(object: &Object) -> Option<i64> {
    let generation = object.metadata().generation;
    generation.map(|generation| if generation > 0 { generation + 1 } else { generation })
}

/// A namespace is also held by `spec.finalizers`.
pub fn has_spec_finalizers(object: &Object) -> bool {
    object.is::<Namespace>() && object.spec::<Namespace>().finalizers.as_ref().is_some_and(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service};
    use serde_json::{Value, json};

    use crate::api::Key;
    use crate::api::kind::Resource;
    use crate::api::object::Object;
    use crate::api::request::{Answer, Body, Options, PatchType, Propagation, Request, Response, Verb};
    use crate::api::status::Status;
    use crate::{Cluster, Config};

    fn cluster() -> Cluster {
        Cluster::new(Config { nodes: 0, ..Config::default() })
    }

    fn send<K: Resource>(cluster: &mut Cluster, verb: Verb, name: &str, body: Value) -> Result<Answer, Status> {
        let key = Key::new(if K::kind().namespaced { "default" } else { "" }, name);
        let request = Request { body: Body::Json(body), ..Request::new(&"kubectl".into(), verb, K::kind(), key) };
        answered(cluster, request)
    }

    fn delete<K: Resource>(cluster: &mut Cluster, name: &str, options: Options) -> Result<Answer, Status> {
        let key = Key::new(if K::kind().namespaced { "default" } else { "" }, name);
        let request = Request { options, ..Request::delete(&"kubectl".into(), K::kind(), key) };
        answered(cluster, request)
    }

    fn answered(cluster: &mut Cluster, request: Request) -> Result<Answer, Status> {
        match cluster.request(request)? {
            Response::Object(answer) => Ok(answer),
            Response::List(_) => panic!("a list"),
        }
    }

    fn with(propagation: Propagation) -> Options {
        Options { propagation: Some(propagation), ..Options::default() }
    }

    fn within(seconds: i64) -> Options {
        Options { grace_period_seconds: Some(seconds), ..Options::default() }
    }

    fn finalizers(object: &Object) -> Vec<&str> {
        object.metadata().finalizers.iter().flatten().map(String::as_str).collect()
    }

    fn replica_set(name: &str) -> Value {
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template});
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn a_second_delete_replaces_the_wish_of_the_first() {
        let mut cluster = cluster();
        send::<ReplicaSet>(&mut cluster, Verb::Create, "", replica_set("web")).unwrap();
        let orphan = delete::<ReplicaSet>(&mut cluster, "web", with(Propagation::Orphan)).unwrap().object;
        assert_eq!((finalizers(&orphan), orphan.metadata().generation), (vec!["orphan"], Some(2)));
        let foreground = delete::<ReplicaSet>(&mut cluster, "web", with(Propagation::Foreground)).unwrap().object;
        assert_eq!((finalizers(&foreground), foreground.metadata().generation), (vec!["foregroundDeletion"], Some(2)));
        let unsaid = delete::<ReplicaSet>(&mut cluster, "web", Options::default()).unwrap().object;
        assert_eq!(unsaid.revision, foreground.revision);
        assert!(delete::<ReplicaSet>(&mut cluster, "web", with(Propagation::Background)).unwrap().deleted);
        assert!(cluster.get::<ReplicaSet>("default", "web").is_none());
    }

    #[test]
    fn jobs_leave_their_pods_alone_unless_told_otherwise() {
        let mut cluster = cluster();
        let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
        let job = json!({"metadata": {"name": "pi"}, "spec": {"template": {"spec": spec}}});
        send::<Job>(&mut cluster, Verb::Create, "", job).unwrap();
        let dry = Options { dry_run: true, ..with(Propagation::Background) };
        assert!(delete::<Job>(&mut cluster, "pi", dry).unwrap().warnings.is_empty());
        let answer = delete::<Job>(&mut cluster, "pi", Options::default()).unwrap();
        assert_eq!(finalizers(&answer.object), ["orphan"]);
        assert!(answer.warnings[0].starts_with("child pods are preserved by default"), "{:?}", answer.warnings);
    }

    #[test]
    fn a_kind_that_counts_nothing_keeps_the_generation_that_it_is_sent() {
        let mut cluster = cluster();
        let map = json!({"metadata": {"name": "a", "generation": 7, "finalizers": ["x.io/a"]}});
        let made = send::<ConfigMap>(&mut cluster, Verb::Create, "", map).unwrap().object;
        assert_eq!(made.metadata().generation, Some(7));
        let marked = delete::<ConfigMap>(&mut cluster, "a", Options::default()).unwrap().object;
        assert_eq!(marked.metadata().generation, Some(8));
        let patch = json!({"metadata": {"finalizers": null}});
        send::<ConfigMap>(&mut cluster, Verb::Patch(PatchType::Merge), "a", patch).unwrap();
        assert!(cluster.get::<ConfigMap>("default", "a").is_none());
    }

    #[test]
    fn a_deleted_object_is_shown_at_the_revision_of_its_deletion() {
        let mut cluster = cluster();
        let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
        let made = send::<Service>(&mut cluster, Verb::Create, "", service).unwrap().object;
        let dry = delete::<Service>(&mut cluster, "web", Options { dry_run: true, ..Options::default() }).unwrap();
        assert_eq!(dry.object.revision, made.revision);
        let gone = delete::<Service>(&mut cluster, "web", Options::default()).unwrap();
        assert_eq!((gone.deleted, gone.object.revision), (false, cluster.revision()));
        assert!(gone.object.revision > made.revision);
    }

    #[test]
    fn a_pods_time_can_only_become_shorter() {
        let mut cluster = cluster();
        let spec = json!({"nodeName": "n", "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]});
        send::<Pod>(&mut cluster, Verb::Create, "", json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        let mut delete = |seconds| {
            let pod = delete::<Pod>(&mut cluster, "a", within(seconds)).unwrap().object;
            let metadata = pod.metadata();
            let due = metadata.deletion_timestamp.as_ref().map(|due| due.0.as_second()).unwrap();
            (metadata.deletion_grace_period_seconds.unwrap(), metadata.generation.unwrap(), due)
        };
        let (_, generation, due) = delete(20);
        assert_eq!(delete(50), (20, generation, due));
        assert_eq!(delete(5), (5, generation, due - 15));
        assert_eq!(delete(-1), (1, generation, due - 19));
        assert_eq!(delete(0).0, 0);
        assert!(cluster.get::<Pod>("default", "a").is_none());
    }

    #[test]
    fn a_namespace_is_marked_first_and_goes_when_nothing_holds_it() {
        let mut cluster = cluster();
        send::<Namespace>(&mut cluster, Verb::Create, "", json!({"metadata": {"name": "x"}})).unwrap();
        let other = Options { precondition_uid: Some("other".into()), ..Options::default() };
        let refused = delete::<Namespace>(&mut cluster, "x", other).unwrap_err();
        assert!(refused.message.contains("namespaces \"x\": Precondition failed: UID in precondition: other"));
        let marked = delete::<Namespace>(&mut cluster, "x", Options::default()).unwrap().object;
        assert!(marked.is_terminating());
        assert_eq!(marked.metadata().deletion_grace_period_seconds, None);
        let again = delete::<Namespace>(&mut cluster, "x", Options::default()).unwrap().object;
        assert_eq!(again.revision, marked.revision);
    }
}
