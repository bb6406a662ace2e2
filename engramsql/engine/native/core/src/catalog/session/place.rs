//! Where a database is, and the names of what it holds.

use super::super::backup::BACKUP;
use super::super::document::{Document, FILE, TEMPORARY};
use super::super::entry::TableEntry;
use super::super::error::CatalogError;
use super::super::{lock, names};
use super::orphans::holds_ours;
use super::{Session, State};
use crate::error::Result;
use crate::source;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Stores that the database itself holds.
pub(super) const TABLES: &str = "tables";
/// Materialised views that the database itself holds.
pub(super) const VIEWS: &str = "views";
/// Compressed token maps built from tokenizers, kept beside the catalog.
pub(super) const TOKEN_MAPS: &str = "token_maps";

/// What a database holds in directories of its own, one per name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Stores, below `tables/`.
    Table,
    /// Materialised views, below `views/`.
    View,
}

impl Held {
    /// The directory of all of that kind.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Held::Table => TABLES,
            Held::View => VIEWS,
        }
    }
}

impl Session {
    /// A directory of the database that nothing has yet, for a table or view called `name`: `tables/NAME`, else
    /// `tables/NAME~2`, ... Nothing is made; a leading dot, which marks what is unfinished, becomes `_`.
    pub fn free_directory(&self, kind: Held, name: &str) -> Result<PathBuf> {
        let first = self.first_directory(kind, name)?;
        // A dangling link is not free either. There is always another number.
        Ok(places(first).find(|path| path.symlink_metadata().is_err()).unwrap_or_default())
    }

    /// The directories that are there and have a name that [`Session::free_directory`] gave for `name`.
    pub(crate) fn taken_directories(&self, kind: Held, name: &str) -> Result<Vec<PathBuf>> {
        let first = self.first_directory(kind, name)?;
        Ok(places(first).take_while(|path| path.symlink_metadata().is_ok()).collect())
    }

    /// The first of those directories, free or not.
    pub(crate) fn first_directory(&self, kind: Held, name: &str) -> Result<PathBuf> {
        names::check(name)?;
        let what = match kind {
            Held::Table => "building a table",
            Held::View => "building a view",
        };
        let folder = self.directory().ok_or(CatalogError::InMemory { what })?.join(kind.folder());
        Ok(folder.join(match name.strip_prefix('.') {
            Some(rest) => format!("_{rest}"),
            None => name.to_owned(),
        }))
    }

    /// Whether `path` is one of those directories.
    pub(crate) fn is_directory_of(&self, kind: Held, name: &str, path: &Path) -> Result<bool> {
        let first = self.first_directory(kind, name)?;
        let number = || {
            let stem = first.file_name()?.to_str()?;
            path.file_name()?.to_str()?.strip_prefix(stem)?.strip_prefix('~')?.parse::<u64>().ok()
        };
        Ok(path == first || number().is_some_and(|number| path == numbered(&first, number)))
    }
}

/// `first`, `first~2`, `first~3`, ...
fn places(first: PathBuf) -> impl Iterator<Item = PathBuf> {
    let others = first.clone();
    std::iter::once(first).chain((2u64..).map(move |number| numbered(&others, number)))
}

fn numbered(first: &Path, number: u64) -> PathBuf {
    let mut name = first.file_name().unwrap_or_default().to_owned();
    name.push(format!("~{number}"));
    first.with_file_name(name)
}

/// The entry whose data lies at `path` or below it, by its name; however either path is written.
pub(super) fn entry_within<'a>(document: &'a Document, path: &Path) -> Option<&'a str> {
    let real = path.canonicalize().ok();
    let within = |place: &Path| {
        place.starts_with(path)
            || real.as_ref().is_some_and(|real| place.canonicalize().is_ok_and(|place| place.starts_with(real)))
    };
    let of_table = |table: &TableEntry| {
        let TableEntry { source, options, .. } = table;
        let spec = options.spec.as_deref().filter(|spec| source::is_spec_path(spec)).map(Path::new);
        within(source) || options.tokenizer.as_deref().is_some_and(within) || spec.is_some_and(within)
    };
    let table = document.tables.iter().find(|table| of_table(table)).map(|table| table.name.as_str());
    table.or_else(|| document.views.iter().find(|view| within(&view.directory)).map(|view| view.name.as_str()))
}

/// Whether a first change or a first build that failed may have left `path` in a database directory.
fn is_ours(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    match name {
        // A build makes its directory before there is a catalog.
        TABLES | VIEWS => holds_ours(path),
        name => [lock::FILE, TOKEN_MAPS].contains(&name) || name.starts_with(TEMPORARY),
    }
}

/// The path as others will find it: absolute, and without `..`, which means another place behind a symbolic link.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, CatalogError> {
    let io = |error| CatalogError::Io { action: "find", path: path.to_owned(), error };
    let absolute = std::path::absolute(path).map_err(io)?;
    if !absolute.components().any(|part| part == Component::ParentDir) {
        return Ok(absolute);
    }
    match (absolute.canonicalize(), absolute.parent().map(Path::canonicalize), absolute.file_name()) {
        (Ok(real), ..) => Ok(real),
        // Not there yet: its parent is.
        (Err(_), Some(Ok(parent)), Some(name)) => Ok(parent.join(name)),
        (Err(error), ..) => Err(io(error)),
    }
}

pub(super) fn open_directory(directory: &Path, read_only: bool, create: bool) -> Result<State> {
    // By its real name where it has one: sources beside it are then found the same way through any symbolic link.
    let directory = match directory.canonicalize() {
        Ok(real) => real,
        Err(_) => absolute(directory)?,
    };
    let no_database = |reason: &str| CatalogError::NotADatabase { path: directory.clone(), reason: reason.to_owned() };
    match std::fs::read_dir(&directory) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if read_only || !create {
                return Err(no_database("the directory does not exist").into());
            }
        }
        Err(error) => return Err(CatalogError::Io { action: "open", path: directory, error }.into()),
        Ok(mut entries) => {
            if !directory.join(FILE).exists() && entries.any(|entry| !entry.is_ok_and(|entry| is_ours(&entry.path()))) {
                let reason = match source::kind_of(&directory) {
                    Ok(_) => "it is a checkpoint or store; register it in a database under a name",
                    Err(_) if directory.join(BACKUP).exists() => {
                        "its engram.json is missing; engram.json.bak, the catalog before the last change, is there: copy it to engram.json"
                    }
                    Err(_) => "it has no engram.json and is not empty; name a database, or an empty or new directory",
                };
                return Err(no_database(reason).into());
            }
        }
    }
    let mut state = State { directory: Some(directory), read_only, ..State::default() };
    state.refresh()?;
    Ok(state)
}
