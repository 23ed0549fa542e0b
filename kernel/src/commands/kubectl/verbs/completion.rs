//! `kubectl completion`: it knows the shells, but has no scripts for them.

use super::super::failure::{Outcome, message, usage};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb { name: "completion", aliases: &[], flags: &[], run };

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

fn run(call: &mut Call<'_, '_>) -> Outcome {
    match call.parsed.args.as_slice() {
        [] => usage("Shell not specified."),
        [shell] if SHELLS.contains(&shell.as_str()) => message(format!(
            "the completion script for {shell} is not built here; in a notebook, Tab completes commands, flags and names"
        )),
        [shell] => usage(format!("Unsupported shell type {shell:?}.")),
        _ => usage("Too many arguments. Expected only the shell type."),
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn help_is_there_and_the_script_is_not() {
        let mut session = session();
        let help = run(&mut session, "kubectl completion -h");
        assert!(help.contains("Output shell completion code for the specified shell"), "{help}");
        assert!(run(&mut session, "kubectl completion bash").contains("exit code 1"));
    }
}
