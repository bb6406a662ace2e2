//! The queue over a pool of threads, each with one positional read at a time.

use super::files::DirectFiles;
use super::memory::Memory;
use super::queue::{Completion, Queue, Request};
use crate::process::PerProcess;
use crate::read::ReadError;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Threads of the pool at most: the disk needs that many reads outstanding.
pub(super) const MOST_THREADS: usize = 32;

/// The finished jobs of one batch.
#[derive(Default)]
struct Finished {
    list: Mutex<List>,
    /// Told when the list has as many as are wanted: one that is woken for each read costs more than the reads.
    enough: Condvar,
}

#[derive(Default)]
struct List {
    /// Each with its buffer, which comes back.
    jobs: Vec<(Completion, Memory)>,
    wanted: usize,
}

impl Finished {
    fn add(&self, completion: Completion, memory: Memory) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.jobs.push((completion, memory));
        if list.jobs.len() == list.wanted {
            self.enough.notify_one();
        }
    }

    /// Moves all there are to `taken`, at least `wanted`; as many are on their way.
    fn take(&self, wanted: usize, taken: &mut Vec<(Completion, Memory)>) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.wanted = wanted;
        let few = |list: &mut List| list.jobs.len() < wanted;
        let mut list = self.enough.wait_while(list, few).unwrap_or_else(PoisonError::into_inner);
        list.wanted = 0;
        taken.append(&mut list.jobs);
    }
}

/// One read, with everything it needs: a batch that ends early leaves nothing behind that is not the job's own.
struct Job {
    request: Request,
    file: Arc<File>,
    memory: Memory,
    finished: Arc<Finished>,
}

impl Job {
    fn run(self) {
        let Job { request: Request { slot, at, offset, bytes, .. }, file, mut memory, finished } = self;
        let result = file.read_at(&mut memory.bytes_mut()[at..at + bytes], offset);
        // Before the answer: whoever gets it may count on the descriptor.
        drop(file);
        finished.add(Completion { slot, result }, memory);
    }
}

/// Threads that wait for jobs, started one by one as there are more jobs than idle threads. Standard locks rather than a
/// channel crate, which was no faster and whose waiting threads spin before they sleep.
#[derive(Default)]
pub(super) struct Threads {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    started: usize,
    idle: usize,
}

impl Threads {
    /// The pool of this process (threads do not survive a fork); no thread runs before the first read.
    pub(super) fn of_this_process() -> &'static Threads {
        static CURRENT: PerProcess<Threads> = PerProcess::new();
        let made: std::result::Result<_, Infallible> = CURRENT.get(|_| Ok(Threads::default()));
        match made {
            Ok(threads) => threads,
            Err(never) => match never {},
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&'static self, job: Job) {
        let mut state = self.state();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            self.more.notify_one();
        } else if state.started < MOST_THREADS {
            let work = || self.work();
            match std::thread::Builder::new().name("engramsql-read".to_owned()).spawn(work) {
                Ok(_) => state.started += 1,
                // Others take it.
                Err(_) if state.started > 0 => (),
                // A process that may have no thread more reads by itself.
                Err(_) => {
                    let job = state.jobs.pop_back();
                    drop(state);
                    job.into_iter().for_each(Job::run);
                }
            }
        }
    }

    /// What each thread does, as long as the process lives.
    fn work(&self) {
        loop {
            let mut state = self.state();
            let job = loop {
                match state.jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        state.idle += 1;
                        state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                        state.idle -= 1;
                    }
                }
            };
            drop(state);
            job.run();
        }
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
    finished: Arc<Finished>,
    taken: Vec<(Completion, Memory)>,
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
            finished: Arc::default(),
            taken: Vec::new(),
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
        self.threads.start(Job { request, file, memory, finished: self.finished.clone() });
        Ok(true)
    }

    fn wait(&mut self, enough: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.finished.take(enough, &mut self.taken);
        for (completion, memory) in self.taken.drain(..) {
            self.buffers[completion.slot] = Some(memory);
            done.push(completion);
        }
        Ok(())
    }

    fn buffer(&self, slot: usize) -> &[u8] {
        self.buffers[slot].as_ref().map_or(&[], Memory::bytes)
    }
}
