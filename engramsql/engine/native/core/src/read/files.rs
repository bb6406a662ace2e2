//! Proof that an open table's files are still the files that were opened.
//!
//! Asking the system about every touched file costs about a microsecond per file and batch, as much as many rows. On
//! Linux one inotify descriptor per table answers "nothing happened" for all files at once; only when something did, or
//! where inotify is refused, is every file looked at.

use super::ReadError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What identifies a file's content well enough to notice that it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// The stamp of the file at `path` (links followed).
    pub fn of(path: &Path) -> std::io::Result<FileStamp> {
        let metadata = std::fs::metadata(path)?;
        Ok(FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    /// An error that says what became of the file at `path` since this stamp was taken.
    fn compare(&self, path: &Path) -> Result<(), ReadError> {
        let what = match FileStamp::of(path) {
            Err(_) => "has disappeared".to_owned(),
            Ok(now) if now == *self => return Ok(()),
            Ok(now) if (now.device, now.inode) != (self.device, self.inode) => "was replaced".to_owned(),
            Ok(now) if now.bytes < self.bytes => format!("was truncated ({} bytes missing)", self.bytes - now.bytes),
            Ok(_) => "was modified".to_owned(),
        };
        Err(ReadError::FileChanged { path: path.to_owned(), what })
    }
}

/// Notices changes to a fixed set of files.
pub struct FileWatch {
    files: Vec<(PathBuf, FileStamp)>,
    events: Option<events::Events>,
    /// An event came and the files have not been found unchanged since.
    suspect: AtomicBool,
}

impl FileWatch {
    /// Stamps and watches `files`.
    pub fn new(files: &[PathBuf]) -> Result<FileWatch, ReadError> {
        // Watch first: a change between the two steps is then noticed, not missed.
        let events = events::Events::watch(files);
        let files = files
            .iter()
            .map(|path| Ok((path.clone(), FileStamp::of(path).map_err(|e| ReadError::io(path, e))?)))
            .collect::<Result<_, ReadError>>()?;
        Ok(FileWatch { files, events, suspect: AtomicBool::new(false) })
    }

    /// The files and their stamps.
    pub fn files(&self) -> &[(PathBuf, FileStamp)] {
        &self.files
    }

    /// An error if a file that `touched` selects was replaced, modified, shortened or removed. `touched` is asked only when
    /// something happened to any file: batches that stay clear of the damage go on.
    pub fn check(&self, touched: impl FnOnce() -> Vec<bool>) -> Result<(), ReadError> {
        match &self.events {
            Some(events) if !events.pending() => {
                if !self.suspect.load(Ordering::Acquire) {
                    return Ok(());
                }
            }
            // Before looking, so that whoever asks meanwhile looks too.
            _ => self.suspect.store(true, Ordering::Release),
        }
        let touched = touched();
        let mut all_well = true;
        for (index, (path, stamp)) in self.files.iter().enumerate() {
            if let Err(error) = stamp.compare(path) {
                all_well = false;
                if touched[index] {
                    return Err(error);
                }
            }
        }
        if all_well {
            self.suspect.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// An error if file `index` is not the one that was opened.
    pub fn check_file(&self, index: usize) -> Result<(), ReadError> {
        let (path, stamp) = &self.files[index];
        stamp.compare(path)
    }
}

#[cfg(target_os = "linux")]
mod events {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    /// An inotify descriptor on a set of files.
    pub(super) struct Events {
        descriptor: OwnedFd,
        /// A forked child shares the descriptor, and an event that it read would be lost to its parent.
        owner: u32,
    }

    impl Events {
        /// `None` where the system refuses (limits, sandboxes): the caller then looks at the files themselves.
        pub(super) fn watch(files: &[PathBuf]) -> Option<Events> {
            let descriptor = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            let flags = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            for file in files {
                add_watch(&descriptor, file, flags).ok()?;
            }
            Some(Events { descriptor, owner: std::process::id() })
        }

        /// Whether anything happened since the last call; what it was does not matter, the files tell.
        pub(super) fn pending(&self) -> bool {
            if std::process::id() != self.owner {
                return true;
            }
            let mut buffer = [0u8; 4096];
            let mut any = false;
            loop {
                match rustix::io::read(&self.descriptor, &mut buffer) {
                    Ok(n) if n > 0 => any = true,
                    Err(rustix::io::Errno::AGAIN) => return any,
                    Err(rustix::io::Errno::INTR) => {}
                    // A descriptor that cannot be read proves nothing.
                    _ => return true,
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod events {
    /// No event source on this system: the files themselves are looked at.
    pub(super) struct Events;

    impl Events {
        pub(super) fn watch(_files: &[std::path::PathBuf]) -> Option<Events> {
            None
        }

        pub(super) fn pending(&self) -> bool {
            true
        }
    }
}
