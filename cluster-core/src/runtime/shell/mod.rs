//! The shell of a container: an interpreter of what manifests have in `sh -c "…"`, and the small programs that come with
//! BusyBox. A script is a value that goes on until it waits: for a moment, for something to read, for an answer from the
//! network. What stands in a pipe, in `$(…)`, in brackets or behind `&` is a script of its own, a child.
//! <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html>

mod arithmetic;
pub mod exec;
mod expand;

pub mod input;
mod jobs;
mod parse;
mod pattern;
mod programs;
#[cfg(test)]
pub mod tests;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::files::Files;
use super::programs::Turn;
use crate::clock::{Class, Time};
use crate::network::question::{Answer, Question};
pub use exec::Exec;
use expand::Missing;
use input::{Input, Output, Sinks};
use jobs::{Job, Role};
use parse::{Command, Op, Spawn};
pub use programs::{files, is_agnhost_tool, is_known, is_shell, sysctl_path};

/// Instructions that a container's processes may do without waiting, before they are put aside for a moment.
const BURST: usize = 2000;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How deep scripts may be nested in each other.
const DEPTH_MAX: usize = 40;

/// Who a process is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct User {
    pub uid: i64,
    pub gid: i64,
    /// The other groups that it is in.
    pub groups: Vec<i64>,
    /// It may do everything on its machine.
    pub is_privileged: bool,
    /// Programs that it starts may not become others (`allowPrivilegeEscalation: false`).
    pub no_new_privileges: bool,
}

/// What all processes of a container have around them.
#[derive(Clone, Debug, Default)]
pub struct Home {
    pub hostname: String,
    pub user: User,
    /// What the first process is called.
    pub program: String,
    pub mounts: Arc<[super::volumes::Mount]>,
}

/// The moment and the files, for one turn of a script.
pub struct Surroundings<'a> {
    pub now: Time,
    pub files: &'a mut Files,
    /// Instructions that are left for this turn.
    fuel: usize,
}

impl<'a> Surroundings<'a> {
    pub fn new(now: Time, files: &'a mut Files) -> Surroundings<'a> {
        Surroundings { now, files, fuel: BURST }
    }
}

/// A command line on its way.
#[derive(Clone, Debug)]
pub struct Script {
    ops: Arc<[Op]>,
    at: usize,
    status: i32,
    /// `$0`
    name: String,
    arguments: Vec<String>,
    variables: imbl::OrdMap<String, String>,
    /// Variables that programs are not told of.
    private: imbl::OrdSet<String>,
    functions: imbl::OrdMap<String, Arc<[Op]>>,
    /// What the `for` loops that are open have still to do, by loop.
    lists: Vec<VecDeque<String>>,
    home: Arc<Home>,
    /// Where it is: other paths begin there. Empty for the root.
    folder: String,
    /// What a `trap … TERM` and a `trap … EXIT` do.
    trap: Option<String>,
    exit_trap: Option<String>,
    /// SIGTERM has come and the trap has not been run yet.
    signalled: bool,
    /// Letters of `set`.
    options: String,
    depth: usize,
    /// It is in a loop of the script around it.
    looped: bool,
    pub input: Input,
    /// Outputs of commands that the instruction at hand has in its words.
    captured: Vec<String>,
    waits: Wait,
    jobs: Vec<Job>,
    last_job: Option<usize>,
    /// It was replaced by the command that it waits for, or has said that it ends.
    ends: bool,
    /// It ended by `exit`.
    has_exited: bool,
}

/// What a script waits for.
#[derive(Clone, Debug, Default)]
enum Wait {
    #[default]
    Nothing,
    Until(Time, Class),
    Forever,
    /// Its background jobs.
    Jobs,
    /// A program that is not done: it is called again when there is more to read, or the time has come.
    Program(Box<Line>),
    /// A program that has asked the network.
    Answer(Box<Line>),
    Child(Box<Job>),
}

/// A command on its way.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    words: Vec<String>,
    sinks: Sinks,
    /// What it reads, if that is not what the script reads.
    input: Option<Input>,
    looped: bool,
    began: Time,
    /// What its program keeps from call to call.
    memory: Vec<String>,
    /// What the network has told it.
    answers: Vec<Answer>,
    /// It is not called before.
    until: Option<Time>,
}

/// What a program came to.
pub(crate) enum Outcome {
    Done(i32),
    /// It is done after this time, with this status.
    Sleeps(Duration, i32),
    /// It looks again after this time.
    Again(Duration),
    /// It goes on when there is more to read.
    Reads,
    /// It goes on when the network has answered.
    Asks(Box<Question>),
    Waits,
    WaitsForJobs,
    Exits(i32),
    Returns(i32),
    Becomes(&'static str),
    /// Another script runs in its place.
    Runs(Box<Job>),
}

impl Script {
    /// A command line as a container gets it: `["sh", "-c", "…"]`, or a program with its arguments.
    pub fn new(words: &[String], environment: &[(String, String)], home: Home, folder: &str) -> Script {
        let home_folder = if home.user.uid == 0 { "/root" } else { "/" };
        let own = [("HOME", home_folder), ("HOSTNAME", &home.hostname), ("PATH", PATH)];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut script = Script {
            ops: parse::line(words),
            at: 0,
            status: 0,
            name: "sh".into(),
            arguments: Vec::new(),
            variables: own.chain(environment.iter().cloned()).collect(),
            private: imbl::OrdSet::new(),
            functions: imbl::OrdMap::new(),
            lists: Vec::new(),
            home: Arc::new(home),
            folder: files::absolute("", folder),
            trap: None,
            exit_trap: None,
            signalled: false,
            options: String::new(),
            depth: 0,
            looped: false,
            input: Input::closed(""),
            captured: Vec::new(),
            waits: Wait::Nothing,
            jobs: Vec::new(),
            last_job: None,
            ends: false,
            has_exited: false,
        };
        // A shell that is process 1 is the script itself, so that signals and `exit` are its own.
        if let Some((ops, name, arguments)) = programs::shell_text(words) {
            (script.ops, script.name, script.arguments) = (ops, name, arguments);
        }
        script
    }

    /// Tells process 1 of SIGTERM: it runs its trap when it is done with what it is at. False if it has none: then it
    /// ignores the signal.
    pub fn signal(&mut self) -> bool {
        if self.trap.is_some() {
            self.signalled = true;
            return true;
        }
        // A shell that has been told to run a file is one process with it.
        match &mut self.waits {
            Wait::Child(job) => job.signal(),
            _ => false,
        }
    }

    /// It waits for an answer from the network, or a script within it does.
    fn asks(&self) -> bool {
        let waits = match &self.waits {
            Wait::Answer(_) => true,
            Wait::Child(job) => job.scripts().any(Script::asks),
            _ => false,
        };
        waits || self.jobs.iter().flat_map(Job::scripts).any(Script::asks)
    }

    /// Gives the program that has asked its answer.
    pub fn answer(&mut self, answer: Answer) {
        match std::mem::take(&mut self.waits) {
            Wait::Answer(mut line) => {
                line.answers.push(answer);
                self.waits = Wait::Program(line);
            }
            Wait::Child(mut job) if job.scripts().any(Script::asks) => {
                job.answer(answer);
                self.waits = Wait::Child(job);
            }
            waits => {
                self.waits = waits;
                if let Some(job) = self.jobs.iter_mut().find(|job| job.scripts().any(Script::asks)) {
                    job.answer(answer);
                }
            }
        }
    }

    /// A script within this one: it has the same variables, and changes its own.
    fn child(&self, ops: Arc<[Op]>) -> Script {
        Script {
            ops,
            at: 0,
            trap: None,
            exit_trap: None,
            signalled: false,
            depth: self.depth + 1,
            input: Input::closed(""),
            captured: Vec::new(),
            waits: Wait::Nothing,
            jobs: Vec::new(),
            ends: false,
            has_exited: false,
            ..self.clone()
        }
    }

    /// Goes on until it waits or ends.
    pub fn run(&mut self, around: &mut Surroundings<'_>, out: &mut Output) -> Turn {
        loop {
            if self.asks() {
                return Turn::Serves;
            }
            let turn = self.go_on(around, out);
            if matches!(turn, Turn::Ends(_) | Turn::Becomes(_) | Turn::Asks(..)) {
                return turn;
            }
            let beside = match self.run_jobs(around, out) {
                Ok(beside) => beside,
                Err(asks) => return asks,
            };
            if self.jobs.is_empty() && matches!(self.waits, Wait::Jobs) {
                continue;
            }
            return match (turn, beside) {
                (turn, None) => turn,
                (Turn::Sleeps(own, class), Some((time, _))) if own <= time => Turn::Sleeps(own, class),
                (_, Some((time, class))) => Turn::Sleeps(time, class),
            };
        }
    }

    fn go_on(&mut self, around: &mut Surroundings<'_>, out: &mut Output) -> Turn {
        loop {
            if around.fuel == 0 {
                // A busy loop: it never waits for anything.
                return Turn::Sleeps(Duration::from_secs(1), Class::Background);
            }
            around.fuel -= 1;
            match std::mem::take(&mut self.waits) {
                Wait::Nothing => {}
                Wait::Until(time, class) if around.now < time => {
                    self.waits = Wait::Until(time, class);
                    return Turn::Sleeps(time.since(around.now), class);
                }
                Wait::Until(..) => {}
                Wait::Forever => {
                    self.waits = Wait::Forever;
                    return Turn::Serves;
                }
                Wait::Jobs if !self.jobs.is_empty() && !self.signalled => {
                    self.waits = Wait::Jobs;
                    return Turn::Serves;
                }
                Wait::Jobs => {}
                Wait::Answer(line) => {
                    self.waits = Wait::Answer(line);
                    return Turn::Serves;
                }
                Wait::Program(line) => {
                    if let Some(turn) = self.program(line, around, out) {
                        return turn;
                    }
                    continue;
                }
                Wait::Child(mut job) => {
                    match job.run(around, out) {
                        Turn::Ends(code) => {
                            if let Some(turn) = self.finish(*job, code) {
                                return turn;
                            }
                        }
                        turn => {
                            self.waits = Wait::Child(job);
                            return turn;
                        }
                    }
                    continue;
                }
            }
            if self.signalled && !self.ends {
                self.signalled = false;
                let handler = parse::script(self.trap.as_deref().unwrap_or_default());
                self.waits = Wait::Child(Job::of(self.child(handler), Role::Handler).into());
                continue;
            }
            let ops = self.ops.clone();
            let Some(op) = ops.get(self.at).filter(|_| !self.ends) else {
                match self.exit_trap.take() {
                    Some(text) => {
                        let handler = self.child(parse::script(&text));
                        self.waits = Wait::Child(Job::of(handler, Role::Handler).into());
                        (self.ends, self.ops) = (false, Arc::from([]));
                        continue;
                    }
                    None => return Turn::Ends(self.status),
                }
            };
            match self.instruction(op, &ops, around, out) {
                Ok(Some(turn)) => return turn,
                Ok(None) => self.captured.clear(),
                Err(Missing::Output(script)) => {
                    self.at -= 1;
                    let mut child = self.child(parse::script(&script));
                    child.input = std::mem::take(&mut self.input);
                    self.waits = Wait::Child(Job::of(child, Role::Capture(String::new())).into());
                }
                Err(Missing::Refused(message)) => {
                    out.error_line(&format!("{}: {message}", self.name));
                    (self.status, self.ends, self.has_exited) = (2, true, true);
                }
            }
        }
    }

    /// Does one instruction; a turn if the script can't go on at once.
    fn instruction(
        &mut self,
        op: &Op,
        ops: &[Op],
        around: &mut Surroundings<'_>,
        out: &mut Output,
    ) -> Result<Option<Turn>, Missing> {
        self.at += 1;
        let mut used = 0;
        match op {
            Op::Jump(to) => self.at = *to,
            Op::JumpIf(ok, to) if (self.status == 0) == *ok => self.at = *to,
            Op::JumpIf(..) => {}
            Op::Not => self.status = i32::from(self.status == 0),
            Op::ForInit(list, words) => {
                let mut values = VecDeque::new();
                for word in words {
                    values.extend(self.fields(word, &mut used, around)?);
                }
                self.lists.resize(self.lists.len().max(list + 1), VecDeque::new());
                self.lists[*list] = values;
            }
            Op::ForNext(list, name, end) => match self.lists.get_mut(*list).and_then(VecDeque::pop_front) {
                Some(value) => {
                    self.variables.insert(name.clone(), value);
                }
                None => self.at = *end,
            },
            Op::Case { word, arms, end } => {
                let text = self.text(word, &mut used)?;
                let mut to = *end;
                for (arm, place) in arms {
                    if pattern::matches(&self.pattern(arm, &mut used)?, &text) {
                        to = *place;
                        break;
                    }
                }
                (self.at, self.status) = (to, 0);
            }
            Op::Define(name, body) => {
                self.functions.insert(name.clone(), body.clone());
            }
            Op::Refuse(message) => {
                out.error_line(&format!("{}: {message}", self.name));
                (self.status, self.ends, self.has_exited) = (2, true, true);
            }
            Op::Spawn(spawn) => self.spawn(spawn, &mut used, around, out)?,
            Op::Run { command, looped } => return self.command(command, *looped, around, out),
        }
        let is_asked = matches!(ops.get(self.at), Some(Op::JumpIf(..) | Op::Not));
        self.stop_on_error(matches!(op, Op::Spawn(_)) && !is_asked);
        Ok(None)
    }

    /// `set -e`
    fn stop_on_error(&mut self, counts: bool) {
        if counts && self.status != 0 && self.options.contains('e') {
            (self.ends, self.has_exited) = (true, true);
        }
    }

    fn command(
        &mut self,
        command: &Command,
        looped: bool,
        around: &mut Surroundings<'_>,
        out: &mut Output,
    ) -> Result<Option<Turn>, Missing> {
        let mut used = 0;
        let mut words: Vec<String> = Vec::new();
        for word in &command.words {
            words.extend(self.fields(word, &mut used, around)?);
        }
        let mut values = Vec::new();
        for (name, word) in &command.assignments {
            values.push((name.clone(), self.text(word, &mut used)?));
        }
        let mut sinks = Sinks::default();
        let input = match self.redirect(&command.redirections, &mut sinks, &mut used, around)? {
            Ok(input) => input,
            Err(problem) => {
                out.error_line(&problem);
                self.status = 1;
                return Ok(None);
            }
        };
        for (name, value) in values {
            if words.is_empty() && !self.variables.contains_key(&name) {
                self.private.insert(name.clone());
            }
            self.variables.insert(name, value);
        }
        if words.is_empty() {
            if self.captured.is_empty() {
                self.status = 0;
            }
            return Ok(None);
        }
        self.captured.clear();
        if self.options.contains('x') {
            out.error_line(&format!("+ {}", words.join(" ")));
        }
        let looped = looped || self.looped;
        let line = Line {
            words,
            sinks,
            input,
            looped,
            began: around.now,
            memory: Vec::new(),
            answers: Vec::new(),
            until: None,
        };
        Ok(self.program(line.into(), around, out))
    }

    /// Lets the program of a line go on.
    fn program(&mut self, mut line: Box<Line>, around: &mut Surroundings<'_>, out: &mut Output) -> Option<Turn> {
        let class = if line.looped { Class::Background } else { Class::Work };
        if let Some(until) = line.until.filter(|until| *until > around.now) {
            self.waits = Wait::Program(line);
            return Some(Turn::Sleeps(until.since(around.now), class));
        }
        let is_redirected = line.input.is_some();
        let mut input = line.input.take().unwrap_or_else(|| std::mem::take(&mut self.input));
        let mut printed = Output::default();
        let kept = programs::Kept { began: line.began, memory: &mut line.memory, answers: &line.answers };
        let outcome = programs::run(&line.words, kept, &mut input, self, around, &mut printed);
        line.sinks.write(printed, around, out);
        match is_redirected {
            true => line.input = Some(input),
            false => self.input = input,
        }
        let tested = matches!(self.ops.get(self.at), Some(Op::JumpIf(..) | Op::Not));
        match outcome {
            Outcome::Done(status) => {
                self.status = status;
                self.stop_on_error(!tested);
            }
            Outcome::Sleeps(time, status) => {
                self.status = status;
                self.waits = Wait::Until(around.now + time, class);
            }
            Outcome::Again(time) => {
                line.until = Some(around.now + time);
                self.waits = Wait::Program(line);
            }
            Outcome::Reads => {
                self.waits = Wait::Program(line);
                return Some(Turn::Serves);
            }
            Outcome::Asks(question) => {
                self.waits = Wait::Answer(line);
                return Some(Turn::Asks(question, class));
            }
            Outcome::Waits => self.waits = Wait::Forever,
            Outcome::WaitsForJobs => self.waits = Wait::Jobs,
            Outcome::Exits(status) => (self.status, self.ends, self.has_exited) = (status, true, true),
            Outcome::Returns(status) => (self.status, self.ends) = (status, true),
            Outcome::Becomes(binary) => return Some(Turn::Becomes(binary)),
            Outcome::Runs(mut job) => {
                if self.depth >= DEPTH_MAX {
                    out.error_line(&format!("{}: nested too deeply", self.name));
                    self.status = 2;
                    return None;
                }
                job.sinks = line.sinks;
                job.set_input(line.input.unwrap_or_else(|| std::mem::take(&mut self.input)), line.looped);
                self.waits = Wait::Child(job);
            }
        }
        None
    }

    /// Begins what has streams or variables of its own.
    fn spawn(
        &mut self,
        spawn: &Spawn,
        used: &mut usize,
        around: &mut Surroundings<'_>,
        out: &mut Output,
    ) -> Result<(), Missing> {
        let mut sinks = Sinks::default();
        let input = match self.redirect(&spawn.redirections, &mut sinks, used, around)? {
            Ok(input) => input,
            Err(problem) => {
                out.error_line(&problem);
                self.status = 1;
                return Ok(());
            }
        };
        if self.depth >= DEPTH_MAX {
            return Err(Missing::Refused("nested too deeply".into()));
        }
        let stages = spawn.stages.iter().map(|ops| self.child(ops.clone())).collect();
        let role = Role::Foreground { shares_variables: spawn.shares_variables };
        let mut job = Job::pipe(stages, role);
        job.sinks = sinks;
        let looped = spawn.looped || self.looped;
        if spawn.background {
            job.set_input(input.unwrap_or_else(|| Input::closed("")), looped);
            self.begin(job);
            self.status = 0;
        } else {
            job.set_input(input.unwrap_or_else(|| std::mem::take(&mut self.input)), looped);
            self.waits = Wait::Child(job.into());
        }
        Ok(())
    }

    /// Variables that programs are told of.
    fn environment(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter().filter(|(name, _)| !self.private.contains(*name))
    }
}
