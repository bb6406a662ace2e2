//! Rows of any table: some by two readers, or every byte once.

use super::finding::{Finding, Report, name_of};
use super::random::Random;
use super::state::Resumable;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::source::{Extent, Layout};
use crate::table::Table;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Rows of each shard that are read by two readers.
const SAMPLE: u64 = 64;

/// Reads some rows of every shard through the table and, with nothing but plain reads at the places where they lie, once
/// more.
pub(super) fn sample(table: &Table, progress: &Progress, report: &mut Report<'_>) -> Result<()> {
    let layout = table.layout();
    let mut random = Random::new();
    let mut files = PlainFiles::new(layout);
    for shard in shards(layout) {
        progress.check()?;
        let rows: Vec<u64> = random.sample(shard.rows, SAMPLE).into_iter().map(|row| shard.first_row + row).collect();
        let ids: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let width = table.row_bytes();
        let mut ours = vec![0; ids.len() * width];
        if let Err(error) = table.fetch_into(&ids, &mut ours) {
            report.add(Finding::bad("rows", Some(shard.shard), error.to_string()));
            continue;
        }
        let mut plain = vec![0; width];
        let mut trouble = None;
        for (&row, ours) in rows.iter().zip(ours.chunks_exact(width)) {
            trouble = match files.read(layout, row, &mut plain) {
                Err(error) => Some(Finding::bad("rows", Some(shard.shard), format!("row {row}: {error}"))),
                Ok(()) => ours.iter().zip(&plain).position(|(ours, plain)| ours != plain).map(|byte| {
                    let detail = format!("row {row}, byte {byte}: two readers disagree");
                    let (expected, found) = (format!("{:02x}", plain[byte]), format!("{:02x}", ours[byte]));
                    Finding::bad("rows", Some(shard.shard), detail).values(expected, found)
                }),
            };
            if trouble.is_some() {
                break;
            }
        }
        let good = || Finding::good("rows", Some(shard.shard), format!("{} rows, alike by two readers", rows.len()));
        report.add(trouble.unwrap_or_else(good));
    }
    Ok(())
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

/// Files read as plainly as can be: one positional read for each part of a row.
struct PlainFiles {
    /// The file opened last, and its index: rows come in order.
    open: Vec<Option<(usize, File)>>,
}

impl PlainFiles {
    fn new(layout: &Layout) -> PlainFiles {
        PlainFiles { open: layout.parts.iter().map(|_| None).collect() }
    }

    fn read(&mut self, layout: &Layout, row: u64, out: &mut [u8]) -> Result<(), String> {
        let mut rest = out;
        for (part, open) in layout.parts.iter().zip(&mut self.open) {
            let (target, after) = std::mem::take(&mut rest).split_at_mut(part.width());
            rest = after;
            let holds = |extent: &&Extent| (extent.first_row..extent.first_row + extent.rows).contains(&row);
            let extent = part.extents().iter().find(holds).ok_or("no shard has it")?;
            let path: &Path = &layout.files[extent.file].0;
            let failed = |error: std::io::Error| format!("{}: {error}", name_of(path));
            let file = match open {
                Some((index, file)) if *index == extent.file => file,
                open => &mut open.insert((extent.file, File::open(path).map_err(failed)?)).1,
            };
            let offset = extent.offset + (row - extent.first_row) * part.width() as u64;
            file.read_exact_at(target, offset).map_err(failed)?;
        }
        Ok(())
    }
}
