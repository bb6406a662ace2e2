//! The one wrapper around everything DuckDB calls: errors become text, panics never cross, nothing is printed.

use super::host::HostError;
use crate::error::{Error, Result};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Where a callback reports its error.
pub trait Report {
    /// Hands one message to DuckDB, which copies it.
    fn report(&self, message: &CString);
}

thread_local! {
    /// How many guards are active on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Where the last panic under a guard happened.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body` for SQL function `function`; an error or a panic is reported and gives `None`.
pub fn guard<T>(report: &dyn Report, function: &str, body: impl FnOnce() -> Result<T>) -> Option<T> {
    capture_panics();
    DEPTH.set(DEPTH.get() + 1);
    // A panic leaves only state that is dropped with the query, so nothing half-changed is seen again.
    let outcome = catch_unwind(AssertUnwindSafe(|| match body() {
        Ok(value) => Ok(value),
        // Formatting and dropping the error stay inside: either may panic.
        Err(error) => Err(error.message(function)),
    }));
    let message = match outcome {
        Ok(Ok(value)) => {
            DEPTH.set(DEPTH.get() - 1);
            return Some(value);
        }
        Ok(Err(message)) => message,
        Err(payload) => {
            let text = panic_text(function, payload.as_ref());
            forget_payload(payload);
            text
        }
    };
    DEPTH.set(DEPTH.get() - 1);
    // An interior NUL would cut the message short in C.
    let message = message.replace('\0', "\\0");
    report.report(&CString::new(message).unwrap_or_default());
    None
}

/// Runs `body` for SQL function `function` on a thread that DuckDB does not know: an error or a panic becomes an error with
/// its complete text.
pub fn contained<T>(function: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Kept(RefCell<CString>);

    impl Report for Kept {
        fn report(&self, message: &CString) {
            self.0.replace(message.clone());
        }
    }

    let kept = Kept(RefCell::default());
    guard(&kept, function, body).ok_or_else(|| Error::Told(kept.0.take().to_string_lossy().into_owned()))
}

fn panic_text(function: &str, payload: &(dyn Any + Send)) -> String {
    if let Some(HostError(text)) = payload.downcast_ref() {
        return format!("{function}: {text}");
    }
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.as_str()
    } else {
        "panic without a message"
    };
    let place =
        PLACE.try_with(|place| place.borrow_mut().take()).ok().flatten().unwrap_or_else(|| "unknown place".into());
    format!("{function}: internal error: {text} ({place}); please report this")
}

/// Drops a panic payload whose own `Drop` may panic.
fn forget_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

/// Keeps panics under a guard from being printed and notes where they happened.
///
/// The hook belongs to this shared object's own copy of std: the host's panics do not pass here. What contains this crate
/// as a library may have a hook of its own; it gets the panics that do not happen under a guard.
fn capture_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let guarded = DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false) || engram_engine::is_worker();
            if guarded {
                let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
                // A destructor of thread-local state may panic after PLACE is gone; then the place stays unknown.
                let _ = PLACE.try_with(|slot| {
                    if let Ok(mut slot) = slot.try_borrow_mut() {
                        *slot = place;
                    }
                });
            } else {
                previous(info);
            }
        }));
    });
}

/// Frees state that [`into_raw`] handed to DuckDB. Never unwinds.
///
/// # Safety
/// `data` is null or came from [`into_raw`] with the same `T` and was not freed before.
pub unsafe extern "C" fn destroy<T>(data: *mut c_void) {
    if data.is_null() {
        return;
    }
    capture_panics();
    DEPTH.set(DEPTH.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: by this function's contract `data` is a live Box<T>.
        drop(unsafe { Box::from_raw(data.cast::<T>()) });
    }));
    DEPTH.set(DEPTH.get() - 1);
    if let Err(payload) = outcome {
        forget_payload(payload);
    }
}

/// Boxes state for DuckDB to hold; [`destroy`] frees it.
pub fn into_raw<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Last(RefCell<Vec<String>>);

    impl Report for Last {
        fn report(&self, message: &CString) {
            self.0.borrow_mut().push(message.to_string_lossy().into_owned());
        }
    }

    fn messages(body: impl FnOnce() -> Result<()>) -> Vec<String> {
        let last = Last(RefCell::new(Vec::new()));
        assert!(guard(&last, "f", body).is_none());
        last.0.into_inner()
    }

    #[test]
    fn an_argument_error_names_the_function() {
        let seen = messages(|| Err(Error::argument("no\0thing")));
        assert_eq!(seen, ["f: no\\0thing"]);
    }

    #[test]
    fn a_panic_becomes_one_message_with_its_place() {
        let seen = messages(|| panic!("boom {}", 1));
        assert_eq!(seen.len(), 1);
        assert!(seen[0].starts_with("f: internal error: boom 1 ("), "{seen:?}");
        assert!(seen[0].contains("guard.rs:"), "{seen:?}");
    }

    #[test]
    fn what_duckdb_threw_is_no_internal_error() {
        let seen = messages(|| std::panic::resume_unwind(Box::new(HostError("Out of Memory Error: x".into()))));
        assert_eq!(seen, ["f: Out of Memory Error: x"]);
    }

    #[test]
    fn a_panic_while_the_error_is_formatted_is_contained() {
        let seen = messages(|| Err(Error::Panicking));
        assert!(seen[0].contains("panic in Display"), "{seen:?}");
    }

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("panic in Drop");
        }
    }

    #[test]
    fn a_panic_in_a_destructor_is_contained() {
        // SAFETY: the pointer came from into_raw with the same type.
        unsafe { destroy::<PanicsInDrop>(into_raw(PanicsInDrop)) };
        let seen = messages(|| {
            let _held = PanicsInDrop;
            Ok(())
        });
        assert!(seen[0].contains("panic in Drop"), "{seen:?}");
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        let seen = messages(|| std::panic::panic_any(PanicsInDrop));
        assert!(seen[0].contains("panic without a message"), "{seen:?}");
    }
}
