//! `kernetes kubectl`: the built-in kubectl at a shell's prompt, against the server that a kubeconfig names.

use std::io::{Read, Write};

use super::connect::{connect, nowhere};
use crate::commands::files::Disk;
use crate::commands::kubectl::{self, Kubectl as Program};
use crate::commands::{Context, Program as _, Stream};
use crate::exit::{Answer, Outcome};

/// The built-in kubectl, against any Kubernetes API server
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Kubectl {
    /// Verb, arguments and flags, as kubectl takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Kubectl {
    pub fn start(self) -> Outcome {
        if let Some((program, used)) = kubectl::plugin(&self.arguments) {
            return Ok(match std::process::Command::new(program).args(&self.arguments[used..]).status() {
                Ok(ended) => Answer::Code(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
                Err(error) => {
                    terminal(Stream::Stderr, &format!("error: {error}\n"));
                    Answer::No
                }
            });
        }
        let flags = kubectl::global_flags(&self.arguments);
        let connected = match kubectl::is_local(&self.arguments) {
            true => nowhere(),
            // Verbs and flags can follow whether or not a server is there.
            false if kubectl::is_question(&self.arguments) => connect(&flags).or_else(|_| nowhere()),
            false => connect(&flags),
        };
        let (mut remote, namespace) = match connected {
            Ok(connected) => connected,
            Err(problem) => {
                let before = if problem.starts_with("Error in configuration") { "" } else { "error: " };
                terminal(Stream::Stderr, &format!("{before}{problem}\n"));
                return Ok(Answer::No);
            }
        };
        let mut files = Disk;
        let mut context = Context::new(&mut remote, &mut files);
        context.namespace = namespace;
        context.sink = Some(terminal);
        if reads_input(&self.arguments) {
            let mut bytes = Vec::new();
            // What can't be read to its end counts as far as it goes.
            let _ = std::io::stdin().read_to_end(&mut bytes);
            context.stdin = String::from_utf8_lossy(&bytes).into_owned();
        }
        Ok(match Program.run(&self.arguments, &mut context) {
            0 => Answer::Yes,
            1 => Answer::No,
            code => Answer::Code(u8::try_from(code).unwrap_or(1)),
        })
    }
}

/// Whether standard input is asked for: by a file called `-`, or by `exec -i`.
fn reads_input(arguments: &[String]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    let mut words = own.map(String::as_str);
    words.any(|word| {
        matches!(word, "-" | "-f-" | "-i" | "-it" | "-ti" | "--stdin")
            || word.ends_with("=-")
            || word.ends_with("=/dev/stdin")
    })
}

fn terminal(stream: Stream, text: &str) {
    // A reader that has left, as `head` does, has seen what it wanted.
    let _ = match stream {
        Stream::Stdout | Stream::Pager => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        }
        Stream::Stderr => std::io::stderr().write_all(text.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_read_where_it_is_asked_for() {
        let reads = |line: &str| reads_input(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(reads("apply -f -"));
        assert!(reads("apply --filename=-"));
        assert!(reads("exec -i web -- cat"));
        assert!(!reads("get pods -o name"));
        assert!(!reads("exec web -- cat -"));
    }
}
