//! The programs that look at files or change them, with BusyBox's words.

use super::{Call, Outcome, Output};
use crate::clock::Time;
use crate::runtime::files::{Files, Node, Refusal, What, plain};

/// A command on its way: what it works on, and where its lines go.
pub struct Turn<'a> {
    pub files: &'a mut Files,
    /// The folder that other paths begin at.
    pub folder: &'a str,
    pub now: Time,
    pub out: &'a mut Output,
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

pub(super) fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (command, args) = (call.name, call.args);
    let now = call.around.now;
    let mut turn = Turn { files: call.around.files, folder: &call.script.folder, now, out: call.out };
    let (flags, paths): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with('-') && arg.len() > 1);
    let flag = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    let mut failed = false;
    match command {
        "ls" => return turn.ls(&paths, flag('a'), flag('l'), flag('L'), flag('d')),
        "dd" => return turn.dd(args),
        "cp" | "mv" => return turn.copy(command, &paths, flag('r') || flag('a') || flag('R'), flag('v')),
        "truncate" => return turn.truncate(args),
        "stat" => return turn.stat(args),
        "chmod" => return turn.chmod(&paths),
        "ln" => return turn.link(&paths, flag('f')),
        "find" => return turn.find(args),
        "du" => return turn.usage(&paths),
        "mktemp" => return turn.temporary(flag('d')),
        _ => {}
    }
    for path in &paths {
        let place = absolute(turn.folder, path);
        let done = match command {
            "touch" if turn.files.exists(&place) => Ok(()),
            "touch" => turn.files.write(&place, "", turn.now).map_err(|why| format!("touch: {path}: {why}")),
            "mkdir" if turn.files.exists(&place) && flag('p') => Ok(()),
            "mkdir" if turn.files.exists(&place) => Err(format!("mkdir: can't create directory '{path}': File exists")),
            "mkdir" => turn
                .files
                .put(&place, Node::folder(turn.now))
                .map_err(|why| format!("mkdir: can't create directory '{path}': {why}")),
            "rmdir" if !turn.files.is_folder(&place) => Err(format!("rmdir: '{path}': No such file or directory")),
            "rmdir" if !turn.files.list(&place).is_empty() => Err(format!("rmdir: '{path}': Directory not empty")),
            "rmdir" => turn.files.remove(&place).map_err(|why| format!("rmdir: '{path}': {why}")),
            "realpath" if turn.files.exists(&place) => {
                let found = turn.files.resolve(&place);
                turn.out.line(if found.is_empty() { "/" } else { &found });
                Ok(())
            }
            "realpath" => Err(format!("realpath: {path}: No such file or directory")),
            "chown" | "chgrp" | "sync" => Ok(()),
            "rm" if turn.files.is_folder(&place) && !flag('r') && !flag('R') => {
                Err(format!("rm: '{path}' is a directory"))
            }
            "rm" => match turn.files.remove(&place) {
                Err(Refusal::Missing) if flag('f') => Ok(()),
                done => done.map_err(|why| format!("rm: can't remove '{path}': {why}")),
            },
            "readlink" => match turn.files.node(&place).map(|node| node.what.clone()) {
                _ if flag('f') => {
                    turn.out.line(&turn.files.resolve(&place));
                    Ok(())
                }
                Some(What::Link(target)) => {
                    turn.out.line(&target);
                    Ok(())
                }
                _ => Err(String::new()),
            },
            _ => Ok(()),
        };
        if let Err(message) = done {
            failed = true;
            if !message.is_empty() {
                turn.out.error_line(&message);
            }
        }
    }
    Outcome::Done(i32::from(failed))
}

impl Turn<'_> {
    fn ls(&mut self, paths: &[&str], all: bool, long: bool, follow: bool, itself: bool) -> Outcome {
        let (mut status, several) = (0, paths.len() > 1);
        for path in if paths.is_empty() { &["."] } else { paths } {
            let place = absolute(self.folder, path);
            if self.files.is_folder(&place) && !itself {
                if several {
                    self.out.line(&format!("{path}:"));
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
                    self.out.line(&format!("total {total}"));
                }
                for (name, _) in found {
                    let inner = format!("{place}/{name}");
                    self.entry(&name, &inner, long, follow);
                }
            } else if self.files.exists(&place) || self.files.node(&place).is_some() {
                self.entry(path, &place, long, follow);
            } else {
                self.out.error_line(&format!("ls: {path}: No such file or directory"));
                status = 1;
            }
        }
        Outcome::Done(status)
    }

    /// One line of a listing.
    fn entry(&mut self, name: &str, place: &str, long: bool, follow: bool) {
        if !long {
            return self.out.line(name);
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
        let line = format!("{permissions} {links:4} root     {group:8} {size_bytes:9} {time} {name}{arrow}");
        self.out.line(&line);
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
                self.out.error_line(&format!("stat: can't stat '{path}': No such file or directory"));
                return Outcome::Done(1);
            };
            let filled = format
                .replace("%n", path)
                .replace("%s", &node.size_bytes().to_string())
                .replace("%a", &format!("{:o}", node.mode))
                .replace("%A", &node.permissions())
                .replace("%g", &node.group.to_string())
                .replace("%u", "0");
            self.out.line(&filled);
        }
        Outcome::Done(0)
    }

    /// `dd if=/dev/zero of=PATH bs=1M count=N`
    fn dd(&mut self, args: &[&str]) -> Outcome {
        let value = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        let (block, count) = (value("bs").map_or(Some(512), size), value("count").map_or(Some(1), size));
        let (Some(block), Some(count), Some(path)) = (block, count, value("of")) else {
            self.out.error_line("dd: invalid number or no output");
            return Outcome::Done(1);
        };
        let done = self.fill(path, block.saturating_mul(count));
        match done {
            Ok(()) => [format!("{count}+0 records in"), format!("{count}+0 records out")]
                .map(|line| self.out.error_line(&line)),
            Err(why) => {
                self.out.error_line(&format!("dd: can't open '{path}': {why}"));
                return Outcome::Done(1);
            }
        };
        Outcome::Done(0)
    }

    /// `chmod 0644 PATH…`, `chmod +x`, `chmod -R u=rwx`
    fn chmod(&mut self, paths: &[&str]) -> Outcome {
        let Some((mode, paths)) = paths.split_first() else {
            self.out.error_line("chmod: missing operand");
            return Outcome::Done(1);
        };
        let mut status = 0;
        for path in paths {
            let place = absolute(self.folder, path);
            let Some(node) = self.files.target(&place).cloned() else {
                self.out.error_line(&format!("chmod: {path}: No such file or directory"));
                status = 1;
                continue;
            };
            match changed(node.mode, mode) {
                Some(mode) if self.files.is_writable(&place) => {
                    self.files.set(self.files.resolve(&place), Node { mode, ..node });
                }
                Some(_) => {
                    self.out.error_line(&format!("chmod: {path}: Read-only file system"));
                    status = 1;
                }
                None => {
                    self.out.error_line(&format!("chmod: invalid mode '{mode}'"));
                    status = 1;
                }
            }
        }
        Outcome::Done(status)
    }

    fn link(&mut self, paths: &[&str], forced: bool) -> Outcome {
        let [target, path] = paths else {
            self.out.error_line("ln: expected -s TARGET NAME");
            return Outcome::Done(1);
        };
        let place = absolute(self.folder, path);
        if self.files.node(&place).is_some() && !forced {
            self.out.error_line(&format!("ln: {path}: File exists"));
            return Outcome::Done(1);
        }
        self.files.set(place, Node::link(*target, self.now));
        Outcome::Done(0)
    }

    /// `find PATH… -name PATTERN -type f`
    fn find(&mut self, args: &[&str]) -> Outcome {
        let count = args.iter().position(|arg| arg.starts_with(['-', '!', '('])).unwrap_or(args.len());
        let (paths, tests) = args.split_at(count);
        let value = |name: &str| tests.iter().position(|test| *test == name).and_then(|at| tests.get(at + 1)).copied();
        let (name, kind) = (value("-name"), value("-type"));
        let fits = |path: &str, node: Option<&Node>| {
            let last = path.rsplit('/').next().unwrap_or_default();
            let letter = match node.map(|node| &node.what) {
                Some(What::File { .. }) => "f",
                Some(What::Link(_)) => "l",
                Some(What::Folder) | None => "d",
            };
            name.is_none_or(|name| crate::runtime::shell::pattern::matches(name, last))
                && kind.is_none_or(|kind| kind == letter)
        };
        let mut status = 0;
        for path in if paths.is_empty() { &["."] } else { paths } {
            let place = absolute(self.folder, path);
            if !self.files.exists(&place) {
                self.out.error_line(&format!("find: {path}: No such file or directory"));
                status = 1;
                continue;
            }
            let mut todo =
                vec![(path.trim_end_matches('/').to_owned(), place.clone(), self.files.node(&place).cloned())];
            while let Some((shown, place, node)) = todo.pop() {
                let is_link = matches!(&node, Some(Node { what: What::Link(_), .. }));
                if fits(&shown, node.as_ref()) {
                    self.out.line(if shown.is_empty() { "/" } else { &shown });
                }
                if !is_link && self.files.is_folder(&place) {
                    let inner = self.files.list(&place).into_iter().rev();
                    todo.extend(inner.map(|(name, node)| (format!("{shown}/{name}"), format!("{place}/{name}"), node)));
                }
            }
        }
        Outcome::Done(status)
    }

    /// `du`: kibibytes below each path.
    fn usage(&mut self, paths: &[&str]) -> Outcome {
        for path in if paths.is_empty() { &["."] } else { paths } {
            let place = self.files.resolve(&absolute(self.folder, path));
            let kib = self.files.below(&place).size_bytes().div_ceil(1024);
            self.out.line(&format!("{kib}\t{path}"));
        }
        Outcome::Done(0)
    }

    /// `mktemp`: a name that is free.
    fn temporary(&mut self, folder: bool) -> Outcome {
        let mut number = 0;
        while self.files.exists(&format!("/tmp/tmp.{number:06}")) {
            number += 1;
        }
        let path = format!("/tmp/tmp.{number:06}");
        let node = if folder { Node::folder(self.now) } else { Node::file("", 0o600, self.now) };
        match self.files.put(&path, node) {
            Ok(()) => {
                self.out.line(&path);
                Outcome::Done(0)
            }
            Err(why) => {
                self.out.error_line(&format!("mktemp: {path}: {why}"));
                Outcome::Done(1)
            }
        }
    }

    fn truncate(&mut self, args: &[&str]) -> Outcome {
        match args {
            ["-s", amount, path] if size(amount).is_some() => match self.fill(path, size(amount).unwrap_or(0)) {
                Ok(()) => Outcome::Done(0),
                Err(why) => {
                    self.out.error_line(&format!("truncate: {path}: {why}"));
                    Outcome::Done(1)
                }
            },
            _ => {
                self.out.error_line("truncate: expected -s SIZE FILE");
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

    fn copy(&mut self, command: &str, paths: &[&str], recursive: bool, tells: bool) -> Outcome {
        let Some((to, from)) = paths.split_last().filter(|(_, from)| !from.is_empty()) else {
            self.out.error_line(&format!("{command}: missing file operand"));
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
                self.out.error_line(&format!("{command}: can't stat '{path}': {why}"));
                return Outcome::Done(1);
            }
            if tells {
                let shown = if into { format!("{}/{name}", to.trim_end_matches('/')) } else { (*to).to_owned() };
                self.out.line(&format!("'{path}' -> '{shown}'"));
            }
        }
        Outcome::Done(0)
    }
}

/// Permissions after a change as `chmod` is told: `644`, `+x`, `go-w`, `u=rw,g=r`.
fn changed(mode: u16, change: &str) -> Option<u16> {
    if change.chars().all(|c| c.is_digit(8)) {
        return u16::from_str_radix(change, 8).ok().filter(|mode| *mode <= 0o7777);
    }
    change.split(',').try_fold(mode, |mode, part| {
        let at = part.find(['+', '-', '='])?;
        let (who, (sign, what)) = (&part[..at], part[at..].split_at(1));
        let all = who.is_empty() || who.contains('a');
        let mut bits = 0;
        for (letter, shift) in [('u', 6), ('g', 3), ('o', 0)] {
            if all || who.contains(letter) {
                let of = |letter, bit: u16| if what.contains(letter) { bit << shift } else { 0 };
                bits |= of('r', 4) | of('w', 2) | of('x', 1);
            }
        }
        let theirs: u16 = [('u', 0o700), ('g', 0o070), ('o', 0o007)]
            .into_iter()
            .filter(|(letter, _)| all || who.contains(*letter))
            .map(|(_, mask)| mask)
            .sum();
        Some(match sign {
            "+" => mode | bits,
            "-" => mode & !bits,
            _ => mode & !theirs | bits,
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::runtime::shell::tests::prints;

    #[test]
    fn files_are_copied_moved_and_listed() {
        assert_eq!(prints("mkdir -p /d; echo 1 > /d/a; cp /d/a /d/b; mv /d/b /c; ls /d; cat /c"), "a|1");
        assert_eq!(prints("cd /d; echo 1 > a; ls; cat /d/a; pwd"), "a|1|/d");
        assert_eq!(
            prints("mkdir /d; rm /d; rm -r /d; ls /d"),
            "rm: '/d' is a directory|ls: /d: No such file or directory"
        );
        assert_eq!(prints("echo 12345 > /a; ls -l /a"), "-rw-r--r--    1 root     root             6 Jan  1 00:00 /a");
        assert_eq!(prints("echo 1 > /a; mkdir /d; mv -v /a /d/; cp -v /d/a /b"), "'/a' -> '/d/a'|'/d/a' -> '/b'");
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
