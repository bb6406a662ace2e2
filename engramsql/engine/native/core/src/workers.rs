//! Threads that take a share of a call whose rows are in memory. Unsafe code lives here.
//!
//! They wait for work instead of being started for each call, and wait awake for a moment: DuckDB asks for 2048 rows at a
//! time, 0.1 to 0.2 ms of work, and runs a query over a small table on one thread. Waking a thread takes 0.05 ms where the
//! processor is virtual, which would use up what its share is worth. A general pool (rayon's was tried) sleeps too soon.

use crate::process::PerProcess;
use crate::settings;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a thread stays awake for the next share, and a caller for the end of one.
const AWAKE: Duration = Duration::from_micros(200);

/// What the calls and workers of one process share; a child has its own, as its parent's threads are not in it.
#[derive(Default)]
struct Shared {
    /// Calls of all threads that are gathering right now.
    calls: AtomicUsize,
    /// The thread of the last call, and how many in a row were its.
    last: AtomicUsize,
    in_a_row: AtomicUsize,
    /// Started when first asked for.
    workers: OnceLock<Vec<Started>>,
}

impl Shared {
    fn of_this_process() -> &'static Shared {
        static CURRENT: PerProcess<Shared> = PerProcess::new();
        let made: Result<_, std::convert::Infallible> = CURRENT.get(|_| Ok(Shared::default()));
        match made {
            Ok(shared) => shared,
            Err(never) => match never {},
        }
    }

    /// As many as there are other processors that may be used, or fewer where the system gives no more.
    fn workers(&self) -> &[Started] {
        self.workers.get_or_init(|| {
            let others = std::thread::available_parallelism().map_or(1, usize::from) - 1;
            (0..others).map_while(|number| Worker::spawn(number).ok()).collect()
        })
    }
}

thread_local!(static IS_WORKER: Cell<bool> = const { Cell::new(false) });

/// Whether this thread works for others: a panic here becomes one of the call that it works for.
pub fn is_worker() -> bool {
    IS_WORKER.try_with(Cell::get).unwrap_or(false)
}

/// Calls in a row of one thread that show that the others have nothing to do with it. Of two threads of one query, which
/// take turns, each has one in a row, now and then two.
const ALONE: usize = 4;

/// One call while it runs, counted until it is dropped: after a panic too.
pub(crate) struct Call {
    shared: &'static Shared,
    /// Calls that were running when this one began, itself among them.
    running: usize,
    /// See [`alone`](Self::alone).
    alone: bool,
}

impl Call {
    /// Counts a call of this thread.
    pub(crate) fn begin() -> Call {
        thread_local!(static OWN: u8 = const { 0 });
        // A place of this thread's own; another thread's only when this one has ended.
        let own = OWN.with(|own| std::ptr::from_ref(own).addr());
        // Two threads here at once may count one call too many or too few: it is a guess either way.
        let shared = Shared::of_this_process();
        let alone = if shared.last.swap(own, Ordering::Relaxed) == own {
            shared.in_a_row.fetch_add(1, Ordering::Relaxed) >= ALONE
        } else {
            shared.in_a_row.store(0, Ordering::Relaxed);
            false
        };
        Call { shared, running: shared.calls.fetch_add(1, Ordering::Relaxed) + 1, alone }
    }

    /// Whether the calls before this one, too, were this thread's: then a host with several threads uses just one.
    pub(crate) fn alone(&self) -> bool {
        self.alone
    }

    /// Threads this call may use, its own among them: those that other calls leave.
    pub(crate) fn threads(&self) -> usize {
        left(settings::threads_of_call(), self.running)
    }
}

/// Threads of all that are left to one of so many calls.
fn left(threads: usize, calls: usize) -> usize {
    (threads + 1).saturating_sub(calls).max(1)
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs both, the second on another thread if one is free, else after the first. A panic of either is one of this call, once
/// both have ended; of two, it is the first's.
pub(crate) fn both<A, B: Send>(first: impl FnOnce() -> A, second: impl FnOnce() -> B + Send) -> (A, B) {
    let Some(worker) = Shared::of_this_process().workers().iter().find(|worker| worker.claim()) else {
        return (first(), second());
    };
    let mut second = Some(second);
    let mut outcome = None;
    let mut share = || {
        if let Some(second) = second.take() {
            outcome = Some(catch_unwind(AssertUnwindSafe(second)));
        }
    };
    // SAFETY: the worker is claimed. `share` and what it borrows outlive the running share, whose end is waited for below,
    // or while a panic of `first` unwinds; nothing touches them until then.
    let running = unsafe { worker.start(&mut share) };
    let first = first();
    drop(running);
    match outcome {
        Some(Ok(second)) => (first, second),
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("a share that ended has run"),
    }
}

/// A share as a worker sees it: borrowed from a caller that waits for its end.
type Share = *mut (dyn FnMut() + Send);

/// One thread and the share it works on.
struct Worker {
    /// [`FREE`], [`CLAIMED`] by a caller, [`READY`] to be run, [`DONE`].
    state: AtomicU32,
    /// Written by the caller that claimed the worker, before READY; taken by the worker's thread before DONE.
    share: UnsafeCell<Option<(Share, Thread)>>,
}

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const READY: u32 = 2;
const DONE: u32 = 3;

// SAFETY: `state` gives the cell to one side at a time: who gives it away stores with release, who gets it has seen that with
// acquire. A caller gets it with CLAIMED, the worker's thread with READY; DONE and FREE follow in that order, and only one
// caller's exchange succeeds.
unsafe impl Sync for Worker {}
// SAFETY: what the pointer leads to is Send, and a `Thread` is.
unsafe impl Send for Worker {}

/// A worker with the handle that wakes it.
struct Started {
    worker: Arc<Worker>,
    thread: Thread,
}

/// A share that runs; dropping waits for its end. The thread that started it drops it: that is the one that is woken.
struct Running<'a>(&'a Worker);

impl Worker {
    fn spawn(number: usize) -> std::io::Result<Started> {
        let worker = Arc::new(Worker { state: AtomicU32::new(FREE), share: UnsafeCell::new(None) });
        let own = Arc::clone(&worker);
        let thread =
            std::thread::Builder::new().name(format!("engramsql-{number}")).spawn(move || own.work())?.thread().clone();
        Ok(Started { worker, thread })
    }

    /// The life of a worker's thread.
    fn work(&self) {
        IS_WORKER.set(true);
        loop {
            self.wait_for(READY);
            // SAFETY: READY gives the cell to this thread, and the caller keeps what the pointer leads to until DONE. The share
            // does not unwind: `both` catches its panic.
            let caller = unsafe {
                (*self.share.get()).take().map(|(share, caller)| {
                    (*share)();
                    caller
                })
            };
            self.state.store(DONE, Ordering::Release);
            // The caller may be gone already; a thread that does not sleep is not disturbed.
            caller.iter().for_each(Thread::unpark);
        }
    }

    /// Waits until the state is `wanted`: awake at first, then asleep until somebody wakes this thread.
    fn wait_for(&self, wanted: u32) {
        /// Looks at the state between two at the clock.
        const LOOKS: usize = 64;
        let mut since = None;
        loop {
            for _ in 0..LOOKS {
                if self.state.load(Ordering::Acquire) == wanted {
                    return;
                }
                std::hint::spin_loop();
            }
            if since.get_or_insert_with(Instant::now).elapsed() > AWAKE {
                std::thread::park();
            }
        }
    }
}

impl Started {
    fn claim(&self) -> bool {
        self.worker.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives a claimed worker its share.
    ///
    /// # Safety
    /// The worker is claimed by this thread. `share` does not unwind, and lives, untouched, until what is returned was dropped,
    /// by this thread and not forgotten.
    unsafe fn start<'a>(&'a self, share: &'a mut (dyn FnMut() + Send + 'a)) -> Running<'a> {
        // SAFETY: only the lifetime changes, which the caller vouches for.
        let share = unsafe { std::mem::transmute::<*mut (dyn FnMut() + Send + 'a), Share>(share) };
        // SAFETY: CLAIMED gives the cell to this thread.
        unsafe { *self.worker.share.get() = Some((share, std::thread::current())) };
        self.worker.state.store(READY, Ordering::Release);
        self.thread.unpark();
        Running(&self.worker)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.wait_for(DONE);
        self.0.state.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_run_and_may_borrow() {
        let mut numbers = vec![1, 2, 3, 4];
        let (head, tail) = numbers.split_at_mut(2);
        assert_eq!(both(|| head.iter().sum::<i32>(), || tail.iter_mut().map(std::mem::take).sum()), (3, 7));
        assert_eq!(numbers, [1, 2, 0, 0]);
    }

    #[test]
    fn shares_of_shares_and_of_many_callers_all_run() {
        let done = AtomicUsize::new(0);
        let count = || done.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        both(|| both(count, count), || both(count, count));
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 16_000);
    }

    #[test]
    fn a_panic_of_either_waits_for_the_other_and_is_one_here() {
        let done = AtomicUsize::new(0);
        let caught = |first: bool| {
            catch_unwind(AssertUnwindSafe(|| {
                let work = |fails: bool| {
                    done.fetch_add(1, Ordering::Relaxed);
                    assert!(!fails, "of a share");
                };
                both(|| work(first), || work(!first));
            }))
        };
        for first in [true, false] {
            let panic = caught(first).expect_err("one share panics");
            assert_eq!(panic.downcast_ref(), Some(&"of a share"));
        }
        // A first that panics where no worker is free never comes to its second.
        assert!(done.into_inner() >= 3);
        assert_eq!(both(|| 1, || 2), (1, 2));
    }

    #[test]
    fn a_call_leaves_the_threads_of_others() {
        assert_eq!([1, 2, 3, 4].map(|calls| left(2, calls)), [2, 1, 1, 1]);
        assert_eq!([1, 2, 3].map(|calls| left(1, calls)), [1, 1, 1]);
        assert_eq!([1, 4, 8, 9].map(|calls| left(8, calls)), [8, 5, 1, 1]);
    }
}
