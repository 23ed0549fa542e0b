//! Between the protocol and the session: whatever happens inside of it, the frontend gets an answer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crate::output::CellError;

/// A session that is made in the background, so that the first hello does not wait for it, and whose panics are errors
/// of the cell.
pub struct Guarded<E> {
    opening: Option<JoinHandle<E>>,
    session: Result<E, CellError>,
}

impl<E> Guarded<E> {
    pub fn new(opening: JoinHandle<E>) -> Self {
        let session = Err(CellError::new("InternalError", "the session is not open yet"));
        Guarded { opening: Some(opening), session }
    }

    /// Calls the session, once it is there. After a panic it is as the panic left it, and the notebook goes on.
    ///
    /// # Errors
    /// The session panicked, or could not be made.
    pub fn call<T>(&mut self, run: impl FnOnce(&mut E) -> T) -> Result<T, CellError> {
        if let Some(opening) = self.opening.take() {
            self.session = opening.join().map_err(|panic| internal_error(panic.as_ref()));
        }
        let session = self.session.as_mut().map_err(|error| error.clone())?;
        catch_unwind(AssertUnwindSafe(|| run(session))).map_err(|panic| internal_error(panic.as_ref()))
    }
}

fn internal_error(panic: &(dyn Any + Send)) -> CellError {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    CellError::new("InternalError", format!("{message} (a bug in Kernetes; the notebook can go on)"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_next_call_goes_through() {
        let mut session = Guarded::new(thread::spawn(|| 1));
        let error = session.call(|_| panic!("lost")).map(|()| 0).unwrap_err();
        assert!(error.evalue.starts_with("lost "), "{error:?}");
        assert_eq!(session.call(|session| *session + 1), Ok(2));
    }

    #[test]
    fn a_session_that_cannot_be_made_fails_each_call() {
        let mut session = Guarded::<()>::new(thread::spawn(|| panic!("no room")));
        for _ in 0..2 {
            assert!(session.call(|()| ()).unwrap_err().evalue.starts_with("no room "));
        }
    }
}
