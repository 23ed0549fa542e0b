//! The kernel's end of a controller that runs in a Rust cell.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use kernetes_controller::wire::{Ask, Dialog, FromCell, ToCell};
use kernetes_controller::{Key, Plan, Time, Watches};

use super::Shared;
use super::client::Answer;
use super::evaluation::Started;

/// How long one reconcile may take, in real time; beyond it is taken for an endless loop.
const RECONCILE_MAX: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A controller that a Rust cell has started. It outlives its process: when cells run again, it is found there again.
#[derive(Clone)]
pub struct RemoteController {
    pub name: String,
    pub watches: Watches,
    pub(super) shared: Arc<Shared>,
}

impl RemoteController {
    pub(super) fn new(started: &Started, shared: Arc<Shared>) -> RemoteController {
        RemoteController { name: started.name.clone(), watches: started.watches.clone(), shared }
    }

    /// Lets the cell reconcile one key. `answer` says what the informers know; an error of its own is told to the cell,
    /// whose reconcile then fails. So it does, with the reason, if it panics, takes longer than five seconds, or is gone.
    pub fn reconcile(&self, key: Key, now: Time, answer: &mut dyn FnMut(&Ask) -> Answer) -> Result<Plan, String> {
        let mut state = self.shared.ready(&super::UntilClosing(&self.shared.closing)).map_err(|error| error.evalue)?;
        state.printed = true;
        let Some(connection) = state.connections.get(&self.name) else {
            return Err(format!("the controller {} is not running: run its cell again", self.name));
        };
        let result = connection.reconcile(key, now, answer, || self.shared.stop.swap(false, Ordering::AcqRel));
        match result {
            Ok(plan) => Ok(plan),
            Err(Trouble::Panicked(message)) => Err(format!("its reconcile panicked: {message}")),
            Err(Trouble::Gone) => {
                state.connections.remove(&self.name);
                Err(format!("the controller {} has ended: run its cell again", self.name))
            }
            Err(Trouble::Endless(why)) => {
                state.stopped.insert(self.name.clone());
                Shared::restart(&self.shared, &mut state);
                Err(format!("{why}; the controller {} was stopped: correct its cell and run it again", self.name))
            }
        }
    }
}

impl fmt::Debug for RemoteController {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RemoteController({}: {})", self.name, self.watches)
    }
}

/// Stops a reconcile that is running.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    pub(super) fn new(shared: Arc<Shared>) -> Stopper {
        Stopper { shared }
    }

    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
    }
}

/// To the thread of a controller, in its process.
pub(super) struct Connection {
    speak: Dialog,
    hear: Receiver<FromCell>,
}

enum Trouble {
    Panicked(String),
    Endless(&'static str),
    Gone,
}

impl Connection {
    pub fn new(dialog: Dialog) -> Connection {
        let (sender, hear) = mpsc::channel();
        let speak = match dialog.twin() {
            Ok(speak) => {
                thread::spawn(move || while dialog.hear().is_ok_and(|message| sender.send(message).is_ok()) {});
                speak
            }
            // Without a second handle nobody listens, and the first reconcile says so.
            Err(_) => dialog,
        };
        Connection { speak, hear }
    }

    fn reconcile(
        &self,
        key: Key,
        now: Time,
        answer: &mut dyn FnMut(&Ask) -> Answer,
        stopped: impl Fn() -> bool,
    ) -> Result<Plan, Trouble> {
        let start = Instant::now();
        stopped();
        self.speak.say(&ToCell::Reconcile(key, now)).map_err(|_| Trouble::Gone)?;
        loop {
            if stopped() {
                return Err(Trouble::Endless("its reconcile was interrupted"));
            }
            if start.elapsed() > RECONCILE_MAX {
                return Err(Trouble::Endless("its reconcile did not end within 5 seconds"));
            }
            match self.hear.recv_timeout(POLL) {
                Ok(FromCell::Ask(ask)) => {
                    let objects = answer(&ask).map(|objects| objects.into_iter().map(Arc::unwrap_or_clone).collect());
                    let answer = objects.map_or_else(ToCell::Unknown, ToCell::Objects);
                    self.speak.say(&answer).map_err(|_| Trouble::Gone)?;
                }
                Ok(FromCell::Plan(plan)) => return Ok(plan),
                Ok(FromCell::Panic(message)) => return Err(Trouble::Panicked(message)),
                Ok(FromCell::Hello(..)) | Err(RecvTimeoutError::Disconnected) => return Err(Trouble::Gone),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Ends the thread in the cell.
impl Drop for Connection {
    fn drop(&mut self) {
        self.speak.close();
    }
}
