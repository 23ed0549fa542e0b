//! The rules of a node as `nft list table ip kube-proxy` prints them.
//! <https://kubernetes.io/docs/reference/networking/virtual-ips/#proxy-mode-nftables>

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use sha2::{Digest as _, Sha256};

use super::addresses::{self, CLUSTER_CIDR};
use super::policy::covers;
use super::proxy::Proxy;
use super::rules::{Backend, Front, Mode, PortRules, ServiceRules, Verdict};

/// The addresses of Services (`--service-cluster-ip-range`).
const SERVICE_CIDR: &str = "10.96.0.0/16";
const ADDRESS_PORT: &str = "ipv4_addr . inet_proto . inet_service : verdict";
const PORT: &str = "inet_proto . inet_service : verdict";

/// What `nft list table ip kube-proxy` prints on a node; `None` if its kube-proxy works in another mode.
pub fn list(proxy: &Proxy) -> Option<String> {
    if proxy.mode() != Mode::Nftables {
        return None;
    }
    let mut rules = Ruleset { node: &proxy.node, ..Ruleset::default() };
    for service in proxy.table().services() {
        rules.cluster_ips.push(service.cluster_ip.to_string());
        for port in &service.ports {
            rules.add(service, port);
        }
    }
    Some(rules.print())
}

/// `ULMVA6XW-ns1/svc1/tcp/p80`: letters of a hash in front, so that similar names differ at first sight.
fn hashed(name: &str) -> String {
    format!("{}-{name}", &data_encoding::BASE32.encode(&Sha256::digest(name))[..8])
}

/// The elements of the sets and maps, and the chains of Services and endpoints by name.
#[derive(Default)]
struct Ruleset<'a> {
    node: &'a str,
    cluster_ips: Vec<String>,
    service_ips: Vec<String>,
    service_node_ports: Vec<String>,
    no_endpoint_services: Vec<String>,
    no_endpoint_node_ports: Vec<String>,
    firewall_ips: Vec<String>,
    affinity: BTreeMap<String, u64>,
    chains: Vec<(String, Vec<String>)>,
}

impl Ruleset<'_> {
    fn add(&mut self, rules: &ServiceRules, port: &PortRules) {
        let protocol = port.protocol.to_lowercase();
        let name = format!("{}/{protocol}/{}", rules.service, port.name);
        let base = hashed(&name);
        let colon = if port.name.is_empty() { "" } else { ":" };
        let comment = format!("comment \"{}{colon}{}\"", rules.service, port.name);
        let fate = |front| match rules.verdict(port, rules.is_local(front), self.node) {
            Verdict::Backends(_) => None,
            Verdict::Refuse => Some("goto reject-chain"),
            Verdict::Drop => Some("drop"),
        };
        let (inside_fate, outside_fate) = (fate(Front::ClusterIp), fate(Front::NodePort));
        let everywhere = port.usable(None);
        let local = port.usable(Some(self.node));
        let at = |ip| format!("{ip} . {protocol} . {}", port.port);
        let node_port = port.node_port.map(|number| format!("{protocol} . {number}"));
        let is_external = node_port.is_some() || rules.outside_ips().next().is_some();
        let policy_local = rules.internal_local || rules.external_local;
        let chain_of = |is_local: bool| format!("{}-{base}", if is_local { "local" } else { "service" });

        let inside = at(rules.cluster_ip);
        match inside_fate {
            Some(fate) => self.no_endpoint_services.push(format!("{inside} {comment} : {fate}")),
            None => self.service_ips.push(format!("{inside} : goto {}", chain_of(rules.internal_local))),
        }
        if let Some(fate) = outside_fate {
            let services = rules.outside_ips().map(|(ip, _)| format!("{} {comment} : {fate}", at(ip)));
            self.no_endpoint_services.extend(services);
            self.no_endpoint_node_ports.extend(node_port.iter().map(|at| format!("{at} {comment} : {fate}")));
        }
        if is_external && !everywhere.is_empty() {
            // Pods and the node itself come in even where a local policy has nobody for those from outside.
            let external = format!("external-{base}");
            self.service_ips.extend(rules.outside_ips().map(|(ip, _)| format!("{} : goto {external}", at(ip))));
            self.service_node_ports.extend(node_port.iter().map(|at| format!("{at} : goto {external}")));
        }

        if !everywhere.is_empty() {
            let mark = format!(
                "ip daddr {} {protocol} dport {} ip saddr != {CLUSTER_CIDR} jump mark-for-masquerade",
                rules.cluster_ip, port.port
            );
            self.balance(chain_of(false), Some(mark), rules, &name, &everywhere);
        }
        if policy_local && !local.is_empty() {
            self.balance(chain_of(true), None, rules, &name, &local);
        }
        if is_external && !everywhere.is_empty() {
            let service = chain_of(false);
            let lines = if rules.external_local {
                let mut lines = vec![
                    format!("ip saddr {CLUSTER_CIDR} goto {service} comment \"short-circuit pod traffic\""),
                    "fib saddr type local jump mark-for-masquerade comment \"masquerade local traffic\"".to_owned(),
                    format!("fib saddr type local goto {service} comment \"short-circuit local traffic\""),
                ];
                lines.extend((!local.is_empty()).then(|| format!("goto {}", chain_of(true))));
                lines
            } else {
                vec!["jump mark-for-masquerade".to_owned(), format!("goto {service}")]
            };
            self.chains.push((format!("external-{base}"), lines));
        }
        if !rules.guarded_ips().is_empty() && !everywhere.is_empty() {
            let guard = format!("firewall-{base}");
            let guarded = rules.guarded_ips().iter();
            self.firewall_ips.extend(guarded.clone().map(|ip| format!("{} {comment} : goto {guard}", at(*ip))));
            let mut sources = rules.source_ranges.clone();
            if sources.iter().any(|range| covers(range, addresses::machine_address(self.node))) {
                sources.extend(guarded.map(Ipv4Addr::to_string));
            }
            self.chains.push((guard, vec![format!("ip saddr != {{ {} }} drop", sources.join(", "))]));
        }
        for backend in everywhere {
            self.endpoint(rules, &name, &protocol, backend);
        }
    }

    /// A chain that hands connections to backends, each with the same chance.
    fn balance(
        &mut self,
        chain: String,
        mark: Option<String>,
        rules: &ServiceRules,
        name: &str,
        backends: &[&Backend],
    ) {
        let mut lines: Vec<String> = mark.into_iter().collect();
        let endpoints: Vec<String> = backends.iter().map(|backend| endpoint_name(name, backend)).collect();
        if rules.affinity.is_some() {
            lines.extend(endpoints.iter().map(|name| format!("ip saddr @affinity-{name} goto endpoint-{name}")));
        }
        let choices: Vec<String> =
            endpoints.iter().enumerate().map(|(index, name)| format!("{index} : goto endpoint-{name}")).collect();
        lines.push(format!("numgen random mod {} vmap {{ {} }}", backends.len(), choices.join(", ")));
        self.chains.push((chain, lines));
    }

    fn endpoint(&mut self, rules: &ServiceRules, name: &str, protocol: &str, backend: &Backend) {
        let endpoint = endpoint_name(name, backend);
        let mut lines = vec![format!("ip saddr {} jump mark-for-masquerade", backend.address)];
        if let Some(timeout) = rules.affinity {
            lines.push(format!("update @affinity-{endpoint} {{ ip saddr }}"));
            self.affinity.insert(endpoint.clone(), timeout.as_secs());
        }
        lines.push(format!("meta l4proto {protocol} dnat to {}:{}", backend.address, backend.port));
        self.chains.push((format!("endpoint-{endpoint}"), lines));
    }

    fn print(&self) -> String {
        let mut text = "table ip kube-proxy {\n\tcomment \"rules for kube-proxy\"\n".to_owned();
        let node_ip = [addresses::machine(self.node).to_string()];
        let sets: [(&str, &str, &str, &str, &[String]); 7] = [
            ("set", "cluster-ips", "ipv4_addr", "Active ClusterIPs", &self.cluster_ips),
            ("set", "nodeport-ips", "ipv4_addr", "IPs that accept NodePort traffic", &node_ip),
            (
                "map",
                "no-endpoint-services",
                ADDRESS_PORT,
                "vmap to drop or reject packets to services with no endpoints",
                &self.no_endpoint_services,
            ),
            (
                "map",
                "no-endpoint-nodeports",
                PORT,
                "vmap to drop or reject packets to service nodeports with no endpoints",
                &self.no_endpoint_node_ports,
            ),
            (
                "map",
                "firewall-ips",
                ADDRESS_PORT,
                "destinations that are subject to LoadBalancerSourceRanges",
                &self.firewall_ips,
            ),
            (
                "map",
                "service-ips",
                ADDRESS_PORT,
                "ClusterIP, ExternalIP and LoadBalancer IP traffic",
                &self.service_ips,
            ),
            ("map", "service-nodeports", PORT, "NodePort traffic", &self.service_node_ports),
        ];
        for (index, (what, name, of, comment, elements)) in sets.into_iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            let _ = write!(text, "{gap}\t{what} {name} {{\n\t\ttype {of}\n\t\tcomment \"{comment}\"\n");
            if !elements.is_empty() {
                let mut sorted = elements.to_vec();
                sorted.sort_by_cached_key(|element| order(element));
                // nft breaks the line after two addresses, and after each element that is made of several parts.
                let lines: Vec<String> =
                    sorted.chunks(if what == "set" { 2 } else { 1 }).map(|line| line.join(", ")).collect();
                let _ = writeln!(text, "\t\telements = {{ {} }}", lines.join(",\n\t\t\t     "));
            }
            text += "\t}\n";
        }
        for (name, seconds) in &self.affinity {
            let _ = write!(
                text,
                "\n\tset affinity-{name} {{\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout {}\n\t}}\n",
                duration(*seconds)
            );
        }
        for (name, hook, rules) in BASE_CHAINS {
            let own = hook.map(|hook| format!("type {hook}; policy accept;"));
            let rules = rules.iter().map(|rule| rule.replace("SERVICE_CIDR", SERVICE_CIDR));
            chain(&mut text, name, own.into_iter().chain(rules));
        }
        for (name, rules) in &self.chains {
            chain(&mut text, name, rules.iter().cloned());
        }
        text + "}\n"
    }
}

fn chain(text: &mut String, name: &str, lines: impl Iterator<Item = String>) {
    let _ = writeln!(text, "\n\tchain {name} {{");
    for line in lines {
        let _ = writeln!(text, "\t\t{line}");
    }
    *text += "\t}\n";
}

fn endpoint_name(name: &str, backend: &Backend) -> String {
    hashed(&format!("{name}__{}/{}", backend.address, backend.port))
}

/// Elements are printed by the numbers of their address and port.
fn order(element: &str) -> Vec<u32> {
    let key = element.split(" : ").next().unwrap_or_default();
    let numbers = key.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.filter_map(|digits| digits.parse().ok()).take(5).collect()
}

/// `3h`, `10m30s`.
fn duration(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}

/// Chains that are there whatever Services there are: name, where they hook in, rules.
type BaseChain = (&'static str, Option<&'static str>, &'static [&'static str]);

const BASE_CHAINS: &[BaseChain] = &[
    (
        "filter-prerouting-pre-dnat",
        Some("filter hook prerouting priority dstnat - 10"),
        &["ct state new jump firewall-check"],
    ),
    ("filter-output-pre-dnat", Some("filter hook output priority -110"), &["ct state new jump firewall-check"]),
    (
        "filter-input",
        Some("filter hook input priority filter"),
        &["ct state new jump nodeport-endpoints-check", "ct state new jump service-endpoints-check"],
    ),
    (
        "filter-forward",
        Some("filter hook forward priority filter"),
        &["ct state new jump service-endpoints-check", "ct state new jump cluster-ips-check"],
    ),
    (
        "filter-output",
        Some("filter hook output priority filter"),
        &["ct state new jump service-endpoints-check", "ct state new jump cluster-ips-check"],
    ),
    ("nat-prerouting", Some("nat hook prerouting priority dstnat"), &["jump services"]),
    ("nat-output", Some("nat hook output priority -100"), &["jump services"]),
    ("nat-postrouting", Some("nat hook postrouting priority srcnat"), &["jump masquerading"]),
    (
        "cluster-ips-check",
        None,
        &[
            "ip daddr @cluster-ips reject comment \"Reject traffic to invalid ports of ClusterIPs\"",
            "ip daddr { SERVICE_CIDR } drop comment \"Drop traffic to unallocated ClusterIPs\"",
        ],
    ),
    ("nodeport-endpoints-check", None, &["ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports"]),
    ("service-endpoints-check", None, &["ip daddr . meta l4proto . th dport vmap @no-endpoint-services"]),
    ("firewall-check", None, &["ip daddr . meta l4proto . th dport vmap @firewall-ips"]),
    (
        "services",
        None,
        &[
            "ip daddr . meta l4proto . th dport vmap @service-ips",
            "ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports",
        ],
    ),
    ("mark-for-masquerade", None, &["meta mark set meta mark | 0x00004000"]),
    (
        "masquerading",
        None,
        &[
            "meta mark & 0x00004000 == 0x00000000 return",
            "meta mark set meta mark ^ 0x00004000",
            "masquerade fully-random",
        ],
    ),
    ("reject-chain", None, &["comment \"helper for @no-endpoint-services / @no-endpoint-nodeports\"", "reject"]),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Service;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::api::kind::Resource;
    use crate::api::object::Object;
    use crate::api::request::Request;
    use crate::cluster::Config;

    fn create<K: Resource>(cluster: &mut Cluster, value: Value) {
        let object = Object::from_json(K::kind(), value).unwrap();
        cluster.request(Request::create(&"learner".into(), object)).unwrap();
    }

    /// Two nodes whose kube-proxies use nftables, a Service with the endpoint 10.244.2.2 on node-2, as the spec says.
    fn listed(extra: Value) -> String {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        cluster.set_proxy_mode(Mode::Nftables);
        let mut spec = json!({"clusterIP": "10.96.7.7", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        create::<Service>(&mut cluster, json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}));
        create::<EndpointSlice>(
            &mut cluster,
            json!({"metadata": {"name": "web-x", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.244.2.2"], "nodeName": "node-2"}]}),
        );
        cluster.settle(Duration::from_secs(60), |_| true);
        list(&cluster.machine("node-1").unwrap().proxy).unwrap()
    }

    #[test]
    fn names_are_those_of_real_clusters() {
        assert_eq!(hashed("ns1/svc1/tcp/p80"), "ULMVA6XW-ns1/svc1/tcp/p80");
        assert_eq!(hashed("ns1/svc1/tcp/p80__10.180.0.1/80"), "5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80");
    }

    #[test]
    fn maps_lead_to_chains_of_services_and_endpoints() {
        insta::assert_snapshot!(listed(json!({"type": "NodePort", "sessionAffinity": "ClientIP", "ports": [
            {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080}]})));
    }

    #[test]
    fn nobody_to_answer_is_told_by_maps_of_their_own() {
        let text = listed(json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [
            {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080}, {"name": "none", "port": 81, "nodePort": 30081}]}));
        for line in [
            "elements = { tcp . 30080 comment \"default/web:http\" : drop,\n",
            "\t\t\t     tcp . 30081 comment \"default/web:none\" : goto reject-chain }\n",
            "10.96.7.7 . tcp . 81 comment \"default/web:none\" : goto reject-chain",
            "\t\tip saddr 10.244.0.0/16 goto service-",
            " comment \"short-circuit pod traffic\"\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("goto local-"), "{text}");
    }
}
