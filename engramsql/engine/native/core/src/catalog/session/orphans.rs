//! What lies in a database directory and is named by no entry: what crashes, replaced tables and dropped entries leave.

use super::super::document::{Document, TEMPORARY};
use super::super::error::CatalogError;
use super::super::lock::AtRest;
use super::Session;
use super::place::{TABLES, TOKEN_MAPS, VIEWS, entry_within};
use super::trash::{Doomed, TRASH, is_claimed};
use crate::error::Result;
use crate::source::TOKEN_MAP;
use crate::storage::checksum::Checksums;
use crate::storage::{DirectoryLock, is_building_name};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What stores and views hold beside shards, manifest and token map.
const CHECKSUMS: &str = "checksums.bin";
const KEYS: &str = "keys.bin";
const INDEX: &str = "index";

/// What an orphan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanKind {
    /// A finished store.
    Store,
    /// A finished materialised view.
    View,
    /// A build that was interrupted, or is running now.
    UnfinishedBuild,
    /// A directory whose removal was interrupted.
    Trash,
    /// A file that was never published.
    Temporary,
    /// A compressed token map.
    TokenMap,
    /// Something that EngramSQL did not make, and does not remove.
    Foreign,
}

impl OrphanKind {
    /// What it is called: "store", "view", "unfinished build", "trash", "temporary", "token map" or "foreign".
    pub fn name(self) -> &'static str {
        match self {
            OrphanKind::Store => "store",
            OrphanKind::View => "view",
            OrphanKind::UnfinishedBuild => "unfinished build",
            OrphanKind::Trash => "trash",
            OrphanKind::Temporary => "temporary",
            OrphanKind::TokenMap => "token map",
            OrphanKind::Foreign => "foreign",
        }
    }

    /// Whether whoever writes the catalog makes such a file before the catalog names it.
    fn is_made_by_the_writer(self) -> bool {
        matches!(self, OrphanKind::Temporary | OrphanKind::TokenMap)
    }
}

/// A file or directory that no entry of the catalog names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: OrphanKind,
    /// Bytes of all files in it.
    pub bytes: u64,
    /// Whether a process is writing to it now.
    pub in_use: bool,
}

impl Session {
    /// Everything below the database directory that no entry names, in the order of the paths. None in memory.
    ///
    /// While the catalog is being written, files that its writer makes are left out: it may be about to name them.
    pub fn orphans(&self) -> Result<Vec<Orphan>> {
        let Some(directory) = self.state().directory.clone() else { return Ok(Vec::new()) };
        // Taken before the catalog is read: what it names then is all there is.
        let at_rest = AtRest::look(&directory);
        let document = {
            let mut state = self.state();
            state.refresh()?;
            state.document.clone()
        };
        let mut found = list(&directory, &document)?;
        if at_rest.is_none() {
            found.retain(|orphan| !orphan.kind.is_made_by_the_writer());
        }
        Ok(found)
    }

    /// Removes the orphans, and returns those removed. What is foreign stays, and so does what a process is writing to.
    pub fn remove_orphans(&self) -> Result<Vec<Orphan>> {
        self.remove_where(|_| true)
    }

    /// Removes the orphan at `path`, such as the directory of a table that was replaced; false if it is none, or may not
    /// be removed.
    pub fn remove_orphan(&self, path: &Path) -> Result<bool> {
        Ok(!self.remove_where(|orphan| orphan.path == path)?.is_empty())
    }

    fn remove_where(&self, wanted: impl Fn(&Orphan) -> bool) -> Result<Vec<Orphan>> {
        let (removed, trash) = self.exclusive(|state| {
            let Some(directory) = &state.directory else { return Ok((Vec::new(), Vec::new())) };
            let (mut removed, mut trash) = (Vec::new(), Vec::new());
            for orphan in list(directory, &state.document)? {
                if orphan.kind == OrphanKind::Foreign || orphan.in_use || !wanted(&orphan) {
                    continue;
                }
                // Files; the only writer now is this one.
                if orphan.kind.is_made_by_the_writer() {
                    match std::fs::remove_file(&orphan.path) {
                        Err(error) if error.kind() != ErrorKind::NotFound => {
                            return Err(CatalogError::NotRemoved { path: orphan.path, error }.into());
                        }
                        _ => removed.push(orphan),
                    }
                } else if let Some(doomed) = Doomed::claim_idle(&orphan.path)? {
                    trash.push(doomed.rename()?);
                    removed.push(orphan);
                }
            }
            Ok((removed, trash))
        })?;
        // The catalog is free again: large files take their time.
        for trash in trash {
            trash.remove()?;
        }
        Ok(removed)
    }
}

fn list(directory: &Path, document: &Document) -> Result<Vec<Orphan>, CatalogError> {
    let mut found = Vec::new();
    let mut see = |path: PathBuf, kind: OrphanKind| -> Result<(), CatalogError> {
        let in_use = is_claimed(&path);
        let bytes = size(&path)?;
        found.push(Orphan { path, kind, bytes, in_use });
        Ok(())
    };
    for (path, name) in children(directory)? {
        if name.starts_with(TEMPORARY) {
            see(path, OrphanKind::Temporary)?;
        }
    }
    for folder in [TABLES, VIEWS] {
        for (path, name) in children(&directory.join(folder))? {
            if entry_within(document, &path).is_none() {
                let kind = directory_kind(&path, &name);
                see(path, kind)?;
            }
        }
    }
    for (path, name) in children(&directory.join(TOKEN_MAPS))? {
        let named = Path::new(TOKEN_MAPS).join(&name);
        if !document.tables.iter().any(|table| table.token_map.as_ref() == Some(&named)) {
            let kind = map_kind(&name);
            see(path, kind)?;
        }
    }
    Ok(found)
}

/// What an unnamed child of `tables/` or `views/` is. Only what is known to be ours is called so, because it may be removed.
fn directory_kind(path: &Path, name: &str) -> OrphanKind {
    if name.starts_with(TRASH) {
        return OrphanKind::Trash;
    }
    if is_building_name(name) && path.is_dir() {
        return OrphanKind::UnfinishedBuild;
    }
    let manifest = std::fs::read(path.join("manifest.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    match manifest.as_ref().and_then(|manifest| manifest.pointer("/engramsql/format")?.as_str()) {
        Some("engramsql-store") => OrphanKind::Store,
        Some("engramsql-view") => OrphanKind::View,
        // What others wrote has no checksums of ours.
        _ if manifest.is_none() => without_manifest(path),
        _ => OrphanKind::Foreign,
    }
}

/// What a directory is whose manifest is lost or damaged: ours if its checksums prove themselves and it holds nothing but
/// what we write beside them.
fn without_manifest(path: &Path) -> OrphanKind {
    let Ok(children) = children(path) else { return OrphanKind::Foreign };
    let part = |name: &str| {
        ["manifest.json", CHECKSUMS, KEYS, TOKEN_MAP, INDEX, DirectoryLock::FILE].contains(&name)
            || name.starts_with("shard_") && name.ends_with(".bin")
    };
    if !children.iter().all(|(_, name)| part(name)) || Checksums::read(&path.join(CHECKSUMS)).is_err() {
        return OrphanKind::Foreign;
    }
    if children.iter().any(|(_, name)| name == KEYS) { OrphanKind::View } else { OrphanKind::Store }
}

/// Whether all that the directory at `path` holds is ours.
pub(super) fn holds_ours(path: &Path) -> bool {
    let ours = |(path, name): &(PathBuf, String)| directory_kind(path, name) != OrphanKind::Foreign;
    children(path).is_ok_and(|children| children.iter().all(ours))
}

/// What an unnamed child of `token_maps/` is: maps are named by 16 hex digits, unpublished ones `.MAP.*`.
fn map_kind(name: &str) -> OrphanKind {
    let is_map = |name: &str| {
        name.strip_suffix(".map").is_some_and(|stem| stem.len() == 16 && stem.bytes().all(|c| c.is_ascii_hexdigit()))
    };
    if is_map(name) {
        return OrphanKind::TokenMap;
    }
    match name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')) {
        Some((map, _)) if is_map(map) => OrphanKind::Temporary,
        _ => OrphanKind::Foreign,
    }
}

/// Path and name of what is in a directory, by name; nothing if it is not there.
fn children(directory: &Path) -> Result<Vec<(PathBuf, String)>, CatalogError> {
    let io = |error| CatalogError::Io { action: "list", path: directory.to_owned(), error };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io)?;
        // A name that is no Unicode is none of ours; it is listed as what it can be shown as.
        found.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
    }
    found.sort();
    Ok(found)
}

/// Bytes of the file at `path`, or of all files below it; what vanishes meanwhile counts nothing.
fn size(path: &Path) -> Result<u64, CatalogError> {
    let io = |error| CatalogError::Io { action: "read", path: path.to_owned(), error };
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(io(error)),
    };
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut bytes = 0;
    for (child, _) in children(path)? {
        bytes += size(&child)?;
    }
    Ok(bytes)
}
