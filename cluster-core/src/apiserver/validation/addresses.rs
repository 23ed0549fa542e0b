//! IP addresses and networks as texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::{Causes, Path};

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub address: IpAddr,
    pub prefix_length: u8,
}

impl Cidr {
    /// Reads `10.0.0.0/8`, `2001:db8::/64`.
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, length) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let length_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_length = length.parse().ok().filter(|length| *length <= length_max)?;
        Some(Cidr { address, prefix_length })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let same_bits = |a: u128, b: u128, width: u32| {
            let rest = width - u32::from(self.prefix_length);
            rest == 128 || a >> rest == b >> rest
        };
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same_bits(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same_bits(a.into(), b.into(), 128),
            _ => false,
        }
    }
}

/// Whether `text` is an IP address; says so if not.
pub fn ip(causes: &mut Causes, path: &Path, text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    if address.is_none() {
        causes.invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    address
}

/// An address of an endpoint: none with a meaning of its own.
pub fn endpoint_ip(causes: &mut Causes, path: &Path, address: IpAddr, text: &str) {
    if address.is_unspecified() {
        causes.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        causes.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (unicast, multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), is_local_multicast_v4(address)),
        IpAddr::V6(address) => (address.is_unicast_link_local(), is_local_multicast_v6(address)),
    };
    if unicast {
        causes.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        causes.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

fn is_local_multicast_v4(address: Ipv4Addr) -> bool {
    address.octets()[..3] == [224, 0, 0]
}

fn is_local_multicast_v6(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xff0f == 0xff02
}

/// Whether `text` is a network; says so if not.
pub fn cidr(causes: &mut Causes, path: &Path, text: &str) -> Option<Cidr> {
    let network = Cidr::parse(text);
    if network.is_none() {
        causes.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
    network
}

/// One of each family.
pub fn is_dual_stack(networks: &[Option<Cidr>]) -> bool {
    let is = |v4: bool| networks.iter().flatten().any(|network| network.address.is_ipv4() == v4);
    is(true) && is(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses() {
        let network = Cidr::parse("10.96.0.0/16").unwrap();
        assert!(network.contains("10.96.255.1".parse().unwrap()));
        assert!(!network.contains("10.97.0.1".parse().unwrap()));
        assert!(Cidr::parse("::/0").unwrap().contains("2001:db8::1".parse().unwrap()));
        assert_eq!(Cidr::parse("10.0.0.0/33"), None);
        assert_eq!(Cidr::parse("10.0.0.0"), None);
    }

    #[test]
    fn special_addresses_are_no_endpoints() {
        let told = |text: &str| {
            let mut causes = Causes::new();
            endpoint_ip(&mut causes, &Path::new("ip"), text.parse().unwrap(), text);
            causes.len()
        };
        let special = ["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.5", "::1", "fe80::1", "ff02::1"];
        assert!(special.iter().all(|text| told(text) == 1));
        assert_eq!(told("10.1.2.3") + told("2001:db8::1"), 0);
    }
}
