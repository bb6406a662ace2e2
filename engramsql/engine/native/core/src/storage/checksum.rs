//! Block checksums: XXH3-64 of every 64 KiB of a set of files, in one file with a BLAKE3 digest.
//!
//! XXH3 (10 GB/s on one thread) outruns every disk and tells any damage that is not made to fool it; whoever makes such
//! has to fool BLAKE3 too, which the manifest repeats. Blocks are small enough to say where a bit was flipped and to be
//! looked at here and there: 8 bytes for 65536.

use super::error::StorageError;
use crate::publish::publish;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of one block.
pub const BLOCK_BYTES: usize = 64 << 10;

const MAGIC: &[u8; 8] = b"ENGRAMCS";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const DIGEST: usize = 32;
/// Files of one list at most: shard numbers have 32 bits, and nobody opens more.
const MOST_FILES: u64 = 1 << 24;

/// Checksums of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSums {
    /// Its size in bytes.
    pub bytes: u64,
    /// XXH3-64 of each block; the last one may be short.
    pub blocks: Vec<u64>,
}

/// Takes the checksums of a file's bytes as they come, in order.
#[derive(Debug, Default)]
pub struct Summer {
    sums: FileSums,
    /// The beginning of a block whose rest is to come.
    pending: Vec<u8>,
}

impl Summer {
    /// Nothing yet.
    pub fn new() -> Summer {
        Summer::default()
    }

    /// The next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.sums.bytes += bytes.len() as u64;
        if !self.pending.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(head);
            bytes = rest;
            if self.pending.len() < BLOCK_BYTES {
                return;
            }
            self.sums.blocks.push(xxh3_64(&self.pending));
            self.pending.clear();
        }
        let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
        self.sums.blocks.extend(blocks.by_ref().map(xxh3_64));
        self.pending.extend_from_slice(blocks.remainder());
    }

    /// The checksums of all blocks that are complete so far.
    pub fn blocks(&self) -> &[u64] {
        &self.sums.blocks
    }

    /// The checksums of the file, which ends here.
    pub fn finish(mut self) -> FileSums {
        if !self.pending.is_empty() {
            self.sums.blocks.push(xxh3_64(&self.pending));
        }
        self.sums
    }
}

/// Checksums of a set of files, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checksums {
    /// One entry per file.
    pub files: Vec<FileSums>,
}

impl Checksums {
    /// The file's bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.files.len() as u64).to_le_bytes());
        self.files.iter().for_each(|file| bytes.extend_from_slice(&file.bytes.to_le_bytes()));
        self.files.iter().flat_map(|file| &file.blocks).for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Writes the file at `path`, complete or not at all; returns its digest, 64 hex digits.
    pub fn publish(&self, path: &Path) -> Result<String, StorageError> {
        let bytes = self.to_bytes();
        publish(path, &bytes).map_err(|error| StorageError::io("write", path, error))?;
        Ok(hex(&bytes[bytes.len() - DIGEST..]))
    }

    /// Reads the file at `path`, and its digest.
    ///
    /// # Errors
    /// A file that cannot be read, is of a newer version, or does not match its digest.
    pub fn read(path: &Path) -> Result<(Checksums, String), StorageError> {
        let bytes = std::fs::read(path).map_err(|error| StorageError::io("read", path, error))?;
        let damaged = |what: &str| StorageError::damaged(path, what);
        if bytes.len() < HEADER + DIGEST || !bytes.starts_with(MAGIC) {
            return Err(damaged("it is no checksum file"));
        }
        let (content, digest) = bytes.split_at(bytes.len() - DIGEST);
        if *blake3::hash(content).as_bytes() != *digest {
            return Err(damaged("its content does not match the BLAKE3 digest at its end"));
        }
        // The digest has proven the bytes; what remains can only be of another kind or version.
        let version = u64::from(u32_at(content, 8));
        if version > u64::from(VERSION) {
            return Err(StorageError::NewerVersion {
                path: path.to_owned(),
                found: version,
                supported: VERSION.into(),
            });
        }
        if u32_at(content, 12) as usize != BLOCK_BYTES {
            return Err(damaged("its blocks have another size"));
        }
        let count = u64_at(content, 16);
        if count > MOST_FILES || (content.len() - HEADER) / 8 < count as usize {
            return Err(damaged("it announces more files than it holds"));
        }
        let (sizes, mut blocks) = content[HEADER..].split_at(8 * count as usize);
        let mut files = Vec::with_capacity(count as usize);
        for size in sizes.chunks_exact(8) {
            let bytes = u64_at(size, 0);
            let length = bytes.div_ceil(BLOCK_BYTES as u64).checked_mul(8).filter(|&n| n <= blocks.len() as u64);
            let length = length.ok_or_else(|| damaged("it announces more blocks than it holds"))?;
            let (sums, rest) = blocks.split_at(length as usize);
            files.push(FileSums { bytes, blocks: sums.chunks_exact(8).map(|sum| u64_at(sum, 0)).collect() });
            blocks = rest;
        }
        if !blocks.is_empty() {
            return Err(damaged("it holds more blocks than it announces"));
        }
        Ok((Checksums { files }, hex(digest)))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    #[test]
    fn checksums_do_not_depend_on_how_the_bytes_came() {
        let bytes = content(3 * BLOCK_BYTES + 17);
        let mut whole = Summer::new();
        whole.update(&bytes);
        let whole = whole.finish();
        assert_eq!(whole.blocks.len(), 4);
        for step in [1000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 5] {
            let mut pieces = Summer::new();
            bytes.chunks(step).for_each(|piece| pieces.update(piece));
            assert_eq!(pieces.finish(), whole, "pieces of {step}");
        }
        let mut even = Summer::new();
        even.update(&bytes[..2 * BLOCK_BYTES]);
        assert_eq!(even.finish().blocks, whole.blocks[..2]);
    }

    #[test]
    fn a_file_reads_back_and_every_damage_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checksums.bin");
        let file = |bytes: usize| {
            let mut summer = Summer::new();
            summer.update(&content(bytes));
            summer.finish()
        };
        let sums = Checksums { files: vec![file(BLOCK_BYTES + 1), file(0), file(5)] };
        let digest = sums.publish(&path).unwrap();
        assert_eq!(Checksums::read(&path).unwrap(), (sums, digest));
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            assert!(Checksums::read(&path).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(Checksums::read(&path).is_err(), "{cut} bytes");
        }
    }
}
