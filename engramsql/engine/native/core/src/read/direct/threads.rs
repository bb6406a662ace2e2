//! The queue over a pool of threads, each with one positional read at a time.

use super::files::DirectFiles;
use super::memory::Memory;
use super::queue::{Completion, Queue, Request};
use crate::read::ReadError;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Threads of the pool at most: the disk needs that many reads outstanding.
pub(super) const MOST_THREADS: usize = 32;

/// A finished job: its buffer comes back.
type Finished = (Completion, Memory);

/// One read, with everything it needs: a batch that ends early leaves nothing behind that is not the job's own.
struct Job {
    request: Request,
    file: Arc<File>,
    memory: Memory,
    finished: Sender<Finished>,
}

impl Job {
    fn run(self) {
        let Job { request: Request { slot, at, offset, bytes, .. }, file, mut memory, finished } = self;
        let result = file.read_at(&mut memory.bytes_mut()[at..at + bytes], offset);
        // Before the answer: whoever gets it may count on the descriptor.
        drop(file);
        // Nobody listens any more after an error or a panic in the batch.
        let _ = finished.send((Completion { slot, result }, memory));
    }
}

/// Threads that wait for jobs, started one by one as more reads are outstanding than there are threads.
pub(super) struct Threads {
    /// Threads do not survive a fork: a child has a pool of its own.
    owner: u32,
    jobs: Sender<Job>,
    waiting: Receiver<Job>,
    started: AtomicUsize,
    outstanding: Arc<AtomicUsize>,
}

impl Threads {
    fn new() -> Threads {
        let (jobs, waiting) = unbounded();
        let outstanding = Arc::new(AtomicUsize::new(0));
        Threads { owner: std::process::id(), jobs, waiting, started: AtomicUsize::new(0), outstanding }
    }

    /// The pool of this process; no thread runs before the first read.
    pub(super) fn of_this_process() -> &'static Threads {
        static CURRENT: AtomicPtr<Threads> = AtomicPtr::new(std::ptr::null_mut());
        // No lock: one that another thread held while this process was forked would never be released.
        loop {
            let current = CURRENT.load(Ordering::Acquire);
            // SAFETY: null, or a pool that was leaked below and is never freed.
            if let Some(threads) = unsafe { current.as_ref() }
                && threads.owner == std::process::id()
            {
                return threads;
            }
            let new = Box::into_raw(Box::new(Threads::new()));
            if CURRENT.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: made above from a box, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    fn start(&self, job: Job) {
        let outstanding = self.outstanding.fetch_add(1, Ordering::Relaxed) + 1;
        let started = self.started.load(Ordering::Relaxed);
        if started < MOST_THREADS.min(outstanding)
            && self.started.compare_exchange(started, started + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let (waiting, outstanding) = (self.waiting.clone(), self.outstanding.clone());
            let work = move || {
                for job in waiting {
                    job.run();
                    outstanding.fetch_sub(1, Ordering::Relaxed);
                }
            };
            if std::thread::Builder::new().name("engramsql-read".to_owned()).spawn(work).is_err() {
                self.started.fetch_sub(1, Ordering::Relaxed);
                if started == 0 {
                    // A process that may have no thread more reads by itself.
                    job.run();
                    self.outstanding.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
            }
        }
        // Cannot fail: the pool holds a receiver itself.
        let _ = self.jobs.send(job);
    }
}

/// One batch's reads by the pool.
pub(super) struct PoolQueue<'a> {
    threads: &'static Threads,
    files: &'a DirectFiles,
    scattered: bool,
    buffer_bytes: usize,
    /// Per slot, its buffer: made when first used, away while a job has it.
    buffers: Vec<Option<Memory>>,
    /// Files that this batch has open; those that no job reads from can go.
    open: Vec<(usize, Arc<File>)>,
    most_open: usize,
    finished: (Sender<Finished>, Receiver<Finished>),
}

impl<'a> PoolQueue<'a> {
    pub(super) fn new(buffers: usize, buffer_bytes: usize, files: &'a DirectFiles, scattered: bool) -> PoolQueue<'a> {
        // Some threads read at once, and the host needs descriptors too.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        PoolQueue {
            threads: Threads::of_this_process(),
            files,
            scattered,
            buffer_bytes,
            buffers: (0..buffers).map(|_| None).collect(),
            open: Vec::new(),
            most_open: (limit / 16).clamp(1, 128) as usize,
            finished: unbounded(),
        }
    }

    /// File `index`, or `None` while too many others are being read from.
    fn file(&mut self, index: usize) -> std::result::Result<Option<Arc<File>>, ReadError> {
        // From the end: batches go through the files in order.
        if let Some((_, file)) = self.open.iter().rev().find(|(open, _)| *open == index) {
            return Ok(Some(file.clone()));
        }
        if self.open.len() >= self.most_open {
            self.open.retain(|(_, file)| Arc::strong_count(file) > 1);
            if self.open.len() >= self.most_open {
                return Ok(None);
            }
        }
        let file = Arc::new(self.files.open(index, self.scattered)?);
        self.open.push((index, file.clone()));
        Ok(Some(file))
    }

    fn keep(&mut self, (completion, memory): Finished, done: &mut Vec<Completion>) {
        self.buffers[completion.slot] = Some(memory);
        done.push(completion);
    }
}

impl Queue for PoolQueue<'_> {
    fn slots(&self) -> usize {
        self.buffers.len()
    }

    fn push(&mut self, request: Request) -> std::result::Result<bool, ReadError> {
        let Some(file) = self.file(request.file)? else { return Ok(false) };
        let memory = match self.buffers[request.slot].take() {
            Some(memory) => memory,
            None => Memory::new(self.buffer_bytes, self.files.most_alignment())
                .map_err(|e| ReadError::io(self.files.path(request.file), e))?,
        };
        self.threads.start(Job { request, file, memory, finished: self.finished.0.clone() });
        Ok(true)
    }

    fn wait(&mut self, _enough: usize, done: &mut Vec<Completion>) -> Result<()> {
        let first = self.finished.1.recv().map_err(std::io::Error::other)?;
        self.keep(first, done);
        while let Ok(next) = self.finished.1.try_recv() {
            self.keep(next, done);
        }
        Ok(())
    }

    fn buffer(&self, slot: usize) -> &[u8] {
        self.buffers[slot].as_ref().map_or(&[], Memory::bytes)
    }
}
