//! Between the protocol and the session: whatever happens inside of it, the frontend gets an answer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::output::CellError;

/// A session that is made when it is first called, so that a notebook that only lies open costs little, and whose panics
/// are errors of the cell.
pub struct Guarded<E> {
    open: Option<Box<dyn FnOnce() -> E + Send>>,
    session: Result<E, CellError>,
}

impl<E> Guarded<E> {
    pub fn new(open: impl FnOnce() -> E + Send + 'static) -> Self {
        let session = Err(CellError::new("InternalError", "the session is not open yet"));
        Guarded { open: Some(Box::new(open)), session }
    }

    /// Calls the session. After a panic it is as the panic left it, and the notebook goes on.
    ///
    /// # Errors
    /// The session panicked, or could not be made.
    pub fn call<T>(&mut self, run: impl FnOnce(&mut E) -> T) -> Result<T, CellError> {
        if let Some(open) = self.open.take() {
            self.session = guarded(open);
        }
        let session = self.session.as_mut().map_err(|error| error.clone())?;
        guarded(|| run(session))
    }
}

fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, CellError> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| internal_error(panic.as_ref()))
}

fn internal_error(panic: &(dyn Any + Send)) -> CellError {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    CellError::new("InternalError", format!("{message} (a bug in Kernetes; the notebook can go on)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_next_call_goes_through() {
        let mut session = Guarded::new(|| 1);
        let error = session.call(|_| panic!("lost")).map(|()| 0).unwrap_err();
        assert!(error.evalue.starts_with("lost "), "{error:?}");
        assert_eq!(session.call(|session| *session + 1), Ok(2));
    }

    #[test]
    fn a_session_that_cannot_be_made_fails_each_call() {
        let mut session = Guarded::<()>::new(|| panic!("no room"));
        for _ in 0..2 {
            assert!(session.call(|()| ()).unwrap_err().evalue.starts_with("no room "));
        }
    }
}
