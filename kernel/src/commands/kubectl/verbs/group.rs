//! A word under which others stand: alone, it shows them. (`DefaultSubCommandRun` of k8s.io/kubectl/pkg/cmd/util.)

use super::super::failure::{Failure, Outcome, usage};
use super::super::help;
use super::super::verb::Call;

pub fn on_stdout(call: &mut Call<'_, '_>) -> Outcome {
    let text = below(call)?;
    call.context.print(text);
    Err(Failure::Quiet)
}

pub fn on_stderr(call: &mut Call<'_, '_>) -> Outcome {
    let text = below(call)?;
    call.context.error_line(text.trim_end_matches('\n'));
    Err(Failure::Quiet)
}

/// Shows them and calls that a success, whatever stands behind it.
pub fn as_help(call: &mut Call<'_, '_>) -> Outcome {
    call.parsed.args.clear();
    let text = below(call)?;
    call.context.print(text);
    Ok(())
}

fn below(call: &Call<'_, '_>) -> Result<String, Failure> {
    if !call.parsed.args.is_empty() {
        return usage(format!("unknown command {:?}", call.parsed.args.join(" ")));
    }
    let words: Vec<&str> = call.command.split(' ').skip(1).collect();
    Ok(help::of(&words).unwrap_or_default())
}
