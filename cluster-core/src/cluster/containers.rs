//! What a kubelet's own server gives of its containers, behind the subresources of a pod: logs and commands.
//! <https://kubernetes.io/docs/concepts/cluster-administration/logging/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::Value;

use super::Cluster;
use super::exec::Executing;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::apiserver::{Moment, admission};
use crate::clock::Time;
use crate::runtime::container::{Container, LogLine};
use crate::runtime::http::Answer;
use crate::runtime::shell::Exec;
use crate::runtime::shell::input::Input;

/// Which part of a log, and how: `PodLogOptions`.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Goes on with what is printed later.
    pub follow: bool,
    /// Of the container before the last restart.
    pub previous: bool,
    /// Each line behind the moment at which it was printed.
    pub timestamps: bool,
    /// Only so many lines at the end.
    pub tail_lines: Option<usize>,
    /// Only what was printed within this time.
    pub since: Option<Duration>,
    /// No more than this, cut where it ends.
    pub limit_bytes: Option<usize>,
}

impl LogOptions {
    /// These lines as text.
    pub fn text(&self, lines: &[LogLine]) -> String {
        let line = |line: &LogLine| match self.timestamps {
            true => format!("{} {}", line.at.timestamp(), line.shown()),
            false => line.shown(),
        };
        lines.iter().map(line).collect()
    }

    /// A text that is no longer than what is left of the limit; what is left then.
    pub fn limited(&self, mut text: String, left: &mut usize) -> String {
        text.truncate(text.floor_char_boundary(*left));
        *left -= text.len();
        text
    }

    pub fn bytes_max(&self) -> usize {
        self.limit_bytes.unwrap_or(usize::MAX)
    }
}

/// How far a log has been read.
#[derive(Clone, Debug)]
pub struct LogCursor {
    container_id: Name,
    node: Name,
    /// The moment of the last line that was read, and how many lines of that moment were.
    at: Time,
    read: usize,
}

impl Cluster {
    /// The container of a pod that a client means: its only one if none is named.
    ///
    /// # Errors
    /// 404 if there is no such pod, 400 if the name is no container's, or missing where there are several.
    pub fn container_of(&self, pod: &Key, name: &str) -> Result<(&Object, String), Status> {
        let object = self.pod(pod)?;
        let spec = object.spec::<Pod>();
        let main: Vec<&str> = spec.containers.iter().map(|container| container.name.as_str()).collect();
        let init: Vec<&str> = spec.init_containers.iter().flatten().map(|container| container.name.as_str()).collect();
        let ephemeral: Vec<&str> =
            spec.ephemeral_containers.iter().flatten().map(|container| container.name.as_str()).collect();
        match (name, main.as_slice()) {
            ("", [only]) => Ok((object, (*only).to_owned())),
            ("", many) => {
                let mut choice = format!("[{}]", many.join(" "));
                if !init.is_empty() {
                    choice = format!("{choice} or one of the init containers: [{}]", init.join(" "));
                }
                let problem =
                    format!("a container name must be specified for pod {}, choose one of: {choice}", pod.name);
                Err(Status::bad_request(problem))
            }
            (name, _) if main.iter().chain(&init).chain(&ephemeral).any(|known| *known == name) => {
                Ok((object, name.to_owned()))
            }
            (name, _) => Err(Status::bad_request(format!("container {name} is not valid for pod {}", pod.name))),
        }
    }

    /// The log of a pod's container as it is now, and where it goes on; nothing of a pod that has no node yet.
    ///
    /// # Errors
    /// As of [`Cluster::container_of`]; 400 if the container has not started, or not ended before.
    pub fn log(
        &self,
        pod: &Key,
        name: &str,
        options: &LogOptions,
    ) -> Result<(Vec<LogLine>, Option<LogCursor>), Status> {
        let (object, name) = self.container_of(pod, name)?;
        let node: Name = object.spec::<Pod>().node_name.as_deref().unwrap_or_default().into();
        if node.is_empty() {
            return Ok((Vec::new(), None));
        }
        let known = self.machine(&node).into_iter().flat_map(|machine| machine.runtime.containers());
        let ours = |container: &Container| {
            *container.identity.pod_uid == *object.uid() && *container.identity.name == *name.as_str()
        };
        let mut ran: Vec<&Container> = known.map(|(_, container)| container).filter(|known| ours(known)).collect();
        let last = ran.pop();
        let chosen = if options.previous { ran.pop() } else { last };
        let Some(container) = chosen else {
            return Err(Status::bad_request(match options.previous {
                true => format!("previous terminated container {name:?} in pod {:?} not found", &*pod.name),
                false => {
                    format!("container {name:?} in pod {:?} is waiting to start: {}", &*pod.name, waits(object, &name))
                }
            }));
        };
        let mut cursor = LogCursor { container_id: container.id.clone(), node, at: Time::ZERO, read: 0 };
        let mut lines = cursor.read(container);
        lines.retain(|line| options.since.is_none_or(|since| self.now().since(line.at) <= since));
        let skipped = options.tail_lines.map_or(0, |tail| lines.len().saturating_sub(tail));
        Ok((lines.split_off(skipped), Some(cursor)))
    }

    /// What has been printed since, and whether more may come: not from a container that has ended or is gone.
    pub fn log_after(&self, cursor: &mut LogCursor) -> (Vec<LogLine>, bool) {
        let mut known = self.machine(&cursor.node).into_iter().flat_map(|machine| machine.runtime.containers());
        match known.find(|(_, container)| container.id == cursor.container_id) {
            Some((_, container)) => (cursor.read(container), container.exit_code().is_none()),
            None => (Vec::new(), false),
        }
    }

    /// Runs a command in a pod's container to its end.
    ///
    /// # Errors
    /// As of [`Cluster::container_of`]; 500 if the container does not run or has no such program.
    pub fn run_in_container(&mut self, pod: &Key, name: &str, command: &[String]) -> Result<Exec, Status> {
        self.run_with_input(pod, name, command, &[])
    }

    /// The same, with what the command reads, if it is one that does: `tar`.
    ///
    /// # Errors
    /// As of [`Cluster::run_in_container`].
    pub fn run_with_input(&mut self, pod: &Key, name: &str, command: &[String], input: &[u8]) -> Result<Exec, Status> {
        let name = self.executing_container(pod, name)?;
        let done = match command {
            [program, args @ ..] if program == "tar" => self.tar(pod, &name, args, input).map(Some),
            _ => self.exec_with_input(pod, &name, command, &String::from_utf8_lossy(input)),
        };
        executed(done, &name, command)
    }

    /// Begins a command that goes on by [`Cluster::go_on`].
    ///
    /// # Errors
    /// As of [`Cluster::run_in_container`].
    pub fn begin_in_container(
        &mut self,
        pod: &Key,
        name: &str,
        command: &[String],
        input: Input,
    ) -> Result<Executing, Status> {
        let name = self.executing_container(pod, name)?;
        executed(self.begin_exec(pod, &name, command, input), &name, command)
    }

    fn executing_container(&self, pod: &Key, name: &str) -> Result<String, Status> {
        let (object, name) = self.container_of(pod, name)?;
        let phase = object.status::<Pod>().phase.clone().unwrap_or_default();
        if matches!(phase.as_str(), "Succeeded" | "Failed") {
            let problem = format!("cannot exec into a container in a completed pod; current phase is {phase}");
            return Err(Status::bad_request(problem));
        }
        Ok(name)
    }
}

impl Cluster {
    /// Whether those who are asked about connections to pods let this one be made. The request names pod and subresource,
    /// `options` is what it asks for: `PodExecOptions`, `PodAttachOptions`, `PodPortForwardOptions`.
    ///
    /// # Errors
    /// The refusal of a webhook, or that one could not be asked.
    pub fn admit_connection(&mut self, request: &Request, options: &Value) -> Result<(), Status> {
        let world = &mut self.world;
        let mut moment = Moment { now: world.now, random: &mut world.random, trace: &mut world.trace };
        admission::connect(&world.apiserver, request, options, &mut moment)
    }
}

/// What became of a command, or why it could not be begun.
fn executed<T>(done: Option<Option<T>>, container: &str, command: &[String]) -> Result<T, Status> {
    let missing = || format!("unable to upgrade connection: container not found (\"{container}\")");
    let unknown = || {
        let program = command.first().map_or("", String::as_str);
        format!(
            "error executing command in container: failed to exec in container: exec: \"{program}\": executable file not found in $PATH"
        )
    };
    done.ok_or_else(|| Status::unexplained(missing()))?.ok_or_else(|| Status::internal(unknown()))
}

/// Connections to a pod's ports.
impl Cluster {
    /// A pod that connections can be made to.
    ///
    /// # Errors
    /// 404 if there is no such pod, 400 if it does not run.
    pub fn running_pod(&self, pod: &Key) -> Result<&Object, Status> {
        let object = self.pod(pod)?;
        match object.status::<Pod>().phase.as_deref().unwrap_or("Pending") {
            "Running" => Ok(object),
            phase => {
                let problem = format!("unable to forward port because pod is not running. Current status={phase}");
                Err(Status::bad_request(problem))
            }
        }
    }

    fn pod(&self, pod: &Key) -> Result<&Object, Status> {
        let found = self.get::<Pod>(&pod.namespace, &pod.name);
        found.ok_or_else(|| Status::not_found(KindRef::of::<Pod>(), &pod.name))
    }

    /// Sends a GET to a port of a pod, from within its own network.
    ///
    /// # Errors
    /// As of [`Cluster::running_pod`]; 500 if nobody listens there.
    pub fn ask_port(&self, pod: &Key, port: u16, path: &str) -> Result<Answer, Status> {
        let object = self.running_pod(pod)?;
        let status = object.status::<Pod>();
        let (node, ip) = (object.spec::<Pod>().node_name.as_deref(), status.pod_ip.as_deref().unwrap_or_default());
        let machine = node.and_then(|node| self.machine(node));
        let answer = machine.and_then(|machine| machine.runtime.http(ip, port, path).ok());
        answer.ok_or_else(|| {
            let problem = format!("failed to connect to localhost:{port} inside namespace {:?}", object.uid());
            Status::unexplained(format!(
                "error forwarding port {port} to pod {}: {problem}: connection refused",
                pod.name
            ))
        })
    }
}

/// Why a container has not started, as the status of its pod says.
fn waits(pod: &Object, name: &str) -> String {
    let status = pod.status::<Pod>();
    let all = [&status.container_statuses, &status.init_container_statuses];
    let found = all.into_iter().flatten().flatten().find(|status| status.name == name);
    let reason = |status: &ContainerStatus| status.state.as_ref()?.waiting.as_ref()?.reason.clone();
    match found.and_then(reason).unwrap_or_else(|| "ContainerCreating".into()).as_str() {
        "ErrImagePull" => "image can't be pulled".into(),
        "ImagePullBackOff" => "trying and failing to pull image".into(),
        reason => reason.to_owned(),
    }
}

impl LogCursor {
    /// The lines behind the cursor, which then stands behind them. Lines of one moment may come in several readings.
    fn read(&mut self, container: &Container) -> Vec<LogLine> {
        let known = self.read;
        let of_last_moment = container.logs().filter(|line| line.at == self.at).skip(known);
        let lines: Vec<LogLine> = of_last_moment.chain(container.logs().filter(|line| line.at > self.at)).collect();
        if let Some(last) = lines.last() {
            self.at = last.at;
            self.read = container.logs().filter(|line| line.at == last.at).count();
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Config;
    use crate::api::request::{Body, Verb};

    fn cluster(containers: serde_json::Value) -> (Cluster, Key) {
        let mut cluster = Cluster::new(Config::default());
        let body = json!({"metadata": {"name": "p"}, "spec": {"containers": containers, "restartPolicy": "Never"}});
        let kind = KindRef::of::<Pod>();
        let request = Request::new(&"test".into(), Verb::Create, kind, Key::new("default", ""));
        cluster.request(Request { body: Body::Json(body), ..request }).expect("a pod");
        (cluster, Key::new("default", "p"))
    }

    fn text(lines: &[LogLine]) -> String {
        LogOptions::default().text(lines)
    }

    #[test]
    fn a_log_is_read_and_followed_to_its_end() {
        let command = json!(["sh", "-c", "echo one; sleep 5; echo two; echo three"]);
        let (mut cluster, pod) = cluster(json!([{"name": "c", "image": "busybox", "command": command}]));
        let options = LogOptions::default();
        let early = cluster.log(&pod, "", &options).map(|(lines, cursor)| (lines.len(), cursor.is_some()));
        assert!(matches!(early, Ok((0, false))), "no node has it yet: {early:?}");
        cluster.run_until(cluster.now() + Duration::from_secs(4), |_| true);
        let (lines, cursor) = cluster.log(&pod, "", &options).unwrap();
        let mut cursor = cursor.unwrap();
        assert_eq!(text(&lines), "one\n");
        assert!(matches!(cluster.log_after(&mut cursor), (lines, true) if lines.is_empty()));
        cluster.run_until(cluster.now() + Duration::from_secs(10), |_| true);
        let (lines, goes_on) = cluster.log_after(&mut cursor);
        assert_eq!((text(&lines).as_str(), goes_on), ("two\nthree\n", false));
        let (lines, _) = cluster.log(&pod, "c", &LogOptions { tail_lines: Some(1), ..options }).unwrap();
        assert_eq!(text(&lines), "three\n");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let container = |name: &str| json!({"name": name, "image": "nginx"});
        let (mut cluster, pod) = cluster(json!([container("a"), container("b")]));
        cluster.run_until(cluster.now() + Duration::from_secs(20), |_| true);
        let options = LogOptions::default();
        let refused = |cluster: &Cluster, name: &str, options: &LogOptions| {
            cluster.log(&pod, name, options).map(|_| ()).unwrap_err().message
        };
        let choose = "a container name must be specified for pod p, choose one of: [a b]";
        assert_eq!(refused(&cluster, "", &options), choose);
        assert_eq!(refused(&cluster, "x", &options), "container x is not valid for pod p");
        let previous = LogOptions { previous: true, ..options };
        assert_eq!(refused(&cluster, "a", &previous), "previous terminated container \"a\" in pod \"p\" not found");
        let missing = cluster.run_in_container(&pod, "a", &["nothing".into()]).unwrap_err();
        assert!(missing.message.ends_with("exec: \"nothing\": executable file not found in $PATH"));
        assert_eq!(cluster.run_in_container(&pod, "a", &["hostname".into()]).unwrap().output, "p\n");
        assert_eq!(cluster.ask_port(&pod, 80, "/").map(|answer| answer.status).ok(), Some(200));
        assert!(cluster.ask_port(&pod, 81, "/").unwrap_err().message.ends_with("connection refused"));
    }

    #[test]
    fn a_limit_cuts_between_letters() {
        let options = LogOptions { limit_bytes: Some(4), ..LogOptions::default() };
        let mut left = options.bytes_max();
        assert_eq!(options.limited("abé".into(), &mut left), "abé");
        assert_eq!(options.limited("x".into(), &mut left), "");
    }
}
