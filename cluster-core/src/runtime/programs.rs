//! What the programs in images do, and the first processes of containers that run them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::agnhost;
use super::container::Config;
use super::files::Files;
use super::image_table::{PLAIN_FILES, UNKNOWN, UNKNOWN_COMMAND, by_binary};
use super::shell::input::Output;
use super::shell::{self, Script, Surroundings};
use crate::clock::{Class, Time};
use crate::network::question::{Answer, Question};

/// From a program's last instruction to the runtime's knowing of it.
pub const EXIT_LATENCY: Duration = Duration::from_millis(10);

/// One image's program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The last part of the repository's name; empty for one that the table does not have.
    pub image: &'static str,
    /// The newest version that was published, major and minor.
    pub newest: (u32, u32),
    pub size_bytes: u64,
    /// What its image brings along, as far as anybody looks.
    pub files: Files,
    pub does: Does,
    /// What a process of this name in a command line is: the same program.
    pub binary: &'static str,
    /// It is at work this long after its start.
    pub start_delay: Duration,
    /// What it prints when it is at work.
    pub greeting: Vec<Cow<'static, str>>,
    /// What it prints again and again from then on, and how often.
    pub lines: Vec<(Cow<'static, str>, Duration)>,
    /// It ends by itself.
    pub exit: Option<Exit>,
    pub memory: Memory,
    /// What it takes while nobody asks it anything, in thousandths of a core, and what a request costs it.
    pub idle_millicores: u64,
    pub request_micros: u64,
    pub on_term: OnTerm,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// It serves on these ports until it is told to stop.
    Serve(Vec<u16>, Site),
    /// It runs what its command line says, in a shell if there is none.
    Command,
    /// It waits for the end.
    Wait,
}

/// What a server answers over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub enum Site {
    /// The files below the root of its documents.
    Documents { root: &'static str },
    /// agnhost's netexec: `/hostname`, `/healthz`, `/clientip`, `/echo?msg=`.
    Netexec,
    /// Anything is there, said by the container's name.
    Anything,
    /// The container's name, wherever one asks.
    Hostname,
    /// The files of the container.
    Files,
    /// Over TLS, what an apiserver asks for.
    Reviews(Arc<agnhost::Reviewer>),
    /// What these say; 404 for a path that none is about.
    Handlers(Vec<Handler>),
    /// It speaks another protocol.
    NotHttp,
}

/// An answer to requests for a path and what lies below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    pub port: u16,
    pub path: String,
    pub status: u16,
    /// `None`: the container's name.
    pub body: Option<String>,
    pub delay: Duration,
    /// Until its program has run so long, the answer is 503.
    pub after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exit {
    pub code: i32,
    pub after: Duration,
}

/// The memory that a program takes beside what every process does: some from the beginning, some more again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    pub bytes: u64,
    pub growth_bytes: u64,
    pub every: Duration,
    pub bytes_max: Option<u64>,
}

impl Memory {
    fn at(&self, age: Duration) -> u64 {
        let times = age.as_nanos().checked_div(self.every.as_nanos()).unwrap_or(0);
        let grown = u64::try_from(times).unwrap_or(u64::MAX).saturating_mul(self.growth_bytes);
        self.bytes.saturating_add(grown).min(self.bytes_max.unwrap_or(u64::MAX))
    }

    /// When it takes more the next time.
    fn next(&self, age: Duration) -> Option<Duration> {
        let grows = self.growth_bytes > 0 && self.bytes_max.is_none_or(|most| self.at(age) < most);
        next_tick(age, self.every).filter(|_| grows)
    }
}

/// The first multiple of a period that is still to come.
fn next_tick(age: Duration, period: Duration) -> Option<Duration> {
    let passed = u32::try_from(age.as_nanos().checked_div(period.as_nanos())?).ok()?;
    period.checked_mul(passed.checked_add(1)?)
}

/// What the first process of a container does about SIGTERM. One that has no handler does nothing: the kernel spares
/// process 1 the default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnTerm {
    Exits {
        code: i32,
        after: Duration,
    },
    Ignores,
    /// Its script has a trap, and goes on with it.
    Handles,
}

pub(super) const fn exits(code: i32, after_ms: u64) -> OnTerm {
    OnTerm::Exits { code, after: Duration::from_millis(after_ms) }
}

impl Default for Program {
    /// Of no image: it waits, and ends when it is told to.
    fn default() -> Program {
        Program {
            image: "",
            newest: (0, 0),
            size_bytes: 0,
            files: PLAIN_FILES.clone(),
            does: Does::Wait,
            binary: "",
            start_delay: Duration::ZERO,
            greeting: Vec::new(),
            lines: Vec::new(),
            exit: None,
            memory: Memory::default(),
            idle_millicores: 0,
            request_micros: 0,
            on_term: exits(0, 50),
        }
    }
}

/// What a program wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Nothing, until it is told to stop.
    Serves,
    Sleeps(Duration, Class),
    Ends(i32),
    /// It goes on as the program of this name (`exec`).
    Becomes(&'static str),
    /// It waits for an answer from the network.
    Asks(Box<Question>, Class),
}

/// The first process of a container.
#[derive(Clone, Debug)]
pub struct Process {
    program: Arc<Program>,
    /// What its command line comes to, if that is not the program itself.
    script: Option<Arc<Script>>,
    /// It ends at once with this code.
    exit: Option<i32>,
    /// The memory that it is told to take.
    asked_bytes: u64,
    /// So many CPUs it keeps busy.
    pub cores: u64,
    /// It took the place of a shell, and has said its greeting then.
    replaced: bool,
    began_at: Option<Time>,
    /// How long it had run when it had its last turn.
    age: Duration,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            program: UNKNOWN.clone(),
            script: None,
            exit: None,
            replaced: false,
            asked_bytes: 0,
            cores: 0,
            began_at: None,
            age: Duration::ZERO,
        }
    }
}

impl Process {
    /// What a container runs whose image has this program.
    pub fn new(config: &Config, program: &Arc<Program>) -> Process {
        if config.exit.is_some() {
            return Process { exit: config.exit, ..Process::default() };
        }
        let (command, args) = (&config.command, &config.args);
        let mut words: Vec<String> = command.iter().chain(args).cloned().collect();
        if words.is_empty() && program.does == Does::Command && !program.binary.is_empty() {
            words.push(program.binary.to_owned());
        }
        let is_agnhost = program.image == "agnhost" && command.first().is_none_or(|word| word.starts_with("/agnhost"));
        let subcommand = words.get(command.len().min(1)).map_or("pause", String::as_str);
        if is_agnhost && shell::is_agnhost_tool(subcommand) {
            if command.is_empty() {
                words.insert(0, "/agnhost".into());
            }
            let script = Script::new(&words, &config.environment, config.home(), &config.working_folder);
            return Process { program: UNKNOWN_COMMAND.clone(), script: Some(script.into()), ..Process::default() };
        }
        let runs_itself = match program.does {
            // Arguments alone go to the image's own entrypoint.
            Does::Serve(..) | Does::Wait => command.is_empty(),
            Does::Command => false,
        };
        let (asked_bytes, cores) = (memory_asked_for(&words), cores_asked_for(&words));
        let itself = |program: &Arc<Program>| {
            let program = match program.image {
                "agnhost" => agnhost::program(program, &words[command.len().min(1)..]),
                _ => program.clone(),
            };
            Process { program, asked_bytes, cores, ..Process::default() }
        };
        if runs_itself {
            return itself(program);
        }
        if let Some(named) = words.first().and_then(|word| by_binary(word)).filter(|named| named.does != Does::Command)
        {
            return itself(named);
        }
        if program.image.is_empty() && !words.first().is_some_and(|word| shell::is_known(word)) {
            return itself(program);
        }
        if config.stdin && words.get(1).is_none() && words.first().is_none_or(|word| shell::is_shell(word)) {
            return itself(&UNKNOWN_COMMAND);
        }
        let script = Arc::new(Script::new(&words, &config.environment, config.home(), &config.working_folder));
        let program = if matches!(program.does, Does::Serve(..)) { &UNKNOWN_COMMAND } else { program };
        Process { program: program.clone(), script: Some(script), ..Process::default() }
    }

    /// It reads files, and variables.
    pub fn is_script(&self) -> bool {
        self.script.is_some()
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// It does what its image says, for a while at least.
    fn is_itself(&self) -> bool {
        self.script.is_none() && self.exit.is_none()
    }

    /// What it prints first, whoever looks.
    pub fn greeting(&self) -> &[Cow<'static, str>] {
        let is_late = !self.program.start_delay.is_zero();
        if self.script.is_some() || self.replaced || is_late { &[] } else { &self.program.greeting }
    }

    /// What it does about SIGTERM, which has come.
    pub fn on_term(&mut self) -> OnTerm {
        match (&mut self.script, self.exit, self.program.exit) {
            (Some(script), ..) => match Arc::make_mut(script).signal() {
                true => OnTerm::Handles,
                false => OnTerm::Ignores,
            },
            (None, Some(code), _) => exits(code, 0),
            (None, None, Some(Exit { code, after: Duration::ZERO })) => exits(code, 0),
            (None, None, _) => self.program.on_term,
        }
    }

    /// What it serves, and where; `None` if nothing.
    pub fn site(&self) -> Option<(&[u16], &Site)> {
        // A shell may have a server in its background.
        let beside = self.script.as_ref().and_then(|script| by_binary(script.server()?));
        if let Some(Does::Serve(ports, site)) = beside.map(|program| &program.does) {
            return Some((ports, site));
        }
        match &self.program.does {
            Does::Serve(ports, site) if self.is_itself() && self.age >= self.program.start_delay => Some((ports, site)),
            _ => None,
        }
    }

    /// How long it had run when it had its last turn.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// The memory that it takes beside what every process does.
    pub fn memory_bytes(&self) -> u64 {
        let own = if self.is_itself() { self.program.memory.at(self.age) } else { 0 };
        self.asked_bytes.saturating_add(own)
    }

    /// What it takes may become more.
    pub fn grows(&self) -> bool {
        self.is_itself() && self.program.memory.growth_bytes > 0
    }

    /// What it takes while nobody asks it anything, in thousandths of a core, and what a request costs it in
    /// microseconds. A command waits most of its time.
    pub fn cost(&self) -> (u64, u64) {
        if self.is_itself() { (self.program.idle_millicores, self.program.request_micros) } else { (0, 0) }
    }

    /// Gives it the answer that it waits for.
    pub fn answer(&mut self, answer: Answer) {
        if let Some(script) = &mut self.script {
            Arc::make_mut(script).answer(answer);
        }
    }

    /// Goes on from where it was.
    pub fn run(&mut self, now: Time, files: &mut Files, out: &mut Output) -> Turn {
        if let Some(code) = self.exit {
            return Turn::Ends(code);
        }
        match &mut self.script {
            Some(script) => match Arc::make_mut(script).run(&mut Surroundings::new(now, files), out) {
                Turn::Becomes(binary) => {
                    let program = by_binary(binary).unwrap_or(&UNKNOWN).clone();
                    program.greeting.iter().for_each(|line| out.line(line));
                    *self = Process { program, replaced: true, ..Process::default() };
                    Turn::Serves
                }
                turn => turn,
            },
            None => self.live(now, out),
        }
    }

    /// Does what its program does by this time of its life, and says when it does more.
    fn live(&mut self, now: Time, out: &mut Output) -> Turn {
        let program = &self.program;
        let is_first = self.began_at.is_none();
        let (before, age) = (self.age, now.since(*self.began_at.get_or_insert(now)));
        self.age = age;
        let begins = program.start_delay;
        if begins > before && age >= begins {
            program.greeting.iter().for_each(|line| out.line(line));
        }
        for (line, period) in &program.lines {
            let due = |age: Duration| age.checked_sub(begins).map(|age| age.as_nanos() / period.as_nanos().max(1));
            if !is_first && due(age) > due(before).or(Some(0)) {
                out.line(line);
            }
        }
        if let Some(exit) = program.exit.filter(|exit| age >= exit.after) {
            return Turn::Ends(exit.code);
        }
        let readiness = match &program.does {
            Does::Serve(_, Site::Handlers(handlers)) => handlers.as_slice(),
            _ => &[],
        };
        // Once in a life: somebody may wait for it.
        let once = readiness.iter().map(|handler| handler.after).chain([begins]).chain(program.exit.map(|e| e.after));
        let once = once.filter(|at| *at > age).min();
        let working = age.saturating_sub(begins);
        let lines = program.lines.iter().filter_map(|(_, period)| next_tick(working, *period)).map(|at| at + begins);
        let next = once.into_iter().chain(lines).chain(program.memory.next(age)).min();
        let class = if once.is_some() { Class::Work } else { Class::Background };
        next.map_or(Turn::Serves, |at| Turn::Sleeps(at - age, class))
    }
}

/// What `stress --vm N --vm-bytes SIZE` takes.
/// <https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/>
fn memory_asked_for(words: &[String]) -> u64 {
    let after = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        shell::files::size(words.get(at + 1)?)
    };
    after("--vm-bytes").map_or(0, |size_bytes| size_bytes.saturating_mul(after("--vm").unwrap_or(1)))
}

/// What `stress --cpu N` keeps busy, of whichever program of that name.
/// <https://kubernetes.io/docs/tasks/configure-pod-container/assign-cpu-resource/>
fn cores_asked_for(words: &[String]) -> u64 {
    let at = words.iter().position(|word| matches!(word.as_str(), "--cpu" | "-cpus"));
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(0)
}
