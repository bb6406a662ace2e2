//! A new file, written from its beginning to its end around the page cache.

use super::checksum::{FileSums, Summer};
use super::error::StorageError;
use crate::fault;
use crate::read::AlignedMemory;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Bytes of one write. Larger ones are no faster.
const BUFFER_BYTES: usize = 2 << 20;
/// One is being filled, one written, and one waits, so that neither side stops for the other.
const BUFFERS: usize = 3;
/// What direct writes align to: a page suits every disk.
const ALIGNMENT: usize = 4096;

/// Bytes on their way to the disk.
struct Piece {
    memory: AlignedMemory,
    bytes: usize,
    offset: u64,
}

/// A file that is written in order by a thread of its own, with checksums of its blocks. Dropped before
/// [`finish`](OrderedWriter::finish), it leaves a file that nobody may use.
pub struct OrderedWriter {
    path: PathBuf,
    file: File,
    summer: Summer,
    /// The buffer that is being filled, and how far.
    filling: Option<AlignedMemory>,
    filled: usize,
    offset: u64,
    /// `None` once the thread was told that there is no more.
    pieces: Option<Sender<Piece>>,
    /// Buffers that were written, or what the system said.
    written: Receiver<io::Result<AlignedMemory>>,
    /// Buffers that exist or may still be made.
    spare: usize,
    thread: Option<JoinHandle<()>>,
}

impl OrderedWriter {
    /// Creates the file at `path`, or empties what an interrupted writer left there, with room for `expected` bytes.
    pub fn create(path: &Path, expected: u64) -> Result<OrderedWriter, StorageError> {
        let failed = |action, error| StorageError::io(action, path, error);
        let (file, direct) = open(path).map_err(|error| failed("create", error))?;
        reserve(&file, expected).map_err(|error| failed("write", error))?;
        let (pieces, work) = channel::<Piece>();
        let (done, written) = channel();
        let target = file.try_clone().map_err(|error| failed("write", error))?;
        let run = move || {
            for piece in work {
                let answer = write(&target, piece, direct);
                let failed = answer.is_err();
                // Nobody listens if the writer was dropped, and after a failure nothing may follow.
                if done.send(answer).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("engramsql-write".to_owned()).spawn(run);
        Ok(OrderedWriter {
            path: path.to_owned(),
            file,
            summer: Summer::new(),
            filling: None,
            filled: 0,
            offset: 0,
            pieces: Some(pieces),
            written,
            spare: BUFFERS,
            thread: Some(thread.map_err(|error| failed("write", error))?),
        })
    }

    /// The next bytes.
    ///
    /// # Errors
    /// What the system said to these bytes or to earlier ones; the file is of no use then.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
        self.summer.update(bytes);
        while !bytes.is_empty() {
            let mut memory = match self.filling.take() {
                Some(memory) => memory,
                None => self.buffer()?,
            };
            let (head, rest) = bytes.split_at(bytes.len().min(BUFFER_BYTES - self.filled));
            memory.bytes_mut()[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            bytes = rest;
            if self.filled == BUFFER_BYTES {
                self.send(memory)?;
            } else {
                self.filling = Some(memory);
            }
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// Ends the file: all of it is on the disk then.
    pub fn finish(mut self) -> Result<FileSums, StorageError> {
        let bytes = self.position();
        if let Some(memory) = self.filling.take() {
            self.send(memory)?;
        }
        drop(self.pieces.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(self.failed(io::Error::other("the thread that writes panicked")));
        }
        while let Ok(answer) = self.written.try_recv() {
            answer.map_err(|error| self.failed(error))?;
        }
        fault::io("sync").map_err(|error| self.failed(error))?;
        // Direct writes are whole pages, and the reserved room may be larger.
        self.file.set_len(bytes).and_then(|()| self.file.sync_all()).map_err(|error| self.failed(error))?;
        Ok(std::mem::take(&mut self.summer).finish())
    }

    fn failed(&self, error: io::Error) -> StorageError {
        StorageError::io("write", &self.path, error)
    }

    fn buffer(&mut self) -> Result<AlignedMemory, StorageError> {
        if self.spare > 0 {
            self.spare -= 1;
            return AlignedMemory::new(BUFFER_BYTES, ALIGNMENT).map_err(|error| self.failed(error));
        }
        match self.written.recv() {
            Ok(Ok(memory)) => Ok(memory),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(self.failed(io::Error::other("an earlier write failed"))),
        }
    }

    fn send(&mut self, memory: AlignedMemory) -> Result<(), StorageError> {
        let piece = Piece { memory, bytes: std::mem::take(&mut self.filled), offset: self.offset };
        self.offset += piece.bytes as u64;
        let sent = self.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if sent {
            return Ok(());
        }
        // The thread has ended, so what it met is here.
        let met = self.written.try_iter().find_map(Result::err);
        Err(self.failed(met.unwrap_or_else(|| io::Error::other("an earlier write failed"))))
    }
}

impl Drop for OrderedWriter {
    fn drop(&mut self) {
        drop(self.pieces.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a piece and gives its buffer back. Direct writes are whole pages: the last one carries bytes beyond the end,
/// which are cut off in the end.
fn write(file: &File, mut piece: Piece, direct: bool) -> io::Result<AlignedMemory> {
    fault::io("write")?;
    let bytes = if direct { piece.bytes.next_multiple_of(ALIGNMENT) } else { piece.bytes };
    piece.memory.bytes_mut()[piece.bytes..bytes].fill(0);
    file.write_all_at(&piece.memory.bytes()[..bytes], piece.offset)?;
    Ok(piece.memory)
}

/// The new file, and whether it goes around the page cache.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        match options.clone().custom_flags(libc::O_DIRECT).open(path) {
            // A file system without direct writes.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => (),
            file => return Ok((file?, true)),
        }
    }
    Ok((options.open(path)?, false))
}

/// Reserves room where the file system can: a full disk is told at once, and the file lies in one piece.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if bytes > 0 {
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        return match rustix::fs::fallocate(file, flags, 0, bytes) {
            Err(rustix::io::Errno::NOSPC) => Err(rustix::io::Errno::NOSPC.into()),
            _ => Ok(()),
        };
    }
    let _ = (file, bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::checksum::BLOCK_BYTES;

    #[test]
    fn what_was_written_is_in_the_file_to_the_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for bytes in [0, 1, 4096, BLOCK_BYTES + 1, BUFFER_BYTES, 4 * BUFFER_BYTES + 4097] {
            let content: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 253) as u8).collect();
            let mut whole = Summer::new();
            whole.update(&content);
            let whole = whole.finish();
            for (step, expected) in [(1 << 20, 0), (999_983, bytes as u64 + 5_000_000), (BUFFER_BYTES + 3, 1)] {
                let mut writer = OrderedWriter::create(&path, expected).unwrap();
                content.chunks(step).for_each(|piece| writer.write(piece).unwrap());
                assert_eq!(writer.position(), bytes as u64);
                assert_eq!(writer.finish().unwrap(), whole);
                assert!(std::fs::read(&path).unwrap() == content, "{bytes} bytes in steps of {step}");
            }
        }
    }
}
