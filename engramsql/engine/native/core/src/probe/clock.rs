//! Time of work on several threads, from a common start to the last end; starting the threads is not in it.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs all workers at once and returns their results; a single worker needs no thread.
pub(super) fn together<T: Send, W: FnOnce() -> T + Send>(mut workers: Vec<W>) -> (Duration, Vec<T>) {
    if workers.len() <= 1 {
        let start = Instant::now();
        let results = workers.drain(..).map(|work| work()).collect();
        return (start.elapsed(), results);
    }
    let barrier = Barrier::new(workers.len() + 1);
    let (start, ended) = std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .map(|work| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let result = work();
                    (Instant::now(), result)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let ended: Vec<(Instant, T)> = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (start, ended)
    });
    let end = ended.iter().map(|(end, _)| *end).max().unwrap_or(start);
    (end.saturating_duration_since(start), ended.into_iter().map(|(_, result)| result).collect())
}
