//! Fault injection for tests of the real artifact: `ENGRAMSQL_FAULT=panic@gather` makes that point fail.
//!
//! Points are named `PART.STEP` (`build.plan`, `catalog.write`), or after the one step that all parts share (`write`, `sync`,
//! `publish`). They are few and off unless the variable is set when the library is first used. `ACTION@POINT:N` fails at the N-th
//! passing only; without N at every one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Fault {
    action: Action,
    point: String,
    /// The passing that fails, from 1 on; 0: every one.
    at: u64,
    passed: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// A panic: the boundary above must turn it into an error.
    Panic,
    /// The end of the process without any clean-up, as by a power cut.
    Kill,
    /// The system's answer to a read or write.
    System(i32),
}

impl Fault {
    fn parse(value: &str) -> Option<Fault> {
        let (action, point) = value.split_once('@')?;
        let (point, at) = match point.split_once(':') {
            Some((point, at)) => (point, at.parse().ok()?),
            None => (point, 0),
        };
        let action = match action {
            "panic" => Action::Panic,
            "kill" => Action::Kill,
            "eio" => Action::System(libc::EIO),
            "enospc" => Action::System(libc::ENOSPC),
            _ => return None,
        };
        Some(Fault { action, point: point.to_owned(), at, passed: AtomicU64::new(0) })
    }
}

/// What is to happen at point `name` now.
fn due(name: &str) -> Option<Action> {
    static ARMED: OnceLock<Option<Fault>> = OnceLock::new();
    let fault = ARMED.get_or_init(|| Fault::parse(&std::env::var("ENGRAMSQL_FAULT").ok()?)).as_ref()?;
    if fault.point != name {
        return None;
    }
    let passing = fault.passed.fetch_add(1, Ordering::Relaxed) + 1;
    (fault.at == 0 || fault.at == passing).then_some(fault.action)
}

/// Panics under `panic@NAME` and ends the process under `kill@NAME`.
///
/// # Panics
/// That is its purpose: it proves that the boundary above turns a panic into an error.
pub fn point(name: &str) {
    match due(name) {
        Some(Action::Panic) => panic!("fault injected at '{name}'"),
        Some(Action::Kill) => kill(),
        Some(Action::System(_)) | None => (),
    }
}

/// Also fails under `eio@NAME` and `enospc@NAME`, as a read or write would.
///
/// # Errors
/// The system error that is asked for.
///
/// # Panics
/// As [`point`].
pub fn io(name: &str) -> std::io::Result<()> {
    match due(name) {
        Some(Action::System(code)) => Err(std::io::Error::from_raw_os_error(code)),
        Some(Action::Panic) => panic!("fault injected at '{name}'"),
        Some(Action::Kill) => kill(),
        None => Ok(()),
    }
}

fn kill() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // Not reached: the signal cannot be held back.
    std::process::abort()
}
