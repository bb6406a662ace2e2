//! A source with block checksums is checked while it is copied: the copy gets checksums of its own, which would make damage
//! look sound.

use super::error::BuildError;
use super::plan::CHECKSUMS;
use crate::error::Result;
use crate::read::ReadError;
use crate::source::Extent;
use crate::storage::StorageError;
use crate::storage::checksum::{BLOCK_BYTES, Checksums, FileSums};
use crate::table::Table;
use crate::verify::{Items, place_of};
use std::fs::File;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The checksums of a source, one entry per shard.
pub(super) struct SourceSums {
    files: Vec<FileSums>,
}

impl SourceSums {
    /// Those of `table`, if it is a store that has some.
    ///
    /// # Errors
    /// Checksums that are missing or damaged, or not those of this store.
    pub(super) fn of(table: &Table) -> Result<Option<SourceSums>> {
        let Some(expected) = table.checksums_digest() else { return Ok(None) };
        let path = table.source().join(CHECKSUMS);
        let (Checksums { files }, found) = Checksums::read(&path)?;
        let damaged = |what: String| StorageError::damaged(&path, what).into();
        if found != expected {
            return Err(damaged("it is whole, but not the one that manifest.json was written with".to_owned()));
        }
        let [part] = &table.layout().parts[..] else {
            return Err(damaged("its store has rows in several parts".to_owned()));
        };
        if part.extents().len() != files.len() {
            let (files, shards) = (files.len(), part.extents().len());
            return Err(damaged(format!("it covers another number of shards than there are ({files}, not {shards})")));
        }
        for extent in part.extents() {
            let bytes = extent.rows * part.width() as u64;
            if extent.offset != 0 || files.get(extent.shard as usize).is_none_or(|file| file.bytes != bytes) {
                return Err(damaged(format!("it records another size of shard {} than it has", extent.shard)));
            }
        }
        Ok(Some(SourceSums { files }))
    }

    /// Checks rows of `table` in order.
    pub(super) fn check<'a>(&'a self, table: &'a Table) -> SourceCheck<'a> {
        SourceCheck { sums: self, table, begun: None, block: Vec::new() }
    }
}

/// The check of a stretch of rows that come in order.
pub(super) struct SourceCheck<'a> {
    sums: &'a SourceSums,
    table: &'a Table,
    /// Shard, and where its block begins of which `block` holds the bytes so far.
    begun: Option<(Extent, u64)>,
    block: Vec<u8>,
}

impl SourceCheck<'_> {
    /// The next rows, which are those from row `first` on.
    ///
    /// # Errors
    /// [`BuildError::DamagedSource`], which names the first bad block.
    pub(super) fn take(&mut self, first: u64, mut rows: &[u8]) -> Result<()> {
        let Some(part) = self.table.layout().parts.first() else { return Ok(()) };
        let (width, mut row) = (part.width() as u64, first);
        while !rows.is_empty() {
            let extent = *part.extent_of(row);
            let here = (rows.len() as u64).min((extent.first_row + extent.rows - row) * width);
            let (bytes, rest) = rows.split_at(here as usize);
            self.take_of(extent, (row - extent.first_row) * width, bytes)?;
            row += here / width;
            rows = rest;
        }
        Ok(())
    }

    /// Completes the last block, whose end is not among the rows.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn finish(mut self) -> Result<()> {
        let Some((extent, start)) = self.begun.take() else { return Ok(()) };
        let here = start + self.block.len() as u64;
        self.read(extent, here, self.end_of(extent, start))?;
        self.prove(extent, start, &self.block)
    }

    /// The bytes from `offset` on of a shard's file.
    fn take_of(&mut self, extent: Extent, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let start = offset / BLOCK * BLOCK;
            let end = self.end_of(extent, start);
            let (here, rest) = bytes.split_at((bytes.len() as u64).min(end - offset) as usize);
            let next = offset + here.len() as u64;
            if (offset, next) == (start, end) {
                self.prove(extent, start, here)?;
            } else {
                if self.begun.is_none() {
                    self.begun = Some((extent, start));
                    self.block.clear();
                    // Its beginning is another shard's matter, or was: the whole block proves what came of it.
                    self.read(extent, start, offset)?;
                }
                self.block.extend_from_slice(here);
                if next == end {
                    self.begun = None;
                    self.prove(extent, start, &self.block)?;
                }
            }
            (offset, bytes) = (next, rest);
        }
        Ok(())
    }

    /// Where the block that begins at `start` ends.
    fn end_of(&self, extent: Extent, start: u64) -> u64 {
        self.sums.files[extent.shard as usize].bytes.min(start + BLOCK)
    }

    /// Adds the bytes `from` to `to` of a shard's file to the block.
    fn read(&mut self, extent: Extent, from: u64, to: u64) -> Result<()> {
        let held = self.block.len();
        self.block.resize(held + (to - from) as usize, 0);
        if from < to {
            let (path, _) = &self.table.layout().files[extent.file];
            let read = File::open(path).and_then(|file| file.read_exact_at(&mut self.block[held..], from));
            read.map_err(|error| ReadError::io(path, error))?;
        }
        Ok(())
    }

    /// Compares a whole block with its checksum.
    fn prove(&self, extent: Extent, start: u64, bytes: &[u8]) -> Result<()> {
        let file = &self.sums.files[extent.shard as usize];
        let (block, found) = (start / BLOCK, xxh3_64(bytes));
        let expected = file.blocks.get(block as usize).copied().unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        let rows = Items { what: "rows", first: extent.first_row, width: self.table.row_bytes() as u64 };
        let place = place_of(&self.table.layout().files[extent.file].0, block, file.bytes, Some(rows));
        Err(BuildError::DamagedSource { path: self.table.source().to_owned(), place, expected, found }.into())
    }
}
