//! The commands of a container's shell that look at files or change them, with BusyBox's words.

use std::sync::Arc;

use super::{Files, Outcome};
use crate::clock::Time;
use crate::runtime::files::{Node, Refusal, What, plain};

pub const KNOWN: &[&str] =
    &["cat", "cp", "dd", "head", "ls", "mkdir", "mv", "readlink", "rm", "stat", "touch", "truncate", "wc"];

/// A command on its way: what it works on, and where its lines go.
pub struct Turn<'a> {
    pub files: &'a mut Files,
    /// The folder that other paths begin at.
    pub folder: &'a str,
    pub now: Time,
    pub print: &'a mut dyn FnMut(String),
}

/// A path from the root.
pub fn absolute(folder: &str, path: &str) -> String {
    if path.starts_with('/') { plain(path) } else { plain(&format!("{folder}/{path}")) }
}

/// `10`, `4k`, `2M`, `1G`, also as `2MB` and `2MiB`; `None` if it is no size.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim_end_matches(['B', 'i']) {
        "" => 1,
        "k" | "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

pub(super) fn run(command: &str, args: &[&str], mut turn: Turn<'_>) -> Outcome {
    let (flags, paths): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with('-') && arg.len() > 1);
    let flag = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    let mut failed = false;
    match command {
        "ls" => return turn.ls(&paths, flag('a'), flag('l'), flag('L'), flag('d')),
        "dd" => return turn.dd(args),
        "head" => return turn.head(args),
        "cp" | "mv" => return turn.copy(command, &paths, flag('r') || flag('a') || flag('R')),
        "truncate" => return turn.truncate(args),
        "stat" => return turn.stat(args),
        _ => {}
    }
    for path in &paths {
        let place = absolute(turn.folder, path);
        let done = match command {
            "cat" => turn.cat(path, &place),
            "touch" if turn.files.exists(&place) => Ok(()),
            "touch" => turn.files.write(&place, "", turn.now).map_err(|why| format!("touch: {path}: {why}")),
            "mkdir" if turn.files.exists(&place) && flag('p') => Ok(()),
            "mkdir" if turn.files.exists(&place) => Err(format!("mkdir: can't create directory '{path}': File exists")),
            "mkdir" => turn
                .files
                .put(&place, Node::folder(turn.now))
                .map_err(|why| format!("mkdir: can't create directory '{path}': {why}")),
            "rm" if turn.files.is_folder(&place) && !flag('r') && !flag('R') => {
                Err(format!("rm: '{path}' is a directory"))
            }
            "rm" => match turn.files.remove(&place) {
                Err(Refusal::Missing) if flag('f') => Ok(()),
                done => done.map_err(|why| format!("rm: can't remove '{path}': {why}")),
            },
            "wc" => turn.wc(path, &place, flag('c'), flag('l')),
            "readlink" => match turn.files.node(&place).map(|node| node.what.clone()) {
                _ if flag('f') => {
                    (turn.print)(turn.files.resolve(&place));
                    Ok(())
                }
                Some(What::Link(target)) => {
                    (turn.print)(target.to_string());
                    Ok(())
                }
                _ => Err(String::new()),
            },
            _ => Ok(()),
        };
        if let Err(message) = done {
            failed = true;
            if !message.is_empty() {
                (turn.print)(message);
            }
        }
    }
    Outcome::Done(i32::from(failed))
}

impl Turn<'_> {
    /// The text of a file, or what the system says of the path.
    fn text(&self, place: &str) -> Result<Arc<str>, &'static str> {
        match self.files.target(place).map(|node| &node.what) {
            Some(What::File { text, .. }) => Ok(text.clone()),
            _ if self.files.is_folder(place) => Err("Is a directory"),
            _ => Err("No such file or directory"),
        }
    }

    fn cat(&mut self, path: &str, place: &str) -> Result<(), String> {
        match self.text(place) {
            Ok(text) => text.lines().for_each(|line| (self.print)(line.to_owned())),
            Err("Is a directory") => return Err("cat: read error: Is a directory".into()),
            Err(why) => return Err(format!("cat: can't open '{path}': {why}")),
        }
        Ok(())
    }

    fn head(&mut self, args: &[&str]) -> Outcome {
        let (count, paths) = match args {
            ["-n", count, paths @ ..] => (count.parse().unwrap_or(10), paths),
            [count, paths @ ..] if count.starts_with('-') => {
                (count.trim_start_matches(['-', 'n']).parse().unwrap_or(10), paths)
            }
            paths => (10, paths),
        };
        for path in paths {
            match self.text(&absolute(self.folder, path)) {
                Ok(text) => text.lines().take(count).for_each(|line| (self.print)(line.to_owned())),
                Err(why) => {
                    (self.print)(format!("head: {path}: {why}"));
                    return Outcome::Done(1);
                }
            }
        }
        Outcome::Done(0)
    }

    fn wc(&mut self, path: &str, place: &str, bytes: bool, lines: bool) -> Result<(), String> {
        let text = self.text(place).map_err(|why| format!("wc: {path}: {why}"))?;
        let size_bytes = self.files.target(place).map_or(0, Node::size_bytes);
        let newlines = text.matches('\n').count();
        (self.print)(match (bytes, lines) {
            (true, _) => format!("{size_bytes} {path}"),
            (_, true) => format!("{newlines} {path}"),
            _ => format!("{newlines:9} {:9} {size_bytes:9} {path}", text.split_whitespace().count()),
        });
        Ok(())
    }

    fn ls(&mut self, paths: &[&str], all: bool, long: bool, follow: bool, itself: bool) -> Outcome {
        let (mut status, several) = (0, paths.len() > 1);
        for path in if paths.is_empty() { &["."] } else { paths } {
            let place = absolute(self.folder, path);
            if self.files.is_folder(&place) && !itself {
                if several {
                    (self.print)(format!("{path}:"));
                }
                let mut found = self.files.list(&place);
                if all {
                    let own = |name: &str| (name.to_owned(), None);
                    found.splice(0..0, [own("."), own("..")]);
                } else {
                    found.retain(|(name, _)| !name.starts_with('.'));
                }
                if long {
                    let blocks = |node: &Node| match node.what {
                        What::File { .. } => node.size_bytes().div_ceil(4096) * 4,
                        What::Folder => 4,
                        What::Link(_) => 0,
                    };
                    let total: u64 = found.iter().map(|(_, node)| node.as_ref().map_or(4, blocks)).sum();
                    (self.print)(format!("total {total}"));
                }
                for (name, _) in found {
                    let inner = format!("{place}/{name}");
                    self.entry(&name, &inner, long, follow);
                }
            } else if self.files.exists(&place) || self.files.node(&place).is_some() {
                self.entry(path, &place, long, follow);
            } else {
                (self.print)(format!("ls: {path}: No such file or directory"));
                status = 1;
            }
        }
        Outcome::Done(status)
    }

    /// One line of a listing.
    fn entry(&mut self, name: &str, place: &str, long: bool, follow: bool) {
        if !long {
            return (self.print)(name.to_owned());
        }
        let found = if follow { self.files.target(place) } else { self.files.node(place) };
        let node = found.cloned().unwrap_or_else(|| Node::folder(self.now));
        let links = if matches!(node.what, What::Folder) { 2 } else { 1 };
        let group = if node.group == 0 { "root".to_owned() } else { node.group.to_string() };
        let size_bytes = node.size_bytes();
        let time = node.modified_at.timestamp().strftime("%b %e %H:%M");
        let arrow = match &node.what {
            What::Link(target) => format!(" -> {target}"),
            What::File { .. } | What::Folder => String::new(),
        };
        let permissions = node.permissions();
        (self.print)(format!("{permissions} {links:4} root     {group:8} {size_bytes:9} {time} {name}{arrow}"));
    }

    fn stat(&mut self, args: &[&str]) -> Outcome {
        let (format, paths): (&str, &[&str]) = match args {
            ["-L", "-c", format, paths @ ..] | ["-Lc", format, paths @ ..] | ["-c", format, paths @ ..] => {
                (format, paths)
            }
            paths => ("%n %s %a", paths),
        };
        let follow = args.first().is_some_and(|first| first.starts_with("-L"));
        for path in paths {
            let place = absolute(self.folder, path);
            let found = if follow { self.files.target(&place) } else { self.files.node(&place) };
            let Some(node) = found.cloned().or_else(|| self.files.is_folder(&place).then(|| Node::folder(self.now)))
            else {
                (self.print)(format!("stat: can't stat '{path}': No such file or directory"));
                return Outcome::Done(1);
            };
            let filled = format
                .replace("%n", path)
                .replace("%s", &node.size_bytes().to_string())
                .replace("%a", &format!("{:o}", node.mode))
                .replace("%A", &node.permissions())
                .replace("%g", &node.group.to_string())
                .replace("%u", "0");
            (self.print)(filled);
        }
        Outcome::Done(0)
    }

    /// `dd if=/dev/zero of=PATH bs=1M count=N`
    fn dd(&mut self, args: &[&str]) -> Outcome {
        let value = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        let (block, count) = (value("bs").map_or(Some(512), size), value("count").map_or(Some(1), size));
        let (Some(block), Some(count), Some(path)) = (block, count, value("of")) else {
            (self.print)("dd: invalid number or no output".into());
            return Outcome::Done(1);
        };
        let done = self.fill(path, block.saturating_mul(count));
        match done {
            Ok(()) => {
                [format!("{count}+0 records in"), format!("{count}+0 records out")].map(|line| (self.print)(line))
            }
            Err(why) => {
                (self.print)(format!("dd: can't open '{path}': {why}"));
                return Outcome::Done(1);
            }
        };
        Outcome::Done(0)
    }

    fn truncate(&mut self, args: &[&str]) -> Outcome {
        match args {
            ["-s", amount, path] if size(amount).is_some() => match self.fill(path, size(amount).unwrap_or(0)) {
                Ok(()) => Outcome::Done(0),
                Err(why) => {
                    (self.print)(format!("truncate: {path}: {why}"));
                    Outcome::Done(1)
                }
            },
            _ => {
                (self.print)("truncate: expected -s SIZE FILE".into());
                Outcome::Done(1)
            }
        }
    }

    /// Makes a file of zeros.
    fn fill(&mut self, path: &str, size_bytes: u64) -> Result<(), Refusal> {
        let place = absolute(self.folder, path);
        if place == "/dev/null" {
            return Ok(());
        }
        let what = What::File { text: "".into(), size_bytes };
        self.files.put(&place, Node { what, ..Node::file("", 0o644, self.now) })
    }

    fn copy(&mut self, command: &str, paths: &[&str], recursive: bool) -> Outcome {
        let Some((to, from)) = paths.split_last().filter(|(_, from)| !from.is_empty()) else {
            (self.print)(format!("{command}: missing file operand"));
            return Outcome::Done(1);
        };
        let target = absolute(self.folder, to);
        let into = self.files.is_folder(&target);
        for path in from {
            let place = absolute(self.folder, path);
            let name = place.rsplit('/').next().unwrap_or_default();
            let goal = if into { format!("{target}/{name}") } else { target.clone() };
            let done = match self.files.target(&place).cloned() {
                Some(node) if !matches!(node.what, What::Folder) => {
                    self.files.put(&goal, Node { modified_at: self.now, ..node }).map_err(|why| why.to_string())
                }
                _ if self.files.is_folder(&place) && (recursive || command == "mv") => {
                    let tree = self.files.below(&self.files.resolve(&place));
                    let done = self.files.put(&goal, Node::folder(self.now)).map_err(|why| why.to_string());
                    done.map(|()| self.files.graft(&goal, &tree, |_| false))
                }
                _ if self.files.is_folder(&place) => Err("omitting directory".into()),
                _ => Err(Refusal::Missing.to_string()),
            };
            let done = done.and_then(|()| match command {
                "mv" => self.files.remove(&place).map_err(|why| why.to_string()),
                _ => Ok(()),
            });
            if let Err(why) = done {
                (self.print)(format!("{command}: can't stat '{path}': {why}"));
                return Outcome::Done(1);
            }
        }
        Outcome::Done(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::prints;

    #[test]
    fn files_are_copied_moved_and_listed() {
        assert_eq!(prints("mkdir -p /d; echo 1 > /d/a; cp /d/a /d/b; mv /d/b /c; ls /d; cat /c"), "a|1");
        assert_eq!(prints("cd /d; echo 1 > a; ls; cat /d/a; pwd"), "a|1|/d");
        assert_eq!(
            prints("mkdir /d; rm /d; rm -r /d; ls /d"),
            "rm: '/d' is a directory|ls: /d: No such file or directory"
        );
        assert_eq!(prints("echo 12345 > /a; ls -l /a"), "-rw-r--r--    1 root     root             6 Jan  1 00:00 /a");
        assert_eq!(prints("echo x > /.h; echo x > /a; ls /"), "a");
    }

    #[test]
    fn files_of_zeros_have_a_size() {
        assert_eq!(
            prints(
                "dd if=/dev/zero of=/big bs=1M count=3; stat -c %s /big; wc -c /big; truncate -s 1k /big; wc -c /big"
            ),
            "3+0 records in|3+0 records out|3145728|3145728 /big|1024 /big"
        );
    }
}
