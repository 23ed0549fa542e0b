//! Who has which address. Machines are in 10.0.0.0/16, each with 254 addresses for its pods from 10.244.0.0 on, and
//! Services in 10.96.0.0/16; the control plane answers at 10.0.0.1, load balancers in 198.18.0.0/15.
//! <https://kubernetes.io/docs/concepts/cluster-administration/networking/>

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Endpoints;

use crate::api::Name;
use crate::api::object::Object;

/// Where the apiserver listens.
pub const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Where cluster DNS listens, as the Service `kube-system/kube-dns`.
pub const CLUSTER_DNS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// Where the ingress controller is reached, by all who reach the nodes.
pub const INGRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 200);
/// The addresses of load balancers that Services may ask for (`loadBalancerIP`). Other load balancers are in 198.18.0.0/16,
/// with the last two numbers of their Service's own address.
pub const BALANCERS_TO_ASK_FOR: &str = "198.19.0.0/16";
/// A node with this label gets nothing from load balancers.
pub const EXCLUDED_FROM_BALANCERS_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// All pods, as kube-proxy is told (`--cluster-cidr`).
pub const CLUSTER_CIDR: &str = "10.244.0.0/16";

const MACHINES: u32 = u32::from_be_bytes([10, 0, 0, 10]);
const PODS: u32 = u32::from_be_bytes([10, 244, 0, 0]);
/// Ranges from 10.244.0.0 up to 10.255.255.255; those of more machines follow in 100.64.0.0/10.
const PODS_COUNT: u32 = 12 << 8;
const MORE_PODS: u32 = u32::from_be_bytes([100, 64, 0, 0]);
/// Numbers that machines named `node-NUMBER` can have; other names are spread over the numbers above.
const NUMBERED: u32 = 1 << 14;
const OTHERS: u32 = 3 << 10;

/// The address of a machine: `10.0.0.11` for node-1.
pub fn machine(name: &str) -> Name {
    machine_address(name).to_string().into()
}

pub fn machine_address(name: &str) -> Ipv4Addr {
    Ipv4Addr::from(MACHINES + number(name))
}

/// An address of a machine's range, `10.244.1.2` for host number 2 on node-1.
pub fn pod(machine: &str, host_number: u8) -> Name {
    Ipv4Addr::from(pod_base(machine) + u32::from(host_number)).to_string().into()
}

/// The range of a machine's pods (`spec.podCIDR`): `10.244.1.0/24` for node-1.
pub fn pod_range(machine: &str) -> String {
    format!("{}/24", Ipv4Addr::from(pod_base(machine)))
}

/// True if an address is in the range of a machine's pods.
pub fn is_pod_of(address: Ipv4Addr, machine: &str) -> bool {
    u32::from(address) & !0xff == pod_base(machine)
}

/// The address of the load balancer of a Service.
pub fn balancer(cluster_ip: Ipv4Addr) -> Ipv4Addr {
    let [_, _, third, fourth] = cluster_ip.octets();
    Ipv4Addr::new(198, 18, third, fourth)
}

pub fn may_be_asked_for(address: Ipv4Addr) -> bool {
    address.octets()[..2] == [198, 19]
}

fn pod_base(machine: &str) -> u32 {
    match number(machine) {
        number if number < PODS_COUNT => PODS + (number << 8),
        number => MORE_PODS + ((number - PODS_COUNT) << 8),
    }
}

fn number(machine: &str) -> u32 {
    let numbered = machine.strip_prefix("node-").and_then(|digits| digits.parse().ok());
    numbered.filter(|number| (1..NUMBERED).contains(number)).unwrap_or_else(|| NUMBERED + spread(machine) % OTHERS)
}

/// FNV-1a.
fn spread(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A ready address of a Service, with its port of this name.
pub fn ready_endpoint(endpoints: &Object, port: &str) -> Option<(Ipv4Addr, u16)> {
    let mut subsets = endpoints.spec::<Endpoints>().subsets.iter().flatten();
    subsets.find_map(|subset| {
        let ip = subset.addresses.as_ref()?.first()?.ip.parse().ok()?;
        let named = subset.ports.iter().flatten().find(|known| known.name.as_deref().unwrap_or_default() == port)?;
        Some((ip, u16::try_from(named.port).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_on_the_machine_of_its_range() {
        assert_eq!(&*machine("node-1"), "10.0.0.11");
        assert_eq!(&*pod("node-1", 2), "10.244.1.2");
        assert_eq!(pod_range("node-300"), "10.245.44.0/24");
        assert_eq!(&*pod("node-10000", 9), "100.91.16.9");
        assert!(is_pod_of(Ipv4Addr::new(10, 244, 1, 2), "node-1"));
        assert!(!is_pod_of(Ipv4Addr::new(10, 244, 1, 2), "node-2"));
        assert_ne!(machine("gpu-a"), machine("gpu-b"));
    }
}
