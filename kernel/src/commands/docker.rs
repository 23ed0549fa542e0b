//! `docker`: a plain container host without Kubernetes, where nothing comes back unless somebody says so.
//! <https://docs.docker.com/reference/cli/docker/>

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::clock::Time;
use cluster_core::runtime::container::{Container, State};
use cluster_core::runtime::host::{Order, Restart};

use super::crictl::{ago, short};
use super::{Context, Program};

pub struct Docker;

const USAGE: &str = "usage: docker run [-d] [--name NAME] [--restart POLICY] [-e NAME=VALUE] IMAGE [COMMAND…] | ps [-a] \
     | start | stop | kill | rm [-f] | logs NAME…";

/// How long `docker run` waits for an image before it lets go.
const RUN_SECONDS_MAX: u64 = 60;

impl Program for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn about(&self) -> &'static str {
        "a container host without Kubernetes"
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let Some(cluster) = context.api.cluster() else {
            context.error_line("docker: there is no container host beside a remote cluster");
            return 1;
        };
        let answer = match words.as_slice() {
            ["run", rest @ ..] => run(rest, cluster),
            ["ps", rest @ ..] => ps(rest, cluster),
            [verb @ ("start" | "stop" | "kill" | "rm" | "logs"), names @ ..] => each(verb, names, cluster),
            ["--help" | "-h"] => Ok(format!("{USAGE}\n")),
            [] => Err((1, USAGE.to_owned())),
            [word, ..] => Err((1, format!("docker: '{word}' is not a docker command.\nSee 'docker --help'"))),
        };
        match answer {
            Ok(text) => {
                context.print(text);
                0
            }
            Err((code, text)) => {
                context.error_line(text);
                code
            }
        }
    }
}

type Answer = Result<String, (i32, String)>;

/// What a `docker run` line orders. The error is a usage error.
pub fn order(words: &[&str]) -> Result<Order, String> {
    let mut order = Order::default();
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        let (flag, inline) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        let mut value = || {
            let next = inline.or_else(|| rest.next());
            next.ok_or_else(|| format!("flag needs an argument: {word}"))
        };
        match flag {
            "-d" | "--detach" | "-it" | "-i" | "-t" | "--rm" => {}
            "--name" => order.name = value()?.into(),
            "--restart" => order.restart = Restart::parse(value()?)?,
            "-e" | "--env" => {
                let pair = value()?;
                let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
                order.environment.push((name.to_owned(), text.to_owned()));
            }
            "-p" | "--publish" => drop(value()?),
            flag if flag.starts_with('-') => return Err(format!("unknown flag: {flag}\nSee 'docker run --help'.")),
            image => {
                order.image = image.into();
                order.command = rest.by_ref().map(str::to_owned).collect();
            }
        }
    }
    if order.image.is_empty() {
        return Err("\"docker run\" requires at least 1 argument.\nSee 'docker run --help'.".into());
    }
    if order.name.is_empty() {
        let base = order.image.rsplit('/').next().unwrap_or_default();
        order.name = base.split(':').next().unwrap_or_default().into();
    }
    Ok(order)
}

fn run(words: &[&str], cluster: &mut Cluster) -> Answer {
    let order = order(words).map_err(|text| (125, format!("docker: {text}")))?;
    let name = order.name.clone();
    let (host, world) = cluster.host_mut();
    host.run(order, world).map_err(|text| (125, format!("docker: Error response from daemon: {text}.")))?;
    let deadline = cluster.now() + Duration::from_secs(RUN_SECONDS_MAX);
    while cluster.host().container(&name).is_none_or(|container| container.state == State::Created) {
        if !cluster.step_before(deadline) {
            break;
        }
    }
    Ok(cluster.host().container(&name).map(|container| format!("{}\n", container.id)).unwrap_or_default())
}

fn each(verb: &str, words: &[&str], cluster: &mut Cluster) -> Answer {
    let (flags, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    if names.is_empty() {
        return Err((1, format!("\"docker {verb}\" requires at least 1 argument.\nSee 'docker {verb} --help'.")));
    }
    let force = flags.iter().any(|flag| matches!(*flag, "-f" | "--force"));
    let mut told = String::new();
    for name in names {
        let (host, world) = cluster.host_mut();
        let done = match verb {
            "start" => host.start(name, world),
            "stop" => host.stop(name, world),
            "kill" => host.kill(name, true, world),
            "rm" => host.remove(name, force, world),
            _ => match host.container(name) {
                Some(container) => {
                    told.extend(container.logs().map(|line| line.shown()));
                    continue;
                }
                None => Err(format!("No such container: {name}")),
            },
        };
        done.map_err(|text| (1, format!("Error response from daemon: {text}")))?;
        if verb == "stop" {
            wait_for_end(name, cluster);
        }
        told += &format!("{name}\n");
    }
    Ok(told)
}

/// `docker stop` comes back when the container has ended.
fn wait_for_end(name: &str, cluster: &mut Cluster) {
    let deadline = cluster.now() + Duration::from_secs(11);
    while cluster.host().container(name).is_some_and(Container::is_running) && cluster.step_before(deadline) {}
}

fn ps(flags: &[&str], cluster: &mut Cluster) -> Answer {
    let all = flags.iter().any(|flag| matches!(*flag, "-a" | "--all"));
    let now = cluster.now();
    let header =
        ["CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "STATUS", "PORTS", "NAMES"].map(str::to_owned).to_vec();
    let known = cluster.host().containers().filter_map(|(name, named, container)| Some((name, named, container?)));
    let mut shown: Vec<_> = known.filter(|(_, _, container)| all || container.is_running()).collect();
    shown.sort_by_key(|(_, _, container)| std::cmp::Reverse(container.created_at));
    let row =
        |(name, named, container): &(&cluster_core::api::Name, &cluster_core::runtime::host::Named, &Container)| {
            let command = if named.order.command.is_empty() { "…".into() } else { named.order.command.join(" ") };
            vec![
                short(&container.id)[..12].to_owned(),
                named.order.image.to_string(),
                format!("\"{command}\""),
                ago(container.created_at, now),
                status(container, now),
                String::new(),
                name.to_string(),
            ]
        };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    Ok(crate::text::table(&header, &rows) + "\n")
}

fn status(container: &Container, now: Time) -> String {
    match container.exit_code() {
        Some(code) => format!("Exited ({code}) {}", ago(container.finished_at, now)),
        None if container.is_running() => {
            let since = ago(container.started_at, now);
            format!("Up {}", since.trim_end_matches(" ago"))
        }
        None => "Created".into(),
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::Config;

    use super::*;
    use crate::commands::files::Memory;

    fn type_in(cluster: &mut Cluster, line: &str) -> (i32, String) {
        let mut files = Memory::default();
        let mut context = Context::new(cluster, &mut files);
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let code = Docker.run(&args, &mut context);
        (code, context.take_written().into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn a_killed_container_stays_dead() {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let (code, id) = type_in(&mut cluster, "run -d --name web nginx");
        assert_eq!((code, id.trim().len()), (0, 64));
        assert!(type_in(&mut cluster, "ps").1.contains(" web"));
        assert_eq!(type_in(&mut cluster, "kill web"), (0, "web\n".into()));
        cluster.advance(Duration::from_secs(600), |_| true);
        assert!(!type_in(&mut cluster, "ps").1.contains(" web"));
        assert!(type_in(&mut cluster, "ps -a").1.contains("Exited (137) 10 minutes ago"));
        assert_eq!(type_in(&mut cluster, "rm web").0, 0);
        assert_eq!(type_in(&mut cluster, "rm web"), (1, "Error response from daemon: No such container: web\n".into()));
    }

    #[test]
    fn wrong_use_is_told() {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        assert_eq!(type_in(&mut cluster, "run").0, 125);
        assert_eq!(type_in(&mut cluster, "run --color blue nginx").0, 125);
        assert_eq!(type_in(&mut cluster, "fly").0, 1);
    }
}
