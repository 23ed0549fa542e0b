//! StatefulSets: pods with a name and a claim of their own.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, pod_template, replica_status, rollout, text, volumes};
use crate::apiserver::{ApiServer, Moment, defaults, warnings};

const MUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
     'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<StatefulSet>();
        spec.pod_management_policy.get_or_insert_with(|| "OrderedReady".into());
        let strategy = spec.update_strategy.get_or_insert_default();
        if strategy.type_.is_none() {
            strategy.type_ = Some("RollingUpdate".into());
            strategy.rolling_update.get_or_insert_default();
        }
        if strategy.type_.as_deref() == Some("RollingUpdate")
            && let Some(rolling) = &mut strategy.rolling_update
        {
            rolling.partition.get_or_insert(0);
            // Not offered yet.
            rolling.max_unavailable = None;
        }
        let retention = spec.persistent_volume_claim_retention_policy.get_or_insert_default();
        retention.when_deleted.get_or_insert_with(|| "Retain".into());
        retention.when_scaled.get_or_insert_with(|| "Retain".into());
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        defaults::pod_template(&mut spec.template);
        spec.volume_claim_templates.iter_mut().flatten().for_each(claim_template);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        object.status_mut::<StatefulSet>().available_replicas = Some(0);
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        validate_spec(&mut causes, object.spec::<StatefulSet>(), false);
        causes.into()
    }

    fn validate_create(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        validate_spec(&mut causes, object.spec::<StatefulSet>(), true);
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new) = (old.spec::<StatefulSet>(), new.spec::<StatefulSet>());
        let mut causes = Causes::new();
        let kept = old.selector == new.selector
            && old.service_name == new.service_name
            && old.pod_management_policy == new.pod_management_policy
            && old.volume_claim_templates == new.volume_claim_templates;
        if !kept {
            causes.forbidden(&Path::new("spec"), MUTABLE);
        }
        causes.into()
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, status) = (old.status::<StatefulSet>(), new.status::<StatefulSet>());
        let count = |count: Option<i32>| i64::from(count.unwrap_or(0));
        let mut causes = Causes::new();
        let counts = replica_status::Counts {
            replicas: status.replicas.into(),
            parts: &[
                ("readyReplicas", count(status.ready_replicas)),
                ("currentReplicas", count(status.current_replicas)),
                ("updatedReplicas", count(status.updated_replicas)),
                ("availableReplicas", count(status.available_replicas)),
            ],
            others: &[
                ("observedGeneration", status.observed_generation),
                ("collisionCount", status.collision_count.map(i64::from)),
            ],
            ready_noun: "status.readyReplicas",
        };
        replica_status::counts(&mut causes, &counts);
        replica_status::collisions(&mut causes, before.collision_count, status.collision_count);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        let spec = new.spec::<StatefulSet>();
        let mut warnings = Vec::new();
        if old.is_none_or(|old| old.metadata().generation != new.metadata().generation) {
            warnings.extend(warnings::pod_template("spec.template", &spec.template));
        }
        if spec.revision_history_limit.is_some_and(|limit| limit < 0) {
            let advice = "a negative value retains all historical revisions; a value >= 0 is recommended";
            warnings.push(format!("spec.revisionHistoryLimit: {advice}"));
        }
        warnings
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn claim_template(claim: &mut PersistentVolumeClaim) {
    defaults::claim_spec(claim.spec.get_or_insert_default());
    claim.status.get_or_insert_default().phase.get_or_insert_with(|| "Pending".into());
}

/// Claims and the service's name are not looked at again in a set that exists, for they don't change.
fn validate_spec(causes: &mut Causes, spec: &StatefulSetSpec, is_new: bool) {
    let path = Path::new("spec");
    match text(&spec.pod_management_policy) {
        "" => causes.required(&path.child("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => causes.invalid(&path.child("podManagementPolicy"), other, "must be 'OrderedReady' or 'Parallel'"),
    }
    if let Some(strategy) = &spec.update_strategy {
        rollout::stateful_set(causes, &path.child("updateStrategy"), strategy);
    }
    if let Some(retention) = &spec.persistent_volume_claim_retention_policy {
        let path = path.child("persistentVolumeClaimRetentionPolicy");
        causes.one_of(&path.child("whenDeleted"), retention.when_deleted.as_deref(), &["Retain", "Delete"]);
        causes.one_of(&path.child("whenScaled"), retention.when_scaled.as_deref(), &["Retain", "Delete"]);
    }
    if is_new {
        for (index, claim) in spec.volume_claim_templates.iter().flatten().enumerate() {
            let place = path.child("volumeClaimTemplates").index(index).child("spec");
            volumes::claim_spec(causes, &place, &claim.spec.clone().unwrap_or_default());
        }
    }
    causes.non_negative(&path.child("replicas"), spec.replicas);
    causes.non_negative(&path.child("minReadySeconds"), spec.min_ready_seconds);
    causes.non_negative(&path.child("ordinals.start"), spec.ordinals.as_ref().and_then(|ordinals| ordinals.start));
    let service = text(&spec.service_name);
    if is_new && !service.is_empty() {
        causes.invalid_each(&path.child("serviceName"), service, names::dns_label(service));
    }
    pod_template::selector(causes, &path.child("selector"), &spec.selector, "statefulset");
    let template_path = path.child("template");
    pod_template::selected(causes, &template_path, &spec.template, &spec.selector);
    pod_template::validate(causes, &template_path, &with_claims(spec));
    let pod = pod_template::spec_of(&spec.template);
    pod_template::runs_for_ever(causes, &template_path, &pod, "StatefulSet");
}

/// The template as its pods will be: with a volume for each claim, and names of their own.
fn with_claims(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let pod = template.spec.get_or_insert_default();
    (pod.hostname, pod.subdomain) = (None, None);
    let Some(claims) = spec.volume_claim_templates.as_ref().filter(|claims| !claims.is_empty()) else {
        return template;
    };
    let of_claim = |claim: &PersistentVolumeClaim| {
        let name = text(&claim.metadata.name).to_owned();
        let source = PersistentVolumeClaimVolumeSource { claim_name: name.clone(), ..Default::default() };
        Volume { name, persistent_volume_claim: Some(source), ..Volume::default() }
    };
    let mut all: Vec<Volume> = claims.iter().map(of_claim).collect();
    for volume in pod.volumes.take().unwrap_or_default() {
        if !all.iter().any(|known| known.name == volume.name) {
            all.push(volume);
        }
    }
    pod.volumes = Some(all);
    template
}
