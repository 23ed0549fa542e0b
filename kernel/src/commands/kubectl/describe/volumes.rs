//! Volumes: where their content comes from, in pods and in persistent volumes.

use serde_json::Value;

use super::container::INNER;
use super::page::shortened;
use super::{Page, fields, is_true, list, shown, storage, text};

/// How a detail of a source is shown.
#[derive(Clone, Copy)]
enum As {
    Text,
    /// A number, 0 if it is not there.
    Number,
    /// `true` or `false`.
    Switch,
    /// `[a b]`, even if there is none.
    List,
    /// `a, b`
    Joined,
    /// What stands for it if it is not there.
    Or(&'static str),
}

/// A sort of volume: its field, what it is, and what is told of it.
struct Source {
    field: &'static str,
    about: &'static str,
    details: &'static [(&'static str, &'static str, As)],
}

const fn source(
    field: &'static str,
    about: &'static str,
    details: &'static [(&'static str, &'static str, As)],
) -> Source {
    Source { field, about, details }
}

use As::{Joined, List, Number, Or, Switch, Text};

const ATTRIBUTE_LENGTH_MAX: usize = 140;

/// In the order in which they are looked for.
const SOURCES: &[Source] = &[
    source(
        "hostPath",
        "HostPath (bare host directory volume)",
        &[("Path", "/path", Text), ("HostPathType", "/type", Or("<none>"))],
    ),
    source(
        "emptyDir",
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        &[("Medium", "/medium", Text), ("SizeLimit", "/sizeLimit", Or("<unset>"))],
    ),
    source(
        "gcePersistentDisk",
        "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
        &[
            ("PDName", "/pdName", Text),
            ("FSType", "/fsType", Text),
            ("Partition", "/partition", Number),
            ("ReadOnly", "/readOnly", Switch),
        ],
    ),
    source(
        "awsElasticBlockStore",
        "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
        &[
            ("VolumeID", "/volumeID", Text),
            ("FSType", "/fsType", Text),
            ("Partition", "/partition", Number),
            ("ReadOnly", "/readOnly", Switch),
        ],
    ),
    source(
        "gitRepo",
        "GitRepo (a volume that is pulled from git when the pod is created)",
        &[("Repository", "/repository", Text), ("Revision", "/revision", Text)],
    ),
    source(
        "secret",
        "Secret (a volume populated by a Secret)",
        &[("SecretName", "/secretName", Text), ("Optional", "/optional", Switch)],
    ),
    source(
        "configMap",
        "ConfigMap (a volume populated by a ConfigMap)",
        &[("Name", "/name", Text), ("Optional", "/optional", Switch)],
    ),
    source(
        "nfs",
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        &[("Server", "/server", Text), ("Path", "/path", Text), ("ReadOnly", "/readOnly", Switch)],
    ),
    source(
        "iscsi",
        "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
        &[
            ("TargetPortal", "/targetPortal", Text),
            ("IQN", "/iqn", Text),
            ("Lun", "/lun", Number),
            ("ISCSIInterface", "/iscsiInterface", Text),
            ("FSType", "/fsType", Text),
            ("ReadOnly", "/readOnly", Switch),
            ("Portals", "/portals", List),
            ("DiscoveryCHAPAuth", "/chapAuthDiscovery", Switch),
            ("SessionCHAPAuth", "/chapAuthSession", Switch),
            ("SecretRef", "/secretRef", Or("nil")),
            ("InitiatorName", "/initiatorName", Or("<none>")),
        ],
    ),
    source(
        "persistentVolumeClaim",
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        &[("ClaimName", "/claimName", Text), ("ReadOnly", "/readOnly", Switch)],
    ),
    source(
        "ephemeral",
        "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)",
        &[],
    ),
    source("downwardAPI", "DownwardAPI (a volume populated by information about the pod)", &[]),
    source(
        "azureDisk",
        "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
        &[
            ("DiskName", "/diskName", Text),
            ("DiskURI", "/diskURI", Text),
            ("Kind", "/kind", Text),
            ("FSType", "/fsType", Text),
            ("CachingMode", "/cachingMode", Text),
            ("ReadOnly", "/readOnly", Switch),
        ],
    ),
    source(
        "cephfs",
        "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
        &[
            ("Monitors", "/monitors", List),
            ("Path", "/path", Text),
            ("User", "/user", Text),
            ("SecretFile", "/secretFile", Text),
            ("SecretRef", "/secretRef", Or("nil")),
            ("ReadOnly", "/readOnly", Switch),
        ],
    ),
    source(
        "fc",
        "FC (a Fibre Channel disk)",
        &[
            ("TargetWWNs", "/targetWWNs", Joined),
            ("LUN", "/lun", Or("<none>")),
            ("FSType", "/fsType", Text),
            ("ReadOnly", "/readOnly", Switch),
        ],
    ),
    source(
        "azureFile",
        "AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
        &[("SecretName", "/secretName", Text), ("ShareName", "/shareName", Text), ("ReadOnly", "/readOnly", Switch)],
    ),
    source("projected", "Projected (a volume that contains injected data from multiple sources)", &[]),
    source(
        "csi",
        "CSI (a Container Storage Interface (CSI) volume source)",
        &[("Driver", "/driver", Text), ("FSType", "/fsType", Text), ("ReadOnly", "/readOnly", Switch)],
    ),
    source(
        "image",
        "Image (a container image or OCI artifact)",
        &[("Reference", "/reference", Text), ("PullPolicy", "/pullPolicy", Text)],
    ),
    source("local", "LocalVolume (a persistent volume backed by local storage on a node)", &[("Path", "/path", Text)]),
];

/// `Volumes:` of a pod or of a template, whose names stand one space further in.
pub fn volumes(page: &mut Page, in_template: bool, volumes: &[Value]) {
    let (level, space) = if in_template { (1, " ") } else { (0, "") };
    if volumes.is_empty() {
        page.field(level, "Volumes", "<none>");
        return;
    }
    page.line(level, "Volumes:");
    for volume in volumes {
        page.line(1, format!("{space}{}:", text(volume, "/name")));
        content(page, volume);
    }
}

/// What a volume of a pod or a persistent volume holds.
pub fn content(page: &mut Page, volume: &Value) {
    let Some(known) = SOURCES.iter().find(|known| volume.get(known.field).is_some()) else {
        page.line(1, "<unknown>");
        return;
    };
    let source = &volume[known.field];
    page.field(INNER, "Type", known.about);
    for (name, path, shape) in known.details {
        page.field(INNER, name, detail(source, path, *shape));
        if known.field == "csi" && *name == "FSType" && source.get("volumeHandle").is_some() {
            page.field(INNER, "VolumeHandle", text(source, "/volumeHandle"));
        }
    }
    match known.field {
        "projected" => list(source, "/sources").iter().for_each(|part| projected(page, part)),
        "downwardAPI" => downward(page, list(source, "/items")),
        "csi" => attributes(page, source),
        "ephemeral" => {
            if let Some(template) = source.get("volumeClaimTemplate") {
                storage::claim_template(page, INNER, template);
            }
        }
        _ => {}
    }
}

fn detail(source: &Value, path: &str, shape: As) -> String {
    match shape {
        Text => text(source, path).to_owned(),
        Number => shown(source, path, "0"),
        Switch => is_true(source, path).to_string(),
        List => shown(source, path, "[]"),
        Joined => super::joined(source, path, ", "),
        Or(otherwise) => match source.pointer(path) {
            // A reference to a secret as Go prints it.
            Some(reference @ Value::Object(_)) => {
                format!("&LocalObjectReference{{Name:{},}}", text(reference, "/name"))
            }
            _ => shown(source, path, otherwise),
        },
    }
}

/// One source of a projected volume.
fn projected(page: &mut Page, part: &Value) {
    if let Some(secret) = part.get("secret") {
        page.field(INNER, "SecretName", text(secret, "/name"));
        page.field(INNER, "Optional", is_true(secret, "/optional"));
    } else if part.get("downwardAPI").is_some() {
        page.field(INNER, "DownwardAPI", true);
    } else if let Some(map) = part.get("configMap") {
        page.field(INNER, "ConfigMapName", text(map, "/name"));
        page.field(INNER, "Optional", is_true(map, "/optional"));
    } else if let Some(token) = part.get("serviceAccountToken") {
        page.field(INNER, "TokenExpirationSeconds", shown(token, "/expirationSeconds", "0"));
    }
}

/// Which fields become which files.
fn downward(page: &mut Page, items: &[Value]) {
    page.line(INNER, "Items:");
    for item in items {
        for path in ["/fieldRef/fieldPath", "/resourceFieldRef/resource"] {
            if !text(item, path).is_empty() {
                page.line(INNER + 1, format!("{} -> {}", text(item, path), text(item, "/path")));
            }
        }
    }
}

/// What a driver is told. kubectl indents each of them once more.
fn attributes(page: &mut Page, source: &Value) {
    let indent = "  ".repeat(INNER);
    let line = |(key, value): (&String, &Value)| {
        let line = format!("{key}={}", value.as_str().unwrap_or_default());
        format!("{indent}{}", shortened(&line, ATTRIBUTE_LENGTH_MAX))
    };
    page.lines(INNER, "VolumeAttributes", fields(source, "/volumeAttributes").map(line));
}
