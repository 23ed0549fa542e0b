//! Evaluated once in the process that runs the cells, before the first cell: makes panics and partial lines of output
//! known to the program around it, which reads this process's stdout.

use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use serde_json::json;

use crate::run::{THREAD_PREFIX, message_of};

/// Starts what a cell tells the program around it, in the midst of its stdout: JSON, to the end of the line.
pub const MARK: &str = "\u{1}kernetes ";

/// The number of a file descriptor on which a byte asks for a flush of stdout.
pub const FLUSH_VARIABLE: &str = "KERNETES_FLUSH_FD";

/// Called on the thread that runs the cells.
pub fn start() {
    // By its number: this thread has no name for the std that cells are linked with.
    let cells = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        let message = message_of_hook(panic);
        let thread = std::thread::current();
        match thread.name() {
            _ if thread.id() == cells => {
                let line = panic.location().filter(|place| place.file() == "src/lib.rs").map(|place| place.line());
                println!("{MARK}{}", json!({"panic": {"message": message, "line": line}}));
            }
            // Told by the thread itself, to the kernel.
            Some(name) if name.starts_with(THREAD_PREFIX) => {}
            name => eprintln!("a thread ({}) panicked: {message}", name.unwrap_or("without a name")),
        }
    }));
    let descriptor = std::env::var(FLUSH_VARIABLE).ok().and_then(|number| number.parse().ok());
    if let Some(descriptor) = descriptor {
        // SAFETY: the program around opened it for this thread alone.
        let mut requests = unsafe { std::fs::File::from_raw_fd(descriptor) };
        std::thread::spawn(move || {
            let mut request = [0];
            while requests.read_exact(&mut request).is_ok() {
                let mark = format!("{MARK}{}\n", json!({"flushed": request[0]}));
                let mut stdout = io::stdout().lock();
                let told = stdout.write_all(mark.as_bytes()).and_then(|()| stdout.flush());
                drop(stdout);
                if told.and_then(|()| io::stderr().write_all(mark.as_bytes())).is_err() {
                    return;
                }
            }
        });
        println!("{MARK}{}", json!({"flushes": true}));
    }
}

fn message_of_hook(panic: &std::panic::PanicHookInfo<'_>) -> String {
    panic.payload_as_str().map_or_else(|| message_of(&()), str::to_owned)
}
