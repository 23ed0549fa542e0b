//! Addresses that follow from a machine's number: its own, and those of the pods on it.
//! <https://kubernetes.io/docs/concepts/cluster-administration/networking/>

use crate::api::Name;

/// `node-7` is machine 7. A name without a number gets one that follows from its letters, behind all numbered ones.
fn number(machine: &str) -> u32 {
    let digits = machine.len() - machine.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    machine[machine.len() - digits..].parse().ok().filter(|number| *number < 16_000).unwrap_or_else(|| {
        let mixed = machine.bytes().fold(17_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        16_000 + mixed % 300
    })
}

/// `10.0.0.11` for node-1: the control plane has the first ten.
pub fn machine(name: &str) -> Name {
    let number = number(name) + 10;
    Name::from(format!("10.0.{}.{}", number >> 8, number & 255))
}

/// The first three parts of a machine's pod addresses: `10.244.1` for node-1, and so on through 10.244.0.0/14, then
/// through the shared range 100.64.0.0/10.
fn range(name: &str) -> (u32, u32, u32) {
    match number(name) {
        number if number < 3072 => (10, 244 + (number >> 8), number & 255),
        number => (100, 64 + (number - 3072 >> 8), number - 3072 & 255),
    }
}

/// `10.244.1.0/24`: `spec.podCIDR` of a Node.
pub fn pod_range(name: &str) -> String {
    let (a, b, c) = range(name);
    format!("{a}.{b}.{c}.0/24")
}

/// The address of a pod on a machine.
pub fn pod(name: &str, host_number: u8) -> Name {
    let (a, b, c) = range(name);
    Name::from(format!("{a}.{b}.{c}.{host_number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_range_of_its_own() {
        assert_eq!(&*machine("node-1"), "10.0.0.11");
        assert_eq!(&*pod("node-1", 2), "10.244.1.2");
        assert_eq!(&*pod("node-256", 2), "10.245.0.2");
        assert_eq!(pod_range("node-9999"), "100.91.15.0/24");
        assert!(pod_range("worker").starts_with("100."));
    }
}
