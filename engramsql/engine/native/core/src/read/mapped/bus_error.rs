//! What happens when a mapped page cannot be read: the file was shortened, or the disk failed. Unsafe code lives here.
//!
//! The system answers such an access with SIGBUS, which would end the process. Our handler looks whether the address
//! belongs to one of our maps; if so it marks the map as failed, and then puts zero pages in place of the rest of it so
//! that the access can go on. After a batch the reader looks whether a map it touched has failed and turns that into an
//! error for that query: the zeros are never handed out. Any other SIGBUS goes to whoever handled it before.
//!
//! The handler is installed once, with the first map, and chains: two copies of this library in one process, Python's
//! faulthandler, a JVM or a Go runtime each still get their own faults.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

static ANY: AtomicBool = AtomicBool::new(false);
static RANGES: AtomicPtr<Range> = AtomicPtr::new(ptr::null_mut());
static FREE: Mutex<Vec<&'static Range>> = Mutex::new(Vec::new());
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Whether any of our maps has failed since the process began. Ordered after the reads of mapped bytes before it.
#[inline]
pub(super) fn any() -> bool {
    // The bytes were read by plain loads; without the fence the flag could be read before them.
    fence(Ordering::SeqCst);
    ANY.load(Ordering::SeqCst)
}

/// One guarded address range. Never freed, because a handler may be looking at it; reused through `FREE`.
struct Range {
    /// Odd while the addresses change: whoever reads them in between looks again.
    version: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    failed: AtomicBool,
    next: *mut Range,
}

// SAFETY: all fields but `next` are atomics; `next` is written once, before the range is published.
unsafe impl Sync for Range {}

impl Range {
    /// Sets the addresses. Only the range's owner calls this, so versions do not race.
    fn set(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.end.store(end, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The addresses, or `None` while they change: a range that holds the faulting address does not, because the thread
    /// that faults keeps its map, and with it the range, alive.
    fn get(&self) -> Option<(usize, usize)> {
        let before = self.version.load(Ordering::SeqCst);
        let addresses = (self.start.load(Ordering::SeqCst), self.end.load(Ordering::SeqCst));
        (before.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == before).then_some(addresses)
    }
}

/// Registers a map with the handler until dropped.
pub(super) struct Guarded(&'static Range);

impl Guarded {
    /// Guards the addresses of `map`.
    pub(super) fn new(map: &[u8]) -> Guarded {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(install);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let range = free.unwrap_or_else(publish);
        range.failed.store(false, Ordering::SeqCst);
        range.set(map.as_ptr() as usize, map.as_ptr() as usize + map.len());
        Guarded(range)
    }

    /// Whether a page of the map could not be read.
    #[inline]
    pub(super) fn failed(&self) -> bool {
        self.0.failed.load(Ordering::SeqCst)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.set(0, 0);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Adds a range to the list that the handler walks.
fn publish() -> &'static Range {
    let range: *mut Range = Box::leak(Box::new(Range {
        version: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        next: ptr::null_mut(),
    }));
    let mut head = RANGES.load(Ordering::SeqCst);
    loop {
        // SAFETY: the range is leaked, so the pointer stays valid, and nobody else knows it yet.
        unsafe { (*range).next = head };
        match RANGES.compare_exchange(head, range, Ordering::SeqCst, Ordering::SeqCst) {
            // SAFETY: leaked above; from here on only its atomics are written.
            Ok(_) => return unsafe { &*range },
            Err(now) => head = now,
        }
    }
}

fn install() {
    PAGE.store(rustix::param::page_size(), Ordering::SeqCst);
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

/// The signal handler. Async-signal-safe: atomics and system calls.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t with SA_SIGINFO.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // A signal that a process sent carries no address.
    if code <= 0 || !cover(address) {
        pass_on(signal, code, info, context);
    }
}

/// Marks the map that holds `address` as failed and covers the rest of it with zero pages; `false` if it is not ours.
fn cover(address: usize) -> bool {
    let mut at = RANGES.load(Ordering::SeqCst);
    // SAFETY: published ranges are never freed and `next` never changes once published.
    while let Some(range) = unsafe { at.as_ref() } {
        if let Some((start, end)) = range.get()
            && (start..end).contains(&address)
        {
            // Before the zeros can be seen by any thread.
            range.failed.store(true, Ordering::SeqCst);
            ANY.store(true, Ordering::SeqCst);
            let page = PAGE.load(Ordering::SeqCst);
            let first = address / page * page;
            // SAFETY: start..end is one consistent reading of a live map's range: it holds the address that this very
            // thread is reading through a borrow of that map. Replacing pages inside it takes them from nobody
            // else, and the map's own munmap later covers them.
            let mapped = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                libc::mmap(first as *mut libc::c_void, end - first, libc::PROT_READ, flags, -1, 0)
            };
            return mapped != libc::MAP_FAILED;
        }
        at = range.next;
    }
    false
}

/// Gives a signal that is not ours to the handler that was there before, or to the default one.
fn pass_on(signal: libc::c_int, code: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (handler, flags) = PREVIOUS.get().map_or((libc::SIG_DFL, 0), |action| (action.sa_sigaction, action.sa_flags));
    match handler {
        // A process sent it, and whoever was here before did not care.
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // Ignoring a fault would repeat it forever; with the default action the access repeats once and ends the
            // process as it would have without us. A signal that was sent does not repeat by itself.
            // SAFETY: resetting a signal to its default and raising it are always allowed.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        // SAFETY: the address was a valid handler when ours was installed, of the kind its flags say.
        _ => unsafe {
            if flags & libc::SA_SIGINFO != 0 {
                type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Informed>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
            }
        },
    }
}
