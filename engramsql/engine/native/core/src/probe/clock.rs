//! Time of work on several threads, from the first start to the last end; starting the threads is not in it.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs all workers at once and returns their results; a single worker needs no thread.
pub(super) fn together<T: Send, W: FnOnce() -> T + Send>(mut workers: Vec<W>) -> (Duration, Vec<T>) {
    if workers.len() <= 1 {
        let start = Instant::now();
        let results = workers.drain(..).map(|work| work()).collect();
        return (start.elapsed(), results);
    }
    let barrier = Barrier::new(workers.len());
    let ran: Vec<(Instant, Instant, T)> = std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .into_iter()
            .map(|work| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    // By the workers' own clocks: whoever waits for them may be woken long after they are done.
                    let start = Instant::now();
                    let result = work();
                    (start, Instant::now(), result)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let start = ran.iter().map(|(start, _, _)| *start).min();
    let end = ran.iter().map(|(_, end, _)| *end).max();
    let elapsed = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
    (elapsed, ran.into_iter().map(|(_, _, result)| result).collect())
}
