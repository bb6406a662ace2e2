//! Threads and forked processes at one cache.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn threads_never_exceed_the_budget_nor_see_other_bytes() {
    let cache = RowCache::new(14 * SLAB);
    let widths: [&[usize]; 2] = [&[160], &[2000, 48]];
    let tables: Vec<CachedTable> = widths.map(|widths| cache.table(&layout(widths, 1 << 20))).into();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (cache, tables) = (&cache, &tables);
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                for round in 0..150u64 {
                    let which = random.below(2) as usize;
                    let spread = [90_000, 9_000][which];
                    let ids: Vec<i64> = (0..400).map(|_| random.below(random_spread(spread, round)) as i64).collect();
                    access(&tables[which], widths[which], &ids);
                    if round % 50 == 49 {
                        cache.set_budget(Some((3 + random.below(12)) * SLAB)).unwrap();
                    }
                    if round % 60 == 59 {
                        drop(cache.table(&layout(&[4], 77)));
                    }
                }
            });
        }
        let (cache, done) = (&cache, &done);
        let watch = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(cache.usage().bytes <= 14 * SLAB);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(1500));
            done.store(true, Ordering::Relaxed);
            watch.join().unwrap();
        });
    });
    cache.set_budget(Some(5 * SLAB)).unwrap();
    assert!(cache.usage().bytes <= 5 * SLAB);
    assert!(cache.usage().hits > 0);
}

/// Every other round looks at a tenth of the ids, so that some are hot.
fn random_spread(spread: u64, round: u64) -> u64 {
    if round.is_multiple_of(2) { spread } else { spread / 10 }
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_has_an_empty_cache_whatever_its_parent_was_doing() {
    let cache = RowCache::new(6 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 32));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2i64 {
            let (table, done) = (&table, &done);
            scope.spawn(move || {
                let mut first = thread << 30;
                while !done.load(Ordering::Relaxed) {
                    insert(table, &[160], &(first..first + 200).collect::<Vec<i64>>(), 0, Stay::Normal);
                    first += 200;
                }
            });
        }
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            // SAFETY: the child calls nothing but the cache and the allocator, which glibc makes usable after a fork,
            // and ends without running anything of the test harness. The alarm ends it if it waits for a lock.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: as above.
                unsafe { libc::alarm(20) };
                let (mut misses, row) = (Vec::new(), [7; 160]);
                let empty = table.lookup(&[1, 2], &mut |_: Row<'_>| (), &mut misses) == 0 && cache.usage().rows == 0;
                table.insert(&[NewRow { id: 2, values: &row, scales: &[] }], Stay::Normal);
                let mut right = false;
                let hits = table.lookup(&[2], &mut |found: Row<'_>| right = found.values == row, &mut misses);
                let kept = cache.set_budget(Some(0)).is_ok() && cache.usage().bytes == 0;
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(!(empty && right && hits == 1 && kept))) };
            }
            let mut status = -1;
            // SAFETY: waits for the child made above; the status is ours.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child failed or hung");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(cache.budget(), 6 * SLAB);
}

#[test]
fn neither_readers_nor_writers_starve() {
    let cache = RowCache::new(8 * SLAB);
    let table = cache.table(&layout(&[160], 1 << 20));
    insert(&table, &[160], &(0..4000).collect::<Vec<i64>>(), 0, Stay::UntilUsed);
    let done = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let (table, done) = (&table, &done);
        let work = |writes: bool, first: i64| {
            scope.spawn(move || {
                let ids: Vec<i64> = (first..first + 500).collect();
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) {
                    match writes {
                        true => insert(table, &[160], &ids, 0, Stay::Normal),
                        false => drop(missed(table, &[160], &ids, 0)),
                    }
                    rounds += 1;
                }
                rounds
            })
        };
        let threads: Vec<_> = [false, false, false, false, true, true].map(|writes| work(writes, 100)).into();
        std::thread::sleep(Duration::from_millis(500));
        done.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<usize>>()
    });
    assert!(rounds.iter().all(|&rounds| rounds > 5), "{rounds:?}");
}
