//! The process that runs the cells, as far as it is ours: its stdout and stderr go to the kernel, byte for byte and at
//! once, and the kernel hands back the lines that are meant for evcxr.
//!
//! evcxr itself reads the runtime's stdout by whole lines, and only while a cell runs; it keeps one display a media type
//! and says nothing of a panic. With the kernel in between, none of this is lost.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{RUNTIME_SOCKET_VARIABLE, Stream};

/// The number of the file descriptor of [`Stream::Flush`], for the crate `kernetes-controller`.
const FLUSH_VARIABLE: &str = "KERNETES_FLUSH_FD";

/// Does nothing unless this process is evcxr's runtime.
pub fn connect() {
    if std::env::var_os("EVCXR_IS_RUNTIME").is_none() {
        return;
    }
    let Some(socket) = std::env::var_os(RUNTIME_SOCKET_VARIABLE) else { return };
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    if let Err(error) = divert(|| UnixStream::connect(&socket)) {
        eprintln!("the kernel does not listen: {error}");
        std::process::exit(1);
    }
}

fn divert(connect: impl Fn() -> io::Result<UnixStream>) -> io::Result<()> {
    let to_evcxr = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    for (stream, word) in Stream::ALL {
        let mut connection = connect()?;
        writeln!(connection, "{word} {}", std::process::id())?;
        match stream {
            Stream::Stdout => rustix::stdio::dup2_stdout(&connection)?,
            Stream::Stderr => rustix::stdio::dup2_stderr(&connection)?,
            Stream::Flush => {
                let descriptor = connection.into_raw_fd().to_string();
                // SAFETY: this is still the only thread.
                unsafe { std::env::set_var(FLUSH_VARIABLE, descriptor) };
            }
            Stream::Evcxr => {
                let to_evcxr = to_evcxr.try_clone()?;
                std::thread::spawn(move || pass_on(connection, to_evcxr));
            }
        }
    }
    Ok(())
}

/// At once: `io::copy` would wait for more.
fn pass_on(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => to.write_all(&bytes[..count])?,
        }
    }
}
