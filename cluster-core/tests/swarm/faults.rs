//! What breaks, and how all of it is mended: one row a fault.

use std::time::Duration;

use cluster_core::api::Name;
use cluster_core::faults::{Edge, Effect};

use crate::run::{Act, Run};

/// Every fault. What can be switched is switched: the next one of its kind may end it.
pub const ALL: &[Act] = &[
    Act { name: "component stops or starts", act: switch_component },
    Act { name: "component restarts", act: restart_component },
    Act { name: "controller stops or starts", act: switch_controller },
    Act { name: "control plane stops or starts", act: switch_control_plane },
    Act { name: "kubelet stops or starts", act: switch_kubelet },
    Act { name: "power", act: power },
    Act { name: "partition", act: partition },
    Act { name: "container crash", act: crash },
    Act { name: "sick container", act: sicken },
    Act { name: "event lost", act: lose_events },
    Act { name: "event late", act: delay_events },
    Act { name: "event twice", act: double_events },
    Act { name: "request lost", act: lose_requests },
    Act { name: "answer lost", act: lose_answers },
    Act { name: "slow", act: slow_down },
    Act { name: "mended", act: mended },
];

/// Components that list everything anew now and then, so that an event that was lost is not lost for ever.
const LISTS_ANEW: &str = "kube-controller-manager";

fn switch(run: &mut Run, component: &str) -> String {
    let stopped = run.cluster.is_stopped(component);
    if stopped {
        run.cluster.start(component)
    } else {
        run.cluster.stop(component)
    };
    format!("{component} {}", if stopped { "starts" } else { "stops" })
}

fn nodes(run: &Run) -> Vec<String> {
    run.cluster.machines().map(|(node, _)| node.to_string()).collect()
}

fn node(run: &mut Run) -> String {
    let nodes = nodes(run);
    run.one(&nodes)
}

/// A process on its own: the controllers share one, the nodes have three each.
fn a_process(run: &mut Run) -> String {
    let node = node(run);
    let of_node = ["kubelet", "kube-proxy"].map(|process| format!("{process}/{node}"));
    let all = ["kube-controller-manager".to_owned(), "kube-scheduler".to_owned()];
    let all: Vec<String> = all.into_iter().chain(of_node).collect();
    run.one(&all)
}

fn switch_component(run: &mut Run) -> Option<String> {
    let component = a_process(run);
    Some(switch(run, &component))
}

fn restart_component(run: &mut Run) -> Option<String> {
    let component = a_process(run);
    if run.cluster.is_stopped(&component) {
        return None;
    }
    run.cluster.stop(&component);
    run.cluster.start(&component);
    Some(format!("{component} restarts"))
}

fn switch_controller(run: &mut Run) -> Option<String> {
    let controllers: Vec<String> = run.cluster.controllers().map(|(name, _)| name.to_string()).collect();
    let controller = run.one(&controllers);
    Some(switch(run, &controller))
}

fn switch_control_plane(run: &mut Run) -> Option<String> {
    let component = run.one(&["kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"]);
    Some(switch(run, component))
}

fn switch_kubelet(run: &mut Run) -> Option<String> {
    let component = format!("kubelet/{}", node(run));
    Some(switch(run, &component))
}

fn power(run: &mut Run) -> Option<String> {
    let node = node(run);
    let powered = run.cluster.machine(&node)?.powered;
    if powered {
        run.cluster.power_off(&node)
    } else {
        run.cluster.power_on(&node)
    };
    Some(format!("{node} {}", if powered { "loses power" } else { "gets power" }))
}

fn partition(run: &mut Run) -> Option<String> {
    let node = node(run);
    if run.chance(60) {
        run.cluster.partition(&node);
        return Some(format!("{node} is cut off"));
    }
    run.cluster.heal(&node);
    Some(format!("{node} is connected"))
}

fn crash(run: &mut Run) -> Option<String> {
    let pod = run.pick_object(&["Pod"])?.key.clone();
    let of_memory = run.chance(30);
    let done = match of_memory {
        true => run.cluster.oom_kill(&pod.namespace, &pod.name, ""),
        false => run.cluster.kill_container(&pod.namespace, &pod.name, ""),
    };
    done.then(|| format!("a container of {pod} dies{}", if of_memory { " for want of memory" } else { "" }))
}

fn sicken(run: &mut Run) -> Option<String> {
    let pod = run.pick_object(&["Pod"])?.key.clone();
    let done = run.cluster.set_healthy(&pod.namespace, &pod.name, "c", false);
    done.then(|| {
        run.sick.insert((pod.clone(), "c".to_owned()));
        format!("{pod} is sick")
    })
}

/// A kind that matters; nothing means any.
fn a_kind(run: &mut Run) -> &'static str {
    run.one(&[
        "",
        "pods",
        "pods",
        "replicasets",
        "endpointslices",
        "nodes",
        "jobs",
        "persistentvolumeclaims",
        "services",
    ])
}

fn lose_events(run: &mut Run) -> Option<String> {
    let (component, kind, times) = (a_process(run), a_kind(run), 1 + run.below(5));
    if component != LISTS_ANEW {
        run.deaf.insert(Name::from(component.as_str()));
    }
    Some(run.rule(Edge::Delivery, &component, kind, Effect::Drop, Some(times as u32)))
}

fn delay_events(run: &mut Run) -> Option<String> {
    let (component, kind) = (a_process(run), a_kind(run));
    let by = Duration::from_millis(run.one(&[50, 1_000, 10_000]));
    let times = run.one(&[Some(1), Some(10), None]);
    Some(run.rule(Edge::Delivery, &component, kind, Effect::Delay(by), times))
}

fn double_events(run: &mut Run) -> Option<String> {
    let (component, kind) = (a_process(run), a_kind(run));
    Some(run.rule(Edge::Delivery, &component, kind, Effect::Duplicate, Some(20)))
}

/// Somebody who writes.
fn a_writer(run: &mut Run) -> String {
    let controllers: Vec<String> = run.cluster.controllers().map(|(name, _)| name.to_string()).collect();
    match run.below(4) {
        0 => a_process(run),
        _ => run.one(&controllers),
    }
}

fn lose_requests(run: &mut Run) -> Option<String> {
    let (component, kind, times) = (a_writer(run), a_kind(run), 1 + run.below(4));
    Some(run.rule(Edge::Request, &component, kind, Effect::Drop, Some(times as u32)))
}

fn lose_answers(run: &mut Run) -> Option<String> {
    let (component, kind, times) = (a_writer(run), a_kind(run), 1 + run.below(2));
    Some(run.rule(Edge::Request, &component, kind, Effect::LoseAnswer, Some(times as u32)))
}

fn slow_down(run: &mut Run) -> Option<String> {
    let by = run.one(&[1, 20, 200]);
    let usual = run.settings.clone();
    let settings = run.cluster.settings_mut();
    let slower = |(low, high): (Duration, Duration)| (low, high * by);
    (settings.api, settings.watch, settings.reconcile) =
        (slower(usual.api), slower(usual.watch), slower(usual.reconcile));
    Some(format!("control plane is {by} times slower"))
}

fn mended(run: &mut Run) -> Option<String> {
    mend(run);
    Some("all is mended".into())
}

/// Ends every fault.
pub fn mend(run: &mut Run) {
    *run.cluster.settings_mut() = run.settings.clone();
    run.cluster.clear_rules();
    // The apiserver first: who starts without it waits.
    for component in run.cluster.components() {
        if run.cluster.is_stopped(&component) && !run.cluster.is_off_from_the_start(&component) {
            run.cluster.start(&component);
        }
    }
    for node in nodes(run) {
        run.cluster.power_on(&node);
        run.cluster.heal(&node);
        // A kubelet whose Node was deleted registers it again when it starts.
        if run.cluster.list::<k8s_openapi::api::core::v1::Node>("").all(|known| *known.key.name != *node) {
            run.deaf.insert(format!("kubelet/{node}").into());
        }
    }
    for component in std::mem::take(&mut run.deaf) {
        run.cluster.stop(&component);
        run.cluster.start(&component);
    }
    for (pod, container) in std::mem::take(&mut run.sick) {
        run.cluster.set_healthy(&pod.namespace, &pod.name, &container, true);
    }
}
