//! What scripts and programs read and write.

use super::expand::Missing;
use super::files::absolute;
use super::words::{Mode, Redirection};
use super::{Script, Surroundings};

/// What a script may still have to be read, so that a loop that prints for nobody ends.
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Where something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Error,
    /// The log of the container, whoever prints (`/proc/1/fd/1`).
    Log,
}

/// What was printed, in its order.
#[derive(Clone, Debug, Default)]
pub struct Output(pub Vec<(Stream, String)>);

impl Output {
    pub fn text(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((Stream::Out, text));
        }
    }

    pub fn line(&mut self, line: &str) {
        self.0.push((Stream::Out, format!("{line}\n")));
    }

    pub fn error_line(&mut self, line: &str) {
        self.0.push((Stream::Error, format!("{line}\n")));
    }
}

/// What a process reads: what is there of it, and whether more may come.
#[derive(Clone, Debug)]
pub struct Input {
    text: String,
    is_open: bool,
}

impl Default for Input {
    fn default() -> Input {
        Input::closed("")
    }
}

impl Input {
    pub fn closed(text: &str) -> Input {
        Input { text: text.to_owned(), is_open: false }
    }

    pub fn open() -> Input {
        Input { text: String::new(), is_open: true }
    }

    /// False if too much has not been read yet.
    pub fn push(&mut self, text: &str) -> bool {
        self.text.push_str(text);
        self.text.len() <= PIPE_BYTES_MAX
    }

    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// All that comes, once nothing more can.
    pub fn take_all(&mut self) -> Option<String> {
        (!self.is_open).then(|| std::mem::take(&mut self.text))
    }

    /// What is there, and whether that is the end.
    pub fn take_lines(&mut self) -> (String, bool) {
        if !self.is_open {
            return (std::mem::take(&mut self.text), true);
        }
        let end = self.text.rfind('\n').map_or(0, |at| at + 1);
        (self.text.drain(..end).collect(), false)
    }

    /// The next line without its end; `Some(None)` if there is none any more, `None` if it has not come yet.
    pub fn take_line(&mut self) -> Option<Option<String>> {
        match self.text.find('\n') {
            Some(end) => {
                let line: String = self.text.drain(..=end).collect();
                Some(Some(line[..end].to_owned()))
            }
            None if self.is_open => None,
            None => Some((!self.text.is_empty()).then(|| std::mem::take(&mut self.text))),
        }
    }
}

/// Where one stream of a command goes.
#[derive(Clone, Debug, PartialEq)]
enum Sink {
    Stream(Stream),
    Nowhere,
    /// At this path from the root.
    File(String),
}

/// Where the streams of a command go.
#[derive(Clone, Debug)]
pub struct Sinks {
    out: Sink,
    error: Sink,
}

impl Default for Sinks {
    fn default() -> Sinks {
        Sinks { out: Sink::Stream(Stream::Out), error: Sink::Stream(Stream::Error) }
    }
}

impl Sinks {
    /// Hands on what a command has printed.
    pub fn write(&self, printed: Output, around: &mut Surroundings<'_>, out: &mut Output) {
        for (stream, text) in printed.0 {
            let sink = match stream {
                Stream::Out => &self.out,
                Stream::Error => &self.error,
                Stream::Log => &Sink::Stream(Stream::Log),
            };
            match sink {
                Sink::Stream(stream) => out.0.push((*stream, text)),
                Sink::Nowhere => {}
                Sink::File(path) => {
                    if let Err(why) = around.files.append(path, &text, around.now) {
                        out.error_line(&format!("sh: write error: {why}"));
                    }
                }
            }
        }
    }
}

impl Script {
    /// Opens what a command's redirections name; the input if it has one of its own. The inner error is what the shell
    /// says of a file.
    pub(super) fn redirect(
        &mut self,
        redirections: &[Redirection],
        sinks: &mut Sinks,
        used: &mut usize,
        around: &mut Surroundings<'_>,
    ) -> Result<Result<Option<Input>, String>, Missing> {
        let mut input = None;
        for redirection in redirections {
            let text = self.text(&redirection.word, used)?;
            let place = absolute(&self.folder, &text);
            match redirection.mode {
                Mode::Here => input = Some(Input::closed(&text)),
                Mode::Read if place == "/dev/null" => input = Some(Input::closed("")),
                Mode::Read if place == "/dev/stdin" => {}
                Mode::Read => match around.files.read(&place) {
                    Some(text) => input = Some(Input::closed(text)),
                    None => return Ok(Err(format!("{}: can't open {text}: no such file", self.name))),
                },
                Mode::Same => {
                    let from = match text.as_str() {
                        "1" => sinks.out.clone(),
                        "2" => sinks.error.clone(),
                        _ => continue,
                    };
                    match redirection.stream {
                        1 => sinks.out = from,
                        2 => sinks.error = from,
                        _ => {}
                    }
                }
                Mode::Write | Mode::Append => {
                    let sink = match place.as_str() {
                        "/dev/null" => Sink::Nowhere,
                        "/dev/stdout" | "/proc/self/fd/1" | "/dev/fd/1" => sinks.out.clone(),
                        "/dev/stderr" | "/proc/self/fd/2" | "/dev/fd/2" => sinks.error.clone(),
                        "/proc/1/fd/1" | "/proc/1/fd/2" => Sink::Stream(Stream::Log),
                        _ => {
                            let known = around.files.exists(&place);
                            let opened = match redirection.mode {
                                Mode::Append if known => around.files.append(&place, "", around.now),
                                _ => around.files.write(&place, "", around.now),
                            };
                            if let Err(why) = opened {
                                return Ok(Err(format!("{}: can't create {text}: {why}", self.name)));
                            }
                            Sink::File(place)
                        }
                    };
                    match redirection.stream {
                        1 => sinks.out = sink,
                        2 => sinks.error = sink,
                        _ => {}
                    }
                }
            }
        }
        Ok(Ok(input))
    }
}
