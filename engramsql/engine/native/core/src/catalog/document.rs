//! `engram.json`: read whole, replaced whole. Layout and rules: docs/format.md.

use super::backup;
use super::entry::{SqlViewEntry, TableEntry, ViewEntry};
use super::error::CatalogError;
use crate::fault;
use crate::publish::publish_after;
use crate::source::is_spec_path;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Name of the catalog file in a database directory.
pub(super) const FILE: &str = "engram.json";
const FORMAT: &str = "engramsql-catalog";
const VERSION: u64 = 2;
/// How temporary siblings of the catalog file begin.
pub(super) const TEMPORARY: &str = ".engram.json.";

/// The content of a catalog file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Document {
    pub(super) tables: Vec<TableEntry>,
    pub(super) views: Vec<ViewEntry>,
    pub(super) sql_views: Vec<SqlViewEntry>,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    format: String,
    version: u64,
    tables: Vec<TableEntry>,
    views: Vec<ViewEntry>,
    sql_views: Vec<SqlViewEntry>,
}

/// Version 1: its views are the SQL views.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstBody {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    tables: Vec<TableEntry>,
    views: Vec<SqlViewEntry>,
}

/// Identity of one written catalog file; each change renames a new file into place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64, u64, i64, i64);

impl Stamp {
    /// The stamp of no file.
    pub(super) const UNKNOWN: Stamp = Stamp(0, 0, 0, 0);

    /// The stamp of the catalog in `directory`, or `None` if there is none yet.
    pub(super) fn of(directory: &Path) -> Result<Option<Stamp>, CatalogError> {
        let path = directory.join(FILE);
        match std::fs::metadata(&path) {
            Ok(m) => Ok(Some(Stamp(m.ino(), m.len(), m.mtime(), m.mtime_nsec()))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CatalogError::Io { action: "read", path, error }),
        }
    }
}

impl Document {
    /// Reads the catalog in `directory`; an absent file is an empty catalog.
    pub(super) fn read(directory: &Path) -> Result<Document, CatalogError> {
        let path = directory.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Document::default()),
            Err(error) => return Err(CatalogError::Io { action: "read", path, error }),
        };
        Document::parse(directory, &path, &bytes)
    }

    /// The catalog that `bytes` of the file at `path` hold, with absolute paths.
    pub(super) fn parse(directory: &Path, path: &Path, bytes: &[u8]) -> Result<Document, CatalogError> {
        let damaged = |detail: String| CatalogError::Damaged {
            path: path.to_owned(),
            detail,
            remedy: backup::remedy(directory, path),
        };
        // The version first: a newer one may have another shape.
        let head: Head = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        if head.format != FORMAT {
            return Err(damaged(format!("its format is '{}', not '{FORMAT}'", head.format)));
        }
        let refused = |error: serde_json::Error| match unknown_member(&error) {
            Some(member) => CatalogError::UnknownMember { path: path.to_owned(), version: head.version, member },
            None => damaged(error.to_string()),
        };
        let mut document = match head.version {
            0 => return Err(damaged("its version is 0".to_owned())),
            1 => {
                let body: FirstBody = serde_json::from_slice(bytes).map_err(refused)?;
                Document { tables: body.tables, views: Vec::new(), sql_views: body.views }
            }
            VERSION => {
                let body: Body = serde_json::from_slice(bytes).map_err(refused)?;
                Document { tables: body.tables, views: body.views, sql_views: body.sql_views }
            }
            found => {
                return Err(CatalogError::NewerVersion { path: path.to_owned(), found, supported: VERSION });
            }
        };
        for table in &mut document.tables {
            table.source = absolute(directory, &table.source);
            for tokenizer in [&mut table.options.tokenizer, &mut table.tokenizer] {
                *tokenizer = tokenizer.as_deref().map(|path| absolute(directory, path));
            }
            if let Some(spec) = table.options.spec.as_mut().filter(|spec| is_spec_path(spec)) {
                // It came from JSON, so it is Unicode.
                *spec = absolute(directory, Path::new(spec)).to_string_lossy().into_owned();
            }
        }
        for view in &mut document.views {
            view.directory = absolute(directory, &view.directory);
        }
        Ok(document)
    }

    /// Replaces the catalog in `directory`: temporary sibling, sync, the file of before becomes the backup, rename, sync of the
    /// directory. The caller holds the lock.
    pub(super) fn write(&self, directory: &Path) -> Result<(), CatalogError> {
        let path = directory.join(FILE);
        let io = |error| CatalogError::Io { action: "write", path: path.clone(), error };
        remove_leftovers(directory);
        let mut body = Body {
            format: FORMAT.to_owned(),
            version: VERSION,
            tables: self.tables.clone(),
            views: self.views.clone(),
            sql_views: self.sql_views.clone(),
        };
        for table in &mut body.tables {
            table.source = relative(directory, &table.source)?;
            for tokenizer in [&mut table.options.tokenizer, &mut table.tokenizer] {
                *tokenizer = tokenizer.as_deref().map(|path| relative(directory, path)).transpose()?;
            }
            if let Some(spec) = table.options.spec.as_mut().filter(|spec| is_spec_path(spec)) {
                *spec = relative(directory, Path::new(spec))?.to_string_lossy().into_owned();
            }
        }
        for view in &mut body.views {
            view.directory = relative(directory, &view.directory)?;
        }
        let mut json = serde_json::to_vec_pretty(&body).map_err(|e| io(e.into()))?;
        json.push(b'\n');
        fault::point("catalog.write");
        publish_after(&path, &json, || {
            // Not before: a change that fails must not cost the backup.
            backup::keep(directory)?;
            fault::io("catalog.backup")
        })
        .map_err(io)?;
        fault::point("catalog.written");
        Ok(())
    }
}

/// The member that this version does not know, if that is what the parser stumbled over.
fn unknown_member(error: &serde_json::Error) -> Option<String> {
    let text = error.to_string();
    let rest = text.strip_prefix("unknown field `")?;
    let (member, _) = rest.split_once('`')?;
    Some(format!("'{member}' (line {})", error.line()))
}

/// Temporary files of writers that died; only the lock's holder calls this.
fn remove_leftovers(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn absolute(directory: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() {
        return path.to_owned();
    }
    // `../x` is resolved by name, so that messages show the path a user would write.
    let mut result = directory.to_owned();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// Relative to the catalog for sources inside the database or beside it, which move together; absolute otherwise.
fn relative(directory: &Path, path: &Path) -> Result<PathBuf, CatalogError> {
    if path.to_str().is_none() {
        return Err(CatalogError::PathNotUnicode { path: path.to_owned() });
    }
    if let Ok(inside) = path.strip_prefix(directory) {
        return Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() });
    }
    Ok(match directory.parent().filter(|parent| parent.parent().is_some()).map(|parent| path.strip_prefix(parent)) {
        Some(Ok(beside)) => Path::new("..").join(beside),
        _ => path.to_owned(),
    })
}
