//! The machine as a Node object, and its heartbeats.
//! <https://kubernetes.io/docs/concepts/architecture/nodes/>

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time as MetaTime};

use super::Turn;
use super::eviction::{Pressures, Signal};
use crate::api::Name;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::clock::Time;
use crate::network::addresses;
use crate::runtime::Runtime;
use crate::runtime::images::Image;
use crate::trace::Actor;
use crate::world::World;

/// A status in which nothing has changed is posted this often (`nodeStatusReportFrequency`).
pub const STATUS_PERIOD: Duration = Duration::from_secs(300);

/// So many images are told of (`nodeStatusMaxImages`).
const IMAGES_MAX: usize = 50;

const LEASE_NAMESPACE: &str = "kube-node-lease";

/// Type, reason and message of each condition when all is well.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// The same conditions when the machine is short of something.
const PRESSED: [(&str, Signal, &str, &str); 3] = [
    ("MemoryPressure", Signal::Memory, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ("DiskPressure", Signal::Disk, "KubeletHasDiskPressure", "kubelet has disk pressure"),
    ("PIDPressure", Signal::Pids, "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
];

/// Creates the Node, or, if there is one, says that the kubelet is back; its status then. `None` if the apiserver did not
/// answer.
pub fn register(node: &Name, actor: &Actor, pressures: Pressures, world: &mut World) -> Option<NodeStatus> {
    let mut object = Object::new::<Node>("", node, NodeSpec::default());
    let labels = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", node),
        ("kubernetes.io/os", "linux"),
    ];
    object.metadata_mut().labels =
        Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
    let range = addresses::pod_range(node);
    let spec = object.spec_mut::<Node>();
    spec.pod_cidr = Some(range.clone());
    spec.pod_cidrs = Some(vec![range]);
    match world.request(Request::create(actor, object).because("registers its node")) {
        Ok(_) => {}
        Err(status) if status.reason == "AlreadyExists" => {}
        Err(_) => return None,
    }
    write_status(node, actor, Vec::new(), pressures, "reports on its node", world)
}

pub fn post_status(pressures: Pressures, turn: &mut Turn<'_>) {
    let images = images(turn.runtime);
    // A report that fails is lost; the next one is due soon.
    write_status(turn.node, turn.actor, images, pressures, "reports on its node again", turn.world);
}

/// The largest images first, each by its digest and its tag.
fn images(runtime: &Runtime) -> Vec<ContainerImage> {
    let mut images: Vec<_> = runtime.images().collect();
    images.sort_by_key(|(_, image)| Reverse(image.size_bytes));
    let image = |(name, image): (&Name, &Image)| ContainerImage {
        names: Some(vec![image.id.to_string(), name.to_string()]),
        size_bytes: i64::try_from(image.size_bytes).ok(),
    };
    images.into_iter().take(IMAGES_MAX).map(image).collect()
}

fn write_status(
    node: &Name,
    actor: &Actor,
    images: Vec<ContainerImage>,
    pressures: Pressures,
    reason: &'static str,
    world: &mut World,
) -> Option<NodeStatus> {
    let now = world.now.to_meta();
    let mut object = world.request(Request::get::<Node>(actor, "", node)).ok()?.object()?;
    let status = object.status_mut::<Node>();
    describe(node, status);
    if !images.is_empty() {
        status.images = Some(images);
    }
    for (type_, value, reason, message) in CONDITIONS {
        let short = PRESSED.iter().find(|(known, signal, ..)| *known == type_ && pressures.has(*signal));
        let (value, reason, message) =
            short.map_or((value, reason, message), |(_, _, reason, message)| ("True", *reason, *message));
        set_condition(status, type_, value, reason, message, &now);
    }
    let answer = world.request(Request::update_status(actor, object).because(reason)).ok()?;
    Some(answer.object()?.status::<Node>().clone())
}

/// What every machine has, and leaves to pods.
pub fn resources() -> BTreeMap<String, Quantity> {
    let resources = [
        ("cpu", "8"),
        ("ephemeral-storage", "100Gi"),
        ("hugepages-1Gi", "0"),
        ("hugepages-2Mi", "0"),
        ("memory", "32Gi"),
        ("pods", "110"),
    ];
    resources.into_iter().map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect()
}

/// What does not change while a machine runs.
fn describe(node: &Name, status: &mut NodeStatus) {
    let address = |type_: &str, address: &str| NodeAddress { type_: type_.into(), address: address.into() };
    let ip = addresses::machine(node);
    status.addresses = Some(vec![address("InternalIP", &ip), address("Hostname", node)]);
    let amounts = resources();
    status.capacity.get_or_insert_with(|| amounts.clone());
    status.allocatable.get_or_insert(amounts);
    status.daemon_endpoints = Some(NodeDaemonEndpoints { kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }) });
    status.node_info = Some(NodeSystemInfo {
        architecture: "amd64".into(),
        boot_id: format!("boot-{node}"),
        container_runtime_version: "containerd://2.1.0".into(),
        kernel_version: "6.1.0-13".into(),
        kube_proxy_version: String::new(),
        kubelet_version: "v1.36.2".into(),
        machine_id: format!("machine-{node}"),
        operating_system: "linux".into(),
        os_image: "Debian GNU/Linux 12".into(),
        swap: None,
        system_uuid: format!("system-{node}"),
    });
}

fn set_condition(status: &mut NodeStatus, type_: &str, value: &str, reason: &str, message: &str, now: &MetaTime) {
    let conditions = status.conditions.get_or_insert_default();
    let at = conditions.iter().position(|condition| condition.type_ == type_);
    let since = at
        .map(|at| &conditions[at])
        .filter(|condition| condition.status == value)
        .and_then(|condition| condition.last_transition_time.clone());
    let condition = NodeCondition {
        type_: type_.into(),
        status: value.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
    };
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// The heartbeat.
/// <https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats>
pub fn renew_lease(pressures: Pressures, turn: &mut Turn<'_>) {
    let Turn { node, actor, runtime, world, .. } = turn;
    let now = world.now.to_micro_time();
    let known = world.request(Request::get::<Lease>(actor, LEASE_NAMESPACE, node)).map(|answer| answer.object());
    // A heartbeat that fails is lost; the next one is due soon.
    let _ = match known {
        Ok(Some(mut lease)) => {
            let last = lease.spec_mut::<Lease>().renew_time.replace(now);
            let silence = last.map_or(Duration::ZERO, |last| world.now.since(Time::from_timestamp(last.0)));
            let renewed = world.request(Request::update(actor, lease).because("heartbeat"));
            // The Node may have been called silent meanwhile, which only its kubelet takes back.
            if renewed.is_ok() && silence > 2 * world.settings.lease_renew {
                write_status(node, actor, images(runtime), pressures, "reports on its node again", world);
            }
            renewed
        }
        Err(status) if status.is_not_found() => {
            let spec = LeaseSpec {
                holder_identity: Some(node.to_string()),
                lease_duration_seconds: Some(40),
                renew_time: Some(now),
                ..LeaseSpec::default()
            };
            let mut lease = Object::new::<Lease>(LEASE_NAMESPACE, node, spec);
            if let Ok(Some(owner)) = world.request(Request::get::<Node>(actor, "", node)).map(|answer| answer.object())
            {
                let reference =
                    OwnerReference { controller: None, block_owner_deletion: None, ..owner.controller_reference() };
                lease.metadata_mut().owner_references = Some(vec![reference]);
            }
            world.request(Request::create(actor, lease).because("heartbeat"))
        }
        Ok(None) | Err(_) => return,
    };
}
