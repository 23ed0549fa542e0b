//! What the runtime keeps about a sandbox and a container.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::files::Files;
use super::programs::{Process, Program};
use super::shell::input::Output;
use super::shell::{self, Home, User};
use super::usage::{Meter, Work};
use super::volumes::Mount;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::trace::{ContainerEntry, ContainerPhase};

/// A container of one machine, as long as the machine knows it.
pub type Handle = u64;

/// What every process takes.
const OWN_MEMORY_BYTES: u64 = 2 << 20;

/// Log lines that are kept of one container.
const LINES_MAX: usize = 1000;

/// Whose container it is. For a plain container host: namespace "", the container's name, no uid.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub pod: Key,
    pub pod_uid: Name,
    pub name: Name,
    pub image: Name,
}

impl Identity {
    pub fn entry(&self, machine: &Name, phase: ContainerPhase) -> ContainerEntry {
        ContainerEntry {
            node: machine.clone(),
            pod: self.pod.clone(),
            pod_uid: self.pod_uid.clone(),
            container: self.name.clone(),
            image: self.image.clone(),
            phase,
        }
    }
}

/// How a container is to be made.
#[derive(Clone, Debug)]
pub struct Config {
    pub identity: Identity,
    /// Replaces the image's entrypoint, if not empty.
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub hostname: Name,
    /// Who its processes are.
    pub user: User,
    /// Where its processes begin; empty for the root.
    pub working_folder: String,
    /// Where it has which volumes.
    pub mounts: Vec<Mount>,
    /// It can write only into its volumes.
    pub read_only_root: bool,
    /// Its program waits for what is typed.
    pub stdin: bool,
    /// The ports that its manifest says it listens on; a program that the table does not know listens on these.
    pub ports: Vec<u16>,
    /// The same for UDP.
    pub udp_ports: Vec<u16>,
    /// It ends with this code as soon as it has started, whatever its program is.
    pub exit: Option<i32>,
    /// How many containers of this name the pod had before.
    pub attempt: u32,
    /// The kernel kills its processes when they take more.
    pub memory_bytes_max: Option<u64>,
    /// They get no more CPU time a second than this.
    pub cpu_nanos_max: Option<u64>,
}

impl Config {
    /// The image's own program, with nothing of its own.
    pub fn new(identity: Identity) -> Config {
        Config {
            hostname: identity.pod.name.clone(),
            identity,
            command: Vec::new(),
            args: Vec::new(),
            environment: Vec::new(),
            user: User::default(),
            working_folder: String::new(),
            mounts: Vec::new(),
            read_only_root: false,
            stdin: false,
            ports: Vec::new(),
            udp_ports: Vec::new(),
            exit: None,
            attempt: 0,
            memory_bytes_max: None,
            cpu_nanos_max: None,
        }
    }
}

impl Config {
    /// What its processes have around them.
    pub fn home(&self) -> Home {
        let words: Vec<&str> = self.command.iter().chain(&self.args).map(String::as_str).collect();
        let mounts = self.mounts.as_slice().into();
        Home { hostname: self.hostname.to_string(), user: self.user.clone(), program: words.join(" "), mounts }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Created,
    Running,
    Exited { code: i32, reason: &'static str },
}

#[derive(Clone, Debug)]
pub struct LogLine {
    pub at: Time,
    pub text: Cow<'static, str>,
    /// The end of the line has been printed, too.
    pub is_whole: bool,
}

impl LogLine {
    /// As it is shown: with its end, if it has one.
    pub fn shown(&self) -> String {
        format!("{}{}", self.text, if self.is_whole { "\n" } else { "" })
    }
}

#[derive(Clone, Debug)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: Name,
    pub identity: Identity,
    pub image_id: Name,
    pub attempt: u32,
    pub state: State,
    pub created_at: Time,
    pub started_at: Time,
    pub finished_at: Time,
    /// A fault can make its service fail while the process lives on.
    pub healthy: bool,
    pub ports: Arc<[u16]>,
    pub udp_ports: Arc<[u16]>,
    pub mounts: Arc<[Mount]>,
    pub read_only_root: bool,
    pub environment: Vec<(String, String)>,
    pub hostname: Name,
    pub user: User,
    /// The command line of its first process.
    pub program: String,
    pub working_folder: String,
    pub memory_bytes_max: Option<u64>,
    pub cpu_nanos_max: Option<u64>,
    /// It has the files that every container is given. Only for whoever looks are they made.
    pub is_furnished: bool,
    /// Memory that a fault has made it take.
    pub filled_bytes: u64,
    pub(super) work: Work,
    pub(super) meter: Meter,
    pub(super) process: Process,
    /// When its process goes on by itself.
    pub(super) wakes_at: Option<Time>,
    /// The process as it was before its first step.
    fresh: Process,
    /// What its image has brought, its volumes hold and its processes have written.
    pub(super) files: Files,
    image_files: Files,
    lines: imbl::Vector<LogLine>,
}

impl Container {
    pub(super) fn new(id: Name, image_id: Name, config: Config, image: &Arc<Program>, now: Time) -> Container {
        let process = Process::new(&config, image);
        let image_files = image.files.clone().and(&process.program().files);
        let (fresh, program) = (process.clone(), config.home().program);
        Container {
            id,
            identity: config.identity,
            image_id,
            attempt: config.attempt,
            state: State::Created,
            created_at: now,
            started_at: Time::ZERO,
            finished_at: Time::ZERO,
            healthy: true,
            ports: config.ports.into(),
            udp_ports: config.udp_ports.into(),
            mounts: config.mounts.into(),
            read_only_root: config.read_only_root,
            environment: config.environment,
            hostname: config.hostname,
            user: config.user,
            program,
            working_folder: config.working_folder,
            memory_bytes_max: config.memory_bytes_max,
            cpu_nanos_max: config.cpu_nanos_max,
            is_furnished: false,
            filled_bytes: 0,
            work: Work::default(),
            meter: Meter::default(),
            process,
            wakes_at: None,
            fresh,
            files: image_files.clone(),
            image_files,
            lines: imbl::Vector::new(),
        }
    }

    /// Its program is one of the shell's: it may look at any file.
    pub fn reads_files(&self) -> bool {
        self.process.is_script()
    }

    /// A command that can be run in it: a program of the shell's, or a file.
    pub fn has_program(&self, command: &[String]) -> bool {
        let is_file = |word: &String| word.contains('/') && self.files.read(word).is_some();
        command.first().is_some_and(|word| shell::is_known(word) || is_file(word))
    }

    /// What its processes take.
    pub fn memory_bytes(&self) -> u64 {
        if self.is_running() { OWN_MEMORY_BYTES + self.process.memory_bytes() + self.filled_bytes } else { 0 }
    }

    /// It takes more than what every process does, or is going to.
    pub fn takes_much_memory(&self) -> bool {
        self.memory_bytes() > OWN_MEMORY_BYTES || self.is_running() && self.process.grows()
    }

    /// What it has written outside of its volumes.
    pub fn written_bytes(&self) -> u64 {
        let mounts: Vec<&str> = self.mounts.iter().map(|mount| mount.path.as_str()).collect();
        self.files.clone().without(&mounts).added_bytes(&self.image_files)
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    pub fn exit_code(&self) -> Option<i32> {
        match self.state {
            State::Exited { code, .. } => Some(code),
            _ => None,
        }
    }

    /// What it has printed, oldest first; at most the newest thousand lines after those of its start.
    pub fn logs(&self) -> impl Iterator<Item = LogLine> + '_ {
        let began = self.state != State::Created;
        let greeting = if began { self.process.greeting() } else { &[] };
        let at = self.started_at + Duration::from_millis(1);
        let greeting = greeting.iter().map(move |text| LogLine { at, text: text.clone(), is_whole: true });
        greeting.chain(self.lines.iter().cloned())
    }

    /// Takes back what a command has written and printed.
    pub(super) fn restore(&mut self, before: &Container) {
        self.files = before.files.clone();
        self.lines = before.lines.clone();
    }

    /// Makes it ready to run once more.
    pub(super) fn reset(&mut self) {
        self.process = self.fresh.clone();
        self.state = State::Created;
    }

    /// Takes what its processes have printed into its log.
    pub(super) fn log(&mut self, at: Time, printed: Output) {
        for (_, text) in printed.0 {
            for part in text.split_inclusive('\n') {
                let (text, is_whole) = part.strip_suffix('\n').map_or((part, false), |text| (text, true));
                match self.lines.back_mut() {
                    Some(last) if !last.is_whole => {
                        last.text.to_mut().push_str(text);
                        last.is_whole = is_whole;
                    }
                    _ => self.lines.push_back(LogLine { at, text: text.to_owned().into(), is_whole }),
                }
                if self.lines.len() > LINES_MAX {
                    self.lines.pop_front();
                }
            }
        }
    }

    /// What a process that is started in it has around it.
    pub(super) fn home(&self) -> Home {
        let (user, program) = (self.user.clone(), self.program.clone());
        Home { hostname: self.hostname.to_string(), user, program, mounts: self.mounts.clone() }
    }
}

/// The shared surroundings of a pod's containers: its network address above all.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub id: Name,
    pub pod: Key,
    pub pod_uid: Name,
    pub ip: Name,
    /// The address within the machine's range; 0 on the machine's own network.
    pub(super) host_number: u8,
    pub ready: bool,
    pub created_at: Time,
}
