//! `crictl`: what the container runtime of a node knows, without the API server. Typed in a node's shell:
//! `node-1$ crictl ps`. <https://kubernetes.io/docs/tasks/debug/debug-cluster/crictl/>

use cluster_core::clock::Time;
use cluster_core::cluster::Machine;
use cluster_core::runtime::container::{Container, State};

use super::{Context, Program};

pub struct Crictl;

const USAGE: &str = "usage: crictl ps [-a] | pods | images | logs CONTAINER-ID";
const COLUMN_WIDTH_MIN: usize = 20;
const PADDING: usize = 3;

/// How many digits of an id are shown.
const ID_LENGTH: usize = 13;

impl Program for Crictl {
    fn name(&self) -> &'static str {
        "crictl"
    }

    fn about(&self) -> &'static str {
        "shows the containers of a node"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let node = context.node.clone().unwrap_or_default();
        let now = context.api.now();
        let machine = context.api.cluster().and_then(|cluster| cluster.machine(&node));
        let Some(machine) = machine.filter(|machine| machine.powered) else {
            context.error_line(match node.as_str() {
                "" => "crictl: this runs on a node; write its name before the command: node-1$ crictl ps".to_owned(),
                node => format!("crictl: node {node:?} can't be reached"),
            });
            return 1;
        };
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let answer = match words.as_slice() {
            ["ps"] => Ok(containers(machine, now, false)),
            ["ps", "-a" | "--all"] => Ok(containers(machine, now, true)),
            ["pods"] => Ok(pods(machine, now)),
            ["images" | "image" | "img"] => Ok(images(machine)),
            ["logs", id] => logs(machine, id),
            _ => Err(USAGE.to_owned()),
        };
        match answer {
            Ok(text) => {
                context.print(text);
                0
            }
            Err(problem) => {
                context.error_line(problem);
                1
            }
        }
    }
}

fn align(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let widest = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        (widest.unwrap_or(0) + PADDING).max(COLUMN_WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| match column + 1 < row.len() {
            true => format!("{cell:<width$}", width = widths[column]),
            false => cell.clone(),
        });
        cells.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

pub fn short(id: &str) -> String {
    id.trim_start_matches("sha256:").chars().take(ID_LENGTH).collect()
}

/// `5 seconds ago`, as Docker's units say it.
pub fn ago(at: Time, now: Time) -> String {
    let seconds = now.since(at).as_secs();
    let (minutes, hours) = (seconds / 60, (seconds + 1800) / 3600);
    let text = match () {
        () if seconds < 1 => "Less than a second".to_owned(),
        () if seconds == 1 => "1 second".to_owned(),
        () if seconds < 60 => format!("{seconds} seconds"),
        () if minutes == 1 => "About a minute".to_owned(),
        () if minutes < 60 => format!("{minutes} minutes"),
        () if hours == 1 => "About an hour".to_owned(),
        () if hours < 48 => format!("{hours} hours"),
        () => format!("{} days", hours / 24),
    };
    format!("{text} ago")
}

fn containers(machine: &Machine, now: Time, all: bool) -> String {
    let header = ["CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE"];
    let mut rows = vec![row(&header)];
    let shown = machine.runtime.containers().filter(|(_, container)| all || container.is_running());
    for (_, container) in shown.collect::<Vec<_>>().into_iter().rev() {
        let of = &container.identity;
        let sandbox = machine.runtime.sandbox(&of.pod_uid).map(|sandbox| short(&sandbox.id)).unwrap_or_default();
        rows.push(row(&[
            &short(&container.id),
            &of.image,
            &ago(container.created_at, now),
            state(container),
            &of.name,
            &container.attempt.to_string(),
            &sandbox,
            &of.pod.name,
            &of.pod.namespace,
        ]));
    }
    align(&rows)
}

fn state(container: &Container) -> &'static str {
    match container.state {
        State::Created => "Created",
        State::Running => "Running",
        State::Exited { .. } => "Exited",
    }
}

fn pods(machine: &Machine, now: Time) -> String {
    let mut rows = vec![row(&["POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME"])];
    for sandbox in machine.runtime.sandboxes() {
        rows.push(row(&[
            &short(&sandbox.id),
            &ago(sandbox.created_at, now),
            if sandbox.ready { "Ready" } else { "NotReady" },
            &sandbox.pod.name,
            &sandbox.pod.namespace,
            "0",
            "(default)",
        ]));
    }
    align(&rows)
}

fn images(machine: &Machine) -> String {
    let mut rows = vec![row(&["IMAGE", "TAG", "IMAGE ID", "SIZE"])];
    for (name, image) in machine.runtime.images() {
        let tagged = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
        let (repository, tag) = tagged.unwrap_or((name, "latest"));
        let digest = image.id.rsplit_once("sha256:").map_or(&*image.id, |(_, digest)| digest);
        let megabytes = image.size_bytes as f64 / 1e6;
        rows.push(row(&[repository, tag, &short(digest), &format!("{megabytes:.1}MB")]));
    }
    align(&rows)
}

fn logs(machine: &Machine, id: &str) -> Result<String, String> {
    let mut found = machine.runtime.containers().map(|(_, container)| container).filter(|c| c.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.logs().map(|line| line.shown()).collect()),
        (None, _) => Err(format!("E0101 could not find container {id:?}: ID does not exist")),
        _ => Err(format!("several containers begin with {id:?}: write more of the ID")),
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::super::shell;
    use super::*;
    use crate::commands::files::Memory;

    #[test]
    fn a_node_knows_its_containers() {
        let mut cluster = Cluster::new(Config { nodes: 1, ..Config::default() });
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        let mut screen = String::new();
        let code = "kubectl run web --image=nginx:1.27\nkubectl wait --for=condition=Ready pod/web\n\
                    node-1$ crictl ps\nnode-1$ crictl pods | wc -l\nnode-1$ crictl images | tail -1\n\
                    crictl ps\nnode-9$ crictl ps";
        let last = shell::run(code, &mut context, &mut |_, text| screen.push_str(&text)).unwrap();
        assert_eq!(last, 1);
        assert!(screen.contains("nginx:1.27          Less than a second ago"), "{screen}");
        assert!(screen.contains("Running             web                 0 "), "{screen}");
        assert!(screen.contains("\n2\n"), "{screen}");
        assert!(screen.contains("node \"node-9\" can't be reached"), "{screen}");
    }
}
