//! The house rules: what each folder must not touch, how long a file may be, and that no machine's own paths appear.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_LINES_MAX: usize = 600;

/// A folder or file, and the words that its code must not contain.
const ABSENCES: &[(&str, &str)] = &[
    ("cluster-core", "std::fs std::io std::env::var std::process std::thread tokio print! println! eprintln! dbg!"),
    ("cluster-core", "std::net::TcpStream std::net::TcpListener std::net::UdpSocket std::net::ToSocketAddrs"),
    ("cluster-core", "std::time::Instant SystemTime Timestamp::now Zoned::now"),
    ("cluster-core", "std::collections::HashMap std::collections::HashSet RandomState"),
    ("cluster-core", "thread_rng rand::rng getrandom from_os_rng from_entropy new_v4"),
    ("cluster-core/src/clock.rs", "crate::api crate::store crate::apiserver crate::controllers"),
    ("cluster-core/src/random.rs", "crate::api crate::store crate::apiserver crate::controllers"),
    ("cluster-core/api/src", "crate::apiserver crate::store crate::controllers crate::scheduler crate::cluster"),
    ("cluster-core/api/src", "crate::kubelet crate::runtime crate::network"),
    ("cluster-core/src/apiserver", "crate::controllers crate::scheduler crate::kubelet crate::runtime crate::cluster"),
    ("cluster-core/src/quota", "crate::store crate::apiserver crate::controllers crate::scheduler crate::cluster"),
    (
        "cluster-core/src/disruption.rs",
        "crate::store crate::apiserver crate::controllers crate::scheduler crate::cluster",
    ),
    (
        "cluster-core/src/node_selection.rs",
        "crate::store crate::apiserver crate::controllers crate::scheduler crate::cluster",
    ),
    ("cluster-core/src/store.rs", "crate::apiserver crate::controllers crate::scheduler crate::kubelet k8s_openapi"),
    ("cluster-core/src/watch.rs", "crate::controllers crate::scheduler crate::kubelet k8s_openapi"),
    ("cluster-core/src/controllers", "crate::store::Store crate::clock::Clock crate::cluster"),
    ("cluster-core/src/controllers", "crate::scheduler crate::kubelet crate::runtime"),
    ("cluster-core/src/scheduler", "crate::kubelet crate::runtime crate::store::Store crate::cluster"),
    ("cluster-core/src/kubelet", "crate::scheduler crate::controllers crate::store::Store crate::cluster"),
    ("cluster-core/src/runtime", "crate::api::object crate::api::kind crate::apiserver crate::store k8s_openapi"),
    ("cluster-core/src/network", "crate::controllers crate::scheduler apiserver.store.put apiserver.store.delete"),
    (
        "cluster-core/src/trace",
        "crate::apiserver crate::store::Store crate::controllers crate::scheduler crate::cluster",
    ),
    ("cluster-core/src/trace", "crate::kubelet crate::runtime crate::network"),
    ("kernel/src/main.rs", "cluster_core crate::session"),
    ("kernel/src/jupyter", "cluster_core k8s_openapi crate::commands crate::language"),
    ("kernel/src/language", "jupyter_zmq_client jupyter_protocol zeromq crate::jupyter"),
    ("kernel/src/session.rs", "jupyter_zmq_client jupyter_protocol zeromq crate::jupyter"),
    ("kernel/src/session", "jupyter_zmq_client jupyter_protocol zeromq crate::jupyter"),
    ("kernel/src/commands", "cluster_core::store cluster_core::controllers crate::jupyter"),
    ("kernel/src/gateway", "cluster_core::store cluster_core::controllers crate::jupyter"),
    ("kernel/src/plots", "cluster_core::Cluster crate::session crate::jupyter"),
    ("kernel/src/search", "crate::session crate::commands crate::language crate::jupyter crate::gateway"),
    ("kernel/src/grading", "cluster_core::store cluster_core::controllers crate::jupyter"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project's folder")
}

/// The files that git knows or would add, below the project's folder.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the project's files");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
    listed.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect()
}

/// A file's text; `None` if it is no text.
fn text(file: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(file)).expect(file)).ok()
}

/// A crate's tests from outside see only what is public, and may use what the crate may not.
fn is_outside(file: &str) -> bool {
    file.starts_with("cluster-core/tests/")
}

/// The lines of code with their numbers: comments may name what code may not, and so may the tests at a file's foot.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

/// A word that stands alone: `std::io` is not in `std::iota`, `crate::api` is not in `crate::apiserver`.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let part = |char: char| char.is_alphanumeric() || char == '_';
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let open_end = !word.ends_with(part) || !after.is_some_and(part);
        open_end && !before.is_some_and(part)
    })
}

/// A line with its grouped imports spelled out: `use std::{fs, io};` names `std::fs` and `std::io`.
fn spelled_out(line: &str) -> Vec<String> {
    match line.split_once("::{") {
        Some((before, group)) => {
            let prefix = before.rsplit(' ').next().unwrap_or(before);
            group.split([',', '}', ';']).map(|name| format!("{prefix}::{}", name.trim())).collect()
        }
        None => vec![line.to_owned()],
    }
}

fn touches(line: &str, word: &str) -> bool {
    names(line, word) || spelled_out(line).iter().any(|line| names(line, word))
}

fn assert_none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn folders_do_not_touch_what_is_not_theirs() {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| file.ends_with(".rs") && !is_outside(file)) {
        let text = text(file).unwrap_or_default();
        for (place, words) in ABSENCES.iter().filter(|(place, _)| Path::new(file).starts_with(place)) {
            for (number, line) in code(&text) {
                for word in words.split_whitespace().filter(|word| touches(line, word)) {
                    found.push(format!("{file}:{number}: {place} must not touch `{word}`"));
                }
            }
        }
    }
    assert_none(found);
}

#[test]
fn no_file_is_longer_than_a_room() {
    let long = |file: &String| {
        let lines = text(file)?.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{file}: {lines} lines; at most {FILE_LINES_MAX}"))
    };
    // A lesson is prose in two languages, not a room.
    let is_room = |file: &&String| [".rs", ".py", ".mjs"].iter().any(|end| file.ends_with(end));
    assert_none(files().iter().filter(is_room).filter_map(long).collect());
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    // Spelled in halves, so that this file does not name them.
    let own = ["/ho", "me/"].concat();
    let paths = [["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), own, ["/Us", "ers/"].concat()];
    let mut found = Vec::new();
    // The help of kubectl has a path of its own as an example.
    let files = files().into_iter().filter(|file| !file.ends_with("kubectl/help/commands.yaml"));
    for file in files {
        for (index, line) in text(&file).unwrap_or_default().lines().enumerate() {
            for path in &paths {
                let own =
                    |at: usize| !line[..at].ends_with(|char: char| char.is_alphanumeric() || "._-}/".contains(char));
                if line.match_indices(path.as_str()).any(|(at, _)| own(at)) {
                    found.push(format!("{file}:{}: {path}", index + 1));
                }
            }
        }
    }
    assert_none(found);
}

#[test]
fn grouped_imports_and_longer_names_are_told_apart() {
    assert!(touches("use std::{fs, mem};", "std::fs"));
    assert!(touches("use crate::{api, store};", "crate::store"));
    assert!(!touches("use crate::apiserver::Request;", "crate::api"));
    assert!(!touches("use std::iter;", "std::io"));
    assert!(touches("let now = SystemTime::now();", "SystemTime"));
}
