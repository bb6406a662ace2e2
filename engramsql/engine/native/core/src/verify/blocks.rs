//! Blocks of files against their checksums: all of them in order, or some.

use super::finding::{Finding, Level, counted, name_of};
use super::random::Random;
use crate::error::{Error, Result};
use crate::fault;
use crate::progress::Progress;
use crate::read::{AlignedMemory, ReadError, stream_file};
use crate::source::FileStamp;
use crate::storage::StorageError;
use crate::storage::checksum::{BLOCK_BYTES, FileSums, Summer};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Bad blocks of one file that get a line each.
pub(super) const MOST_BAD: usize = 100;

/// A file whose block checksums are known.
pub(super) struct Summed<'a> {
    /// Kind of check that its findings carry.
    pub(super) check: &'static str,
    pub(super) shard: Option<u32>,
    pub(super) path: PathBuf,
    pub(super) sums: &'a FileSums,
    /// What lies in it back to back.
    pub(super) items: Option<Items>,
}

/// Rows, records or keys that lie in a file back to back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items {
    /// "rows", "slots".
    pub(crate) what: &'static str,
    /// Number of the first.
    pub(crate) first: u64,
    /// Bytes of one.
    pub(crate) width: u64,
}

/// Which blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// First, middle and last: they tell a file that was replaced, swapped or moved within.
    Glance,
    /// Those, and others at random.
    Sample,
    /// All, in order.
    All,
}

/// Blocks of a sample, and their share of a large file.
const SAMPLE: u64 = 64;
const SAMPLE_OF: u64 = 100;

impl Choice {
    pub(super) fn at(level: Level) -> Choice {
        match level {
            Level::Headers => Choice::Glance,
            Level::Sample => Choice::Sample,
            Level::Full => Choice::All,
        }
    }

    fn of(self, blocks: u64) -> Vec<u64> {
        let mut chosen = match self {
            Choice::Glance => Vec::new(),
            Choice::Sample => Random::new().sample(blocks, SAMPLE.max(blocks / SAMPLE_OF)),
            Choice::All => (0..blocks).collect(),
        };
        chosen.extend([0, blocks / 2, blocks.saturating_sub(1)]);
        chosen.retain(|&block| block < blocks);
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

/// A block that is not what it was.
struct Bad {
    block: u64,
    /// Its checksum now, or why it could not be read.
    found: Result<u64, String>,
}

impl Summed<'_> {
    /// Bytes that will be read.
    pub(super) fn cost(&self, choice: Choice) -> u64 {
        match choice {
            Choice::All => self.sums.bytes,
            _ => (choice.of(self.sums.blocks.len() as u64).len() * BLOCK_BYTES) as u64,
        }
    }

    /// Checks the chosen blocks: one line if all are good, else one for each bad block.
    ///
    /// # Errors
    /// [`Error::Cancelled`] only, or a machine without memory: whatever is wrong with the file is a finding.
    pub(super) fn check(&self, choice: Choice, progress: &Progress) -> Result<Vec<Finding>> {
        let size = match FileStamp::of(&self.path) {
            Ok(stamp) => stamp.bytes(),
            Err(error) => return Ok(vec![self.unreadable(&error)]),
        };
        // What is missing or too much is the size's matter; blocks that are there are checked all the same.
        let whole = self.sums.bytes.min(size);
        let present = if whole == self.sums.bytes { self.sums.blocks.len() as u64 } else { whole / BLOCK_BYTES as u64 };
        let mut tally = Tally { of: self, bad: Vec::new(), more: 0, checked: 0 };
        let mut trouble = None;
        let chosen = match choice {
            Choice::All => match self.stream(present, &mut tally, progress) {
                Ok(()) => Vec::new(),
                // It was written to meanwhile, so no block says anything.
                Err(Error::Read(error @ ReadError::FileChanged { .. })) => return Ok(vec![self.unreadable(&error)]),
                // One by one, to tell which of the others can be read.
                Err(Error::Read(error)) => {
                    trouble = Some(error);
                    (tally.checked..present).collect()
                }
                Err(error) => return Err(error),
            },
            choice => choice.of(present),
        };
        if !chosen.is_empty() {
            let mut reader = match BlockReader::open(&self.path) {
                Ok(reader) => reader,
                Err(error) => return Ok(vec![self.unreadable(&trouble.map_or(error.to_string(), |e| e.to_string()))]),
            };
            for block in chosen {
                let found = reader.read(block, self.bytes_of(block)).map(xxh3_64).map_err(|e| e.to_string());
                tally.take(block, found);
                progress.advance(self.bytes_of(block) as u64)?;
            }
        }
        Ok(tally.findings(trouble, choice == Choice::All && present == self.sums.blocks.len() as u64))
    }

    /// All blocks in order, as they come from the disk.
    fn stream(&self, present: u64, tally: &mut Tally<'_>, progress: &Progress) -> Result<()> {
        let mut summer = Summer::new();
        let mut left = self.sums.bytes;
        stream_file(&self.path, &mut |_, bytes: &[u8]| {
            progress.advance(bytes.len() as u64)?;
            // Bytes beyond the end that was recorded belong to no block.
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= bytes.len() as u64;
            summer.update(bytes);
            tally.take_all(summer.blocks(), present);
            Ok::<(), Error>(())
        })?;
        tally.take_all(&summer.finish().blocks, present);
        Ok(())
    }

    fn bytes_of(&self, block: u64) -> usize {
        let start = block * BLOCK_BYTES as u64;
        self.sums.bytes.saturating_sub(start).min(BLOCK_BYTES as u64) as usize
    }

    fn place(&self, block: u64) -> String {
        place_of(&self.path, block, self.sums.bytes, self.items)
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> Finding {
        Finding::bad(self.check, self.shard, format!("{} was not checked: {error}", name_of(&self.path)))
    }
}

/// Where block `block` of a file of `file_bytes` bytes lies, in bytes and in what the file holds.
pub(crate) fn place_of(path: &Path, block: u64, file_bytes: u64, items: Option<Items>) -> String {
    let start = block * BLOCK_BYTES as u64;
    let last = start + file_bytes.saturating_sub(start).min(BLOCK_BYTES as u64).saturating_sub(1);
    let items = items.filter(|items| items.width > 0).map_or(String::new(), |items| {
        let (first, last) = (items.first + start / items.width, items.first + last / items.width);
        format!(", {} {first} to {last}", items.what)
    });
    format!("{}, block {block} (bytes {start} to {last}){items}", name_of(path))
}

/// What was found out about one file.
struct Tally<'a> {
    of: &'a Summed<'a>,
    bad: Vec<Bad>,
    /// Bad blocks beyond those.
    more: u64,
    /// Blocks looked at.
    checked: u64,
}

impl Tally<'_> {
    fn take(&mut self, block: u64, found: Result<u64, String>) {
        self.checked += 1;
        if found.as_ref().ok() == self.of.sums.blocks.get(block as usize) {
            return;
        }
        if self.bad.len() < MOST_BAD { self.bad.push(Bad { block, found }) } else { self.more += 1 }
    }

    /// The blocks of `sums` that were not taken yet, of the `present` first ones.
    fn take_all(&mut self, sums: &[u64], present: u64) {
        for block in self.checked..(sums.len() as u64).min(present) {
            self.take(block, Ok(sums[block as usize]));
        }
    }

    fn findings(self, trouble: Option<ReadError>, all: bool) -> Vec<Finding> {
        let Tally { of, bad, more, checked } = self;
        let (check, shard, name) = (of.check, of.shard, name_of(&of.path));
        let mut findings: Vec<Finding> = Vec::with_capacity(bad.len() + 2);
        if let Some(error) = trouble.filter(|_| bad.iter().all(|bad| bad.found.is_ok())) {
            let detail = format!("{name}: {error}; every block could be read by itself afterwards");
            findings.push(Finding::bad(check, shard, detail));
        }
        for Bad { block, found } in bad {
            let expected = of.sums.blocks.get(block as usize).copied().unwrap_or_default();
            findings.push(match found {
                Ok(found) => Finding::bad(check, shard, of.place(block))
                    .values(format!("{expected:016x}"), format!("{found:016x}")),
                Err(error) => Finding {
                    expected: Some(format!("{expected:016x}")),
                    ..Finding::bad(check, shard, format!("{}: cannot be read: {error}", of.place(block)))
                },
            });
        }
        if more > 0 {
            findings.push(Finding::bad(
                check,
                shard,
                format!("{name}: {more} more bad {}", if more == 1 { "block" } else { "blocks" }),
            ));
        }
        if findings.is_empty() {
            let blocks = counted(of.sums.blocks.len() as u64, "block");
            let detail = if all { format!("{name}: {blocks}") } else { format!("{name}: {checked} of {blocks}") };
            findings.push(Finding::good(check, shard, detail));
        }
        findings
    }
}

/// Reads blocks here and there, around the page cache where the file system allows it: what is on the disk counts.
struct BlockReader {
    file: File,
    memory: AlignedMemory,
}

impl BlockReader {
    fn open(path: &Path) -> Result<BlockReader, StorageError> {
        let io = |error| StorageError::io("read", path, error);
        let mut file = open(path).map_err(io)?;
        let mut memory = AlignedMemory::new(BLOCK_BYTES, 4096).map_err(io)?;
        // A file system may take the flag and then refuse what it means.
        if let Err(error) = file.read_at(memory.bytes_mut(), 0)
            && error.kind() == io::ErrorKind::InvalidInput
        {
            file = File::open(path).map_err(io)?;
        }
        Ok(BlockReader { file, memory })
    }

    /// The `bytes` bytes of block `block`.
    fn read(&mut self, block: u64, bytes: usize) -> io::Result<&[u8]> {
        fault::io("block")?;
        let start = block * BLOCK_BYTES as u64;
        let mut got = 0;
        while got < bytes {
            match self.file.read_at(&mut self.memory.bytes_mut()[got..], start + got as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(came) => got += came,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(&self.memory.bytes()[..bytes])
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        match options.clone().custom_flags(libc::O_DIRECT).open(path) {
            // A file system without direct reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => (),
            file => return file,
        }
    }
    options.open(path)
}
