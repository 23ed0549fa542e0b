//! Makes the lessons' notebooks from their sources.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use kernetes::exit::{self, Answer, Outcome};
use lessons::{ROOT, Refusal};

/// Make the lessons' notebooks, run them, and write them to notebooks/ja and notebooks/en
#[derive(Parser)]
#[command(name = "lessons")]
struct Arguments {
    /// Write nothing; show how the committed notebooks differ from what the kernel produces
    #[arg(long)]
    check: bool,
    /// Note in the sources that each English text now translates the Japanese above it
    #[arg(long, conflicts_with = "check")]
    accept: bool,
    /// Instead of the other lessons those with Rust cells, which take a minute and need `kernel/rust-cells` built
    #[arg(long)]
    rust_cells: bool,
    /// Make no lessons, but a notebook with a right answer for each exercise, as learners hand them in
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "accept", "rust_cells", "names"])]
    answers: Option<PathBuf>,
    /// The lessons, such as `01-desired-state` [default: all]
    names: Vec<String>,
}

fn main() -> ExitCode {
    exit::code(start(Arguments::parse()))
}

fn start(arguments: Arguments) -> Outcome {
    match make(&arguments) {
        Ok(answer) => Ok(answer),
        Err(Refusal::Failure(failure)) => Err(failure),
        Err(Refusal::Problems(problems)) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            Ok(Answer::No)
        }
    }
}

fn make(arguments: &Arguments) -> Result<Answer, Refusal> {
    let root = Path::new(ROOT);
    if let Some(folder) = &arguments.answers {
        let built = lessons::answers::build(root, folder)?;
        lessons::write(&built)?;
        println!("{} notebooks made", built.len());
        return Ok(Answer::Yes);
    }
    let mut sources = lessons::read(root, &arguments.names)?;
    if arguments.accept {
        lessons::accept(&sources)?;
        sources = lessons::read(root, &arguments.names)?;
    }
    if arguments.names.is_empty() {
        sources.retain(|source| source.lesson.has_rust_cells() == arguments.rust_cells);
    }
    let mut built = lessons::build(root, &sources)?;
    if arguments.names.is_empty() && !arguments.rust_cells {
        built.extend(lessons::exercises::build(root)?);
    }
    if !arguments.check {
        lessons::write(&built)?;
        println!("{} notebooks made", built.len());
        return Ok(Answer::Yes);
    }
    let mut differences = lessons::compare(root, &built)?;
    let reproduced = built.len() - differences.len();
    if arguments.names.is_empty() {
        differences.extend(lessons::strays(root, &lessons::read(root, &[])?)?);
    }
    differences.iter().for_each(|difference| println!("{difference}"));
    println!("{reproduced} of {} notebooks are reproduced", built.len());
    Ok(if differences.is_empty() { Answer::Yes } else { Answer::No })
}
