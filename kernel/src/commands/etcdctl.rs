//! `etcdctl get`: what the API server keeps, key by key, without asking the API server.

use super::{Context, Program};

pub struct Etcdctl;

const USAGE: &str = "usage: etcdctl get KEY [--prefix] [--keys-only] [--count-only]";

impl Program for Etcdctl {
    fn name(&self) -> &'static str {
        "etcdctl"
    }

    fn about(&self) -> &'static str {
        "reads the keys and values of etcd"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let (flags, words): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with('-'));
        let has = |flag: &str| flags.iter().any(|given| *given == flag);
        let known = ["--prefix", "--keys-only", "--count-only"];
        if let Some(unknown) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
            context.error_line(format!("Error: unknown flag: {unknown}"));
            return 1;
        }
        let key = match words.as_slice() {
            [verb, key] if *verb == "get" => key.as_str(),
            [verb] if *verb == "get" && has("--prefix") => "",
            _ => {
                context.error_line(USAGE);
                return 1;
            }
        };
        let Some(entries) = entries(context, key, has("--prefix")) else {
            context.error_line("Error: context deadline exceeded");
            return 1;
        };
        if has("--count-only") {
            context.line(entries.len().to_string());
            return 0;
        }
        for (key, value) in entries {
            context.line(key);
            // With keys only, etcdctl prints an empty line for each value.
            context.line(if has("--keys-only") { "" } else { &value });
        }
        0
    }
}

/// Keys and values, sorted; `None` if etcd can't be reached. The real etcd holds built-in kinds as protobuf, here all
/// is JSON.
fn entries(context: &mut Context<'_>, wanted: &str, prefix: bool) -> Option<Vec<(String, String)>> {
    let cluster = context.api.cluster()?;
    if cluster.is_stopped("etcd") {
        return None;
    }
    let mut entries = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for kind in cluster.kinds().filter(|kind| seen.insert(kind.slot)) {
        let folder = kind.registry_prefix();
        for object in cluster.list_of(kind, "") {
            let place = object.key.to_string();
            let key = format!("{folder}/{place}");
            if key == wanted || prefix && key.starts_with(wanted) {
                entries.push((key, object.to_json().to_string()));
            }
        }
    }
    entries.sort();
    Some(entries)
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;
    use crate::commands::files::Memory;

    #[test]
    fn keys_are_those_of_the_registry() {
        let mut cluster = Cluster::new(Config::default());
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        Etcdctl.run(&words("get /registry/namespaces/kube --prefix --keys-only"), &mut context);
        assert_eq!(
            context.take_stdout(),
            "/registry/namespaces/kube-node-lease\n\n/registry/namespaces/kube-public\n\n/registry/namespaces/kube-system\n\n"
        );
        Etcdctl.run(&words("get /registry/services/specs/default/kubernetes"), &mut context);
        assert!(context.take_stdout().contains("\"clusterIP\":\"10.96.0.1\""));
        assert_eq!(Etcdctl.run(&words("put a b"), &mut context), 1);
    }
}
