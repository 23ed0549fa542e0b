//! IP addresses and ranges. <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-ip-address-library>

use std::fmt;
use std::net::IpAddr;

use super::Function;
use crate::apiserver::cel::value::Value;

/// A range of addresses: one of them, and how many leading bits they share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cidr {
    pub address: IpAddr,
    pub prefix_length: u8,
}

pub(super) const FUNCTIONS: &[Function] = &[
    ("ip(string) -> net.IP", |args| ip(&args[0]).map(Value::Ip)),
    ("isIP(string) -> bool", |args| Ok(ip(&args[0]).is_ok().into())),
    ("ip.isCanonical(string) -> bool", |args| {
        let ip = ip(&args[0])?;
        Ok((Value::from(ip.to_string()) == args[0]).into())
    }),
    ("net.IP.family() -> int", |args| Ok(Value::Int(if ip(&args[0])?.is_ipv4() { 4 } else { 6 }))),
    ("net.IP.isUnspecified() -> bool", |args| Ok(ip(&args[0])?.is_unspecified().into())),
    ("net.IP.isLoopback() -> bool", |args| Ok(ip(&args[0])?.is_loopback().into())),
    ("net.IP.isGlobalUnicast() -> bool", |args| Ok(is_global_unicast(ip(&args[0])?).into())),
    ("net.IP.isLinkLocalMulticast() -> bool", |args| {
        Ok(match ip(&args[0])? {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
        }
        .into())
    }),
    ("net.IP.isLinkLocalUnicast() -> bool", |args| Ok(is_link_local_unicast(ip(&args[0])?).into())),
    ("cidr(string) -> net.CIDR", |args| cidr(&args[0]).map(Value::Cidr)),
    ("isCIDR(string) -> bool", |args| Ok(cidr(&args[0]).is_ok().into())),
    ("net.CIDR.containsIP(string) -> bool", |args| Ok(cidr(&args[0])?.contains(ip(&args[1])?).into())),
    ("net.CIDR.containsIP(net.IP) -> bool", |args| Ok(cidr(&args[0])?.contains(ip(&args[1])?).into())),
    ("net.CIDR.containsCIDR(string) -> bool", contains_cidr),
    ("net.CIDR.containsCIDR(net.CIDR) -> bool", contains_cidr),
    ("net.CIDR.ip() -> net.IP", |args| Ok(Value::Ip(cidr(&args[0])?.address))),
    ("net.CIDR.masked() -> net.CIDR", |args| Ok(Value::Cidr(cidr(&args[0])?.masked()))),
    ("net.CIDR.prefixLength() -> int", |args| Ok(Value::Int(cidr(&args[0])?.prefix_length.into()))),
];

fn ip(value: &Value) -> Result<IpAddr, String> {
    match value {
        Value::Ip(ip) => Ok(*ip),
        Value::String(text) => parse_ip(text),
        _ => Err("no such overload".to_owned()),
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!("IP address \"{text}\" with zone value is not allowed"));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address \"{text}\" is not allowed"))
        }
        Ok(ip) => Ok(ip),
        Err(_) => Err(format!(
            "IP Address \"{text}\" parse error during conversion from string: ParseAddr(\"{text}\"): unable to parse IP"
        )),
    }
}

fn cidr(value: &Value) -> Result<Cidr, String> {
    match value {
        Value::Cidr(cidr) => Ok(*cidr),
        Value::String(text) => {
            let refused = || {
                format!(
                    "network address parse error during conversion from string: netip.ParsePrefix(\"{text}\"): invalid CIDR address"
                )
            };
            let (address, length) = text.split_once('/').ok_or_else(refused)?;
            let address = parse_ip(address).map_err(|_| refused())?;
            let plain = length == "0" || !length.starts_with(['0', '+']);
            let prefix_length =
                length.parse().ok().filter(|length| plain && *length <= bits(address)).ok_or_else(refused)?;
            Ok(Cidr { address, prefix_length })
        }
        _ => Err("no such overload".to_owned()),
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

impl Cidr {
    pub fn masked(self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_length)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        };
        Cidr { address, ..self }
    }

    fn contains(self, ip: IpAddr) -> bool {
        self.address.is_ipv4() == ip.is_ipv4() && Cidr { address: ip, ..self }.masked() == self.masked()
    }
}

fn contains_cidr(args: &[Value]) -> Result<Value, String> {
    let (outer, inner) = (cidr(&args[0])?, cidr(&args[1])?);
    Ok((outer.prefix_length <= inner.prefix_length && outer.contains(inner.address)).into())
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_length)
    }
}
