//! `kubectl plugin`: programs on the PATH that are called `kubectl-…`. A cell has no PATH and so no plugins.
//! <https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::failure::{Outcome, message};
use super::super::flags::switch;
use super::super::verb::{Call, Verb};
use super::group;

pub const PLUGIN: Verb = Verb { name: "plugin", aliases: &[], flags: &[], run: group::on_stderr };

pub const LIST: Verb = Verb { name: "plugin list", aliases: &[], flags: &[switch("name-only")], run: list };

fn list(call: &mut Call<'_, '_>) -> Outcome {
    let path = call.context.sink.and_then(|_| std::env::var_os("PATH")).unwrap_or_default();
    let names_only = call.parsed.switch("name-only");
    let (mut lines, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut folders = BTreeSet::new();
    for folder in std::env::split_paths(&path).filter(|folder| folders.insert(folder.clone())) {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(_) => {
                let folder = folder.display();
                call.context.error_line(format!(
                    "Unable to read directory \"{folder}\" from your PATH: open {folder}: no such file or directory. Skipping..."
                ));
                continue;
            }
        };
        let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !name.starts_with("kubectl-") || file.is_dir() {
                continue;
            }
            lines.push(if names_only { name.clone() } else { file.display().to_string() });
            if !is_executable(&file) {
                problems.push(format!(
                    "warning: {} identified as a kubectl plugin, but it is not executable",
                    file.display()
                ));
            }
            if !seen.insert(name) {
                problems.push(format!("warning: {} is overshadowed by a similarly named plugin", file.display()));
            }
        }
    }
    if lines.is_empty() {
        return message("unable to find any kubectl plugins in your PATH");
    }
    call.line("The following compatible plugins are available:\n");
    lines.iter().for_each(|line| call.line(line));
    problems.iter().for_each(|problem| call.context.error_line(problem));
    match problems.len() {
        0 => Ok(()),
        1 => message("one plugin warning was found"),
        many => message(format!("{many} plugin warnings were found")),
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// The program for a verb that is none of kubectl's own, and how many of the words are its name: `kubectl-a-b` before
/// `kubectl-a`.
pub fn find(args: &[String]) -> Option<(std::path::PathBuf, usize)> {
    let words: Vec<&String> = args.iter().take_while(|word| !word.starts_with('-')).collect();
    let path = std::env::var_os("PATH")?;
    (1..=words.len()).rev().find_map(|used| {
        let name: Vec<String> = words[..used].iter().map(|word| word.replace('-', "_")).collect();
        let name = format!("kubectl-{}", name.join("-"));
        let found = std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| is_executable(file))?;
        Some((found, used))
    })
}
