//! The files that a program sees: the folder of the notebook, and nothing outside of it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// A folder of text files. Paths are relative, with `/` between names.
pub trait Files {
    fn read(&self, path: &str) -> Result<String, Trouble>;

    fn write(&mut self, path: &str, text: &str) -> Result<(), Trouble>;

    /// Makes a folder, and those around it, if it is not there.
    fn make_folder(&mut self, path: &str) -> Result<(), Trouble>;

    /// The names of the files right in a folder, sorted; `None` if it is none.
    fn list(&self, path: &str) -> Option<Vec<String>>;
}

/// Why a file could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    Missing,
    /// It is a folder, is not text, lies outside, or the system's own words.
    Other(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Missing => f.write_str("no such file or directory"),
            Trouble::Other(text) => f.write_str(text),
        }
    }
}

/// A folder on disk.
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    pub fn new(root: impl Into<PathBuf>) -> Folder {
        Folder { root: root.into() }
    }

    fn locate(&self, path: &str) -> Result<PathBuf, Trouble> {
        let mut place = self.root.clone();
        let mut depth = 0_usize;
        for component in Path::new(path).components() {
            match component {
                Component::Normal(name) => {
                    place.push(name);
                    depth += 1;
                }
                Component::CurDir => {}
                Component::ParentDir if depth > 0 => {
                    place.pop();
                    depth -= 1;
                }
                _ => return Err(Trouble::Other("only files in the notebook's folder can be used".into())),
            }
        }
        Ok(place)
    }
}

fn trouble(error: &std::io::Error) -> Trouble {
    match error.kind() {
        std::io::ErrorKind::NotFound => Trouble::Missing,
        std::io::ErrorKind::IsADirectory => Trouble::Other("is a directory".into()),
        std::io::ErrorKind::PermissionDenied => Trouble::Other("permission denied".into()),
        std::io::ErrorKind::InvalidData => Trouble::Other("is not UTF-8 text".into()),
        _ => Trouble::Other(error.to_string()),
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Result<String, Trouble> {
        std::fs::read_to_string(self.locate(path)?).map_err(|error| trouble(&error))
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), Trouble> {
        std::fs::write(self.locate(path)?, text).map_err(|error| trouble(&error))
    }

    fn make_folder(&mut self, path: &str) -> Result<(), Trouble> {
        std::fs::create_dir_all(self.locate(path)?).map_err(|error| trouble(&error))
    }

    fn list(&self, path: &str) -> Option<Vec<String>> {
        names(&self.locate(path).ok()?)
    }
}

/// The files of this machine, by any path.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<String, Trouble> {
        std::fs::read_to_string(path).map_err(|error| trouble(&error))
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), Trouble> {
        std::fs::write(path, text).map_err(|error| trouble(&error))
    }

    fn make_folder(&mut self, path: &str) -> Result<(), Trouble> {
        std::fs::create_dir_all(path).map_err(|error| trouble(&error))
    }

    fn list(&self, path: &str) -> Option<Vec<String>> {
        names(Path::new(path))
    }
}

/// The names of the files right in a folder, sorted.
fn names(folder: &Path) -> Option<Vec<String>> {
    let files = std::fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Some(names)
}

/// Files that live as long as the session: for tests, and where there is no folder.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub BTreeMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<String, Trouble> {
        self.0.get(path.trim_start_matches("./")).cloned().ok_or(Trouble::Missing)
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), Trouble> {
        self.0.insert(path.trim_start_matches("./").to_owned(), text.to_owned());
        Ok(())
    }

    fn make_folder(&mut self, _: &str) -> Result<(), Trouble> {
        Ok(())
    }

    fn list(&self, path: &str) -> Option<Vec<String>> {
        let folder = match path.trim_start_matches("./").trim_end_matches('/') {
            "" | "." => String::new(),
            folder => format!("{folder}/"),
        };
        let inside = self.0.keys().filter_map(|name| name.strip_prefix(&folder));
        let names: Vec<String> = inside.filter(|name| !name.contains('/')).map(str::to_owned).collect();
        (!names.is_empty()).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_folder_is_reached() {
        let folder = Folder::new("/tmp");
        for path in ["../etc/passwd", "/etc/passwd", "a/../../b"] {
            assert!(matches!(folder.read(path), Err(Trouble::Other(_))), "{path}");
        }
        assert_eq!(folder.read("no-such-file-here"), Err(Trouble::Missing));
    }
}
