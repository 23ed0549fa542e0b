//! A kernel of a few words and no cluster: tests/python/test_protocol.py tries the Jupyter protocol on it, with cells
//! that do what a session should not (`panic`, `stubborn`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kernetes::exit;
use kernetes::jupyter::{self, Execute};
use kernetes::output::{CellError, Completeness, Completion, Match, MimeBundle, Output, Sink, text};

const WORDS: [&str; 16] = [
    "print", "partial", "warn", "result", "show", "update", "page", "clear", "let", "kept", "cell", "fail", "panic",
    "stubborn", "sleep", "flood",
];

/// Runs each line of a cell as one word and its argument, and remembers `let`.
#[derive(Default)]
struct Words {
    kept: String,
}

impl Words {
    fn word(&mut self, word: &str, argument: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        let seconds = || Duration::from_secs_f64(argument.parse().unwrap_or(1.0));
        match word {
            "print" => sink.put(Output::Stdout(format!("{argument}\n"))),
            "partial" => sink.put(Output::Stdout(argument.to_owned())),
            "warn" => sink.put(Output::Stderr(format!("{argument}\n"))),
            "result" => sink.put(Output::Result(text(argument))),
            "show" => sink.put(Output::Display { data: text(argument), id: Some("id".to_owned()) }),
            "update" => sink.put(Output::Update { data: text(argument), id: "id".to_owned() }),
            "page" => sink.put(Output::Page(text(argument))),
            "clear" => sink.put(Output::Clear { wait: argument == "wait" }),
            "let" => argument.clone_into(&mut self.kept),
            "cell" => sink.put(Output::Stdout(sink.cell().unwrap_or_default().to_owned())),
            "kept" => sink.put(Output::Stdout(self.kept.clone())),
            "fail" => return Err(CellError::new("Failed", argument)),
            "panic" => panic!("{argument}"),
            "stubborn" => sleep(seconds()),
            "sleep" => {
                let end = Instant::now() + seconds();
                while Instant::now() < end {
                    if sink.interrupted() {
                        return Err(CellError::new("Interrupted", "by the person"));
                    }
                    sleep(Duration::from_millis(5));
                }
            }
            "flood" => (0..100_000).for_each(|line| sink.put(Output::Stdout(format!("{line}\n")))),
            _ => return Err(CellError::new("UnknownWord", word)),
        }
        Ok(())
    }
}

impl Execute for Words {
    fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        for line in code.lines() {
            let (word, argument) = line.split_once(' ').unwrap_or((line, ""));
            self.word(word, argument, sink)?;
        }
        Ok(())
    }

    fn complete(&mut self, code: &str, cursor: usize) -> Completion {
        let typed: String = code.chars().take(cursor).collect();
        let start = typed.chars().count() - typed.chars().rev().take_while(|character| *character != ' ').count();
        let word: String = typed.chars().skip(start).collect();
        let matches = WORDS.iter().filter(|known| known.starts_with(&word));
        let matches = matches.map(|known| Match { text: (*known).to_owned(), kind: "word".to_owned() }).collect();
        Completion { start, end: cursor, matches }
    }

    fn inspect(&mut self, code: &str, _: usize) -> Option<MimeBundle> {
        WORDS.contains(&code).then(|| text(format!("{code} TEXT")))
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match code.strip_suffix('\\') {
            Some(_) => Completeness::Incomplete { indent: "  ".to_owned() },
            None if WORDS.iter().any(|word| code.starts_with(word)) => Completeness::Complete,
            None => Completeness::Invalid,
        }
    }
}

fn main() -> ExitCode {
    let Some(connection_file) = std::env::args_os().nth(1) else {
        eprintln!("usage: words CONNECTION_FILE");
        return ExitCode::from(2);
    };
    exit::code(jupyter::run(&PathBuf::from(connection_file), Words::default))
}
