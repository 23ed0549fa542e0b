//! FlowSchemas and PriorityLevelConfigurations. <https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>

use k8s_openapi::api::flowcontrol::v1::{
    ExemptPriorityLevelConfiguration, FlowSchema, LimitResponse, PolicyRulesWithSubjects, PriorityLevelConfiguration,
    QueuingConfiguration, Subject,
};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const PRECEDENCE_MAX: i32 = 10_000;
const PRECEDENCE: i32 = 1000;

pub struct FlowSchemas;

impl Strategy for FlowSchemas {
    fn default(&self, object: &mut Object) {
        let precedence = &mut object.spec_mut::<FlowSchema>().matching_precedence;
        precedence.take_if(|number| *number == 0);
        precedence.get_or_insert(PRECEDENCE);
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<FlowSchema>(), Path::new("spec"), Causes::new());
        let precedence = spec.matching_precedence.unwrap_or(0);
        let precedence_path = path.child("matchingPrecedence");
        if precedence <= 0 {
            causes.invalid(&precedence_path, precedence, "must be a positive value");
        }
        if precedence > PRECEDENCE_MAX {
            causes.invalid(&precedence_path, precedence, format!("must not be greater than {PRECEDENCE_MAX}"));
        }
        if precedence == 1 && !matches!(&*object.key.name, "exempt" | "workload-leader-election") {
            causes.invalid(
                &precedence_path,
                precedence,
                "only the schema named 'exempt' may have matchingPrecedence 1",
            );
        }
        if let Some(method) = &spec.distinguisher_method {
            let methods = ["ByNamespace", "ByUser"];
            causes.one_of(&path.child("distinguisherMethod.type"), Some(&method.type_), &methods);
        }
        let level = spec.priority_level_configuration.name.as_str();
        let level_path = path.child("priorityLevelConfiguration.name");
        if level.is_empty() {
            causes.required(&level_path, "must reference a priority level");
        } else {
            causes.invalid_each(&level_path, level, names::dns_subdomain(level));
        }
        for (index, rule) in spec.rules.iter().flatten().enumerate() {
            flow_rule(&mut causes, &path.child("rules").index(index), rule);
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn flow_rule(causes: &mut Causes, path: &Path, rule: &PolicyRulesWithSubjects) {
    if rule.subjects.is_empty() {
        causes.required(&path.child("subjects"), "subjects must contain at least one value");
    }
    for (index, subject) in rule.subjects.iter().enumerate() {
        flow_subject(causes, &path.child("subjects").index(index), subject);
    }
    let resources = rule.resource_rules.as_deref().unwrap_or_default();
    let others = rule.non_resource_rules.as_deref().unwrap_or_default();
    if resources.is_empty() && others.is_empty() {
        causes.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for (index, resource) in resources.iter().enumerate() {
        let path = path.child("resourceRules").index(index);
        for (field, list, detail) in [
            ("verbs", &resource.verbs, "verbs must contain at least one value"),
            ("apiGroups", &resource.api_groups, "resource rules must supply at least one api group"),
            ("resources", &resource.resources, "resource rules must supply at least one resource"),
        ] {
            only_or_all(causes, &path.child(field), list, detail);
        }
        let namespaces = resource.namespaces.as_deref().unwrap_or_default();
        if namespaces.is_empty() && resource.cluster_scope != Some(true) {
            let detail = "resource rules that are not cluster scoped must supply at least one namespace";
            causes.required(&path.child("namespaces"), detail);
        }
    }
    for (index, other) in others.iter().enumerate() {
        let path = path.child("nonResourceRules").index(index);
        only_or_all(causes, &path.child("verbs"), &other.verbs, "verbs must contain at least one value");
        let detail = "nonResourceURLs must contain at least one value";
        only_or_all(causes, &path.child("nonResourceURLs"), &other.non_resource_urls, detail);
    }
}

/// A list with something in it, where `*` stands alone.
fn only_or_all(causes: &mut Causes, path: &Path, list: &[String], detail: &str) {
    if list.is_empty() {
        causes.required(path, detail);
    }
    if list.len() > 1 && list.iter().any(|item| item == "*") {
        causes.invalid(path, serde_json::json!(list), "if '*' is present, must not specify other values");
    }
}

fn flow_subject(causes: &mut Causes, path: &Path, subject: &Subject) {
    let required = |causes: &mut Causes, field: &str, kind: &str| {
        causes.required(&path.child(field), &format!("{field} is required when subject kind is '{kind}'"));
    };
    match subject.kind.as_str() {
        "ServiceAccount" => match &subject.service_account {
            None => required(causes, "serviceAccount", "ServiceAccount"),
            Some(account) => {
                let path = path.child("serviceAccount");
                if account.name.is_empty() {
                    causes.required(&path.child("name"), "");
                }
                if account.namespace.is_empty() {
                    causes.required(&path.child("namespace"), "must specify namespace for service account");
                }
            }
        },
        "User" => match &subject.user {
            None => required(causes, "user", "User"),
            Some(user) if user.name.is_empty() => causes.required(&path.child("user.name"), ""),
            Some(_) => {}
        },
        "Group" => match &subject.group {
            None => required(causes, "group", "Group"),
            Some(group) if group.name.is_empty() => causes.required(&path.child("group.name"), ""),
            Some(_) => {}
        },
        other => causes.not_supported(&path.child("kind"), other, &["Group", "ServiceAccount", "User"]),
    }
}

pub struct PriorityLevels;

impl Strategy for PriorityLevels {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<PriorityLevelConfiguration>();
        if spec.type_ == "Exempt" {
            let exempt = spec.exempt.get_or_insert_with(ExemptPriorityLevelConfiguration::default);
            exempt.nominal_concurrency_shares.get_or_insert(0);
            exempt.lendable_percent.get_or_insert(0);
        }
        if let Some(limited) = &mut spec.limited {
            limited.nominal_concurrency_shares.get_or_insert(30);
            limited.lendable_percent.get_or_insert(0);
            let queuing = limited.limit_response.as_mut().and_then(|response| response.queuing.as_mut());
            if let Some(queuing) = queuing {
                default_number(&mut queuing.queues, 64);
                default_number(&mut queuing.hand_size, 8);
                default_number(&mut queuing.queue_length_limit, 50);
            }
        }
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path) = (object.spec::<PriorityLevelConfiguration>(), Path::new("spec"));
        let mut causes = Causes::new();
        match spec.type_.as_str() {
            "Exempt" if spec.limited.is_some() => {
                causes.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
            }
            "Limited" => {
                if spec.exempt.is_some() {
                    causes.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
                }
                match &spec.limited {
                    None => causes.required(&path.child("limited"), "must not be empty when type is Limited"),
                    Some(limited) => {
                        let path = path.child("limited");
                        if let Some(shares) = limited.nominal_concurrency_shares.filter(|shares| *shares < 0) {
                            let detail = "must be a non-negative integer";
                            causes.invalid(&path.child("nominalConcurrencyShares"), shares, detail);
                        }
                        if let Some(percent) = limited.lendable_percent
                            && !(0..=100).contains(&percent)
                        {
                            let detail = "must be between 0 and 100, inclusive";
                            causes.invalid(&path.child("lendablePercent"), percent, detail);
                        }
                        let response = limited.limit_response.clone().unwrap_or_default();
                        limit_response(&mut causes, &path.child("limitResponse"), &response);
                    }
                }
            }
            "Exempt" => {}
            other => causes.not_supported(&path.child("type"), other, &["Exempt", "Limited"]),
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn default_number(number: &mut Option<i32>, default: i32) {
    number.take_if(|number| *number == 0);
    number.get_or_insert(default);
}

fn limit_response(causes: &mut Causes, path: &Path, response: &LimitResponse) {
    match (response.type_.as_str(), &response.queuing) {
        ("Reject", Some(_)) => {
            causes.forbidden(&path.child("queuing"), "must be nil if limited.limitResponse.type is not Limited");
        }
        ("Queue", None) => {
            causes.required(&path.child("queuing"), "must not be empty if limited.limitResponse.type is Limited");
        }
        ("Queue", Some(queuing)) => validate_queuing(causes, &path.child("queuing"), queuing),
        ("Reject", None) => {}
        (other, _) => causes.not_supported(&path.child("type"), other, &["Queue", "Reject"]),
    }
}

fn validate_queuing(causes: &mut Causes, path: &Path, queuing: &QueuingConfiguration) {
    let (queues, hand) = (queuing.queues.unwrap_or(0), queuing.hand_size.unwrap_or(0));
    let length = queuing.queue_length_limit.unwrap_or(0);
    if length <= 0 {
        causes.invalid(&path.child("queueLengthLimit"), length, "must be positive");
    }
    if queues <= 0 {
        causes.invalid(&path.child("queues"), queues, "must be positive");
    }
    if hand <= 0 {
        causes.invalid(&path.child("handSize"), hand, "must be positive");
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        causes.invalid(&path.child("handSize"), hand, detail);
    }
}
