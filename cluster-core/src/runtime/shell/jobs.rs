//! Scripts within a script: pipes, brackets, `$(…)`, functions, and what runs in the background.

use std::time::Duration;

use super::input::{Input, Output, Sinks, Stream};
use super::{Script, Surroundings};
use crate::clock::{Class, Time};
use crate::network::question::Answer;
use crate::runtime::programs::Turn;

/// A process that nobody reads any more (SIGPIPE), and one that had to end (SIGTERM).
const BROKEN_PIPE: i32 = 141;
const TERMINATED: i32 = 143;

/// Scripts that run at the same time, what each prints being the input of the next.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    stages: Vec<(Script, Option<i32>)>,
    pub sinks: Sinks,
    pub role: Role,
    /// It is ended then (`timeout`).
    pub deadline: Option<Time>,
    number: usize,
    /// A server that it has become: it is at work until the script ends.
    pub serves: Option<&'static str>,
}

/// What a job is for the script that has begun it.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    Foreground {
        shares_variables: bool,
    },
    /// It gives `$(…)` its text.
    Capture(String),
    /// It is a trap: the script goes on where it was.
    Handler,
}

impl Job {
    pub fn pipe(stages: Vec<Script>, role: Role) -> Job {
        let stages = stages.into_iter().map(|script| (script, None)).collect();
        Job { stages, sinks: Sinks::default(), role, deadline: None, number: 0, serves: None }
    }

    pub fn of(script: Script, role: Role) -> Job {
        Job::pipe(vec![script], role)
    }

    /// Gives the first its input, and the others open ones.
    pub fn set_input(&mut self, input: Input, looped: bool) {
        let inputs = std::iter::once(input).chain(std::iter::repeat_with(Input::open));
        for ((script, _), input) in self.stages.iter_mut().zip(inputs) {
            (script.input, script.looped) = (input, looped);
        }
    }

    /// Lets all go on until they wait; [`Turn::Ends`] when all have ended.
    pub fn run(&mut self, around: &mut Surroundings<'_>, out: &mut Output) -> Turn {
        if self.deadline.is_some_and(|deadline| around.now >= deadline) {
            return Turn::Ends(TERMINATED);
        }
        let mut next: Option<(Duration, Class)> = None;
        for index in 0..self.stages.len() {
            if self.stages[index].1.is_some() || self.serves.is_some() {
                continue;
            }
            let mut printed = Output::default();
            let turn = self.stages[index].0.run(around, &mut printed);
            let is_read = self.hand_on(index, printed, around, out);
            match turn {
                Turn::Ends(code) => self.ended(index, code),
                _ if !is_read => self.ended(index, BROKEN_PIPE),
                turn @ (Turn::Becomes(_) | Turn::Asks(..)) => return turn,
                Turn::Sleeps(time, class) => {
                    next = Some(next.filter(|(soonest, _)| *soonest <= time).unwrap_or((time, class)));
                }
                Turn::Serves => {}
            }
        }
        if let Some(Some(code)) = self.stages.last().map(|(_, ended)| ended)
            && self.stages.iter().all(|(_, ended)| ended.is_some())
        {
            return Turn::Ends(*code);
        }
        let left = self.deadline.map(|deadline| deadline.since(around.now));
        match (next, left) {
            (Some((time, class)), left) => Turn::Sleeps(left.map_or(time, |left| left.min(time)), class),
            (None, Some(left)) => Turn::Sleeps(left, Class::Work),
            (None, None) => Turn::Serves,
        }
    }

    pub fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.stages.iter().filter(|(_, ended)| ended.is_none()).map(|(script, _)| script)
    }

    /// Hands an answer on to the script that waits for one.
    pub fn answer(&mut self, answer: Answer) {
        if let Some((script, _)) = self.stages.iter_mut().find(|(script, ended)| ended.is_none() && script.asks()) {
            script.answer(answer);
        }
    }

    /// Tells its script of SIGTERM; false if that has no trap.
    pub fn signal(&mut self) -> bool {
        match self.stages.as_mut_slice() {
            [(script, None)] if matches!(self.role, Role::Foreground { shares_variables: true }) => script.signal(),
            _ => false,
        }
    }

    /// Gives what a stage has printed to the next one, or to where the job's streams go. False if nobody reads it.
    fn hand_on(&mut self, index: usize, printed: Output, around: &mut Surroundings<'_>, out: &mut Output) -> bool {
        let mut is_read = true;
        let mut rest = Output::default();
        for (stream, text) in printed.0 {
            match (stream, self.stages.get_mut(index + 1)) {
                (Stream::Out, Some((next, None))) => is_read &= next.input.push(&text),
                (Stream::Out, Some(_)) => is_read = false,
                _ => rest.0.push((stream, text)),
            }
        }
        let mut shown = Output::default();
        self.sinks.write(rest, around, &mut shown);
        for (stream, text) in shown.0 {
            match (&mut self.role, stream) {
                (Role::Capture(known), Stream::Out) => known.push_str(&text),
                _ => out.0.push((stream, text)),
            }
        }
        is_read
    }

    /// The stages before one that has ended have nobody to write to, and the next has nothing more to read.
    fn ended(&mut self, index: usize, code: i32) {
        self.stages[index].1 = Some(code);
        for (_, ended) in &mut self.stages[..index] {
            ended.get_or_insert(BROKEN_PIPE);
        }
        if let Some((next, _)) = self.stages.get_mut(index + 1) {
            next.input.close();
        }
    }
}

impl Script {
    /// A foreground job has ended: what is left of it. A turn if the script ends with it.
    pub(super) fn finish(&mut self, job: Job, code: i32) -> Option<Turn> {
        let (script, _) = job.stages.into_iter().next()?;
        match job.role {
            Role::Capture(text) => {
                self.captured.push(text);
                self.status = code;
                self.input = script.input;
                return None;
            }
            Role::Foreground { shares_variables: false } => {
                self.status = code;
                self.input = script.input;
            }
            Role::Foreground { shares_variables: true } => {
                self.status = code;
                self.take_over(script);
            }
            Role::Handler => {
                let status = self.status;
                self.take_over(script);
                self.status = if self.ends { code } else { status };
                return None;
            }
        }
        let tested = matches!(self.ops.get(self.at), Some(super::Op::JumpIf(..) | super::Op::Not));
        self.stop_on_error(!tested);
        None
    }

    /// What a script that shares its variables has set.
    fn take_over(&mut self, script: Script) {
        (self.variables, self.private, self.functions) = (script.variables, script.private, script.functions);
        (self.folder, self.options, self.input) = (script.folder, script.options, script.input);
        self.trap = script.trap.or(self.trap.take());
        self.exit_trap = script.exit_trap.or(self.exit_trap.take());
        self.jobs.extend(script.jobs);
        if script.has_exited {
            (self.ends, self.has_exited) = (true, true);
        }
    }

    /// Lets a job run in the background.
    pub(super) fn begin(&mut self, job: Job) {
        let number = self.last_job.map_or(7, |last| last + 1);
        self.last_job = Some(number);
        self.jobs.push(Job { number, ..job });
    }

    /// Ends the background job with this number; false if there is none.
    pub(super) fn end_job(&mut self, number: usize) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.number != number);
        self.jobs.len() < before
    }

    /// Lets the background jobs go on; when one of them wants to again. `Err` if one asks the network.
    pub(super) fn run_jobs(
        &mut self,
        around: &mut Surroundings<'_>,
        out: &mut Output,
    ) -> Result<Option<(Duration, Class)>, Turn> {
        let mut next: Option<(Duration, Class)> = None;
        let mut asks = None;
        for mut job in std::mem::take(&mut self.jobs) {
            if asks.is_some() {
                self.jobs.push(job);
                continue;
            }
            match job.run(around, out) {
                Turn::Ends(_) => continue,
                turn @ Turn::Asks(..) => asks = Some(turn),
                Turn::Becomes(binary) => job.serves = Some(binary),
                Turn::Sleeps(time, class) => {
                    next = Some(next.filter(|(soonest, _)| *soonest <= time).unwrap_or((time, class)));
                }
                Turn::Serves => {}
            }
            self.jobs.push(job);
        }
        asks.map_or(Ok(next), Err)
    }

    /// The server that runs in the background.
    pub fn server(&self) -> Option<&'static str> {
        self.jobs.iter().find_map(|job| job.serves)
    }
}
