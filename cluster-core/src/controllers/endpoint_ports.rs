//! The order of the ports of an EndpointSlice: by the MD5 of what each of them is printed as in Go. The hash is no secret's,
//! it is the order that clusters have.
//! <https://pkg.go.dev/k8s.io/endpointslice/util#NewPortMapKey>

use std::fmt::Display;

use k8s_openapi::api::discovery::v1::EndpointPort;
use md5::{Digest as _, Md5};

pub fn sort(ports: &mut [EndpointPort]) {
    ports.sort_by_cached_key(|port| Md5::digest(printed(port)));
}

/// As `%#v` of go-spew prints a port.
fn printed(port: &EndpointPort) -> String {
    fn field<T: Display>(type_: &str, value: Option<&T>) -> String {
        value.map_or_else(|| format!("(*{type_})<nil>"), |value| format!("(*{type_}){value}"))
    }
    format!(
        "(v1.EndpointPort){{Name:{} Protocol:{} Port:{} AppProtocol:{}}}",
        field("string", port.name.as_ref()),
        field("v1.Protocol", port.protocol.as_ref()),
        field("int32", port.port.as_ref()),
        field("string", port.app_protocol.as_ref())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(ports: &[(&str, &str, i32)]) -> Vec<i32> {
        let port = |(name, protocol, port): &(&str, &str, i32)| EndpointPort {
            name: Some((*name).to_owned()),
            protocol: Some((*protocol).to_owned()),
            port: Some(*port),
            app_protocol: None,
        };
        let mut ports: Vec<EndpointPort> = ports.iter().map(port).collect();
        sort(&mut ports);
        ports.iter().filter_map(|port| port.port).collect()
    }

    #[test]
    fn ports_stand_as_in_real_clusters() {
        let dns = [("dns", "UDP", 53), ("dns-tcp", "TCP", 53), ("metrics", "TCP", 9153)];
        assert_eq!(sorted(&dns), [9153, 53, 53]);
        let router = [("http", "TCP", 80), ("https", "TCP", 443), ("metrics", "TCP", 1936)];
        assert_eq!(sorted(&router), [80, 1936, 443]);
    }
}
