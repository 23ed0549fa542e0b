//! Priority classes, the fair sharing of the server, and which server answers for which group.
//! <https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#defaults>

use std::collections::BTreeSet;

use k8s_openapi::api::flowcontrol::v1 as flowcontrol;
use k8s_openapi::api::flowcontrol::v1::{
    ExemptPriorityLevelConfiguration, FlowDistinguisherMethod, FlowSchema, FlowSchemaSpec, GroupSubject, LimitResponse,
    LimitedPriorityLevelConfiguration, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration,
    PriorityLevelConfigurationReference, PriorityLevelConfigurationSpec, QueuingConfiguration, ResourcePolicyRule,
    ServiceAccountSubject, UserSubject,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceCondition, APIServiceSpec};

use super::lines;
use super::roles::{rule, subject};
use crate::api::kinds;
use crate::api::object::Object;

pub fn all() -> impl Iterator<Item = Object> {
    priority_classes().chain(priority_levels()).chain(flow_schemas()).chain(api_services())
}

fn priority_classes() -> impl Iterator<Item = Object> {
    const CLASSES: &[(&str, i32, &str)] = &[
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ];
    CLASSES.iter().map(|(name, value, description)| {
        let class = PriorityClass {
            value: Some(*value),
            description: Some((*description).into()),
            preemption_policy: Some("PreemptLowerPriority".into()),
            global_default: None,
            metadata: ObjectMeta::default(),
        };
        Object::new::<PriorityClass>("", name, class)
    })
}

/// Name, shares, percent that may be lent; for queues their number, length and hand size.
type Level = (&'static str, i32, i32, Option<(i32, i32, i32)>);

fn priority_levels() -> impl Iterator<Item = Object> {
    const LEVELS: &[Level] = &[
        ("catch-all", 5, 0, None),
        ("exempt", 0, 0, None),
        ("global-default", 20, 50, Some((128, 50, 6))),
        ("leader-election", 10, 0, Some((16, 50, 4))),
        ("node-high", 40, 25, Some((64, 50, 6))),
        ("system", 30, 33, Some((64, 50, 6))),
        ("workload-high", 40, 50, Some((128, 50, 6))),
        ("workload-low", 100, 90, Some((128, 50, 6))),
    ];
    LEVELS.iter().map(|(name, shares, lendable, queuing)| {
        let (shares, lendable) = (Some(*shares), Some(*lendable));
        let queuing = queuing.map(|(queues, length, hand)| QueuingConfiguration {
            queues: Some(queues),
            queue_length_limit: Some(length),
            hand_size: Some(hand),
        });
        let spec = match *name {
            "exempt" => PriorityLevelConfigurationSpec {
                type_: "Exempt".into(),
                exempt: Some(ExemptPriorityLevelConfiguration {
                    nominal_concurrency_shares: shares,
                    lendable_percent: lendable,
                }),
                limited: None,
            },
            _ => PriorityLevelConfigurationSpec {
                type_: "Limited".into(),
                limited: Some(LimitedPriorityLevelConfiguration {
                    nominal_concurrency_shares: shares,
                    lendable_percent: lendable,
                    limit_response: Some(LimitResponse {
                        type_: if queuing.is_some() { "Queue" } else { "Reject" }.into(),
                        queuing,
                    }),
                    borrowing_limit_percent: None,
                }),
                exempt: None,
            },
        };
        let mut level = Object::new::<PriorityLevelConfiguration>("", name, spec);
        level.metadata_mut().annotations = Some([kept_up_to_date()].into());
        level
    })
}

fn kept_up_to_date() -> (String, String) {
    ("apf.kubernetes.io/autoupdate-spec".into(), "true".into())
}

fn flow_schemas() -> impl Iterator<Item = Object> {
    let mut lines = lines(include_str!("flow_schemas.txt")).peekable();
    std::iter::from_fn(move || {
        let head: Vec<&str> = lines.next()?.split(' ').collect();
        let mut rules = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            rules.push(line.trim_start());
        }
        Some((head, rules))
    })
    .filter_map(|(head, rules)| {
        let [name, precedence, level, distinguisher, subjects @ ..] = head.as_slice() else { return None };
        let subjects = subjects.iter().map(|word| flow_subject(word)).collect();
        let mut policy = PolicyRulesWithSubjects { subjects, ..PolicyRulesWithSubjects::default() };
        rules.into_iter().for_each(|line| add_flow_rule(line, &mut policy));
        let spec = FlowSchemaSpec {
            matching_precedence: precedence.parse().ok(),
            priority_level_configuration: PriorityLevelConfigurationReference { name: (*level).into() },
            distinguisher_method: (*distinguisher != "-")
                .then(|| FlowDistinguisherMethod { type_: (*distinguisher).into() }),
            rules: Some(vec![policy]),
        };
        let mut schema = Object::new::<FlowSchema>("", name, spec);
        schema.metadata_mut().annotations = Some([kept_up_to_date()].into());
        Some(schema)
    })
}

fn add_flow_rule(line: &str, policy: &mut PolicyRulesWithSubjects) {
    if line == "*" {
        add_flow_rule("path * *", policy);
        return add_flow_rule("* * * cluster", policy);
    }
    let Some(rule) = rule(line) else { return };
    if let Some(paths) = rule.non_resource_urls {
        let rule = NonResourcePolicyRule { non_resource_urls: paths, verbs: rule.verbs };
        policy.non_resource_rules.get_or_insert_default().push(rule);
    } else {
        policy.resource_rules.get_or_insert_default().push(ResourcePolicyRule {
            api_groups: rule.api_groups.unwrap_or_default(),
            resources: rule.resources.unwrap_or_default(),
            verbs: rule.verbs,
            cluster_scope: line.ends_with(" cluster").then_some(true),
            namespaces: Some(vec!["*".into()]),
        });
    }
}

fn flow_subject(word: &str) -> flowcontrol::Subject {
    let subject = subject(word);
    let mut flow = flowcontrol::Subject { kind: subject.kind, ..flowcontrol::Subject::default() };
    match (flow.kind.as_str(), subject.namespace) {
        ("User", _) => flow.user = Some(UserSubject { name: subject.name }),
        (_, Some(namespace)) => {
            flow.service_account = Some(ServiceAccountSubject { name: subject.name, namespace });
        }
        _ => flow.group = Some(GroupSubject { name: subject.name }),
    }
    flow
}

fn api_services() -> impl Iterator<Item = Object> {
    // The aggregator, which reads these objects, is not asked for by one.
    let mut seen = BTreeSet::from([("apiregistration.k8s.io", "v1")]);
    let versions = kinds::built_in().iter().map(|kind| (&*kind.group, &*kind.version));
    versions.filter(move |version| seen.insert(*version)).map(|(group, version)| {
        let spec = APIServiceSpec {
            group: (!group.is_empty()).then(|| group.to_owned()),
            version: Some(version.to_owned()),
            group_priority_minimum: group_priority(group),
            version_priority: match (group, version) {
                ("", _) => 1,
                ("autoscaling", "v2") => 30,
                ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
                _ => 15,
            },
            ..APIServiceSpec::default()
        };
        let mut service = Object::new::<APIService>("", &format!("{version}.{group}"), spec);
        let label = ("kube-aggregator.kubernetes.io/automanaged".to_owned(), "onstart".to_owned());
        service.metadata_mut().labels = Some([label].into());
        service.status_mut::<APIService>().conditions = Some(vec![APIServiceCondition {
            type_: "Available".into(),
            status: "True".into(),
            reason: Some("Local".into()),
            message: Some("Local APIServices are always available".into()),
            last_transition_time: None,
        }]);
        service
    })
}

/// Where a group stands among others in discovery.
fn group_priority(group: &str) -> i32 {
    const GROUPS: &[(&str, i32)] = &[
        ("", 18000),
        ("apps", 17800),
        ("events.k8s.io", 17750),
        ("authentication.k8s.io", 17700),
        ("authorization.k8s.io", 17600),
        ("autoscaling", 17500),
        ("batch", 17400),
        ("certificates.k8s.io", 17300),
        ("networking.k8s.io", 17200),
        ("policy", 17100),
        ("rbac.authorization.k8s.io", 17000),
        ("storage.k8s.io", 16800),
        ("apiextensions.k8s.io", 16700),
        ("admissionregistration.k8s.io", 16700),
        ("scheduling.k8s.io", 16600),
        ("coordination.k8s.io", 16500),
        ("node.k8s.io", 16300),
        ("discovery.k8s.io", 16200),
        ("resource.k8s.io", 16200),
        ("flowcontrol.apiserver.k8s.io", 16100),
    ];
    GROUPS.iter().find(|(known, _)| *known == group).map_or(18000, |(_, priority)| *priority)
}
