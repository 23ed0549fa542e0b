//! Cells of a session as a learner runs them, for tests.

use crate::commands::files::Memory;
use crate::output::{Output, Sink};
use crate::session::Session;
use crate::settings::{Language, Settings};

struct Seen(String);

impl Sink for Seen {
    fn put(&mut self, output: Output) {
        self.0 += &match output {
            Output::Stdout(text) => text,
            Output::Display { data, .. } => data["text/plain"].as_str().unwrap_or_default().to_owned(),
            Output::Result(data) => format!("result {}", data["text/plain"]),
            _ => String::new(),
        }
    }
}

/// What a cell puts out, and why it failed.
pub fn run(session: &mut Session, code: &str) -> String {
    let mut seen = Seen(String::new());
    let failed = session.execute(code, &mut seen).err();
    seen.0 + &failed.map(|error| format!("{}: {}", error.ename, error.evalue)).unwrap_or_default()
}

/// A session that replays a notebook.
pub fn session() -> Session {
    with(Settings { language: Language::En, ..Settings::default() })
}

/// One before which somebody sits.
pub fn interactive() -> Session {
    with(Settings { language: Language::En, interactive: true, ..Settings::default() })
}

fn with(settings: Settings) -> Session {
    let mut session = Session::with(settings);
    session.files = Box::new(Memory::default());
    session
}
