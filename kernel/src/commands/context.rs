//! What surrounds a program while it runs: its streams, its input, the folder it stands in, the API.

use super::api::{Api, Write};
use super::files::Files;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// What `less` shows.
    Pager,
}

pub struct Context<'a> {
    pub api: &'a mut dyn Api,
    pub files: &'a mut dyn Files,
    /// The namespace that is meant where none is named.
    pub namespace: String,
    /// The kubeconfig that is meant where no file is named; on a machine it is a file of its own.
    pub kubeconfig: Option<&'a mut String>,
    /// What stands on standard input: a here-document, the output of the program before.
    pub stdin: String,
    /// The node whose shell this is; `None` for the person's own.
    pub node: Option<String>,
    /// The language of the person, `ja` or `en`, for what is our own text.
    pub language: String,
    /// Where text goes at once, such as a terminal; else it is kept until it is taken.
    pub sink: Option<fn(Stream, &str)>,
    written: Vec<(Stream, String)>,
}

impl<'a> Context<'a> {
    pub fn new(api: &'a mut dyn Api, files: &'a mut dyn Files) -> Context<'a> {
        Context {
            api,
            files,
            namespace: "default".into(),
            kubeconfig: None,
            stdin: String::new(),
            node: None,
            language: "en".into(),
            sink: None,
            written: Vec::new(),
        }
    }

    /// Writes a line to standard output.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.write(Stream::Stdout, text.as_ref());
        self.write(Stream::Stdout, "\n");
    }

    /// Writes to standard output as it is.
    pub fn print(&mut self, text: impl AsRef<str>) {
        self.write(Stream::Stdout, text.as_ref());
    }

    /// Shows text in a pager.
    pub fn page(&mut self, text: impl AsRef<str>) {
        self.write(Stream::Pager, text.as_ref());
    }

    /// Writes to standard error as it is.
    pub fn error(&mut self, text: impl AsRef<str>) {
        self.write(Stream::Stderr, text.as_ref());
    }

    /// Writes a line to standard error.
    pub fn error_line(&mut self, text: impl AsRef<str>) {
        self.error(text);
        self.error("\n");
    }

    /// Lets the API write to standard output while it works.
    pub fn with_output<T>(&mut self, act: impl FnOnce(&mut dyn Api, Write<'_>) -> T) -> T {
        let Context { api, sink, written, .. } = self;
        act(&mut **api, &mut |text: &str| write(*sink, written, Stream::Stdout, text))
    }

    fn write(&mut self, stream: Stream, text: &str) {
        write(self.sink, &mut self.written, stream, text);
    }

    /// What has been written since the last call, in order.
    pub fn take_written(&mut self) -> Vec<(Stream, String)> {
        std::mem::take(&mut self.written)
    }

    /// What has been written to one stream, taken out of it.
    pub fn take_stdout(&mut self) -> String {
        let (stdout, rest) = self.take_written().into_iter().partition(|(stream, _)| *stream == Stream::Stdout);
        self.written = rest;
        let stdout: Vec<(Stream, String)> = stdout;
        stdout.into_iter().map(|(_, text)| text).collect()
    }
}

fn write(sink: Option<fn(Stream, &str)>, written: &mut Vec<(Stream, String)>, stream: Stream, text: &str) {
    match (sink, written.last_mut()) {
        _ if text.is_empty() => {}
        (Some(sink), _) => sink(stream, text),
        (None, Some((last, written))) if *last == stream => written.push_str(text),
        (None, _) => written.push((stream, text.to_owned())),
    }
}
