//! agnhost as a tool: those of its subcommands that look around, print and end.
//! <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost>

use std::time::Duration;

use super::{Call, Outcome, duration, files};
use crate::network::connect::Options;
use crate::network::question::{Answer, Question};
use crate::network::reply::Failure;
use crate::runtime::agnhost::flag;
use crate::runtime::files::{Files, Node, What};

/// What `mounttest` writes into files.
const CONTENT: &str = "mount-tester new file\n";
/// How often `mounttest` reads a file that it has to go on reading.
const READ_PERIOD: Duration = Duration::from_secs(2);
/// What `statfs` calls a disk (ext4).
const DISK_MAGIC: u32 = 61267;

const TOOLS: &[(&str, super::Run)] = &[
    ("connect", connect),
    ("dns-server-list", dns_server_list),
    ("dns-suffix", dns_suffix),
    ("entrypoint-tester", entrypoint_tester),
    ("etc-hosts", etc_hosts),
    ("logs-generator", logs_generator),
    ("mounttest", mounttest),
    ("pause", pause),
];

/// True if it runs this subcommand; the others are servers.
pub fn is_tool(subcommand: &str) -> bool {
    TOOLS.iter().any(|(name, _)| *name == subcommand)
}

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let subcommand = call.args.first().copied().unwrap_or("pause");
    match TOOLS.iter().find(|(name, _)| *name == subcommand) {
        Some((_, tool)) => tool(call),
        None => Outcome::Becomes("/agnhost"),
    }
}

fn pause(call: &mut Call<'_, '_>) -> Outcome {
    call.out.line("Paused");
    Outcome::Waits
}

fn entrypoint_tester(call: &mut Call<'_, '_>) -> Outcome {
    let line = format!("[{} {}]", call.command, call.args.join(" "));
    call.out.line(&line);
    Outcome::Done(0)
}

fn etc_hosts(call: &mut Call<'_, '_>) -> Outcome {
    match call.read("/etc/hosts") {
        Ok(text) => call.out.text(text),
        Err(why) => return call.fail(1, why),
    }
    Outcome::Done(0)
}

/// The words behind a keyword of `/etc/resolv.conf`.
fn resolver(call: &Call<'_, '_>, word: &str) -> String {
    let text = call.around.files.read("/etc/resolv.conf").unwrap_or_default();
    let words = text.lines().filter_map(|line| line.strip_prefix(word)).flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(",")
}

fn dns_suffix(call: &mut Call<'_, '_>) -> Outcome {
    call.out.text(resolver(call, "search "));
    Outcome::Done(0)
}

fn dns_server_list(call: &mut Call<'_, '_>) -> Outcome {
    call.out.text(resolver(call, "nameserver "));
    Outcome::Done(0)
}

/// `connect --timeout=3s HOST:PORT`: nothing if it can, else why not.
fn connect(call: &mut Call<'_, '_>) -> Outcome {
    let Some(Answer::Got(tried)) = call.kept.answers.first() else {
        let place = call.args.iter().skip(1).find(|arg| !arg.starts_with('-') && arg.contains(':'));
        let timeout = flag(call.args, "timeout").and_then(duration);
        let options = Options { timeout, host: None };
        return Outcome::Asks(Question::Get { url: format!("http://{}/", place.unwrap_or(&"")), options }.into());
    };
    let problem = match &tried.result {
        Ok(_) | Err(Failure::NotHttp | Failure::NotTls) => return Outcome::Done(0),
        Err(Failure::Unresolved(host)) => format!("DNS: lookup {host}: no such host"),
        Err(Failure::Refused) => "REFUSED".to_owned(),
        Err(Failure::TimedOut) => "TIMEOUT".to_owned(),
        Err(failure) => format!("OTHER: {failure}"),
    };
    call.out.error_line(&problem);
    Outcome::Done(1)
}

/// Lines as of an apiserver's log: so many, spread over so long.
fn logs_generator(call: &mut Call<'_, '_>) -> Outcome {
    let total: u32 = flag(call.args, "log-lines-total").and_then(|text| text.parse().ok()).unwrap_or(0);
    let time = flag(call.args, "run-duration").and_then(duration).unwrap_or_default();
    if total == 0 || time.is_zero() {
        return call.fail(1, "Invalid total number of lines or duration");
    }
    const VERBS: [&str; 3] = ["GET", "POST", "PUT"];
    const NAMESPACES: [&str; 3] = ["kube-system", "default", "ns"];
    let number = u32::try_from(call.kept.memory.len()).unwrap_or(u32::MAX);
    let pick = number as usize;
    let stamp = call.around.now.timestamp().strftime("I%m%d %H:%M:%S.%6f").to_string();
    call.out.error_line(&format!(
        "{stamp}       1 logs_generator.go:76] {number} {} /api/v1/namespaces/{}/pods/{:04x} {}",
        VERBS[pick % 3],
        NAMESPACES[pick / 3 % 3],
        number.wrapping_mul(40503) & 0xffff,
        200 + number.wrapping_mul(37) % 400
    ));
    call.kept.memory.push(String::new());
    if number + 1 >= total { Outcome::Done(0) } else { Outcome::Again(time / total) }
}

/// Looks at a mounted path, writes below it, and says what it sees.
fn mounttest(call: &mut Call<'_, '_>) -> Outcome {
    let mut failed = false;
    let is_first = call.kept.memory.is_empty();
    if is_first {
        call.kept.memory.push(String::new());
        if let Some(path) = flag(call.args, "fs_type") {
            let place = files::absolute("", path);
            let home = call.script.home.clone();
            let mount = home.mounts.iter().find(|mount| mount.path == place);
            call.out.line(&match mount.is_some_and(|mount| mount.in_memory) {
                true => format!("mount type of {path:?}: tmpfs"),
                false => format!("mount type of {path:?}: {DISK_MAGIC}"),
            });
        }
        for (name, mode) in
            [("new_file_0644", 0o644), ("new_file_0666", 0o666), ("new_file_0660", 0o660), ("new_file_0777", 0o777)]
        {
            let Some(path) = flag(call.args, name) else { continue };
            let written = call.around.files.put(path, Node::file(CONTENT, mode, call.around.now));
            match written {
                Ok(()) => failed |= !show_content(call, path),
                Err(why) => {
                    call.out.line(&format!("error writing new file {path:?}: open {path}: {}", go(&why.to_string())));
                    failed = true;
                }
            }
        }
        for (name, what) in [("file_mode", "mode"), ("file_perm", "perms")] {
            let Some(path) = flag(call.args, name) else { continue };
            match mode_of(call.around.files, path) {
                Some((folder, mode)) => {
                    let text = if what == "mode" { go_mode(folder, mode) } else { go_mode(false, mode & 0o777) };
                    call.out.line(&format!("{what} of file {path:?}: {text}"));
                }
                None => {
                    call.out.line(&format!("error from lstat({path:?}): stat {path}: no such file or directory"));
                    failed = true;
                }
            }
        }
        if let Some(path) = flag(call.args, "file_owner") {
            let group = call.around.files.target(path).map_or(0, |node| node.group);
            call.out.line(&format!("owner UID of {path:?}: 0\nowner GID of {path:?}: {group}"));
        }
        if let Some(path) = flag(call.args, "file_content") {
            failed |= !show_content(call, path);
        }
    }
    let Some(path) = flag(call.args, "file_content_in_loop") else { return Outcome::Done(i32::from(failed)) };
    let breaks = flag(call.args, "break_on_expected_content") != Some("false");
    let retry = flag(call.args, "retry_time").and_then(|text| text.parse().ok()).unwrap_or(180);
    let text = call.around.files.read(path).map(str::to_owned);
    match &text {
        Some(text) => call.out.line(&format!("content of file {path:?}: {text}")),
        None => call.out.line(&format!("Error reading file {path}: open {path}: no such file or directory, retrying")),
    }
    let is_over = call.around.now.since(call.kept.began) + READ_PERIOD >= Duration::from_secs(retry);
    if text.is_some() && breaks || is_over { Outcome::Done(i32::from(failed)) } else { Outcome::Again(READ_PERIOD) }
}

fn show_content(call: &mut Call<'_, '_>, path: &str) -> bool {
    let text = call.around.files.read(path).map(str::to_owned);
    match &text {
        Some(text) => call.out.line(&format!("content of file {path:?}: {text}")),
        None => {
            call.out.line(&format!("error reading file content for {path:?}: open {path}: no such file or directory"))
        }
    }
    text.is_some()
}

/// As Go says what the system says.
fn go(problem: &str) -> String {
    problem.to_lowercase()
}

fn mode_of(files: &Files, path: &str) -> Option<(bool, u16)> {
    match files.target(path) {
        Some(node) => Some((matches!(node.what, What::Folder), node.mode)),
        None => files.is_folder(path).then_some((true, 0o755)),
    }
}

/// A mode as Go's `os.FileMode` prints it: `-rw-r--r--`, `drwxrwxrwx`, `dgrwxrwxrwx`.
fn go_mode(folder: bool, mode: u16) -> String {
    let kinds = [(folder, 'd'), (mode & 0o4000 != 0, 'u'), (mode & 0o2000 != 0, 'g'), (mode & 0o1000 != 0, 't')];
    let mut text: String = kinds.iter().filter(|(is_so, _)| *is_so).map(|(_, letter)| *letter).collect();
    if text.is_empty() {
        text.push('-');
    }
    let letter = |(bit, letter)| if mode >> (8 - bit) & 1 == 1 { letter } else { '-' };
    text.extend("rwxrwxrwx".chars().enumerate().map(letter));
    text
}

#[cfg(test)]
mod tests {
    use crate::runtime::shell::tests::prints;

    #[test]
    fn tools_say_what_they_see() {
        for (line, expected) in [
            ("/agnhost entrypoint-tester a b", "[/agnhost entrypoint-tester a b]"),
            (
                "agnhost mounttest --new_file_0644=/d/f --file_perm=/d/f --fs_type=/d",
                "mount type of \"/d\": 61267|content of file \"/d/f\": mount-tester new file||perms of file \"/d/f\": -rw-r--r--",
            ),
            (
                "echo x > /f; chmod 400 /f; agnhost mounttest --file_content=/f --file_mode=/f",
                "mode of file \"/f\": -r--------|content of file \"/f\": x|",
            ),
            (
                "agnhost mounttest --file_content_in_loop=/g --retry_time=1",
                "Error reading file /g: open /g: no such file or directory, retrying",
            ),
            (
                "printf 'search a b\\nnameserver 1.1.1.1\\n' > /etc/resolv.conf; agnhost dns-suffix; echo; agnhost dns-server-list",
                "a,b|1.1.1.1",
            ),
        ] {
            assert_eq!(prints(line), expected, "{line}");
        }
    }
}
