//! Controls of faults: each is one line, and one entry in the trace.

use cluster_core::api::object::Object;
use cluster_core::api::{Key, Name};
use cluster_core::faults::{Edge, Effect, Rule};
use cluster_core::network::rules::Mode;
use cluster_core::runtime::host::{Action, Rule as HostRule};

use super::{Args, duration};
use crate::commands::line;
use crate::output::{CellError, Output, Sink};
use crate::session::Session;
use crate::settings::Language;
use crate::text;

pub fn kill(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (targets, container) = match args.words.as_slice() {
        [] => return Err(args.wrong()),
        [pod, container] if !container.contains('/') => (vec![*pod], *container),
        targets => (targets.to_vec(), ""),
    };
    for target in targets {
        let pod = if target.starts_with("docker/") { None } else { pod_of(session, target)? };
        // The fault is the cause of what follows, and so comes before it; one that hits nothing has not been.
        let before = session.cluster.clone();
        session.cluster.record_fault(format!("a container of {target} is killed"));
        let killed = match (target.strip_prefix("docker/"), pod) {
            (Some(name), _) => {
                let (host, world) = session.cluster.host_mut();
                host.kill(name, false, world).is_ok()
            }
            (None, Some(pod)) => session.cluster.kill_container(&pod.namespace, &pod.name, container),
            (None, None) => false,
        };
        if !killed {
            session.cluster = before;
            let message = match session.language() {
                Language::Ja => format!("{target} に動いているコンテナはありません"),
                Language::En => format!("no container of {target} is running"),
            };
            return Err(CellError::new("NotRunning", message));
        }
    }
    session.settle(sink)
}

/// The pod that is meant, or the first by name of a workload's pods.
pub fn pod_of(session: &Session, target: &str) -> Result<Option<Key>, CellError> {
    let (kind, key) = session.target(target)?;
    if &*kind.kind == "Pod" {
        return Ok(Some(key));
    }
    let owner = |object: &Object| {
        let owner = object.controller()?;
        let kind = session.cluster.kind(&owner.api_version, &owner.kind)?;
        session.cluster.store().get(kind, &Key::new(object.key.namespace.clone(), owner.name.as_str())).cloned()
    };
    let is_meant = |object: &Object| object.key == key && *object.kind.kind == *kind.kind;
    let owned = |pod: &&Object| {
        let owners = std::iter::successors(owner(pod), owner);
        owners.into_iter().any(|owner| is_meant(&owner)) && !pod.is_terminating()
    };
    let pods = session.cluster.kind("v1", "Pod");
    let mut pods = pods.into_iter().flat_map(|kind| session.cluster.list_of(kind, &key.namespace));
    Ok(pods.find(owned).map(|pod| pod.key.clone()))
}

/// A machine joins, and its kubelet says so.
pub fn add_node(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let node = args.one()?;
    let is_known = session.cluster.machine(node).is_some();
    let has_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let is_name = node.len() <= 63 && node.chars().all(has_letter) && !node.starts_with('-') && !node.ends_with('-');
    if is_known || !is_name {
        return Err(args.wrong());
    }
    session.cluster.record_fault(format!("{node} joins"));
    session.cluster.add_node(node);
    session.settle(sink)
}

pub const PROXY_MODES: [Mode; 3] = [Mode::Iptables, Mode::Ipvs, Mode::Nftables];

pub fn proxy_mode(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let wanted = args.one()?;
    let mode = PROXY_MODES.into_iter().find(|mode| mode.as_str() == wanted).ok_or_else(|| args.wrong())?;
    session.cluster.set_proxy_mode(mode);
    session.settle(sink)
}

pub fn switched(found: bool, name: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if !found {
        let known: Vec<String> = session.component_names().into_iter().chain(session.node_names()).collect();
        let message = match session.language().is_japanese() {
            true => format!("{name} はありません。あるのは: {}", known.join("、")),
            false => format!("there is no {name}; there are: {}", known.join(", ")),
        };
        return Err(CellError::new("NotFound", message));
    }
    session.settle(sink)
}

pub fn power_off(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let node = args.one()?;
    let found = session.cluster.power_off(node);
    switched(found, node, session, sink)
}

pub fn power_on(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let node = args.one()?;
    let found = session.cluster.power_on(node);
    switched(found, node, session, sink)
}

pub fn stop(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let component = args.one()?;
    let found = session.cluster.stop(component);
    switched(found, component, session, sink)
}

pub fn start(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let component = args.one()?;
    let found = session.cluster.start(component);
    switched(found, component, session, sink)
}

pub fn partition(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let node = args.one()?;
    let found = session.cluster.partition(node);
    switched(found, node, session, sink)
}

pub fn heal(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    match args.words.as_slice() {
        [node] => {
            let found = session.cluster.heal(node);
            switched(found, node, session, sink)
        }
        [] => {
            for node in session.node_names() {
                session.cluster.heal(&node);
            }
            session.cluster.clear_rules();
            session.settle(sink)
        }
        _ => Err(args.wrong()),
    }
}

/// A rule about deliveries of `KIND/NAME` to a component.
fn delivery(component: &str, what: &str, effect: Effect, times: Option<u32>) -> Rule {
    let (kind, name) = what.split_once('/').unwrap_or((what, ""));
    Rule {
        edge: Edge::Delivery,
        component: component.into(),
        kind: kind.into(),
        name: name.into(),
        effect,
        times,
        until: None,
    }
}

pub fn drop(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (mut component, what, times) = match args.words.as_slice() {
        [component] => (*component, "", 1),
        [component, count] if count.starts_with(|digit: char| digit.is_ascii_digit()) => {
            (*component, "", count.parse().map_err(|_| args.wrong())?)
        }
        [component, what] => (*component, *what, 1),
        [component, what, count] => (*component, *what, count.parse().map_err(|_| args.wrong())?),
        _ => return Err(args.wrong()),
    };
    if component == "docker" {
        session.cluster.host_mut().0.lose_next_events(times);
        session.cluster.record_fault(format!("docker's next {times} exit event(s) will be lost"));
    } else {
        if !component_known(session, component) {
            return switched(false, component, session, sink);
        }
        component = session.cluster.process_of(component);
        let rule = delivery(component, what, Effect::Drop, Some(times));
        session.cluster.add_rule(rule, Name::from(format!("{component} will miss {times} event(s) {what}").trim_end()));
    }
    let text = match session.language().is_japanese() {
        true => format!("{component} への次の知らせ{times}個は届きません\n"),
        false => format!("the next {times} event(s) to {component} will be lost\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

fn component_known(session: &Session, component: &str) -> bool {
    let names = session.component_names();
    names.iter().any(|known| known == component || known.split('/').next() == Some(component))
}

pub fn delay(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (component, by, what) = match args.words.as_slice() {
        [component, by] => (*component, duration(by)?, ""),
        [component, by, what] => (*component, duration(by)?, *what),
        _ => return Err(args.wrong()),
    };
    if !component_known(session, component) {
        return switched(false, component, session, sink);
    }
    let component = session.cluster.process_of(component);
    // One delay for each event that comes in its time, not for ever the same event.
    let rule = delivery(component, what, Effect::Delay(by), None);
    session.cluster.add_rule(rule, Name::from(format!("{component} hears {by:?} late {what}").trim_end()));
    let text = match session.language().is_japanese() {
        true => format!("{component} への知らせは {by:?} 遅れます（%heal まで）\n"),
        false => format!("events to {component} come {by:?} late, until %heal\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn on(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let rule = args.text.strip_prefix("exit").and_then(|rest| rest.split_once(':'));
    let Some((name, command)) = rule else { return Err(args.wrong()) };
    let (name, command) = (name.trim(), command.trim());
    if name.is_empty() || command.is_empty() {
        return Err(args.wrong());
    }
    let action = action(command).ok_or_else(|| {
        let expected = "docker start NAME, docker run [options] IMAGE [COMMAND], docker rm NAME";
        CellError::new("UsageError", format!("'{command}' can't be a rule's command: expected {expected}"))
    })?;
    session.cluster.host_mut().0.add_rule(HostRule { on_exit_of: name.into(), action });
    let text = match session.language().is_japanese() {
        true => format!("規則: コンテナ {name} が終了したら「{command}」\n"),
        false => format!("rule: when container {name} exits, run '{command}'\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

/// What a rule of the host does, from the command that a person would type.
fn action(command: &str) -> Option<Action> {
    let jobs = line::parse(command).ok()?;
    let [job] = jobs.as_slice() else { return None };
    let [words] = job.pipeline.as_slice() else { return None };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["docker", "start", name] => Some(Action::Start((*name).into())),
        ["docker", "run", rest @ ..] => crate::commands::docker::order(rest).ok().map(Action::Run),
        ["docker", "rm", name] => Some(Action::Remove((*name).into())),
        _ => None,
    }
}

/// One line a process, or what runs in the process that is named. What is inside of one has a line of its own where it is
/// stopped alone.
pub fn components(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let names = session.component_names();
    let process_of = |name: &str| session.cluster.process_of(name).to_owned();
    let is_stopped = |name: &str| session.cluster.is_stopped(name) || session.cluster.is_stopped(&process_of(name));
    let inside = |process: &str| names.iter().filter(|name| *name != process && process_of(name) == process).count();
    let asked = match args.words.as_slice() {
        [] => None,
        [process] if names.iter().any(|name| name == process) => Some(*process),
        [other] => return Err(CellError::new("NoSuchComponent", format!("no component is named {other}"))),
        _ => return Err(args.wrong()),
    };
    let is_told = |name: &String| {
        let process = process_of(name);
        match asked {
            Some(asked) => name == asked || process == asked,
            None => *name == process || is_stopped(name) && !is_stopped(&process),
        }
    };
    let row = |name: &String| {
        let state = if is_stopped(name) { "stopped" } else { "running" };
        let controllers = match inside(name) {
            0 => String::new(),
            count => count.to_string(),
        };
        vec![name.clone(), state.to_owned(), controllers]
    };
    let rows: Vec<Vec<String>> = names.iter().filter(|name| is_told(name)).map(row).collect();
    let table = text::table(&["COMPONENT", "STATE", "CONTROLLERS"].map(str::to_owned), &rows);
    sink.put(Output::Stdout(table + "\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    const PODS: &str = "kubectl get pods -o name | wc -l";

    #[test]
    fn a_killed_container_of_a_workload_comes_back_in_its_pod() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=2");
        let names = run(&mut session, "kubectl get pods -o name");
        run(&mut session, "%kill deployment/web");
        assert_eq!(run(&mut session, "kubectl get pods -o name"), names);
        let restarts = "kubectl get pods -o jsonpath='{.items[*].status.containerStatuses[0].restartCount}'";
        assert_eq!(run(&mut session, restarts), "1 0");
        assert!(run(&mut session, "%kill deployment/none").starts_with("NotRunning: "));
    }

    #[test]
    fn events_to_a_controller_are_lost_where_its_process_hears_them() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx --replicas=3");
        let told = run(&mut session, "%drop replicaset-controller Pod 4");
        assert_eq!(told, "the next 4 event(s) to kube-controller-manager will be lost\n");
        run(&mut session, "kubectl get pods -o name | head -1 | xargs kubectl delete");
        assert_eq!(run(&mut session, PODS), "2\n");
        run(&mut session, "%advance 10m");
        assert_eq!(run(&mut session, PODS), "3\n");
    }

    #[test]
    fn a_machine_joins_and_takes_pods() {
        let mut session = session();
        run(&mut session, "%addnode node-4");
        assert_eq!(run(&mut session, "kubectl get nodes --no-headers | wc -l"), "4\n");
        run(&mut session, "kubectl cordon node-1 node-2 node-3");
        run(&mut session, "kubectl run web --image=nginx");
        assert_eq!(run(&mut session, "kubectl get pod web -o jsonpath='{.spec.nodeName}'"), "node-4");
        for wrong in ["%addnode node-4", "%addnode Node", "%addnode"] {
            assert!(run(&mut session, wrong).starts_with("UsageError: "), "{wrong}");
        }
    }

    #[test]
    fn controllers_are_down_with_their_process() {
        let mut session = session();
        run(&mut session, "%stop kube-controller-manager");
        let stopped =
            |told: &str, name: &str| told.lines().any(|line| line.starts_with(name) && line.contains("stopped"));
        let processes = run(&mut session, "%components");
        assert!(
            stopped(&processes, "kube-controller-manager") && !stopped(&processes, "kube-scheduler"),
            "{processes}"
        );
        assert!(!processes.contains("deployment-controller"), "{processes}");
        let inside = run(&mut session, "%components kube-controller-manager");
        assert!(stopped(&inside, "deployment-controller") && !inside.contains("kube-scheduler"), "{inside}");
        run(&mut session, "%start kube-controller-manager");
        run(&mut session, "%stop deployment-controller");
        let alone = run(&mut session, "%components");
        assert!(stopped(&alone, "deployment-controller") && !stopped(&alone, "kube-controller-manager"), "{alone}");
        assert!(run(&mut session, "%components kube-nothing").starts_with("NoSuchComponent: "));
    }
}
