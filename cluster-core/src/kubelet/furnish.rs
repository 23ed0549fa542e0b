//! The files that the kubelet and the runtime give to every container: `/etc/hosts`, `/etc/resolv.conf` and the like, the
//! token of the pod's account, and what its pod asks of the kernel. They are made when a program of the container may look.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-hostname/>

use k8s_openapi::api::core::v1::PodSpec;

use super::worker::Worker;
use super::{Turn, environment};
use crate::api::object::Object;
use crate::runtime::container::Handle;
use crate::runtime::files::Node;
use crate::runtime::shell::sysctl_path;

const DOMAIN: &str = "cluster.local";
/// The Service of the cluster's DNS, as installers choose its address.
const DNS_SERVER: &str = "10.96.0.10";

/// Names longer than this are cut.
const HOSTNAME_MAX: usize = 63;

/// The name that a pod's processes have for their machine, and its full form if the pod has a subdomain.
pub fn hostname(pod: &Object, spec: &PodSpec) -> (String, Option<String>) {
    let of_machine = spec.node_name.as_ref().filter(|_| spec.host_network == Some(true));
    if let Some(name) = spec.hostname_override.as_ref().or(of_machine) {
        return (name.clone(), None);
    }
    let given = spec.hostname.as_deref().filter(|name| !name.is_empty()).unwrap_or(&pod.key.name);
    let short = &given[..given.floor_char_boundary(HOSTNAME_MAX)];
    let short = short.trim_end_matches(['-', '.']).to_owned();
    let subdomain = spec.subdomain.as_deref().filter(|subdomain| !subdomain.is_empty());
    let full = subdomain.map(|subdomain| format!("{short}.{subdomain}.{}.svc.{DOMAIN}", pod.key.namespace));
    match full {
        Some(full) if spec.set_hostname_as_fqdn == Some(true) => (full.clone(), Some(full)),
        full => (short, full),
    }
}

/// Its processes have another name for their machine than the pod's.
pub fn is_named_otherwise(pod: &Object, spec: &PodSpec) -> bool {
    spec.hostname.is_some()
        || spec.subdomain.is_some()
        || spec.hostname_override.is_some()
        || spec.host_network == Some(true)
        || pod.key.name.len() > HOSTNAME_MAX
}

fn hosts(pod: &Object, spec: &PodSpec, ip: &str) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n",
    );
    let (name, full) = hostname(pod, spec);
    let names = full.filter(|full| *full != name).map_or(name.clone(), |full| format!("{full}\t{name}"));
    text.push_str(&format!("{ip}\t{names}\n"));
    let aliases = spec.host_aliases.iter().flatten();
    let lines: Vec<String> = aliases
        .map(|alias| format!("{}\t{}\n", alias.ip, alias.hostnames.clone().unwrap_or_default().join("\t")))
        .collect();
    if !lines.is_empty() {
        text.push_str(&format!("\n# Entries added by HostAliases.\n{}", lines.concat()));
    }
    text
}

/// <https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-s-dns-policy>
fn resolv_conf(pod: &Object, spec: &PodSpec) -> String {
    let own = spec.dns_config.clone().unwrap_or_default();
    let of_cluster = match spec.dns_policy.as_deref() {
        Some("None" | "Default") => false,
        Some("ClusterFirst") => spec.host_network != Some(true),
        _ => true,
    };
    let (mut searches, mut servers, mut options) = (Vec::new(), Vec::new(), Vec::new());
    if of_cluster {
        searches = [format!("{}.svc.{DOMAIN}", pod.key.namespace), format!("svc.{DOMAIN}"), DOMAIN.into()].into();
        servers.push(DNS_SERVER.to_owned());
        options.push("ndots:5".to_owned());
    } else if spec.dns_policy.as_deref() != Some("None") {
        servers.push("192.168.0.1".to_owned());
    }
    servers.extend(own.nameservers.unwrap_or_default());
    searches.extend(own.searches.unwrap_or_default());
    for option in own.options.unwrap_or_default() {
        let name = option.name.unwrap_or_default();
        options.retain(|known| known.split(':').next() != Some(name.as_str()));
        options.push(option.value.map_or(name.clone(), |value| format!("{name}:{value}")));
    }
    let line = |word: &str, words: &[String]| match words {
        [] => String::new(),
        words => format!("{word} {}\n", words.join(" ")),
    };
    let servers: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    format!("{}{servers}{}", line("search", &searches), line("options", &options))
}

impl Worker {
    /// Gives a container what it was not given when it was made.
    pub fn furnish(&self, handle: Handle, turn: &mut Turn<'_>) {
        let Some(container) = turn.runtime.container(handle).filter(|container| !container.is_furnished) else {
            return;
        };
        let (reads_files, index) = (container.reads_files(), self.slot_of(handle));
        self.refresh_token(turn);
        let variables = if reads_files { Vec::new() } else { environment::of_services(&self.pod, turn).into_pairs() };
        let container_spec = index.and_then(|index| self.slots[index].spec(self.spec()));
        let mount = container_spec.filter(|_| !reads_files).and_then(|spec| self.token_mount(spec));
        let (spec, now) = (self.spec(), turn.world.now);
        let ip = turn.runtime.sandbox(&self.uid).map(|sandbox| sandbox.ip.clone()).unwrap_or_default();
        let files = [
            ("/etc/hosts", hosts(&self.pod, spec, &ip)),
            ("/etc/hostname", format!("{}\n", hostname(&self.pod, spec).0)),
            ("/etc/resolv.conf", resolv_conf(&self.pod, spec)),
        ];
        let sysctls = spec.security_context.iter().flat_map(|context| context.sysctls.iter().flatten());
        let sysctls = sysctls.map(|sysctl| (sysctl_path(&sysctl.name), format!("{}\n", sysctl.value)));
        let files = files.map(|(path, text)| (path.to_owned(), text)).into_iter().chain(sysctls);
        let files = files.map(|(path, text)| (path, Node::file(text, 0o644, now))).collect();
        turn.runtime.furnish(handle, files, variables, mount);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{HostAlias, Pod};

    use super::*;

    #[test]
    fn a_subdomain_makes_a_full_name() {
        let spec = PodSpec {
            hostname: Some("a".into()),
            subdomain: Some("sub".into()),
            host_aliases: Some(vec![HostAlias { ip: "1.2.3.4".into(), hostnames: Some(vec!["x".into(), "y".into()]) }]),
            ..PodSpec::default()
        };
        let pod = Object::new::<Pod>("default", "web", PodSpec::default());
        let text = hosts(&pod, &spec, "10.0.0.1");
        assert!(text.contains("\n10.0.0.1\ta.sub.default.svc.cluster.local\ta\n"));
        assert!(text.ends_with("\n\n# Entries added by HostAliases.\n1.2.3.4\tx\ty\n"));
        assert_eq!(hostname(&pod, &PodSpec::default()), ("web".into(), None));
    }
}
