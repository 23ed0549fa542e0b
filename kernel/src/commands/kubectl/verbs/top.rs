//! `kubectl top`: what pods and nodes use, which a metrics server tells.
//! <https://kubernetes.io/docs/tasks/debug/debug-cluster/resource-metrics-pipeline/>

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cluster_core::api::kind::KindRef;
use cluster_core::api::quantity::{self, Millis};
use cluster_core::api::request::Options;
use cluster_core::api::selector::{FieldSelector, Selector};
use cluster_core::clock::Time;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::Value;

use super::super::columns;
use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{switch, text};
use super::super::verb::{Call, Verb};
use super::group;

pub const TOP: Verb = Verb { name: "top", aliases: &[], flags: &[], run: group::on_stderr };

pub const POD: Verb = Verb {
    name: "top pod",
    aliases: &["pods", "po"],
    flags: &[
        switch("all-namespaces").short('A'),
        switch("containers"),
        switch("no-headers"),
        switch("sum"),
        text("selector").short('l'),
        text("field-selector"),
        text("sort-by"),
    ],
    run: pods,
};

pub const NODE: Verb = Verb {
    name: "top node",
    aliases: &["nodes", "no"],
    flags: &[switch("no-headers"), switch("show-capacity"), text("selector").short('l'), text("sort-by")],
    run: nodes,
};

/// A pod that is older than this should have metrics.
const CREATION_DELAY_SECONDS: u64 = 120;
const BYTES_A_MIB: Millis = 1024 * 1024;

/// What is used of CPU and memory, in thousandths.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu: Millis,
    memory: Millis,
}

impl Usage {
    fn of(amounts: &Value) -> Usage {
        let millis = |resource: &str| amounts[resource].as_str().and_then(quantity::parse).unwrap_or(0);
        Usage { cpu: millis("cpu"), memory: millis("memory") }
    }

    /// All of them together: summed up as they are, then rounded.
    fn sum<'a>(all: impl Iterator<Item = &'a Value> + Clone) -> Usage {
        let millis = |resource: &str| {
            let amounts = all.clone().filter_map(|amounts| amounts[resource].as_str());
            let amounts: Vec<_> = amounts.filter_map(|text| serde_json::from_value(text.into()).ok()).collect();
            quantity::parse(&quantity::sum(amounts.iter()).0).unwrap_or(0)
        };
        Usage { cpu: millis("cpu"), memory: millis("memory") }
    }

    fn cells(&self) -> [String; 2] {
        [format!("{}m", self.cpu), format!("{}Mi", self.memory / 1000 / BYTES_A_MIB)]
    }

    /// Higher use first, where somebody asks for that.
    fn rank(&self, sort_by: &str) -> Reverse<Millis> {
        match sort_by {
            "cpu" => Reverse(self.cpu),
            "memory" => Reverse(self.memory),
            _ => Reverse(0),
        }
    }
}

/// What both verbs check, in kubectl's order; the kind of the metrics.
fn begin(call: &mut Call<'_, '_>, use_line: &str, selectors: &str, kind: &str) -> Result<KindRef, Failure> {
    let parsed = &call.parsed;
    if parsed.args.len() > 1 {
        return usage(use_line);
    }
    if parsed.text("sort-by").is_some_and(|field| !matches!(field, "" | "cpu" | "memory")) {
        return message("--sort-by accepts only cpu or memory");
    }
    if !parsed.args.is_empty() && (parsed.has("selector") || parsed.has("field-selector")) {
        return message(format!("only one of NAME or {selectors} can be provided"));
    }
    let kinds = call.context.api.kinds()?;
    let found = kinds.into_iter().find(|known| (&*known.group, &*known.kind) == ("metrics.k8s.io", kind));
    found.map_or_else(|| message("Metrics API not available"), Ok)
}

/// The metrics of what is named or selected.
fn metrics(call: &mut Call<'_, '_>, kind: &KindRef, namespace: &str) -> Result<Vec<Value>, Failure> {
    match call.parsed.args.first().cloned() {
        Some(name) => Ok(vec![call.get(kind, namespace, &name)?]),
        None => {
            let options = selection(call)?;
            call.list(kind, namespace, options)
        }
    }
}

fn selection(call: &Call<'_, '_>) -> Result<Options, Failure> {
    let labels = call.parsed.text("selector").unwrap_or_default();
    let fields = call.parsed.text("field-selector").unwrap_or_default();
    Ok(Options {
        labels: Selector::parse(labels).map_err(Failure::Message)?,
        fields: FieldSelector::parse(fields).map_err(Failure::Message)?,
        ..Options::default()
    })
}

fn nodes(call: &mut Call<'_, '_>) -> Outcome {
    let kind = begin(call, "node [NAME | -l label]", "--selector", "NodeMetrics")?;
    let mut metrics = metrics(call, &kind, "")?;
    if metrics.is_empty() {
        return message("metrics not available yet");
    }
    let node = KindRef::of::<Node>();
    let nodes = match call.parsed.args.first().cloned() {
        Some(name) => vec![call.get(node, "", &name)?],
        None => {
            let options = selection(call)?;
            call.list(node, "", options)?
        }
    };
    let amounts = if call.parsed.switch("show-capacity") { "/status/capacity" } else { "/status/allocatable" };
    let amounts_of = |node: &Value| (name(node).to_owned(), node.pointer(amounts).map(Usage::of).unwrap_or_default());
    let mut available: BTreeMap<String, Usage> = nodes.iter().map(amounts_of).collect();
    let sort_by = call.parsed.text("sort-by").unwrap_or_default().to_owned();
    metrics.sort_by_cached_key(|node| (Usage::of(&node["usage"]).rank(&sort_by), name(node).to_owned()));

    let header = ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", ""];
    let mut rows = header_of(call, &header);
    for node in &metrics {
        let used = Usage::of(&node["usage"]);
        let [cpu, memory] = used.cells();
        let mut row = vec![name(node).to_owned(), cpu];
        match available.remove(name(node)) {
            Some(all) => row.extend([percent(used.cpu, all.cpu), memory, percent(used.memory, all.memory)]),
            None => row.push(memory),
        }
        row.push(String::new());
        rows.push(row);
    }
    for unread in available.into_keys() {
        let unknown = || "<unknown>".to_owned();
        rows.push(vec![unread, unknown(), unknown(), unknown(), unknown(), String::new()]);
    }
    call.context.print(columns::align(&rows));
    Ok(())
}

fn pods(call: &mut Call<'_, '_>) -> Outcome {
    let kind = begin(call, "pod [NAME | -l label]", "selector", "PodMetrics")?;
    let everywhere = call.parsed.switch("all-namespaces");
    let namespace = if everywhere { String::new() } else { call.namespace.clone() };
    let mut metrics = metrics(call, &kind, &namespace)?;
    if metrics.is_empty() {
        return without_metrics(call, &namespace);
    }
    let sort_by = call.parsed.text("sort-by").unwrap_or_default().to_owned();
    metrics.sort_by_cached_key(|pod| {
        let space = if everywhere { self::namespace(pod).to_owned() } else { String::new() };
        (pod_usage(pod).rank(&sort_by), space, name(pod).to_owned())
    });

    let by_container = call.parsed.switch("containers");
    let mut header = vec!["NAME", "CPU(cores)", "MEMORY(bytes)", ""];
    if by_container {
        header.insert(0, "POD");
    }
    if everywhere {
        header.insert(0, "NAMESPACE");
    }
    let width = header.len() - 1;
    let mut rows = header_of(call, &header);
    for pod in &metrics {
        let mut lines: Vec<(Vec<String>, Usage)> = match by_container {
            true => {
                let line = |container: &Value| {
                    let own = container["name"].as_str().unwrap_or_default().to_owned();
                    (vec![name(pod).to_owned(), own], Usage::of(&container["usage"]))
                };
                containers(pod).map(line).collect()
            }
            false => vec![(vec![name(pod).to_owned()], pod_usage(pod))],
        };
        lines.sort_by_cached_key(|(names, used)| (used.rank(&sort_by), names.clone()));
        for (names, used) in lines {
            let space = everywhere.then(|| self::namespace(pod).to_owned());
            rows.push(space.into_iter().chain(names).chain(used.cells()).chain([String::new()]).collect());
        }
    }
    if call.parsed.switch("sum") {
        let total = Usage::sum(metrics.iter().flat_map(containers).map(|container| &container["usage"]));
        let empty = |count: usize| std::iter::repeat_n(String::new(), count);
        let line = || "________".to_owned();
        rows.push(empty(width - 2).chain([line(), line(), String::new()]).collect());
        rows.push(empty(width - 2).chain(total.cells()).chain([String::new()]).collect());
    }
    call.context.print(columns::align(&rows));
    Ok(())
}

/// Why there is nothing to show: the pods are too young, or there are none.
fn without_metrics(call: &mut Call<'_, '_>, namespace: &str) -> Outcome {
    let options = selection(call)?;
    let pods = call.list(KindRef::of::<Pod>(), namespace, options)?;
    let now = call.context.api.now();
    for pod in &pods {
        let created = pod.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let created = created.and_then(|text| text.parse().ok()).map(Time::from_timestamp).unwrap_or(now);
        let age = now.since(created);
        if age.as_secs() > CREATION_DELAY_SECONDS {
            let (namespace, name) = (self::namespace(pod), name(pod));
            return message(format!("Metrics not available for pod {namespace}/{name}, age: {}", go_duration(age)));
        }
    }
    if !pods.is_empty() {
        return message("metrics not available yet");
    }
    let place = if namespace.is_empty() {
        "No resources found".into()
    } else {
        format!("No resources found in {namespace} namespace.")
    };
    call.context.error_line(place);
    Ok(())
}

fn header_of(call: &Call<'_, '_>, header: &[&str]) -> Vec<Vec<String>> {
    let shown = !call.parsed.switch("no-headers");
    shown.then(|| header.iter().map(|&word| word.to_owned()).collect()).into_iter().collect()
}

fn percent(used: Millis, all: Millis) -> String {
    format!("{}%", if all == 0 { 0 } else { used * 100 / all })
}

fn pod_usage(pod: &Value) -> Usage {
    Usage::sum(containers(pod).map(|container| &container["usage"]))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> + Clone {
    pod["containers"].as_array().into_iter().flatten()
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

/// `3m12.5s`, as Go prints a duration.
fn go_duration(time: std::time::Duration) -> String {
    let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
    let fraction = format!("{nanos:09}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    let tail = format!("{}{dot}{fraction}s", seconds % 60);
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::session;
    use crate::output::{Output, Sink};
    use crate::session::Session;

    struct Seen(String);

    impl Sink for Seen {
        fn put(&mut self, output: Output) {
            if let Output::Stdout(text) | Output::Stderr(text) = output {
                self.0 += &text;
            }
        }
    }

    /// What a person sees, refusals among it.
    fn run(session: &mut Session, code: &str) -> String {
        let mut seen = Seen(String::new());
        // A command that fails has told why.
        let _ = session.execute(code, &mut seen);
        seen.0
    }

    const PODS: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {app: a}}\n\
                        spec: {containers: [{name: one, image: nginx}, {name: two, image: redis}]}\n---\n\
                        apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {containers: [{name: c, image: nginx}]}\n";

    #[test]
    fn without_a_metrics_server_there_is_nothing_to_show() {
        let mut session = session();
        assert!(run(&mut session, "kubectl top pod").ends_with("error: Metrics API not available\n"));
        run(&mut session, PODS);
        run(&mut session, "%start metrics-server");
        assert!(run(&mut session, "kubectl top node").ends_with("error: metrics not available yet\n"));
        assert!(run(&mut session, "kubectl top pod").ends_with("error: metrics not available yet\n"));
        run(&mut session, "%stop metrics-server");
        let told = run(&mut session, "kubectl top pod");
        let expected = "Error from server (ServiceUnavailable): the server is currently unable to handle the request \
                        (get pods.metrics.k8s.io)\n";
        assert!(told.ends_with(expected), "{told}");
    }

    #[test]
    fn use_is_shown_by_pod_by_container_and_in_order() {
        let mut session = session();
        run(&mut session, PODS);
        run(&mut session, "%start metrics-server");
        run(&mut session, "%fill pod/b cpu 300m");
        run(&mut session, "%advance 31s");
        let expected = "NAME   CPU(cores)   MEMORY(bytes)   \na      2m           4Mi             \nb      300m         2Mi             \n";
        assert_eq!(run(&mut session, "kubectl top pod"), expected);
        let sorted = run(&mut session, "kubectl top pod --sort-by=cpu --no-headers");
        assert_eq!(sorted, "b     300m   2Mi   \na     2m     4Mi   \n");
        let containers = run(&mut session, "kubectl top pod a --containers");
        let expected = "POD   NAME   CPU(cores)   MEMORY(bytes)   \na     one    0m           2Mi             \na     two    2m           2Mi             \n";
        assert_eq!(containers, expected);
        let sum = run(&mut session, "kubectl top pod --sum --no-headers");
        assert!(sum.ends_with("      302m       6Mi        \n"), "{sum}");
        let none = run(&mut session, "kubectl top pod none");
        assert!(
            none.ends_with("Error from server (NotFound): podmetrics.metrics.k8s.io \"default/none\" not found\n"),
            "{none}"
        );
        assert_eq!(run(&mut session, "kubectl top pod -l app=a --no-headers"), "a     2m    4Mi   \n");
        let table = run(&mut session, "kubectl get podmetrics b --no-headers");
        assert_eq!(table, "b     300m   2Mi   15s\n");
    }

    #[test]
    fn nodes_are_shown_with_their_share() {
        let mut session = session();
        run(&mut session, "%start metrics-server");
        run(&mut session, "%partition node-3");
        run(&mut session, "%advance 31s");
        let expected = "NAME     CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)   \n\
                        node-1   40m          0%          400Mi           1%          \n\
                        node-2   40m          0%          400Mi           1%          \n\
                        node-3   <unknown>    <unknown>   <unknown>       <unknown>   \n";
        assert_eq!(run(&mut session, "kubectl top nodes"), expected);
    }
}
