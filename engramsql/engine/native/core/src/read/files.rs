//! Proof that an open table's files are still the files that were opened.
//!
//! Asking the system about every touched file costs about a microsecond per file and batch, as much as many rows. On
//! Linux and local file systems one inotify descriptor per table answers "nothing happened" for all files at once; only
//! when something did, or where inotify cannot be trusted, is every touched file looked at.

use super::ReadError;
use crate::source::FileStamp;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Notices changes to a fixed set of files.
pub struct FileWatch {
    files: Vec<(PathBuf, FileStamp)>,
    events: Option<events::Events>,
    /// Rounds of events seen, counted before they are consumed.
    seen: AtomicU64,
    /// The round up to which all files were found unchanged. Behind `seen`, nobody takes silence for an answer.
    verified: AtomicU64,
}

impl FileWatch {
    /// Watches `files`, which must still be what their stamps say.
    pub fn new(files: &[(PathBuf, FileStamp)]) -> Result<FileWatch, ReadError> {
        // Watch first: a change between the two steps is then noticed, not missed.
        let events = events::Events::watch(files);
        let watch = FileWatch { files: files.to_vec(), events, seen: AtomicU64::new(0), verified: AtomicU64::new(0) };
        (0..files.len()).try_for_each(|index| watch.check_file(index))?;
        Ok(watch)
    }

    /// The path of file `index`.
    pub fn path(&self, index: usize) -> &Path {
        &self.files[index].0
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// An error if a file that `touched` selects was replaced, modified, shortened or removed. `touched` is asked only when
    /// something happened to any file: batches that stay clear of the damage go on.
    pub fn check(&self, touched: impl FnOnce() -> Vec<bool>) -> Result<(), ReadError> {
        if let Some(events) = &self.events {
            if events.pending() {
                // Counted before it is consumed, so that nobody finds silence and an old count in between.
                self.seen.fetch_add(1, Ordering::SeqCst);
                events.consume();
            }
            if self.verified.load(Ordering::SeqCst) == self.seen.load(Ordering::SeqCst) {
                return Ok(());
            }
        }
        // What is found now speaks for events up to here, not for those that come while looking.
        let round = self.seen.load(Ordering::SeqCst);
        let touched = touched();
        let mut all_well = true;
        for (index, &touched) in touched.iter().enumerate() {
            if let Err(error) = self.check_file(index) {
                if touched {
                    return Err(error);
                }
                all_well = false;
            }
        }
        if all_well {
            self.verified.fetch_max(round, Ordering::SeqCst);
        }
        Ok(())
    }

    /// The same by asking about every file that `touched` selects. The system tells events when a write or truncation is
    /// over, and the file's size and time when it begins: only they speak for bytes that are kept.
    pub fn prove(&self, touched: &[bool]) -> Result<(), ReadError> {
        (0..self.len()).filter(|&index| touched[index]).try_for_each(|index| self.check_file(index))
    }

    /// The same without knowing which files were touched before one of all is found changed.
    pub fn prove_any(&self, touched: impl FnOnce() -> Vec<bool>) -> Result<(), ReadError> {
        if (0..self.len()).all(|index| self.check_file(index).is_ok()) { Ok(()) } else { self.prove(&touched()) }
    }

    /// An error if file `index` is not the one that was opened.
    pub fn check_file(&self, index: usize) -> Result<(), ReadError> {
        self.compare(index, FileStamp::of(&self.files[index].0))
    }

    /// Opens file `index`, proven to be the one that was stamped whatever its path means by now.
    pub fn open(&self, index: usize) -> Result<std::fs::File, ReadError> {
        self.open_with(index, std::fs::OpenOptions::new().read(true))
    }

    /// The same for direct reads, which go around the page cache; an error where the file system does not offer them.
    #[cfg(target_os = "linux")]
    pub fn open_direct(&self, index: usize) -> Result<std::fs::File, ReadError> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        self.open_with(index, options.read(true).custom_flags(libc::O_DIRECT))
    }

    /// The same for direct reads, which this system does not offer.
    #[cfg(not(target_os = "linux"))]
    pub fn open_direct(&self, index: usize) -> Result<std::fs::File, ReadError> {
        Err(ReadError::io(self.path(index), std::io::ErrorKind::Unsupported.into()))
    }

    fn open_with(&self, index: usize, options: &std::fs::OpenOptions) -> Result<std::fs::File, ReadError> {
        let path = self.path(index);
        let file = options.open(path).map_err(|e| ReadError::io(path, e))?;
        self.compare(index, FileStamp::of_file(&file))?;
        Ok(file)
    }

    fn compare(&self, index: usize, now: std::io::Result<FileStamp>) -> Result<(), ReadError> {
        let (path, stamp) = &self.files[index];
        match stamp.change(now) {
            None => Ok(()),
            Some(what) => Err(ReadError::FileChanged { path: path.clone(), what }),
        }
    }
}

#[cfg(target_os = "linux")]
mod events {
    use crate::source::FileStamp;
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use std::collections::HashSet;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// File systems whose every change passes through this kernel (their magic numbers, statfs(2)): ext2 to ext4, XFS,
    /// Btrfs, F2FS, ZFS, bcachefs, tmpfs, ramfs. On network, FUSE and overlay file systems others may write unseen.
    const LOCAL: [u64; 8] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x2FC1_2FC1, 0xCA45_1A4E, 0x0102_1994, 0x8584_58F6];

    /// Most descriptors of one process. The system gives a user 128 by default, and other programs need some too.
    const MOST: usize = 16;
    /// Links that the system follows on one way.
    const MOST_LINKS: usize = 40;
    static LIVE: AtomicUsize = AtomicUsize::new(0);

    /// An inotify descriptor on a set of files.
    pub(super) struct Events {
        descriptor: OwnedFd,
        /// A forked child shares the descriptor, and an event that it read would be lost to its parent.
        owner: u32,
    }

    impl Events {
        /// `None` where silence proves nothing or the system refuses (limits, sandboxes): the files are then looked at.
        pub(super) fn watch(files: &[(PathBuf, FileStamp)]) -> Option<Events> {
            let descriptor = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            let live = LIVE.fetch_add(1, Ordering::Relaxed);
            let events = Events { descriptor, owner: std::process::id() };
            if live >= MOST {
                return None;
            }
            let flags = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            for (path, _) in files {
                // The type's width differs between platforms; magic numbers have 32 bits.
                let magic = rustix::fs::statfs(path).ok()?.f_type as u64 & 0xFFFF_FFFF;
                if !LOCAL.contains(&magic) {
                    return None;
                }
                add_watch(&events.descriptor, path, flags).ok()?;
            }
            let mut watched = HashSet::new();
            files.iter().try_for_each(|(path, _)| events.watch_way(path, &mut watched, 0))?;
            Some(events)
        }

        /// Watches every directory and symbolic link on the way to `path`: a file says nothing when a directory above it
        /// is renamed or a link to it is set anew, and the path means another file then.
        fn watch_way(&self, path: &Path, watched: &mut HashSet<PathBuf>, links: usize) -> Option<()> {
            let path = std::path::absolute(path).ok()?;
            for step in path.ancestors() {
                if watched.contains(step) {
                    break;
                }
                // Added: a step may be one of the files, for which more is asked.
                let flags = WatchFlags::MASK_ADD | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
                add_watch(&self.descriptor, step, flags | WatchFlags::DONT_FOLLOW).ok()?;
                watched.insert(step.to_owned());
                if let Ok(target) = std::fs::read_link(step) {
                    if links == MOST_LINKS {
                        return None;
                    }
                    self.watch_way(&step.parent()?.join(target), watched, links + 1)?;
                }
            }
            Some(())
        }

        /// Whether something happened that nobody has consumed; what it was does not matter, the files tell.
        pub(super) fn pending(&self) -> bool {
            // A child, or a descriptor that cannot be asked, proves nothing.
            std::process::id() != self.owner || rustix::io::ioctl_fionread(&self.descriptor).map_or(true, |n| n > 0)
        }

        /// Takes what is there.
        pub(super) fn consume(&self) {
            if std::process::id() != self.owner {
                return;
            }
            let mut buffer = [0u8; 4096];
            while matches!(rustix::io::read(&self.descriptor, &mut buffer), Ok(n) if n > 0) {}
        }
    }

    impl Drop for Events {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod events {
    /// No event source on this system: the files themselves are looked at.
    pub(super) struct Events;

    impl Events {
        pub(super) fn watch(_files: &[(std::path::PathBuf, crate::source::FileStamp)]) -> Option<Events> {
            None
        }

        pub(super) fn pending(&self) -> bool {
            true
        }

        pub(super) fn consume(&self) {}
    }
}
