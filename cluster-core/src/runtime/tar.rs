//! `tar` in a container, and the archives that it reads and writes: how `kubectl cp` carries files. Files are texts.
//! <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html>

use super::files::{Files, Node, What, plain};
use super::shell::Exec;
use crate::clock::Time;

const BLOCK: usize = 512;
const NAME_BYTES: usize = 100;

/// One file of an archive, or a folder, which has no text.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    pub text: Option<String>,
}

/// An archive as text: all of it is, if its files are.
pub fn pack(entries: &[Entry]) -> String {
    let mut archive = String::new();
    for entry in entries {
        let (kind, text) = match &entry.text {
            Some(text) => ('0', text.as_str()),
            None => ('5', ""),
        };
        if entry.name.len() > NAME_BYTES {
            let record = record("path", &entry.name);
            block(&mut archive, "PaxHeaders", 'x', &record);
        }
        block(&mut archive, &entry.name, kind, text);
    }
    archive + &"\0".repeat(2 * BLOCK)
}

/// `30 path=…`: the number counts the whole record, its own digits among them.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

fn block(archive: &mut String, name: &str, kind: char, text: &str) {
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let mut header = String::new();
    let mut field = |text: &str, width: usize| {
        header.push_str(text);
        header.push_str(&"\0".repeat(width.saturating_sub(text.len())));
    };
    field(&name[..end], NAME_BYTES);
    field(if kind == '5' { "0000755" } else { "0000644" }, 8);
    field("0000000", 8);
    field("0000000", 8);
    field(&format!("{:011o}", text.len()), 12);
    field("00000000000", 12);
    field("        ", 8);
    field(&kind.to_string(), 101);
    field("ustar\x0000", 255);
    let sum: u32 = header.bytes().map(u32::from).sum();
    header.replace_range(148..156, &format!("{sum:06o}\0 "));
    archive.push_str(&header);
    archive.push_str(text);
    archive.push_str(&"\0".repeat(text.len().next_multiple_of(BLOCK) - text.len()));
}

/// # Errors
/// That it is no archive, or holds what is no text.
pub fn unpack(archive: &[u8]) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut rest = archive;
    let mut long_name: Option<String> = None;
    while let Some((header, behind)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let text_of = |from: usize, to: usize| {
            let field = &header[from..to];
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).trim().to_owned()
        };
        let size = usize::from_str_radix(&text_of(124, 136), 8).map_err(|_| "tar: invalid tar header".to_owned())?;
        let content = behind.get(..size).ok_or("tar: short read")?;
        rest = behind.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        let name = match text_of(345, 500).as_str() {
            prefix if header.get(257..262) == Some(b"ustar") && !prefix.is_empty() => {
                format!("{prefix}/{}", text_of(0, NAME_BYTES))
            }
            _ => text_of(0, NAME_BYTES),
        };
        match header[156] {
            b'x' => {
                let records = String::from_utf8_lossy(content);
                let path =
                    records.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=").map(str::to_owned));
                long_name = path.or(long_name);
            }
            b'L' => long_name = Some(String::from_utf8_lossy(content).trim_end_matches('\0').to_owned()),
            b'5' => entries.push(Entry { name: long_name.take().unwrap_or(name), text: None }),
            b'0' | 0 => {
                let name = long_name.take().unwrap_or(name);
                let text =
                    String::from_utf8(content.to_vec()).map_err(|_| format!("tar: {name}: is not UTF-8 text"))?;
                entries.push(Entry { name, text: Some(text) });
            }
            _ => long_name = None,
        }
    }
    Ok(entries)
}

/// Runs `tar cf - PATH…` or `tar xf - [-C FOLDER]` among a container's files.
pub fn run(args: &[String], input: &[u8], folder: &str, files: &mut Files, now: Time) -> Exec {
    let ended = |code: i32, output: String| Exec { code, output, ..Exec::default() };
    let mut words = args.iter().filter(|word| *word != "-" && !word.starts_with("--"));
    let mode = words.next().map(|word| word.trim_start_matches('-')).unwrap_or_default().to_owned();
    let (mut place, mut paths) = (folder.to_owned(), Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "-C" => place = absolute(folder, words.next().map_or(".", String::as_str)),
            path => paths.push(path),
        }
    }
    if !mode.contains('f') {
        return ended(1, "tar: only archives on standard input and output can be used: tar cf -, tar xf -\n".into());
    }
    if mode.contains('x') {
        let unpacked = unpack(input).and_then(|entries| extract(&entries, &place, files, now));
        return unpacked.map_or_else(|problem| ended(1, problem + "\n"), |()| ended(0, String::new()));
    }
    let mut entries = Vec::new();
    for path in paths {
        let from = absolute(&place, path);
        if !files.exists(&from) && !files.is_folder(&from) {
            return ended(
                1,
                format!("tar: {path}: No such file or directory\ntar: error exit delayed from previous errors\n"),
            );
        }
        gather(files, &from, path.trim_start_matches('/'), &mut entries);
    }
    ended(0, pack(&entries))
}

fn absolute(folder: &str, path: &str) -> String {
    if path.starts_with('/') { plain(path) } else { plain(&format!("{folder}/{path}")) }
}

fn extract(entries: &[Entry], folder: &str, files: &mut Files, now: Time) -> Result<(), String> {
    for Entry { name, text } in entries {
        let node = match text {
            Some(text) => Node::file(text.as_str(), 0o644, now),
            None => Node::folder(now),
        };
        let place = absolute(folder, &format!("./{name}"));
        if text.is_some() || !files.is_folder(&place) {
            files.put(&place, node).map_err(|why| format!("tar: can't open '{name}': {why}"))?;
        }
    }
    Ok(())
}

/// What stands at a path and below it. Links are left out.
fn gather(files: &Files, from: &str, name: &str, entries: &mut Vec<Entry>) {
    match files.target(from).map(|node| &node.what) {
        Some(What::File { text, .. }) => {
            entries.push(Entry { name: name.to_owned(), text: Some(text.to_string()) });
        }
        Some(What::Link(_)) => {}
        Some(What::Folder) | None => {
            entries.push(Entry { name: format!("{name}/"), text: None });
            for (inner, _) in files.list(from) {
                gather(files, &format!("{from}/{inner}"), &format!("{name}/{inner}"), entries);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, text: &str) -> Entry {
        Entry { name: name.into(), text: Some(text.into()) }
    }

    #[test]
    fn an_archive_holds_what_was_put_in() {
        let long = format!("{}/名前", "deep/".repeat(40));
        let folder = Entry { name: "d/".into(), text: None };
        let entries = [entry("a", "text\n"), folder, entry("d/empty", ""), entry(&long, &"x".repeat(2 * BLOCK))];
        let archive = pack(&entries);
        assert_eq!(archive.len() % BLOCK, 0);
        assert_eq!(unpack(archive.as_bytes()).unwrap(), entries);
        assert!(unpack(&archive.as_bytes()[..BLOCK + 3]).is_err());
        assert!(unpack(&[b'x'; BLOCK]).is_err());
    }

    #[test]
    fn files_go_into_a_container_and_come_out_again() {
        let mut files = Files::default();
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let archive = pack(&[entry("d/a", "1"), entry("d/e/b", "2")]);
        let done = run(&args("-xmf - -C /tmp"), archive.as_bytes(), "/", &mut files, Time::ZERO);
        assert_eq!((done.code, files.read("/tmp/d/e/b")), (0, Some("2")));
        let done = run(&args("cf - /tmp/d"), b"", "/", &mut files, Time::ZERO);
        let names: Vec<String> = unpack(done.output.as_bytes()).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["tmp/d/", "tmp/d/a", "tmp/d/e/", "tmp/d/e/b"]);
        assert_eq!(run(&args("cf - /none"), b"", "/", &mut files, Time::ZERO).code, 1);
        assert_eq!(run(&args("t"), b"", "/", &mut files, Time::ZERO).code, 1);
    }
}
