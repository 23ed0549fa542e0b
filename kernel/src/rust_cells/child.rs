//! The process that compiles and runs Rust cells, its private folder, and what comes from both.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use kernetes_controller::Watches;
use kernetes_controller::wire::{Dialog, FromCell, SOCKET_VARIABLE};

use super::protocol::{FOLDER_VARIABLE, RUNTIME_SOCKET_VARIABLE, Reply, Request, Stream};
use super::stream::{Parser, Piece};

const PROGRAM: &str = "kernetes-rust-cells";
/// Overrides where the program is looked for.
const PROGRAM_VARIABLE: &str = "KERNETES_RUST_CELLS";

/// What happens around a child, in order.
#[derive(Debug)]
pub enum Event {
    Reply(Reply),
    Stdout(Piece),
    Stderr(Piece),
    /// The connection of this kind is there, of the runtime with this process id.
    Connected(Stream, i32, UnixStream),
    /// A cell called `run`.
    Controller(String, Watches, Dialog),
    Gone,
}

pub struct Child {
    pub events: Receiver<Event>,
    pub folder: Arc<Folder>,
    process: std::process::Child,
    stdin: ChildStdin,
    closing: Arc<AtomicBool>,
}

impl Child {
    /// Starts the program; it is ready when it says so, seconds later. A folder in which one has worked before holds
    /// what was compiled then.
    pub fn start(folder: Option<Arc<Folder>>) -> Result<Child, String> {
        let program = find_program()?;
        let folder = match folder {
            Some(folder) => folder,
            None => {
                let folder = Folder::create();
                Arc::new(folder.map_err(|error| format!("no temporary folder for Rust cells: {error}"))?)
            }
        };
        let (sender, events) = mpsc::channel();
        let closing = Arc::new(AtomicBool::new(false));
        listen(&folder.socket(), sender.clone(), closing.clone())
            .map_err(|error| format!("no socket for Rust cells: {error}"))?;
        let mut process = Command::new(&program)
            .env(RUNTIME_SOCKET_VARIABLE, folder.socket())
            .env(SOCKET_VARIABLE, folder.socket())
            .env(FOLDER_VARIABLE, &folder.path)
            .env("EVCXR_TMPDIR", folder.path.join("evcxr"))
            .env("EVCXR_CONFIG_DIR", &folder.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", program.display()))?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the pipes of a process that was just started are missing".to_owned());
        };
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // What is no reply was printed by a library in evcxr.
                if let Ok(reply) = serde_json::from_str(&line) {
                    let _ = sender.send(Event::Reply(reply));
                }
            }
            let _ = sender.send(Event::Gone);
        });
        Ok(Child { events, folder, process, stdin, closing })
    }

    pub fn send(&mut self, request: &Request) -> std::io::Result<()> {
        let line = serde_json::to_string(request)? + "\n";
        self.stdin.write_all(line.as_bytes())
    }
}

/// Ends the process, everything that it started, and the folder.
impl Drop for Child {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        let _ = UnixStream::connect(self.folder.socket());
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

/// Beside this program, in the project it was built in, or where the environment says.
fn find_program() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("{PROGRAM_VARIABLE} names {}, which is no file", path.display()))
        };
    }
    for tool in ["cargo", "rustc"] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
            return Err(format!("Rust cells are compiled by {tool}, which is not installed: see https://rustup.rs"));
        }
    }
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(PROGRAM)));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust-cells/target/release").join(PROGRAM);
    beside.into_iter().chain([built]).find(|path| path.is_file()).ok_or_else(|| {
        format!(
            "Rust cells need the program {PROGRAM}. Build it once, in the folder of the project:\n  cargo build --release --manifest-path kernel/rust-cells/Cargo.toml\nor set {PROGRAM_VARIABLE} to where it is"
        )
    })
}

fn listen(socket: &Path, sender: Sender<Event>, closing: Arc<AtomicBool>) -> std::io::Result<()> {
    if socket.exists() {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            if closing.load(Ordering::Acquire) {
                return;
            }
            let sender = sender.clone();
            thread::spawn(move || receive(connection, &sender));
        }
    });
    Ok(())
}

/// Learns what a connection is from its first line, then hands on what it carries. Any fault ends the connection.
fn receive(connection: UnixStream, sender: &Sender<Event>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    if reader.fill_buf().ok()?.first() == Some(&b'{') {
        let dialog = Dialog::from(reader);
        if let Ok(FromCell::Hello(name, watches)) = dialog.hear() {
            // The cell waits until it is welcome.
            sender.send(Event::Controller(name, watches, dialog)).ok()?;
        }
        return Some(());
    }
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (word, runtime) = line.trim_end().split_once(' ')?;
    let (stream, _) = *Stream::ALL.iter().find(|(_, known)| *known == word)?;
    let event = match stream {
        Stream::Stdout => Event::Stdout,
        Stream::Stderr => Event::Stderr,
        Stream::Evcxr | Stream::Flush => {
            return sender.send(Event::Connected(stream, runtime.parse().ok()?, reader.into_inner())).ok();
        }
    };
    let mut parser = Parser::default();
    let mut bytes = [0; 8192];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        for piece in parser.feed(&bytes[..count]) {
            sender.send(event(piece)).ok()?;
        }
    }
    sender.send(event(parser.finish()?)).ok()
}

/// A folder that only this user can look into. It is removed with the kernel.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    fn create() -> std::io::Result<Folder> {
        // Short: the path of a socket has to fit into 108 bytes, on some systems into 104.
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("kernetes-{}-{}", std::process::id(), &unique[..8]);
        let folder = Folder { path: std::env::temp_dir().join(name) };
        fs::DirBuilder::new().mode(0o700).create(&folder.path)?;
        let sources = folder.controller().join("src");
        fs::create_dir_all(&sources)?;
        fs::create_dir(folder.path.join("evcxr"))?;
        fs::write(folder.controller().join("Cargo.toml"), MANIFEST)?;
        for (name, text) in SOURCES {
            fs::write(sources.join(name), text)?;
        }
        Ok(folder)
    }

    fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The crate that cells import.
    pub fn controller(&self) -> PathBuf {
        self.path.join("controller")
    }

    /// A line, from 1, of the source that was compiled last.
    pub fn source_line(&self, line: usize) -> Option<String> {
        let source = fs::read_to_string(self.path.join("evcxr/src/lib.rs")).ok()?;
        source.lines().nth(line.checked_sub(1)?).map(str::to_owned)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A compiler that was just killed may still be finishing a write.
        for _ in 0..10 {
            if fs::remove_dir_all(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

const MANIFEST: &str = r#"[package]
name = "kernetes-controller"
version = "0.1.0"
edition = "2024"

[dependencies]
serde_json = "1"
"#;

macro_rules! sources {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../../controller/src/", $name)))),*] };
}

const SOURCES: &[(&str, &str)] =
    &sources!["lib.rs", "cell.rs", "controller.rs", "object.rs", "plan.rs", "run.rs", "time.rs", "view.rs", "wire.rs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_get_the_whole_crate() {
        let folder = Folder::create().expect("a folder");
        for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/controller/src")).expect("the sources") {
            let name = file.expect("a file").file_name();
            assert!(folder.controller().join("src").join(&name).is_file(), "{name:?} is missing in SOURCES");
        }
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists(), "the folder is removed");
    }
}
