//! The bit-exact check of a sample of built rows against the source.

use super::error::BuildError;
use super::second_reader::{OpenFiles, SecondReader};
use crate::error::{Error, Result};
use crate::fault;
use crate::progress::Progress;
use crate::source::StoreLayout;
use crate::storage::StorageError;
use crate::table::Table;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads that read rows.
const READERS: usize = 8;

/// The second reader of the source of `table`, which has to find as many rows.
pub(super) fn second_reader(table: &Table, layout: StoreLayout) -> Result<SecondReader, BuildError> {
    let source = SecondReader::open(table.source(), table.kind(), table.layer(), layout.row_bytes)?;
    if source.rows() != layout.rows {
        let what = format!("it finds {} rows, not {}", source.rows(), layout.rows);
        return Err(BuildError::SecondReader { path: table.source().to_owned(), what });
    }
    Ok(source)
}

/// Compares rows of the store in `directory` with those that the second reader finds in the source of `table`: the first
/// and last of every shard on both sides, and `rows` more, half of them evenly spread, half of them random.
pub(super) fn check(
    table: &Table,
    layout: StoreLayout,
    directory: &Path,
    rows: u64,
    progress: &Progress,
) -> Result<()> {
    fault::io("build.check").map_err(|error| StorageError::io("read", directory, error))?;
    let source = second_reader(table, layout)?;
    let sample: Vec<u64> = choose(layout, source.boundaries(), rows, &table.identity()).into_iter().collect();
    progress.begin("check", sample.len() as u64 * layout.row_bytes);
    let failed = AtomicBool::new(false);
    let compare = |rows: &[u64]| {
        let answer = compare(&source, layout, directory, rows, progress, &failed);
        failed.fetch_or(answer.is_err(), Ordering::Relaxed);
        answer
    };
    // Every row is waited for, so the rows of a few threads come as fast as the disk gives them.
    let mut stretches = sample.chunks(sample.len().div_ceil(READERS).max(1));
    let first = stretches.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let mut answers = Vec::with_capacity(READERS);
        let mut threads = Vec::with_capacity(READERS);
        for rows in stretches {
            let thread = std::thread::Builder::new().name("engramsql-check".to_owned());
            match thread.spawn_scoped(scope, || compare(rows)) {
                Ok(thread) => threads.push(thread),
                // Where the system gives no thread, this one does the work.
                Err(_) => answers.push(compare(rows)),
            }
        }
        answers.push(compare(first));
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        answers.extend(threads.into_iter().map(join));
        first_failure(answers)
    })
}

/// What one of several threads met, rather than that another stopped because of it.
pub(super) fn first_failure(answers: Vec<Result<()>>) -> Result<()> {
    let errors = answers.into_iter().filter_map(Result::err);
    let (stopped, failures): (Vec<Error>, Vec<Error>) = errors.partition(|error| matches!(error, Error::Cancelled));
    failures.into_iter().chain(stopped).next().map_or(Ok(()), Err)
}

/// Compares the rows `rows`, which are in order.
fn compare(
    source: &SecondReader,
    layout: StoreLayout,
    directory: &Path,
    rows: &[u64],
    progress: &Progress,
    failed: &AtomicBool,
) -> Result<()> {
    let (mut files, mut expected) = (OpenFiles::default(), Vec::new());
    let mut built = vec![0; layout.row_bytes as usize];
    let mut open: Option<(u64, File)> = None;
    for &row in rows {
        if failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        source.read(row, &mut files, &mut expected)?;
        let shard = row / layout.rows_per_shard;
        let path = directory.join(StoreLayout::file_name(shard));
        let io = |error| StorageError::io("read", &path, error);
        let file = match open.take() {
            Some((of, file)) if of == shard => file,
            _ => File::open(&path).map_err(io)?,
        };
        file.read_exact_at(&mut built, row % layout.rows_per_shard * layout.row_bytes).map_err(io)?;
        open = Some((shard, file));
        if let Some(byte) = expected.iter().zip(&built).position(|(a, b)| a != b) {
            let (source_byte, built) = (expected[byte], built[byte]);
            return Err(BuildError::Differs { path, row, byte, source_byte, built }.into());
        }
        progress.advance(layout.row_bytes)?;
    }
    Ok(())
}

/// The rows to compare, in order.
fn choose(layout: StoreLayout, boundaries: impl Iterator<Item = u64>, rows: u64, seed: &str) -> BTreeSet<u64> {
    if rows >= layout.rows {
        return (0..layout.rows).collect();
    }
    let mut chosen: BTreeSet<u64> = boundaries.collect();
    for shard in 0..layout.shards() {
        let rows = layout.rows_of(shard);
        chosen.extend([rows.start, rows.end - 1]);
    }
    let spread = rows / 2;
    let place = |index: u64| (u128::from(index) * u128::from(layout.rows) / u128::from(spread.max(1))) as u64;
    chosen.extend((0..spread).map(place));
    // The digest of numbered seeds: as random as need be, and the same again for whoever looks into a difference.
    chosen.extend((spread..rows).map(|index| {
        let mut word = [0; 8];
        word.copy_from_slice(&blake3::hash(format!("{seed} {index}").as_bytes()).as_bytes()[..8]);
        u64::from_le_bytes(word) % layout.rows
    }));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_ends_of_every_shard_and_as_many_rows_more() {
        let layout = StoreLayout { row_bytes: 8, rows_per_shard: 7001, rows: 100_000 };
        let chosen = choose(layout, [49_999, 50_000].into_iter(), 1000, "seed");
        for row in [0, 7000, 7001, 98_013, 98_014, 99_999, 49_999, 50_000] {
            assert!(chosen.contains(&row), "row {row}");
        }
        assert!((950..=1032).contains(&chosen.len()), "{}", chosen.len());
        assert!(chosen.iter().all(|&row| row < 100_000));
        // No gap of a multiple of the even distance.
        assert!(chosen.iter().zip(chosen.iter().skip(1)).all(|(a, b)| b - a <= 200));
        assert_eq!(choose(layout, std::iter::empty(), 100_000, "").len(), 100_000);
    }
}
