//! The queue over io_uring. Unsafe code lives here.

use super::files::DirectFiles;
use super::memory::Memory;
use super::queue::{Completion, Queue, Request};
use crate::read::ReadError;
use io_uring::{IoUring, opcode, types};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, OnceLock};

/// Most files registered with a ring at a time.
const MOST_FILES: usize = 1024;

/// How often a call may be refused for want of memory or by a signal before it counts as failed.
const RETRIES: u32 = 10_000;

/// Most bytes of one read; what is missing of more is asked for again.
const MOST_BYTES: usize = 1 << 30;

const NOWHERE: u32 = u32::MAX;

/// A ring with its buffers and the files registered with it. It holds one descriptor: the kernel keeps registered files.
pub(super) struct Ring {
    ring: IoUring,
    /// `None` once it had to be given up to reads that could not be awaited.
    memory: Option<Memory>,
    buffer_bytes: usize,
    /// Per slot, whether its buffer belongs to the kernel.
    busy: Vec<bool>,
    in_flight: usize,
    registered: Registered,
    /// A forked child must not touch its parent's ring: both would consume each other's completions.
    owner: u32,
}

/// Which files are registered, and where.
struct Registered {
    /// Per file, its place or `NOWHERE`.
    place: Vec<u32>,
    /// Per place, the file in it.
    file: Vec<Option<usize>>,
    /// The place that is given to the next file.
    next: usize,
}

/// An io_uring with the best flags that the kernel takes.
fn new_ring(entries: u32) -> Result<IoUring> {
    // Completions then wait for the next call instead of interrupting this thread. SINGLE_ISSUER with DEFER_TASKRUN would
    // tie a ring to its thread and measured no faster.
    match IoUring::builder().setup_coop_taskrun().build(entries) {
        Err(e) if e.kind() == ErrorKind::InvalidInput => IoUring::new(entries),
        ring => ring,
    }
}

/// What the system says to an io_uring, or `None` if it grants one; asked once per process.
pub(super) fn refusal() -> Option<&'static Error> {
    // The ring stays open: closing one interrupts a system call of its thread, and a write to a pipe then comes back with
    // a part of the bytes, which not every program expects.
    static ASKED: OnceLock<Result<Mutex<IoUring>>> = OnceLock::new();
    // All that will be asked for: a sandbox that lets the first call through may refuse the others.
    let ask = || {
        let mut ring = new_ring(2)?;
        ring.submitter().register_files(&[-1])?;
        // SAFETY: the entry refers to no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(Error::other)?;
        match ring.submit_and_wait(1) {
            Err(error) if !passing(&error) => Err(error),
            _ => Ok(Mutex::new(ring)),
        }
    };
    ASKED.get_or_init(ask).as_ref().err()
}

impl Ring {
    fn new(buffers: usize, buffer_bytes: usize, files: &DirectFiles) -> Result<Ring> {
        let ring = new_ring(buffers as u32)?;
        let memory = Memory::new(buffers * buffer_bytes, files.most_alignment())?;
        // The kernel refuses more places than the process may have descriptors. Places are filled as files are read.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let places = (files.len() as u64).min(limit).clamp(1, MOST_FILES as u64) as usize;
        ring.submitter().register_files(&vec![-1; places])?;
        let registered = Registered { place: vec![NOWHERE; files.len()], file: vec![None; places], next: 0 };
        let owner = std::process::id();
        let busy = vec![false; buffers];
        Ok(Ring { ring, memory: Some(memory), buffer_bytes, busy, in_flight: 0, registered, owner })
    }

    /// The place of file `index`, which is opened and registered if it is not there.
    fn place(&mut self, index: usize, files: &DirectFiles) -> std::result::Result<u32, ReadError> {
        if self.registered.place[index] != NOWHERE {
            return Ok(self.registered.place[index]);
        }
        let failed = |e| ReadError::io(files.path(index), e);
        let file = files.open(index, true)?;
        let place = self.registered.next;
        if let Some(old) = self.registered.file[place].take() {
            // Reads that were not submitted yet would find the new file in the old one's place; those that were keep theirs.
            self.submit().map_err(failed)?;
            self.registered.place[old] = NOWHERE;
        }
        self.ring.submitter().register_files_update(place as u32, &[file.as_raw_fd()]).map_err(failed)?;
        self.registered.file[place] = Some(index);
        self.registered.place[index] = place as u32;
        self.registered.next = (place + 1) % self.registered.file.len();
        Ok(place as u32)
    }

    /// Hands every read that was pushed to the kernel.
    fn submit(&mut self) -> Result<()> {
        let mut tries = 0;
        while !self.ring.submission().is_empty() {
            if let Err(error) = self.ring.submit() {
                tries += 1;
                if !passing(&error) || tries > RETRIES {
                    return Err(error);
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Starts a read into the buffer of a slot, which belongs to the kernel until the read is found among the finished.
    fn push(&mut self, request: Request, place: u32) -> Result<()> {
        let Request { slot, at, offset, bytes, .. } = request;
        let memory = self.memory.as_ref().ok_or_else(|| Error::other("the ring was given up"))?;
        assert!(!self.busy[slot] && at + bytes <= self.buffer_bytes, "a read into a busy or too small buffer");
        // SAFETY: the slot's buffer lies inside the allocation.
        let target = unsafe { memory.as_ptr().add(slot * self.buffer_bytes + at) };
        let entry = opcode::Read::new(types::Fixed(place), target, bytes.min(MOST_BYTES) as u32)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: `target..target + bytes` stays allocated until the read has finished: `busy` keeps everyone from it, and
        // dropping the ring waits for what is in flight or gives the memory up. Place and offset are plain numbers.
        unsafe { self.ring.submission().push(&entry) }.map_err(Error::other)?;
        self.busy[slot] = true;
        self.in_flight += 1;
        Ok(())
    }

    /// Submits what was pushed, waits for `enough` finished reads and takes all that have finished.
    fn wait(&mut self, enough: usize, done: &mut Vec<Completion>) -> Result<()> {
        let mut tries = 0;
        while let Err(error) = self.ring.submit_and_wait(enough.min(self.in_flight)) {
            tries += 1;
            if !passing(&error) || tries > RETRIES {
                return Err(error);
            }
            // Finished reads free what a refused one lacks.
            if !self.ring.completion().is_empty() {
                break;
            }
            std::thread::yield_now();
        }
        for entry in self.ring.completion() {
            let slot = entry.user_data() as usize;
            self.busy[slot] = false;
            self.in_flight -= 1;
            let result = match entry.result() {
                code if code < 0 => Err(Error::from_raw_os_error(-code)),
                bytes => Ok(bytes as usize),
            };
            done.push(Completion { slot, result });
        }
        Ok(())
    }

    fn buffer(&self, slot: usize) -> &[u8] {
        assert!(!self.busy[slot], "the buffer belongs to the kernel");
        let Some(memory) = &self.memory else { return &[] };
        // SAFETY: the slot's buffer lies inside the allocation, which was zeroed. No read into it is in flight, and none
        // can be pushed while `self` is borrowed; other slots' buffers do not overlap it.
        unsafe { std::slice::from_raw_parts(memory.as_ptr().add(slot * self.buffer_bytes), self.buffer_bytes) }
    }

    /// Waits until nothing is in flight. If the system does not even let us wait, the buffers are given up: leaked, so
    /// that nobody else's memory is written to.
    fn settle(&mut self) {
        let mut done = Vec::new();
        while self.in_flight > 0 {
            if self.wait(self.in_flight, &mut done).is_err() {
                std::mem::forget(self.memory.take());
                return;
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // In a forked child nothing is in flight: it only ever sees idle rings.
        self.settle();
    }
}

/// Whether the same call may succeed in a moment.
fn passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}

/// Idle rings of one reader.
#[derive(Default)]
pub(super) struct Rings {
    idle: Mutex<Vec<Ring>>,
}

impl Rings {
    /// Most rings kept between batches: each holds a descriptor and its buffers.
    const MOST_IDLE: usize = 2;

    /// A ring with `buffers` buffers of `buffer_bytes` for one batch over `files`; every call for these files asks for the
    /// same.
    pub(super) fn lease<'a>(
        &'a self,
        buffers: usize,
        buffer_bytes: usize,
        files: &'a DirectFiles,
    ) -> Result<Lease<'a>> {
        let ours = |ring: Ring| (ring.owner == std::process::id()).then_some(ring);
        // Never waits: in a child that was forked while another thread held the lock, it would be for ever.
        let idle = self.idle.try_lock().ok().and_then(|mut idle| idle.pop()).and_then(ours);
        let ring = match idle {
            Some(ring) => ring,
            None => Ring::new(buffers, buffer_bytes, files)?,
        };
        Ok(Lease { rings: self, ring: Some(ring), files })
    }
}

/// A ring on loan for one batch.
pub(super) struct Lease<'a> {
    rings: &'a Rings,
    /// Always there until dropped.
    ring: Option<Ring>,
    files: &'a DirectFiles,
}

impl Lease<'_> {
    fn ring(&mut self) -> Result<&mut Ring> {
        self.ring.as_mut().ok_or_else(|| Error::other("the ring was given back"))
    }
}

impl Queue for Lease<'_> {
    fn slots(&self) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.busy.len())
    }

    fn push(&mut self, request: Request) -> std::result::Result<bool, ReadError> {
        let files = self.files;
        let failed = |e| ReadError::io(files.path(request.file), e);
        let ring = self.ring().map_err(failed)?;
        let place = ring.place(request.file, files)?;
        ring.push(request, place).map_err(failed)?;
        Ok(true)
    }

    fn wait(&mut self, enough: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.ring()?.wait(enough, done)
    }

    fn buffer(&self, slot: usize) -> &[u8] {
        self.ring.as_ref().map_or(&[], |ring| ring.buffer(slot))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(mut ring) = self.ring.take() else { return };
        // After an error or a panic of the sink, reads may still be in flight.
        ring.settle();
        if ring.memory.is_some()
            && let Ok(mut idle) = self.rings.idle.try_lock()
            && idle.len() < Rings::MOST_IDLE
        {
            idle.push(ring);
        }
    }
}
