//! The command line: one variant a subcommand, its handler in a file of its own.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kernetes::exit::{self, Failure};

/// A cluster is many small shared pieces: an allocator that is good at those makes it a fifth faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Jupyter kernel with a whole Kubernetes cluster inside.
///
/// Exit codes: 0 right, 1 the answer is no, 2 wrong usage, 3 a fault of our own.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(kernetes::bench::Bench),
    Grade(kernetes::grading::Grade),
    Install(kernetes::jupyter::install::Install),
    Kernel(kernetes::jupyter::Launch),
    Kubectl(kernetes::commands::remote::command::Kubectl),
    Lab(kernetes::lab::Lab),
    Run(kernetes::notebook::Run),
    Serve(kernetes::gateway::Serve),
}

fn main() -> ExitCode {
    let command = CommandLine::parse().command;
    let outcome = std::panic::catch_unwind(|| match command {
        Command::Bench(bench) => bench.start(),
        Command::Grade(grade) => grade.start(),
        Command::Install(install) => install.start(),
        Command::Kernel(launch) => launch.start(),
        Command::Kubectl(kubectl) => kubectl.start(),
        Command::Lab(lab) => lab.start(),
        Command::Run(run) => run.start(),
        Command::Serve(serve) => serve.start(),
    });
    // The panic itself has already been told on stderr.
    exit::code(outcome.unwrap_or_else(|_| Err(Failure::Fault("stopped by an internal fault".to_owned()))))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::CommandLine::command().debug_assert();
    }
}
