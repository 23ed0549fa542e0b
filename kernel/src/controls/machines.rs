//! Controls of what is on a machine: manifests of static pods, and whatever takes its memory, its disk, its process
//! numbers.

use cluster_core::api::quantity;
use cluster_core::kubelet::static_pods;

use super::{Args, faults};
use crate::output::{CellError, Output, Sink};
use crate::session::Session;

/// Lists the manifests of a node's static pods, or takes one away.
pub fn static_pods(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (node, gone) = match args.words.as_slice() {
        [node] => (*node, None),
        [node, "rm", file] => (*node, Some(*file)),
        _ => return Err(args.wrong()),
    };
    let Some(machine) = session.cluster.machine(node) else { return faults::switched(false, node, session, sink) };
    let files = static_pods::files(&machine.runtime);
    let Some(file) = gone else {
        sink.put(Output::Stdout(files.iter().map(|file| format!("{file}\n")).collect()));
        return Ok(());
    };
    if !files.iter().any(|known| known == file) {
        return Err(CellError::new("NotFound", format!("{node} has no manifest {file}; it has: {}", files.join(", "))));
    }
    session.cluster.record_fault(format!("{file} is taken out of the folder of static pods of {node}"));
    session.cluster.put_manifest(node, file, None).map_err(|message| CellError::new("NotFound", message))?;
    session.settle(sink)
}

/// Fills a node's memory, disk or process numbers, or a pod's memory or CPU; or has a Service asked.
pub fn fill(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let [target, what, amount] = args.words.as_slice() else { return Err(args.wrong()) };
    let millis = quantity::parse(amount).and_then(|millis| u64::try_from(millis).ok()).ok_or_else(|| args.wrong())?;
    let amount = millis / 1000;
    if *what == "requests" && target.starts_with("service/") {
        return load(target, amount, session, sink);
    }
    let is_machine = session.cluster.machine(target).is_some();
    let known: &[&str] = if is_machine { &["memory", "disk", "pids"] } else { &["memory", "cpu"] };
    if !known.contains(what) {
        return Err(args.wrong());
    }
    let pod = if is_machine { None } else { faults::pod_of(session, target)? };
    let before = session.cluster.clone();
    session.cluster.record_fault(format!("{target} takes {} of {what}", args.words[2]));
    let cluster = &mut session.cluster;
    let done = match (*what, pod) {
        ("cpu", Some(pod)) => cluster.fill_cpu(&pod.namespace, &pod.name, "", millis),
        (_, Some(pod)) => cluster.fill_memory(&pod.namespace, &pod.name, "", amount),
        ("memory", None) => cluster.fill_node_memory(target, amount),
        ("disk", None) => cluster.fill_disk(target, amount),
        _ => cluster.fill_processes(target, amount),
    };
    if !done {
        session.cluster = before;
        return Err(CellError::new("NotRunning", format!("no container of {target} is running")));
    }
    session.settle(sink)
}

/// Lets so many requests a second come to a Service all the time.
fn load(target: &str, per_second: u64, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (_, service) = session.target(target)?;
    if !session.cluster.set_traffic(&service, per_second) {
        return Err(CellError::new("NotFound", format!("there is no service {}", service.name)));
    }
    session.settle(sink)
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn a_full_disk_evicts_pods_and_taints_the_node() {
        let mut session = session();
        run(&mut session, "kubectl cordon node-2 node-3");
        run(&mut session, "kubectl run web --image=nginx");
        run(&mut session, "%fill node-1 disk 95Gi");
        let pod = run(&mut session, "kubectl get pod web -o jsonpath='{.status.phase} {.status.reason}'");
        assert_eq!(pod, "Failed Evicted");
        let taints = run(&mut session, "kubectl get node node-1 -o jsonpath='{.spec.taints[*].key}'");
        assert_eq!(taints, "node.kubernetes.io/disk-pressure");
        run(&mut session, "%fill node-1 disk 0");
        run(&mut session, "%advance 6m");
        assert_eq!(run(&mut session, "kubectl get node node-1 -o jsonpath='{.spec.taints[*].key}'"), "");
    }

    #[test]
    fn requests_to_a_service_cost_its_pods_cpu_time() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=hpa-example --replicas=2 --port=80");
        run(&mut session, "kubectl expose deployment web");
        run(&mut session, "%start metrics-server");
        run(&mut session, "%fill service/web requests 100");
        run(&mut session, "%advance 46s");
        let used = |session: &mut _| {
            let told = run(session, "kubectl top pod --no-headers");
            let columns = told.lines().filter_map(|line| line.split_whitespace().nth(1));
            columns.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(used(&mut session), ["501m"; 2]);
        run(&mut session, "kubectl scale deployment web --replicas=4");
        run(&mut session, "%advance 46s");
        assert_eq!(used(&mut session), ["251m"; 4]);
        run(&mut session, "%fill service/web requests 0");
        run(&mut session, "%advance 46s");
        assert_eq!(used(&mut session), ["1m"; 4]);
        assert!(run(&mut session, "%fill service/none requests 5").starts_with("NotFound: "));
        assert!(run(&mut session, "%fill deployment/web requests 5").starts_with("UsageError: "));
    }

    #[test]
    fn a_pod_that_takes_more_memory_than_its_limit_is_killed() {
        let mut session = session();
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n\
                   spec: {containers: [{name: c, image: nginx, resources: {limits: {memory: 64Mi}}}]}\n";
        run(&mut session, pod);
        run(&mut session, "%fill pod/web memory 100Mi");
        let last = "kubectl get pod web -o jsonpath='{.status.containerStatuses[0].lastState.terminated.reason}'";
        assert_eq!(run(&mut session, last), "OOMKilled");
        for wrong in ["%fill", "%fill node-1 disk lots", "%fill node-1 luck 1", "%fill pod/web disk 1Gi"] {
            assert!(run(&mut session, wrong).starts_with("UsageError: "), "{wrong}");
        }
    }
}
