//! Publication of files: complete under their name, or not there at all.

use crate::fault;
use std::io::Write;
use std::path::Path;

/// Replaces the file at `path` by `bytes`: temporary sibling, write, sync, rename, sync of the directory. A crash leaves the
/// old file or the new one, and at most a sibling whose name begins with `.NAME.`.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    publish_after(path, bytes, || Ok(()))
}

/// [`publish`], with a last step before the rename: by then the new file is on the disk, and nothing but the rename can fail.
pub(crate) fn publish_after(
    path: &Path,
    bytes: &[u8],
    last: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Not the private mode of temporary files: the umask decides, as for any file.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let mut file = builder.prefix(&prefix).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    fault::io("publish")?;
    last()?;
    file.persist(path)?;
    // The new name must survive a power cut too.
    std::fs::File::open(folder)?.sync_all()
}
