//! What happens when a mapped page cannot be read: the file was shortened, or the disk failed. Unsafe code lives here.
//!
//! The system answers such an access with SIGBUS, which would end the process. Our handler looks whether the address
//! belongs to one of our maps; if so it marks the map as failed, puts zero pages in place of the rest of it so that the
//! access can go on, and counts. The reader compares the count before and after a batch and turns a failed map into an
//! error for that query: the zeros are never handed out. Any other SIGBUS goes to whoever handled it before.
//!
//! The handler is installed once, with the first map, and chains: two copies of this library in one process, Python's
//! faulthandler, a JVM or a Go runtime each still get their own faults.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

static COUNT: AtomicU64 = AtomicU64::new(0);
static RANGES: AtomicPtr<Range> = AtomicPtr::new(ptr::null_mut());
static FREE: Mutex<Vec<&'static Range>> = Mutex::new(Vec::new());
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Faults seen in any of our maps since the process began.
#[inline]
pub(super) fn count() -> u64 {
    COUNT.load(Ordering::Acquire)
}

/// One guarded address range. Never freed, because a handler may be looking at it; reused through `FREE`.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
    failed: AtomicBool,
    next: *mut Range,
}

// SAFETY: all fields but `next` are atomics; `next` is written once, before the range is published.
unsafe impl Sync for Range {}

/// Registers a map with the handler until dropped.
pub(super) struct Guarded(&'static Range);

impl Guarded {
    /// Guards the addresses of `map`.
    pub(super) fn new(map: &[u8]) -> Guarded {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(install);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let range = free.unwrap_or_else(publish);
        range.failed.store(false, Ordering::Release);
        range.end.store(map.as_ptr() as usize + map.len(), Ordering::Release);
        // Last: a range counts from the moment it has a start.
        range.start.store(map.as_ptr() as usize, Ordering::Release);
        Guarded(range)
    }

    /// Whether a page of the map could not be read.
    #[inline]
    pub(super) fn failed(&self) -> bool {
        self.0.failed.load(Ordering::Acquire)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.start.store(usize::MAX, Ordering::Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Adds a range to the list that the handler walks.
fn publish() -> &'static Range {
    let range = Box::leak(Box::new(Range {
        start: AtomicUsize::new(usize::MAX),
        end: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        next: ptr::null_mut(),
    }));
    let range: *mut Range = range;
    let mut head = RANGES.load(Ordering::Acquire);
    loop {
        // SAFETY: the range is leaked, so the pointer stays valid, and nobody else knows it yet.
        unsafe { (*range).next = head };
        match RANGES.compare_exchange(head, range, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked above; from here on only its atomics are written.
            Ok(_) => return unsafe { &*range },
            Err(now) => head = now,
        }
    }
}

fn install() {
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    // SAFETY: both structures are plain data that sigaction fills or reads; the handler has the signature that
    // SA_SIGINFO demands. SA_ONSTACK because Go and the JVM run their threads on small stacks.
    unsafe {
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr()) != 0 {
            return;
        }
        // Known before the handler can run.
        let _ = PREVIOUS.set(previous.assume_init());
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

/// The signal handler. Async-signal-safe: atomics and two system calls.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let mut at = RANGES.load(Ordering::Acquire);
    // SAFETY: published ranges are never freed and `next` never changes once published.
    while let Some(range) = unsafe { at.as_ref() } {
        let (start, end) = (range.start.load(Ordering::Acquire), range.end.load(Ordering::Acquire));
        if (start..end).contains(&address) {
            let page = PAGE.load(Ordering::Relaxed);
            let first = address / page * page;
            // SAFETY: first..end lies inside a live map of ours, so replacing these pages takes them from nobody else;
            // the map's own munmap later covers them.
            let mapped = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                libc::mmap(first as *mut libc::c_void, end - first, libc::PROT_READ, flags, -1, 0)
            };
            if mapped != libc::MAP_FAILED {
                range.failed.store(true, Ordering::Release);
                COUNT.fetch_add(1, Ordering::AcqRel);
                return;
            }
            break;
        }
        at = range.next;
    }
    pass_on(signal, info, context);
}

/// Gives a fault that is not ours to the handler that was there before, or to the default one.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get();
    match previous.map(|action| (action.sa_sigaction, action.sa_flags)) {
        Some((handler, flags)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: the address was a valid handler when ours was installed, of the kind its flags say.
            unsafe {
                if flags & libc::SA_SIGINFO != 0 {
                    type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Informed>(handler)(signal, info, context);
                } else {
                    std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
                }
            }
        }
        _ => {
            // Ignoring a fault would repeat it forever; with the default action the access repeats once and ends the
            // process as it would have without us.
            // SAFETY: resetting a signal to its default is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}
