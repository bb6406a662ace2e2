//! Rows that are read before they are asked for, by one thread in the background.

use crate::error::{Error, Result};
use crate::process::PerProcess;
use crate::table::Table;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rows between two looks at whether somebody has cancelled: some 30 ms of a disk's time.
const STEP: usize = 4096;

/// A prefetch under way. Dropping it changes nothing: the rows still come.
#[derive(Clone)]
pub struct Prefetch {
    shared: Arc<Shared>,
    rows: usize,
    bytes: u64,
}

#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    done: bool,
    cancelled: bool,
    /// How it ended; whoever waits first takes the error.
    outcome: Option<Result<()>>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Result<()>) {
        let mut progress = self.progress();
        progress.outcome = Some(outcome);
        progress.done = true;
        self.changed.notify_all();
    }
}

impl Prefetch {
    /// Queues the rows of `ids` behind those that were queued before, and returns at once.
    pub(crate) fn start(table: Arc<Table>, ids: Vec<i64>) -> Prefetch {
        let prefetch =
            Prefetch { shared: Arc::default(), rows: ids.len(), bytes: ids.len() as u64 * table.row_bytes() as u64 };
        let job = Job { table, ids, shared: prefetch.shared.clone() };
        if let Err(error) = Worker::of_this_process().jobs().send(job) {
            // The system gave no thread: nothing is read ahead, and the rows are read when they are asked for.
            let shared = error.0.shared;
            shared.progress().cancelled = true;
            shared.finish(Ok(()));
        }
        prefetch
    }

    /// Rows asked for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it has ended: read, failed or cancelled.
    pub fn is_done(&self) -> bool {
        self.shared.progress().done
    }

    /// Whether it was cancelled before it ended, or the system gave no thread for it.
    pub fn is_cancelled(&self) -> bool {
        self.shared.progress().cancelled
    }

    /// Waits until it has ended, at most for `timeout`; whether it has. A read that failed is an error, once.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut progress = self.shared.progress();
        while !progress.done {
            progress = match until {
                None => self.shared.changed.wait(progress).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    self.shared.changed.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        progress.outcome.take().unwrap_or(Ok(())).map(|()| true)
    }

    /// Ends it early; what was read stays. Returns at once; the read under way ends within some 30 ms.
    pub fn cancel(&self) {
        let mut progress = self.shared.progress();
        progress.cancelled |= !progress.done;
    }
}

struct Job {
    table: Arc<Table>,
    ids: Vec<i64>,
    shared: Arc<Shared>,
}

impl Job {
    fn run(&self) -> Result<()> {
        for ids in self.ids.chunks(STEP) {
            if self.shared.progress().cancelled {
                break;
            }
            self.table.read_ahead(ids)?;
        }
        Ok(())
    }
}

/// The thread that prefetches, in the order of the calls: one keeps the disk busy.
struct Worker {
    jobs: Mutex<Sender<Job>>,
}

impl Worker {
    fn of_this_process() -> &'static Worker {
        static CURRENT: PerProcess<Worker> = PerProcess::new();
        let made: std::result::Result<_, Infallible> = CURRENT.get(|_| Ok(Worker::start()));
        match made {
            Ok(worker) => worker,
            Err(never) => match never {},
        }
    }

    fn start() -> Worker {
        let (jobs, queue) = channel();
        // Without a thread the queue is dropped here, which `Prefetch::start` notices.
        let _ = std::thread::Builder::new().name("engram-prefetch".to_owned()).spawn(move || work(&queue));
        Worker { jobs: Mutex::new(jobs) }
    }

    fn jobs(&self) -> Sender<Job> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn work(queue: &Receiver<Job>) {
    for job in queue {
        // A panic ends its job and not the thread; whoever waits gets it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.run()));
        let Job { shared, table, .. } = job;
        let outcome = outcome.unwrap_or_else(|_| Err(Error::Prefetch { table: table.name().to_owned() }));
        // Before anybody is told: who waits may count on the table being free.
        drop(table);
        shared.finish(outcome);
    }
}
