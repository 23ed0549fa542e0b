//! `etcdctl get`: what the API server keeps, key by key, without asking the API server.

use cluster_core::api::object::Object;

use super::{Context, Program};

pub struct Etcdctl;

const USAGE: &str = "usage: etcdctl get KEY [--prefix] [--keys-only] [--count-only] [-w fields]";

impl Program for Etcdctl {
    fn name(&self) -> &'static str {
        "etcdctl"
    }

    fn about(&self) -> &'static str {
        "reads the keys and values of etcd"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let (format, args) = match format(args) {
            Ok(read) => read,
            Err(problem) => {
                context.error_line(problem);
                return 1;
            }
        };
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
        for Entry { key, value, object } in entries {
            let value = if has("--keys-only") { "" } else { value.as_str() };
            if format == Format::Fields {
                let history = history(context, &object);
                context.print(fields(&key, value, &object, history));
                continue;
            }
            context.line(key);
            // With keys only, etcdctl prints an empty line for each value.
            context.line(value);
        }
        0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Simple,
    Fields,
}

/// What `-w` asks for, and the other arguments.
fn format(args: &[String]) -> Result<(Format, Vec<String>), String> {
    let (mut format, mut others) = ("simple".to_owned(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.split_once('=') {
            Some(("-w" | "--write-out", value)) => value.clone_into(&mut format),
            None if matches!(arg.as_str(), "-w" | "--write-out") => {
                format = rest.next().cloned().ok_or_else(|| format!("Error: flag needs an argument: {arg}"))?;
            }
            _ => others.push(arg.clone()),
        }
    }
    match format.as_str() {
        "simple" => Ok((Format::Simple, others)),
        "fields" => Ok((Format::Fields, others)),
        other => Err(format!("Error: -w {other}: expected simple or fields")),
    }
}

/// The revision at which an object's key was made, and how often it has been written since. What was there before
/// anybody wrote has been written once.
fn history(context: &mut Context<'_>, object: &Object) -> (u64, u64) {
    let before = (object.revision, 1);
    let Some(cluster) = context.api.cluster() else { return before };
    let writes = cluster.trace().writes().map(|(_, write)| write);
    let own = writes.filter(|write| write.kind.slot == object.kind.slot && write.key == object.key);
    let (mut created, mut version) = (0, 0);
    for write in own {
        if write.before.is_none() {
            (created, version) = (write.revision, 0);
        }
        version += 1;
    }
    if created == 0 { before } else { (created, version) }
}

/// One key as `-w fields` prints it.
fn fields(key: &str, value: &str, object: &Object, (created, version): (u64, u64)) -> String {
    let modified = object.revision;
    format!(
        "\"Key\" : {key:?}\n\"CreateRevision\" : {created}\n\"ModRevision\" : {modified}\n\"Version\" : {version}\n\
         \"Value\" : {value:?}\n\"Lease\" : 0\n"
    )
}

struct Entry {
    key: String,
    value: String,
    object: Object,
}

/// Keys and values, sorted; `None` if etcd can't be reached. The real etcd holds built-in kinds as protobuf, here all
/// is JSON.
fn entries(context: &mut Context<'_>, wanted: &str, prefix: bool) -> Option<Vec<Entry>> {
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
                entries.push(Entry { key, value: object.to_json().to_string(), object: object.clone() });
            }
        }
    }
    entries.sort_by(|a, b| a.key.cmp(&b.key));
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
        let code = Etcdctl.run(&words("get /registry/namespaces/default --keys-only -w fields"), &mut context);
        assert_eq!(code, 0);
        let told = context.take_stdout();
        assert!(told.starts_with("\"Key\" : \"/registry/namespaces/default\"\n\"CreateRevision\" : "), "{told}");
        assert_eq!(Etcdctl.run(&words("get / -w json"), &mut context), 1);
    }
}
