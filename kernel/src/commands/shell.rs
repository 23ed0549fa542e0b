//! Runs the jobs of a cell, one after the other.

use super::line::{Input, Job, Problem, When, parse};
use super::{ALL, Context, Stream, find};
use crate::text;

/// What a shell answers for a program that is not there.
const NOT_FOUND: i32 = 127;

/// Runs a cell of commands; what they write goes to `written` after each job. Returns the exit code of the last, which
/// is not the cell's last if the person has interrupted it.
pub fn run(code: &str, context: &mut Context<'_>, written: &mut dyn FnMut(Stream, String)) -> Result<i32, Problem> {
    let mut last = 0;
    for job in parse(code)? {
        if context.api.interrupted() {
            break;
        }
        let wanted = match job.when {
            When::Always => true,
            When::AfterSuccess => last == 0,
            When::AfterFailure => last != 0,
        };
        if wanted {
            last = run_job(&job, context);
            for (stream, text) in context.take_written() {
                written(stream, text);
            }
        }
    }
    Ok(last)
}

fn run_job(job: &Job, context: &mut Context<'_>) -> i32 {
    context.node.clone_from(&job.node);
    context.stdin = match &job.input {
        None => String::new(),
        Some(Input::Text(text)) => text.clone(),
        Some(Input::File(file)) => match context.files.read(file) {
            Ok(text) => text,
            Err(trouble) => {
                context.error_line(format!("sh: {file}: {trouble}"));
                return 1;
            }
        },
    };
    let mut code = 0;
    for (place, words) in job.pipeline.iter().enumerate() {
        if place > 0 {
            context.stdin = context.take_stdout();
        }
        code = run_program(words, context);
    }
    if let Some((file, append)) = &job.redirect {
        let text = context.take_stdout();
        let before = if *append { context.files.read(file).unwrap_or_default() } else { String::new() };
        if let Err(trouble) = context.files.write(file, &format!("{before}{text}")) {
            context.error_line(format!("sh: {file}: {trouble}"));
            return 1;
        }
    }
    code
}

fn run_program(words: &[String], context: &mut Context<'_>) -> i32 {
    let Some((name, args)) = words.split_first() else { return 0 };
    if let Some(program) = find(name) {
        return program.run(args, context);
    }
    context.error_line(format!("sh: {}: command not found", text::short(name)));
    let names = ALL.iter().map(|program| program.name());
    // Of a short word almost everything is a neighbour.
    let near = if name.len() > 3 { super::suggest::suggestions(name, names) } else { Vec::new() };
    if !near.is_empty() {
        context.error_line(format!("\nDid you mean this?\n\t{}", near.join("\n\t")));
    }
    NOT_FOUND
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;
    use crate::commands::files::{Files, Memory};

    #[test]
    fn a_cell_of_commands() {
        let mut cluster = Cluster::new(Config::default());
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        let mut screen = String::new();
        let code = "kubectl apply -f - <<EOF\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata: {a: b}\nEOF\n\
                    kubectl get ns | grep -v kube- | wc -l\n\
                    kubectl get ns -o name > names.txt && cat names.txt | tail -n 1\n\
                    kubctl get pods || echo gone";
        let last = run(code, &mut context, &mut |_, text| screen.push_str(&text)).unwrap();
        assert_eq!(last, 0);
        assert_eq!(
            screen,
            "configmap/c created\n2\nnamespace/kube-system\nsh: kubctl: command not found\n\nDid you mean this?\n\tkubectl\ngone\n"
        );
        assert_eq!(files.read("names.txt").unwrap().lines().count(), 4);
    }
}
