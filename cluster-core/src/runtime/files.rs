//! The files that the processes of a container find, by path: files, folders, symbolic links.

use std::sync::Arc;

use crate::clock::Time;

/// Links that are followed on the way to one file, as Linux does (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub what: What,
    /// Permissions, as `chmod` takes them.
    pub mode: u16,
    /// The group that owns it; its user is root.
    pub group: i64,
    pub modified_at: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A file may be larger than what was written of it as text: the rest is zeros.
    File {
        text: Arc<str>,
        size_bytes: u64,
    },
    Folder,
    Link(Arc<str>),
}

impl Node {
    pub fn file(text: impl Into<Arc<str>>, mode: u16, modified_at: Time) -> Node {
        let text = text.into();
        let size_bytes = text.len() as u64;
        Node { what: What::File { text, size_bytes }, mode, group: 0, modified_at }
    }

    pub fn folder(modified_at: Time) -> Node {
        Node { what: What::Folder, mode: 0o755, group: 0, modified_at }
    }

    pub fn link(target: impl Into<Arc<str>>, modified_at: Time) -> Node {
        Node { what: What::Link(target.into()), mode: 0o777, group: 0, modified_at }
    }

    pub fn size_bytes(&self) -> u64 {
        match &self.what {
            What::File { size_bytes, .. } => *size_bytes,
            What::Folder => 4096,
            What::Link(target) => target.len() as u64,
        }
    }

    /// What it takes as a file.
    fn file_bytes(&self) -> u64 {
        if matches!(self.what, What::File { .. }) { self.size_bytes() } else { 0 }
    }

    /// `drwxr-xr-x`
    pub fn permissions(&self) -> String {
        let kind = match self.what {
            What::File { .. } => '-',
            What::Folder => 'd',
            What::Link(_) => 'l',
        };
        let letter = |bit: usize| match "rwxrwxrwx".as_bytes().get(bit) {
            Some(_) if self.mode >> (8 - bit) & 1 == 0 => '-',
            // The group of the folder becomes the group of what is made in it.
            Some(b'x') if bit == 5 && self.mode & 0o2000 != 0 => 's',
            Some(letter) => char::from(*letter),
            None => '-',
        };
        std::iter::once(kind).chain((0..9).map(letter)).collect()
    }
}

/// Why a file can't be written, as the system's error says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    ReadOnly,
    IsFolder,
    Missing,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Refusal::ReadOnly => "Read-only file system",
            Refusal::IsFolder => "Is a directory",
            Refusal::Missing => "No such file or directory",
        })
    }
}

/// A tree of files. Folders need not be named: whatever has something below it is one.
#[derive(Clone, Debug, Default)]
pub struct Files {
    nodes: imbl::OrdMap<String, Node>,
    /// Paths below which nothing can be written, or where it can again. The longest decides.
    read_only: Option<Arc<[(String, bool)]>>,
}

/// A path without what says nothing: `/data//a/./b/` is `/data/a/b`, and the root is empty.
pub fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

/// What is left of a path below a folder, with its slash; empty for the folder itself.
pub fn rest<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Files {
    pub fn set_read_only(&mut self, folders: impl Iterator<Item = (String, bool)>) {
        let folders: Arc<[(String, bool)]> = folders.collect();
        self.read_only = folders.iter().any(|(_, read_only)| *read_only).then_some(folders);
    }

    /// True if both are versions of which neither has changed since one was copied from the other.
    pub fn is_same_version(&self, other: &Files) -> bool {
        self.nodes.ptr_eq(&other.nodes)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// These, and what another tree has where they have nothing.
    pub fn and(self, other: &Files) -> Files {
        if self.is_same_version(other) {
            return self;
        }
        Files { nodes: self.nodes.union(other.nodes.clone()), ..self }
    }

    /// The path that a path comes to when links are followed.
    pub fn resolve(&self, path: &str) -> String {
        let mut path = plain(path);
        'followed: for _ in 0..LINKS_MAX {
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
            for end in ends {
                let Some(Node { what: What::Link(target), .. }) = self.nodes.get(&path[..end]) else { continue };
                let folder = path[..end].rfind('/').map_or("", |slash| &path[..slash]);
                let base = if target.starts_with('/') { "" } else { folder };
                path = plain(&format!("{base}/{target}{}", &path[end..]));
                continue 'followed;
            }
            break;
        }
        path
    }

    /// What stands at a path itself, be it a link.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&plain(path))
    }

    /// What a path leads to.
    pub fn target(&self, path: &str) -> Option<&Node> {
        self.nodes.get(&self.resolve(path))
    }

    pub fn read(&self, path: &str) -> Option<&str> {
        match &self.target(path)?.what {
            What::File { text, .. } => Some(text),
            What::Folder | What::Link(_) => None,
        }
    }

    pub fn is_folder(&self, path: &str) -> bool {
        let path = self.resolve(path);
        path.is_empty()
            || matches!(self.nodes.get(&path), Some(Node { what: What::Folder, .. }))
            || self.within(&path).next().is_some()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.target(path).is_some() || self.is_folder(path)
    }

    fn is_read_only(&self, path: &str) -> bool {
        let folders = self.read_only.iter().flat_map(|folders| folders.iter());
        let around = folders.filter(|(folder, _)| rest(path, folder).is_some());
        around.max_by_key(|(folder, _)| folder.len()).is_some_and(|(_, read_only)| *read_only)
    }

    /// True if what stands at a path may be changed.
    pub fn is_writable(&self, path: &str) -> bool {
        !self.is_read_only(&self.resolve(path))
    }

    /// A plain path at which something may be made, changed or taken away.
    fn writable(&self, path: &str) -> Result<String, Refusal> {
        let path = self.resolve(path);
        if self.is_read_only(&path) { Err(Refusal::ReadOnly) } else { Ok(path) }
    }

    /// # Errors
    /// If the path is a folder, or below a mount that is read-only.
    pub fn write(&mut self, path: &str, text: impl Into<Arc<str>>, now: Time) -> Result<(), Refusal> {
        self.put(path, Node::file(text, 0o644, now))
    }

    /// # Errors
    /// As of [`Files::write`].
    pub fn append(&mut self, path: &str, text: &str, now: Time) -> Result<(), Refusal> {
        let before = self.read(path).unwrap_or_default();
        self.write(path, format!("{before}{text}"), now)
    }

    /// Puts a file, a folder or a link at a path; a file that is there keeps its permissions.
    ///
    /// # Errors
    /// As of [`Files::write`].
    pub fn put(&mut self, path: &str, mut node: Node) -> Result<(), Refusal> {
        let path = self.writable(path)?;
        if !matches!(node.what, What::Folder) && self.is_folder(&path) {
            return Err(Refusal::IsFolder);
        }
        if let Some(before) = self.nodes.get(&path) {
            (node.mode, node.group) = (before.mode, before.group);
        } else {
            node.group = self.group_of(&path).unwrap_or(node.group);
        }
        self.nodes.insert(path, node);
        Ok(())
    }

    /// Puts something at a path, whatever is there or is read-only.
    pub fn set(&mut self, path: String, node: Node) {
        self.nodes.insert(path, node);
    }

    /// How many files there are, in all folders.
    pub fn file_count(&self) -> usize {
        self.nodes.values().filter(|node| matches!(node.what, What::File { .. })).count()
    }

    /// The group that a folder hands on to what is made in it.
    fn group_of(&self, path: &str) -> Option<i64> {
        let folder = self.nodes.get(&path[..path.rfind('/')?])?;
        (folder.mode & 0o2000 != 0).then_some(folder.group)
    }

    /// Takes away what stands at a path, and everything below it.
    ///
    /// # Errors
    /// If nothing stands there, or below a mount that is read-only.
    pub fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        let path = plain(path);
        if self.is_read_only(&path) {
            return Err(Refusal::ReadOnly);
        }
        let gone: Vec<String> = self.within(&path).map(|(path, _)| path.clone()).collect();
        if gone.is_empty() && self.nodes.get(&path).is_none() {
            return Err(Refusal::Missing);
        }
        self.nodes.remove(&path);
        gone.iter().for_each(|path| {
            self.nodes.remove(path);
        });
        Ok(())
    }

    /// Everything in a folder and in the folders in it.
    fn within(&self, folder: &str) -> impl Iterator<Item = (&String, &Node)> {
        let from = format!("{folder}/");
        let prefix = from.clone();
        self.nodes.range(from..).take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// Names in a folder, in the order of their letters, each with what stands there; `None` for a folder of which only
    /// what is in it is known.
    pub fn list(&self, folder: &str) -> Vec<(String, Option<Node>)> {
        let folder = self.resolve(folder);
        let mut found: Vec<(String, Option<Node>)> = Vec::new();
        for (path, node) in self.within(&folder) {
            let rest = &path[folder.len() + 1..];
            let (name, is_itself) = rest.split_once('/').map_or((rest, true), |(name, _)| (name, false));
            match found.last_mut() {
                Some((last, known)) if last == name => *known = known.take().or(is_itself.then(|| node.clone())),
                _ => found.push((name.to_owned(), is_itself.then(|| node.clone()))),
            }
        }
        found
    }

    /// A folder, or one file, as a tree of its own: paths begin behind it.
    pub fn below(&self, path: &str) -> Files {
        let own = self.nodes.get(path).map(|node| ("", node));
        let inner = self.within(path).map(|(inner, node)| (&inner[path.len()..], node));
        let nodes = own.into_iter().chain(inner).map(|(rest, node)| (rest.to_owned(), node.clone())).collect();
        Files { nodes, read_only: None }
    }

    /// Puts another tree in the place of what stands at a path and below it, but for what `spares` says of a path.
    pub fn graft(&mut self, path: &str, tree: &Files, spares: impl Fn(&str) -> bool) {
        let own = self.nodes.get_key_value(path);
        let old = own.into_iter().chain(self.within(path)).map(|(path, _)| path.clone());
        for gone in old.filter(|path| !spares(path)).collect::<Vec<_>>() {
            self.nodes.remove(&gone);
        }
        for (rest, node) in &tree.nodes {
            let place = format!("{path}{rest}");
            if !spares(&place) {
                self.nodes.insert(place, node.clone());
            }
        }
    }

    /// Without what lies at or below one of these paths.
    pub fn without(mut self, paths: &[&str]) -> Files {
        for path in paths {
            self.graft(path, &Files::default(), |_| false);
        }
        self
    }

    /// Makes sure that the root is there.
    pub fn set_root(&mut self, node: Node) {
        self.nodes.entry(String::new()).or_insert(node);
    }

    pub fn same(&self, other: &Files) -> bool {
        self.nodes.ptr_eq(&other.nodes) || self.nodes == other.nodes
    }

    /// What those files take that another tree does not have just so.
    pub fn added_bytes(&self, base: &Files) -> u64 {
        let added = self.nodes.iter().filter(|(path, node)| base.nodes.get(*path) != Some(node));
        added.map(|(_, node)| node.file_bytes()).sum()
    }

    /// What all files together take.
    pub fn size_bytes(&self) -> u64 {
        self.nodes.values().map(Node::file_bytes).sum()
    }

    /// Gives all folders and files to a group, which may read them, and write if `writes` (`fsGroup`).
    pub fn give_to(&mut self, group: i64, writes: bool) {
        let given = |node: &Node| {
            let more = match node.what {
                What::File { .. } if writes => 0o660,
                What::File { .. } => 0o440,
                What::Folder => 0o2770,
                What::Link(_) => 0,
            };
            Node { group, mode: node.mode | more, ..node.clone() }
        };
        self.nodes = self.nodes.iter().map(|(path, node)| (path.clone(), given(node))).collect();
    }
}

impl FromIterator<(String, Node)> for Files {
    fn from_iter<I: IntoIterator<Item = (String, Node)>>(nodes: I) -> Files {
        Files { nodes: nodes.into_iter().collect(), read_only: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(all: &[(&str, Node)]) -> Files {
        all.iter().map(|(path, node)| (path.to_string(), node.clone())).collect()
    }

    fn file(text: &str) -> Node {
        Node::file(text, 0o644, Time::ZERO)
    }

    #[test]
    fn links_lead_to_files() {
        let link = |target: &str| Node::link(target, Time::ZERO);
        let files = tree(&[
            ("/c/..1/key", file("value")),
            ("/c/..data", link("..1")),
            ("/c/key", link("..data/key")),
            ("/round", link("round")),
        ]);
        assert_eq!(files.read("/c/key"), Some("value"));
        assert_eq!(files.resolve("/c//key"), "/c/..1/key");
        assert_eq!(files.read("/round"), None);
        let names: Vec<String> = files.list("/c").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["..1", "..data", "key"]);
        assert!(files.is_folder("/c/..data") && !files.is_folder("/c/key"));
    }

    #[test]
    fn nothing_is_written_where_a_mount_is_read_only() {
        let mut files = tree(&[("/config/a", file("1")), ("/data/b", file("2"))]);
        files.set_read_only([("/config".to_owned(), true)].into_iter());
        assert_eq!(files.write("/config/a", "x", Time::ZERO), Err(Refusal::ReadOnly));
        assert_eq!(files.remove("/config/a"), Err(Refusal::ReadOnly));
        assert_eq!(files.write("/data", "x", Time::ZERO), Err(Refusal::IsFolder));
        assert_eq!(files.write("/configured", "x", Time::ZERO), Ok(()));
        assert_eq!(files.remove("/data"), Ok(()));
        assert_eq!(files.read("/data/b"), None);
    }

    #[test]
    fn a_tree_can_be_taken_and_put_elsewhere() {
        let files = tree(&[("/v/a", file("1")), ("/v/b/c", file("2")), ("/very", file("3"))]);
        let taken = files.below("/v");
        assert_eq!(taken.read("/b/c"), Some("2"));
        let mut other = tree(&[("/m/old", file("0")), ("/m/kept/x", file("4"))]);
        other.graft("/m", &taken, |path| path.starts_with("/m/kept"));
        assert_eq!((other.read("/m/a"), other.read("/m/old"), other.read("/m/kept/x")), (Some("1"), None, Some("4")));
        other.graft("/one", &files.below("/v/a"), |_| false);
        assert_eq!(other.read("/one"), Some("1"));
    }

    #[test]
    fn a_group_gets_what_a_volume_holds() {
        let mut files = tree(&[("", Node::folder(Time::ZERO)), ("/a", Node::file("", 0o400, Time::ZERO))]);
        files.give_to(2000, false);
        assert_eq!(files.node("").map(Node::permissions).as_deref(), Some("drwxrwsr-x"));
        assert_eq!(files.node("/a").map(Node::permissions).as_deref(), Some("-r--r-----"));
    }
}
