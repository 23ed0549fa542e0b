//! What the server says about itself: which groups, versions and resources it serves, how healthy it is, which version
//! it has. Values only; which of them a path means the gateway knows.
//! <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api>

pub mod aggregated;
pub mod groups;
pub mod health;
pub mod openapi;

use std::cmp::{Ordering, Reverse};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::ApiServer;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::{Key, Name};

/// The release whose API is served.
pub const VERSION: &str = "v1.36.2";

/// `/version`. What names a build of kube-apiserver is left empty.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36",
        "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    })
}

/// What tells one state of a document from another: SHA-512 in hexadecimal, as kube-apiserver's ETags are.
pub fn digest(document: &[u8]) -> String {
    data_encoding::HEXUPPER.encode(&Sha512::digest(document))
}

/// A group with its versions, the preferred one first.
pub struct Group<'a> {
    /// Empty for the core group.
    pub name: &'a str,
    pub versions: Vec<Version<'a>>,
}

pub struct Version<'a> {
    pub name: &'a str,
    pub kinds: Vec<&'a KindRef>,
}

impl Group<'_> {
    /// `apps/v1`; `v1` in the core group.
    pub fn group_version(&self, version: &str) -> String {
        if self.name.is_empty() { version.to_owned() } else { format!("{}/{version}", self.name) }
    }
}

/// All groups in the order of discovery: the built-in ones by their priority, then those of custom resources by name.
pub fn groups<'a>(kinds: impl Iterator<Item = &'a KindRef>) -> Vec<Group<'a>> {
    let (mut custom, built_in): (Vec<&KindRef>, Vec<&KindRef>) = kinds.partition(|kind| is_custom(kind));
    custom.sort_by(|a, b| {
        let versions = || compare_versions(&b.version, &a.version);
        a.group.cmp(&b.group).then_with(versions).then_with(|| a.resource.cmp(&b.resource))
    });
    let mut groups: Vec<Group<'a>> = Vec::new();
    for kind in built_in.into_iter().chain(custom) {
        let at = groups.iter().position(|group| *group.name == *kind.group).unwrap_or_else(|| {
            groups.push(Group { name: &kind.group, versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        let at = versions.iter().position(|version| *version.name == *kind.version).unwrap_or_else(|| {
            versions.push(Version { name: &kind.version, kinds: Vec::new() });
            versions.len() - 1
        });
        versions[at].kinds.push(kind);
    }
    groups
}

pub fn is_custom(kind: &KindRef) -> bool {
    kind.type_name.is_empty()
}

/// The lesser version comes later in discovery: stable ones before beta and alpha, higher before lower, then the rest.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority>
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    fn rank(version: &str) -> Option<(u8, u64, u64)> {
        let number = version.strip_prefix('v')?;
        for (stage, name) in [(1, "beta"), (0, "alpha")] {
            if let Some((major, minor)) = number.split_once(name) {
                return Some((stage, major.parse().ok()?, minor.parse().ok()?));
            }
        }
        Some((2, number.parse().ok()?, 0))
    }
    rank(a).cmp(&rank(b)).then_with(|| Reverse(a).cmp(&Reverse(b)))
}

/// The kind of what a subresource takes and gives, with its group and version where they are not the resource's.
pub fn subresource_kind(kind: &KindRef, subresource: &str) -> (Option<(&'static str, &'static str)>, String) {
    let options = |what: &str| (None, format!("{}{what}Options", kind.kind));
    match subresource {
        "scale" => (Some(("autoscaling", "v1")), "Scale".into()),
        "eviction" => (Some(("policy", "v1")), "Eviction".into()),
        "token" => (Some(("authentication.k8s.io", "v1")), "TokenRequest".into()),
        "binding" => (None, "Binding".into()),
        "attach" => options("Attach"),
        "exec" => options("Exec"),
        "portforward" => options("PortForward"),
        "proxy" => options("Proxy"),
        _ => (None, kind.kind.to_string()),
    }
}

impl ApiServer {
    /// Whether anything is served under `/apis/GROUP`.
    pub fn serves_group(&self, group: &str) -> bool {
        self.kinds().any(|kind| *kind.group == *group)
    }

    fn definition(&self, kind: &KindRef) -> Option<&Object> {
        let name = format!("{}.{}", kind.resource, kind.group);
        self.store.get(CustomResourceDefinition::kind(), &Key::cluster(name))
    }

    /// The verbs of a resource as discovery lists them. A definition that goes takes no more objects.
    fn listed_verbs(&self, kind: &KindRef) -> Vec<Name> {
        const CUSTOM: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        const GOING: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
        if !is_custom(kind) || super::aggregation::is_of(kind) {
            return kind.verbs.clone();
        }
        let going = self.definition(kind).is_some_and(Object::is_terminating);
        if going { GOING.map(Name::from).to_vec() } else { CUSTOM.map(Name::from).to_vec() }
    }

    /// The version in which objects of a kind are stored.
    fn storage_version<'a>(&'a self, kind: &'a KindRef) -> Option<(&'a str, &'a str)> {
        if is_custom(kind) {
            let versions = &self.definition(kind)?.spec::<CustomResourceDefinition>().versions;
            return versions.iter().find(|version| version.storage).map(|version| (&*kind.group, &*version.name));
        }
        let stored = self.kinds().find(|stored| stored.slot == kind.slot)?;
        kind.allows("update").then_some((&*stored.group, &*stored.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_maturity() {
        let mut versions =
            ["v1beta1", "foo1", "v1", "v11alpha2", "v10", "v2", "v3beta1", "v12alpha1", "foo10", "v11beta2"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v3beta1", "v1beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
        );
    }

    #[test]
    fn groups_come_by_priority() {
        let server = ApiServer::new();
        let groups = groups(server.kinds());
        let names: Vec<&str> = groups.iter().map(|group| group.name).take(4).collect();
        assert_eq!(names, ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]);
        let autoscaling = groups.iter().find(|group| group.name == "autoscaling").unwrap();
        let versions: Vec<&str> = autoscaling.versions.iter().map(|version| version.name).collect();
        assert_eq!(versions, ["v2", "v1"]);
    }
}
