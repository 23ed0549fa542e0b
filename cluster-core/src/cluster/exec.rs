//! Commands that run in containers, and what programs in them ask of the network: here, where all machines are known.

use std::time::Duration;

use super::{Cluster, faults};
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::kubelet::{Order, Ordered};
use crate::network::connect::Origin;
use crate::network::question::{Answer, Question};
use crate::runtime::container::Handle;
use crate::runtime::host;
use crate::runtime::programs::Turn;
use crate::runtime::shell::exec::{EXEC_MAX, Exec, Progress, Running};
use crate::runtime::shell::input::{Input, Stream};
use crate::world::Event;

/// A command on its way in a container of a pod.
#[derive(Clone, Debug)]
pub struct Executing {
    node: Name,
    handle: Handle,
    pod: Key,
    running: Running,
}

impl Executing {
    /// What it has printed since the last time, in its order.
    pub fn take_printed(&mut self) -> Vec<(Stream, String)> {
        self.running.printed.take_shown()
    }

    /// Gives it something to read.
    pub fn type_in(&mut self, text: &str) {
        self.running.script.input.push(text);
    }

    /// There is nothing more to read.
    pub fn close_input(&mut self) {
        self.running.script.input.close();
    }
}

impl Cluster {
    /// Begins a command in a pod's container. `None` if it does not run, `Some(None)` if the container has no such
    /// program.
    pub fn begin_exec(
        &mut self,
        pod: &Key,
        container: &str,
        command: &[String],
        input: Input,
    ) -> Option<Option<Executing>> {
        let (machine, handle) = faults::find_container(&mut self.machines, &pod.namespace, &pod.name, container)?;
        let known = machine.runtime.container(handle)?;
        if !known.has_program(command) {
            return known.is_running().then_some(None);
        }
        machine.kubelet.furnish(handle, &mut machine.runtime, &mut self.world);
        let running = machine.runtime.begin(handle, command, input)?;
        let node = machine.runtime.machine.clone();
        Some(Some(Executing { node, handle, pod: pod.clone(), running }))
    }

    /// Lets a command go on until it waits or ends.
    pub fn go_on(&mut self, executing: &mut Executing) -> Progress {
        let Executing { node, handle, pod, running } = executing;
        self.progress(node, *handle, &Origin::Pod(pod.clone()), running)
    }

    /// Runs a command to its end; the cluster's time goes on meanwhile.
    pub fn exec(&mut self, pod: &Key, container: &str, command: &[String]) -> Option<Option<Exec>> {
        self.exec_with_input(pod, container, command, "")
    }

    /// The same for one that reads.
    pub fn exec_with_input(
        &mut self,
        pod: &Key,
        container: &str,
        command: &[String],
        input: &str,
    ) -> Option<Option<Exec>> {
        let Some(mut executing) = self.begin_exec(pod, container, command, Input::closed(input))? else {
            return Some(None);
        };
        let began = self.now();
        let code = loop {
            let left = EXEC_MAX.saturating_sub(self.now().since(began));
            match self.go_on(&mut executing) {
                Progress::Ended(code) => break code,
                Progress::Sleeps(time) if time < left => {
                    self.advance(time.max(Duration::from_millis(1)), |_| true);
                }
                Progress::Sleeps(_) | Progress::Waits => {
                    self.advance(left, |_| true);
                    break 137;
                }
            }
        };
        let output = executing.running.printed.take_text();
        Some(Some(Exec { code, output, took: self.now().since(began), ..Exec::default() }))
    }

    fn progress(&mut self, node: &Name, handle: Handle, from: &Origin, running: &mut Running) -> Progress {
        let now = self.now();
        let machine = self.machines.get_mut(node);
        match machine.and_then(|machine| machine.runtime.go_on(handle, running, now)) {
            // Its container has ended, and all that ran in it.
            None => Progress::Ended(137),
            Some(Turn::Ends(code)) => Progress::Ended(code),
            Some(Turn::Sleeps(time, _)) => Progress::Sleeps(time),
            Some(Turn::Serves | Turn::Becomes(_)) => Progress::Waits,
            Some(Turn::Asks(question, _)) => {
                let answer = self.ask(from, &question);
                let took = answer.took();
                running.script.answer(answer);
                Progress::Sleeps(took)
            }
        }
    }

    /// Answers what the program of a container asks.
    pub(super) fn answer_program(&mut self, node: &Name, handle: Handle, question: &Question, class: Class) {
        let runtime = match self.machines.get(node) {
            Some(machine) => &machine.runtime,
            None => &self.host.runtime,
        };
        let Some(container) = runtime.container(handle) else { return };
        let from = if **node == *host::MACHINE { Origin::Outside } else { Origin::Pod(container.identity.pod.clone()) };
        let answer = self.ask(&from, question);
        let runtime = match self.machines.get_mut(node) {
            Some(machine) => &mut machine.runtime,
            None => &mut self.host.runtime,
        };
        runtime.answer(handle, answer, class, &mut self.world);
    }

    /// Lets a command that a kubelet has ordered go on, and tells the kubelet when it has ended.
    pub(super) fn go_on_for_kubelet(&mut self, node: Name, mut ordered: Box<Ordered>) {
        let now = self.now();
        let from = Origin::Pod(ordered.pod.clone());
        let progress = match now < ordered.deadline {
            true => match &mut ordered.what {
                Order::Run(running) => self.progress(&node, ordered.handle, &from, running),
                Order::Get(question) => {
                    let Answer::Got(connection) = self.ask(&Origin::Node(node.clone()), question) else { return };
                    let (code, output) = match &connection.result {
                        Ok(_) => (0, String::new()),
                        Err(failure) => (1, failure.to_string()),
                    };
                    let exec = Exec { code, output, took: connection.took, ..Exec::default() };
                    return self.tell_kubelet(&node, &ordered, exec);
                }
            },
            false => Progress::Ended(137),
        };
        let again = |wait: Duration| -> Time { (now + wait).min(ordered.deadline) };
        match progress {
            Progress::Ended(code) => {
                let output = match &mut ordered.what {
                    Order::Run(running) => running.printed.take_text(),
                    Order::Get(_) => String::new(),
                };
                let exec = Exec { code, output, took: now.since(ordered.began), ..Exec::default() };
                self.tell_kubelet(&node, &ordered, exec);
            }
            Progress::Sleeps(wait) => self.order_again(again(wait), node, ordered),
            Progress::Waits => self.order_again(again(EXEC_MAX), node, ordered),
        }
    }

    fn tell_kubelet(&mut self, node: &Name, ordered: &Ordered, exec: Exec) {
        if let Some(machine) = self.machines.get_mut(node) {
            machine.kubelet.executed(ordered, exec, &mut machine.runtime, &mut self.world);
        }
    }

    fn order_again(&mut self, at: Time, node: Name, ordered: Box<Ordered>) {
        let wait = at.since(self.now());
        self.world.after(wait, ordered.class, Event::Exec(node, ordered));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Service};
    use serde_json::{Value, json};

    use super::*;
    use crate::Config;
    use crate::controllers::testing::{create, settle};

    fn pod(cluster: &mut Cluster, name: &str, container: Value) {
        let mut container = container;
        container["name"] = "c".into();
        let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 1});
        create::<Pod>(cluster, json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}));
    }

    /// nginx behind the Service web, and a client.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        pod(&mut cluster, "web", json!({"image": "nginx:1.29"}));
        pod(&mut cluster, "client", json!({"image": "busybox", "command": ["sleep", "3600"]}));
        let spec = json!({"selector": {"app": "web"}, "clusterIP": "10.96.7.7", "ports": [{"port": 80}]});
        create::<Service>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        settle(&mut cluster);
        cluster
    }

    fn sh(cluster: &mut Cluster, pod: &str, text: &str) -> (i32, String) {
        let command = ["sh", "-c", text].map(str::to_owned);
        let exec = cluster.exec(&Key::new("default", pod), "c", &command).flatten().unwrap_or_default();
        (exec.code, exec.output)
    }

    #[test]
    fn programs_in_containers_reach_services() {
        let mut cluster = cluster();
        let (code, text) = sh(&mut cluster, "client", "wget -qO- http://web | grep -c 'Welcome to nginx'");
        assert_eq!((code, text.as_str()), (0, "2\n"));
        let (_, text) = sh(&mut cluster, "client", "wget -O /dev/null web:80 2>&1 | head -n 2");
        assert_eq!(text, "Connecting to web:80 (10.96.7.7:80)\nsaving to '/dev/null'\n");
        for (line, expected) in [
            ("wget -O- http://nowhere", "wget: bad address 'nowhere'\n"),
            ("wget -q -O- web:81 -T 1", "wget: download timed out\n"),
            ("wget -qO- localhost", "wget: can't connect to remote host (127.0.0.1): Connection refused\n"),
            ("wget -qO- web/none", "wget: server returned error: HTTP/1.1 404 Not Found\n"),
            ("curl -s -o /dev/null -w '%{http_code}\\n' web/none", "404\n"),
            ("curl -sf web/none; echo $?", "22\n"),
            ("curl -s nowhere; echo $?", "6\n"),
            ("curl -m 1 -s web:81; echo $?", "28\n"),
            ("nc -zv -w 1 web 80", "web (10.96.7.7:80) open\n"),
            ("echo hello | nc -w 1 web 80 | head -n 1", "HTTP/1.1 400 Bad Request\r\n"),
            ("x=$(curl -s web | wc -l); y=$(curl -s web | wc -l); [ $x = $y ] && echo same", "same\n"),
            ("dig +short web.default.svc.cluster.local; dig +search +short web", "10.96.7.7\n10.96.7.7\n"),
            ("getent hosts web", "10.96.7.7       web.default.svc.cluster.local\n"),
            ("dig +short -x 10.96.7.7", "web.default.svc.cluster.local.\n"),
            ("getent hosts $(hostname) | wc -l", "1\n"),
            ("ping -c 1 nowhere", "ping: bad address 'nowhere'\n"),
        ] {
            assert_eq!(sh(&mut cluster, "client", line).1, expected, "{line}");
        }
        let (_, text) = sh(&mut cluster, "client", "nslookup web");
        assert_eq!(
            text,
            "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\nName:\tweb.default.svc.cluster.local\nAddress: 10.96.7.7\n\n"
        );
        assert_eq!(sh(&mut cluster, "web", "curl -s localhost:80 | head -n 1").1, "<!DOCTYPE html>\n");
    }

    #[test]
    fn a_program_waits_for_what_is_not_there_yet() {
        let mut cluster = cluster();
        let text = "until wget -qO- -T 1 later >/dev/null 2>&1; do echo waiting; sleep 2; done; echo found; sleep 3600";
        pod(&mut cluster, "waits", json!({"image": "busybox", "command": ["sh", "-c", text]}));
        cluster.advance(Duration::from_secs(20), |_| true);
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
        create::<Service>(&mut cluster, json!({"metadata": {"name": "later"}, "spec": spec}));
        cluster.advance(Duration::from_secs(5), |_| true);
        let (lines, _) = cluster.log(&Key::new("default", "waits"), "", &Default::default()).unwrap();
        assert!(lines.len() > 5 && lines.last().is_some_and(|line| line.text == "found"), "{lines:?}");
    }

    #[test]
    fn probes_and_hooks_may_ask_the_network() {
        let mut cluster = cluster();
        let hook = json!({"postStart": {"exec": {"command": ["sh", "-c", "wget -qO /tmp/page web"]}}});
        let probe = |url: &str| json!({"exec": {"command": ["wget", "-qO-", "-T", "1", url]}, "periodSeconds": 1});
        let container = json!({"image": "busybox", "command": ["sleep", "3600"], "lifecycle": hook});
        let mut good = container.clone();
        good["readinessProbe"] = probe("web");
        let mut bad = container;
        bad["readinessProbe"] = probe("nowhere");
        pod(&mut cluster, "good", good);
        pod(&mut cluster, "bad", bad);
        cluster.advance(Duration::from_secs(20), |_| true);
        let ready = |cluster: &Cluster, name: &str| {
            let status = cluster.get::<Pod>("default", name).unwrap().to_json()["status"].clone();
            status["containerStatuses"][0]["ready"].clone()
        };
        assert_eq!((ready(&cluster, "good"), ready(&cluster, "bad")), (json!(true), json!(false)));
        assert_eq!(sh(&mut cluster, "good", "grep -c Welcome /tmp/page").1, "2\n");
        let http = |path: &str| json!({"httpGet": {"host": "10.96.7.7", "port": 80, "path": path}});
        let hooks = json!({"postStart": http("/"), "preStop": http("/none")});
        pod(&mut cluster, "asks", json!({"image": "busybox", "command": ["sleep", "3600"], "lifecycle": hooks}));
        cluster.advance(Duration::from_secs(20), |_| true);
        assert_eq!(ready(&cluster, "asks"), json!(true));
    }
}
