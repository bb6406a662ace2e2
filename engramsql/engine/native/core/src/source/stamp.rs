//! What identifies a file's content well enough to notice that it is another one.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity, size and times of a file at one moment. Equal stamps: nothing was written to the file between them, not even
/// by a program that sets the modification time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    /// Also moves with permissions and links, so it is no sign of another content by itself.
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the regular file at `path` (links followed). Nothing is opened: a pipe would be waited for.
    pub fn of(path: &Path) -> std::io::Result<FileStamp> {
        FileStamp::regular(&std::fs::metadata(path)?)
    }

    /// The stamp of an open file.
    pub fn of_file(file: &File) -> std::io::Result<FileStamp> {
        FileStamp::regular(&file.metadata()?)
    }

    fn regular(metadata: &Metadata) -> std::io::Result<FileStamp> {
        if metadata.is_file() {
            Ok(FileStamp::from(metadata))
        } else {
            Err(std::io::Error::other("it is not a regular file"))
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When its content was last written: seconds and nanoseconds since the Unix epoch.
    pub fn modified(&self) -> (i64, i64) {
        self.modified
    }

    /// What became of the file since this stamp was taken, or `None` if it is unchanged.
    pub fn change(&self, now: std::io::Result<FileStamp>) -> Option<String> {
        match now {
            Err(_) => Some("has disappeared".to_owned()),
            Ok(now) if FileStamp { changed: self.changed, ..now } == *self => None,
            Ok(now) if (now.device, now.inode) != (self.device, self.inode) => Some("was replaced".to_owned()),
            Ok(now) if now.bytes < self.bytes => {
                Some(format!("was truncated ({} bytes missing)", self.bytes - now.bytes))
            }
            Ok(_) => Some("was modified".to_owned()),
        }
    }
}

impl From<&Metadata> for FileStamp {
    fn from(metadata: &Metadata) -> FileStamp {
        FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn content_whose_time_was_set_back_has_another_stamp() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"old").unwrap();
        let old = FileStamp::of(file.path()).unwrap();
        let time = file.as_file().metadata().unwrap().modified().unwrap();
        // Longer than a tick of any file system's clock.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(file.path(), b"new").unwrap();
        file.as_file().set_modified(time).unwrap();
        assert_ne!(FileStamp::of(file.path()).unwrap(), old);
    }

    #[test]
    fn another_permission_is_no_other_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let old = FileStamp::of(file.path()).unwrap();
        file.as_file().set_permissions(file.as_file().metadata().unwrap().permissions()).unwrap();
        assert_eq!(old.change(FileStamp::of(file.path())), None);
    }
}
