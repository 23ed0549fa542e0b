//! deployment-controller: a ReplicaSet for each version of the template, and the way from one to the next.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/>

mod annotations;
mod fenceposts;
mod replica_sets;
mod rollout;
mod scale;
mod status;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;

use super::cache::View;
use super::claim::claim;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::store::Change;
use replica_sets::NewSet;

pub struct DeploymentController;

impl Controller for DeploymentController {
    fn name(&self) -> &str {
        "deployment-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(Deployment::kind()),
            Watch::owner(ReplicaSet::kind(), Deployment::kind()),
            Watch::with(ReplicaSet::kind(), deployments_that_may_adopt),
            Watch::with(Pod::kind(), recreated_by),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(deployment) = view.get::<Deployment>(key) else { return plan };
        let selector = Selector::of(&deployment.spec::<Deployment>().selector);
        let sets = claim(deployment, ReplicaSet::kind(), &selector, view, |_| true, &mut plan);
        let mut sync = Sync::new(deployment, sets, view, plan);
        sync.run();
        sync.plan
    }
}

/// One look at a Deployment. It works on copies of the ReplicaSets, so that what it writes to them shows in the status
/// that it writes last.
struct Sync<'a> {
    deployment: &'a Object,
    spec: &'a DeploymentSpec,
    replicas: i32,
    /// All ReplicaSets of the Deployment, the oldest first.
    sets: Vec<Object>,
    /// Where in `sets` the one with the present template stands.
    new: Option<usize>,
    view: &'a View<'a>,
    plan: Plan,
}

impl<'a> Sync<'a> {
    fn new(deployment: &'a Object, sets: Vec<&Object>, view: &'a View<'a>, plan: Plan) -> Sync<'a> {
        let spec = deployment.spec::<Deployment>();
        let mut sets: Vec<Object> = sets.into_iter().cloned().collect();
        sets.sort_by(by_creation);
        let new = replica_sets::position_of_new(&sets, &spec.template);
        Sync { deployment, spec, replicas: spec.replicas.unwrap_or(1), sets, new, view, plan }
    }

    /// Each write that makes the Deployment look different ends the look: the next one goes on from there.
    fn run(&mut self) {
        if self.deployment.is_terminating() {
            return self.sync_status();
        }
        if self.note_pause() {
            return;
        }
        let paused = self.spec.paused.unwrap_or(false);
        let recreates = self.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate");
        if !paused && !self.is_scaling() {
            if recreates { self.recreate() } else { self.roll() }
        } else if self.update_new() == NewSet::Known {
            self.scale();
            if paused {
                self.clean_up();
            }
            self.sync_status();
        }
    }

    /// How many pods there may be at most while it rolls.
    fn most(&self) -> i32 {
        self.replicas.saturating_add(fenceposts::max_surge(self.spec))
    }

    fn old(&self) -> impl Iterator<Item = &Object> {
        self.sets.iter().enumerate().filter(|(index, _)| Some(*index) != self.new).map(|(_, set)| set)
    }

    /// Indexes of the old ReplicaSets that should have pods, the oldest first.
    fn active_old(&self) -> Vec<usize> {
        (0..self.sets.len()).filter(|index| Some(*index) != self.new && wanted(&self.sets[*index]) > 0).collect()
    }

    /// Gives a ReplicaSet another size. False if it has that already.
    fn resize(&mut self, index: usize, size: i32) -> bool {
        let before = wanted(&self.sets[index]);
        if before == size {
            return false;
        }
        self.write_size(index, size);
        true
    }

    /// Gives a ReplicaSet a size and says in its annotations which size of the whole that belongs to.
    fn write_size(&mut self, index: usize, size: i32) {
        let (before, most) = (wanted(&self.sets[index]), self.most());
        let set = &mut self.sets[index];
        let noted = annotations::note_size(set, self.replicas, most);
        if before == size && !noted {
            return;
        }
        set.spec_mut::<ReplicaSet>().replicas = Some(size);
        let direction = if size > before { "up" } else { "down" };
        let text = format!("Scaled {direction} replica set {} from {before} to {size}", set.key.name);
        let write = self.plan.update(set.clone(), "the Deployment wants it to have another size");
        if before != size {
            write.event(EventNote::normal(self.deployment, "ScalingReplicaSet", text));
        }
    }
}

/// The sum of sizes, each of which may be as large as its type.
fn total(sizes: impl Iterator<Item = i32>) -> i32 {
    sizes.fold(0, i32::saturating_add)
}

/// How many pods a ReplicaSet should have.
fn wanted(set: &Object) -> i32 {
    set.spec::<ReplicaSet>().replicas.unwrap_or(1)
}

fn available(set: &Object) -> i32 {
    set.status::<ReplicaSet>().available_replicas.unwrap_or(0)
}

fn by_creation(a: &Object, b: &Object) -> std::cmp::Ordering {
    let created = |set: &Object| set.metadata().creation_timestamp.as_ref().map(|time| time.0);
    created(a).cmp(&created(b)).then_with(|| a.key.name.cmp(&b.key.name))
}

/// A ReplicaSet without a controller concerns the Deployments whose selectors match it.
fn deployments_that_may_adopt(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(set) = change.after.as_ref().filter(|set| set.controller().is_none()) else { return Vec::new() };
    let labels = set.metadata().labels.as_ref();
    let matching = |deployment: &&Object| {
        labels.is_some() && Selector::of(&deployment.spec::<Deployment>().selector).matches(labels)
    };
    view.list::<Deployment>(&set.key.namespace).filter(matching).map(|deployment| deployment.key.clone()).collect()
}

/// A Deployment that recreates its pods waits for the last old one to go.
fn recreated_by(view: &View<'_>, change: &Change) -> Vec<Key> {
    let (Some(pod), None) = (&change.before, &change.after) else { return Vec::new() };
    let namespace = &pod.key.namespace;
    let set = pod.controller().and_then(|owner| view.get::<ReplicaSet>(&Key::new(namespace.clone(), &*owner.name)));
    let owner = set.and_then(|set| set.controller());
    let deployment = owner.and_then(|owner| view.get::<Deployment>(&Key::new(namespace.clone(), &*owner.name)));
    let recreates = |deployment: &&Object| {
        let strategy = deployment.spec::<Deployment>().strategy.as_ref();
        strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
    };
    deployment.filter(recreates).map(|deployment| deployment.key.clone()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    fn web(replicas: i32, strategy: Value) -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"team": "a"}},
            "spec": {
                "replicas": replicas,
                "strategy": strategy,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "img:1"}]},
                },
            },
        })
    }

    fn set_image(cluster: &mut Cluster, image: &str, annotations: Value) {
        let template =
            json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "image": image}]}});
        patch::<Deployment>(cluster, "web", json!({"spec": {"template": template}})).unwrap();
        play_kubelets(cluster);
    }

    fn deployment(cluster: &Cluster) -> Value {
        cluster.get::<Deployment>("default", "web").unwrap().to_json()
    }

    /// Revision, image and size of each ReplicaSet, by revision.
    fn sets(cluster: &Cluster) -> Vec<(i64, String, i32)> {
        let mut sets: Vec<_> = cluster
            .list::<ReplicaSet>("default")
            .map(|set| {
                let image =
                    set.to_json()["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
                (annotations::revision(set), image, wanted(set))
            })
            .collect();
        sets.sort();
        sets
    }

    /// The scaling events with `new` and `old` for the names of the ReplicaSets.
    fn scaling(cluster: &Cluster) -> Vec<String> {
        let mut names: Vec<_> = cluster.list::<ReplicaSet>("default").collect();
        names.sort_by_key(|set| annotations::revision(set));
        let named = |event: String| {
            names.iter().enumerate().fold(event, |event, (at, set)| {
                event.replace(&*set.key.name, if at + 1 == names.len() { "new" } else { "old" })
            })
        };
        let told = events(cluster, "web").into_iter().map(named);
        told.filter_map(|event| event.strip_prefix("ScalingReplicaSet Scaled ").map(str::to_owned)).collect()
    }

    fn condition_of(cluster: &Cluster, kind: &str) -> (String, String, String) {
        let object = cluster.get::<Deployment>("default", "web").unwrap();
        let condition = status::condition(object, kind).unwrap();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (condition.status.clone(), text(&condition.reason), text(&condition.message))
    }

    #[test]
    fn a_status_that_still_counts_a_pod_that_has_to_go_shrinks_nothing() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(4, json!({})));
        play_kubelets(&mut cluster);
        assert!(cluster.stop("replicaset-controller"));
        set_image(&mut cluster, "img:2", json!({}));
        let sizes = |cluster: &Cluster| sets(cluster).into_iter().map(|(.., size)| size).collect::<Vec<_>>();
        assert_eq!(sizes(&cluster), [3, 2]);
        let new = cluster.list::<ReplicaSet>("default").max_by_key(|set| annotations::revision(set)).unwrap();
        let name = new.key.name.to_string();
        let counts = json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}});
        patch_status::<ReplicaSet>(&mut cluster, &name, counts).unwrap();
        settle(&mut cluster);
        assert_eq!(sizes(&cluster)[0], 3);
        assert!(cluster.start("replicaset-controller"));
        play_kubelets(&mut cluster);
        assert_eq!(sizes(&cluster), [0, 4]);
    }

    #[test]
    fn a_new_deployment_makes_one_replica_set_named_by_the_hash_of_its_template() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(3, json!({})));
        play_kubelets(&mut cluster);
        let set = cluster.list::<ReplicaSet>("default").next().unwrap();
        let hash = set.label("pod-template-hash").unwrap();
        assert_eq!(*set.key.name, *format!("web-{hash}"));
        assert_eq!(
            set.to_json()["metadata"]["annotations"],
            json!({"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4",
                "deployment.kubernetes.io/revision": "1", "team": "a"})
        );
        assert_eq!(scaling(&cluster), ["up replica set new from 0 to 3"]);
        let json = deployment(&cluster);
        assert_eq!(json["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
        assert_eq!(json["metadata"]["generation"], 1);
        let mut status = json["status"].clone();
        status.as_object_mut().unwrap().remove("conditions");
        assert_eq!(
            status,
            json!({"availableReplicas": 3, "observedGeneration": 1, "readyReplicas": 3, "replicas": 3,
                "terminatingReplicas": 0, "updatedReplicas": 3})
        );
        let (is, reason, message) = condition_of(&cluster, "Progressing");
        assert_eq!((&*is, &*reason), ("True", "NewReplicaSetAvailable"));
        assert_eq!(message, format!("ReplicaSet \"web-{hash}\" has successfully progressed."));
        assert_eq!(condition_of(&cluster, "Available").1, "MinimumReplicasAvailable");
    }

    #[test]
    fn a_rolling_update_keeps_within_surge_and_unavailable() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(4, json!({})));
        play_kubelets(&mut cluster);
        set_image(&mut cluster, "img:2", json!({}));
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 0), (2, "img:2".into(), 4)]);
        let events = scaling(&cluster);
        assert_eq!(events[1..3], ["up replica set new from 0 to 1", "down replica set old from 4 to 3"]);
        let rules = |event: &crate::trace::Entry| event.at;
        assert!(cluster.trace().iter().map(rules).is_sorted());
    }

    #[test]
    fn a_rollout_of_pods_that_never_get_ready_stalls_and_misses_its_deadline() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(5, json!({"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}})));
        play_kubelets(&mut cluster);
        set_image(&mut cluster, "img:2", json!({"sim/ready": "never"}));
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 4), (2, "img:2".into(), 3)]);
        assert_eq!(
            scaling(&cluster),
            [
                "up replica set new from 0 to 5".replace("new", "old"),
                "up replica set new from 0 to 2".into(),
                "down replica set old from 5 to 4".into(),
                "up replica set new from 2 to 3".into()
            ]
        );
        assert_eq!(condition_of(&cluster, "Progressing").1, "ReplicaSetUpdated");
        cluster.advance(Duration::from_secs(605), |_| true);
        let (is, reason, message) = condition_of(&cluster, "Progressing");
        assert_eq!((&*is, &*reason), ("False", "ProgressDeadlineExceeded"));
        assert!(message.ends_with("has timed out progressing."), "{message}");
    }

    #[test]
    fn a_stalled_rollout_shares_new_replicas_by_size() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(10, json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})));
        play_kubelets(&mut cluster);
        set_image(&mut cluster, "img:2", json!({"sim/ready": "never"}));
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 8), (2, "img:2".into(), 5)]);
        patch::<Deployment>(&mut cluster, "web", json!({"spec": {"replicas": 15}})).unwrap();
        play_kubelets(&mut cluster);
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 11), (2, "img:2".into(), 7)]);
        assert_eq!(scaling(&cluster)[4..], ["up replica set old from 8 to 11", "up replica set new from 5 to 7"]);
    }

    #[test]
    fn recreate_waits_until_the_old_pods_are_gone() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(2, json!({"type": "Recreate"})));
        play_kubelets(&mut cluster);
        set_image(&mut cluster, "img:2", json!({}));
        assert_eq!(scaling(&cluster)[1..], ["down replica set old from 2 to 0", "up replica set new from 0 to 2"]);
        assert_eq!(deployment(&cluster)["status"]["updatedReplicas"], 2);
    }

    #[test]
    fn an_earlier_template_gets_its_replica_set_back_under_a_new_revision() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(2, json!({})));
        play_kubelets(&mut cluster);
        for image in ["img:2", "img:3", "img:1"] {
            set_image(&mut cluster, image, json!({}));
        }
        assert_eq!(sets(&cluster), [(2, "img:2".into(), 0), (3, "img:3".into(), 0), (4, "img:1".into(), 2)]);
        let newest = cluster.list::<ReplicaSet>("default").find(|set| annotations::revision(set) == 4).unwrap();
        assert_eq!(newest.annotation("deployment.kubernetes.io/revision-history"), Some("1"));
        assert_eq!(deployment(&cluster)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "4");
    }

    #[test]
    fn old_replica_sets_beyond_the_history_limit_go() {
        let mut cluster = control_plane();
        let mut web = web(1, json!({}));
        web["spec"]["revisionHistoryLimit"] = json!(1);
        create::<Deployment>(&mut cluster, web);
        play_kubelets(&mut cluster);
        for image in ["img:2", "img:3", "img:4"] {
            set_image(&mut cluster, image, json!({}));
        }
        assert_eq!(sets(&cluster), [(3, "img:3".into(), 0), (4, "img:4".into(), 1)]);
    }

    #[test]
    fn a_paused_deployment_scales_but_does_not_roll() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, web(2, json!({})));
        play_kubelets(&mut cluster);
        patch::<Deployment>(&mut cluster, "web", json!({"spec": {"paused": true}})).unwrap();
        set_image(&mut cluster, "img:2", json!({}));
        patch::<Deployment>(&mut cluster, "web", json!({"spec": {"replicas": 3}})).unwrap();
        play_kubelets(&mut cluster);
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 3)]);
        assert_eq!(condition_of(&cluster, "Progressing").1, "DeploymentPaused");
        patch::<Deployment>(&mut cluster, "web", json!({"spec": {"paused": false}})).unwrap();
        play_kubelets(&mut cluster);
        assert_eq!(sets(&cluster), [(1, "img:1".into(), 0), (2, "img:2".into(), 3)]);
    }
}
