//! Rows of any table: some by two readers, or every byte once.

use super::finding::{Finding, Report, counted};
use super::random::Random;
use super::state::Resumable;
use crate::build::{OpenFiles, SecondReader};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::source::{Extent, Layout};
use crate::table::Table;

/// Rows of each shard that are read by two readers.
const SAMPLE: u64 = 64;

/// Reads some rows of every shard through the table and by the second reader, which shares nothing with it.
pub(super) fn sample(table: &Table, progress: &Progress, report: &mut Report<'_>) -> Result<()> {
    let second = SecondReader::open(table.source(), table.kind(), table.layer(), table.row_bytes() as u64);
    let second = match second {
        Ok(second) if second.rows() == table.rows() => second,
        Ok(second) => {
            let detail = "the second reader finds another number of rows";
            report.add(Finding::bad("rows", None, detail).values(second.rows(), table.rows()));
            return Ok(());
        }
        Err(error) => {
            report.add(Finding::bad("rows", None, error.to_string()));
            return Ok(());
        }
    };
    let mut random = Random::new();
    for shard in shards(table.layout()) {
        progress.check()?;
        let rows = random.sample(shard.rows, SAMPLE).into_iter().map(|row| shard.first_row + row).collect();
        report.add(compare(table, &second, shard.shard, rows));
    }
    Ok(())
}

/// Compares `rows`, which are of shard `shard`, by both readers.
fn compare(table: &Table, second: &SecondReader, shard: u32, rows: Vec<u64>) -> Finding {
    let ids: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
    let mut found = vec![0; ids.len() * table.row_bytes()];
    if let Err(error) = table.fetch_into(&ids, &mut found) {
        return Finding::bad("rows", Some(shard), error.to_string());
    }
    let (mut files, mut expected) = (OpenFiles::default(), Vec::new());
    for (&row, found) in rows.iter().zip(found.chunks_exact(table.row_bytes())) {
        if let Err(error) = second.read(row, &mut files, &mut expected) {
            return Finding::bad("rows", Some(shard), format!("row {row}: {error}"));
        }
        if let Some(byte) = expected.iter().zip(found).position(|(expected, found)| expected != found) {
            let (expected, found) = (format!("{:02x}", expected[byte]), format!("{:02x}", found[byte]));
            let detail = format!("row {row}, byte {byte}: two readers disagree");
            return Finding::bad("rows", Some(shard), detail).values(expected, found);
        }
    }
    Finding::good("rows", Some(shard), format!("{}, alike by two readers", counted(rows.len() as u64, "row")))
}

/// Reads every row of every shard once; a read that fails is told, and the next shard is read.
pub(super) fn read_all(
    table: &Table,
    state: &mut Resumable,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let layout = table.layout();
    let width = table.row_bytes() as u64;
    let part = |shard: &Extent| format!("shard {}", shard.shard);
    // The identity, under which the state is kept, covers sizes and times of all files.
    let to_do = |state: &Resumable, shard: &Extent| !state.knows(&part(shard), READ);
    let total: u64 = shards(layout).filter(|shard| to_do(state, shard)).map(|shard| shard.rows * width).sum();
    progress.begin("verify", total);
    for shard in shards(layout) {
        if !to_do(state, shard) {
            let detail = format!("rows {}: read before", span(shard));
            report.add(Finding::good("rows", Some(shard.shard), detail));
            continue;
        }
        let rows = shard.first_row..shard.first_row + shard.rows;
        let answer = table.stream(rows, &mut |_, bytes| progress.advance(bytes.len() as u64));
        report.add(match answer {
            Ok(()) => {
                state.finish(&part(shard), READ)?;
                let detail = format!("rows {}: {} bytes read", span(shard), shard.rows * width);
                Finding::good("rows", Some(shard.shard), detail)
            }
            Err(Error::Read(error)) => Finding::bad("rows", Some(shard.shard), error.to_string()),
            Err(error) => return Err(error),
        });
    }
    Ok(())
}

/// What the state says of a shard.
const READ: &str = "read";

fn span(shard: &Extent) -> String {
    format!("{} to {}", shard.first_row, shard.first_row + shard.rows.saturating_sub(1))
}

/// The shards, by the extents of the first part.
fn shards(layout: &Layout) -> impl Iterator<Item = &Extent> {
    layout.parts.first().into_iter().flat_map(|part| part.extents())
}
