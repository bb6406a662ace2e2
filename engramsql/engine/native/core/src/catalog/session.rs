//! A set of named tables and views, on a directory or in memory.

use super::document::{Document, FILE, Stamp, TEMPORARY};
use super::entry::{RegisterOptions, TableEntry, ViewEntry};
use super::error::CatalogError;
use super::lock::{self, WriterLock};
use super::names;
use crate::error::{Error, Result};
use crate::source::{self, FileStamp, SourceError, SourceTable};
use crate::spec::TokenMap;
use crate::table::Table;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stores that the database itself holds.
const TABLES: &str = "tables";
/// Compressed token maps built from tokenizers, kept beside the catalog.
const TOKEN_MAPS: &str = "token_maps";

/// A set of named tables: a database directory, or memory only. Shared by every connection of one DuckDB database.
/// Table names compare like SQL identifiers: ASCII case does not matter.
pub struct Session {
    state: Mutex<State>,
    /// Token maps built in this session, by tokenizer path: each takes a second or two.
    token_maps: Mutex<HashMap<PathBuf, (FileStamp, Arc<TokenMap>)>>,
}

#[derive(Default)]
struct State {
    directory: Option<PathBuf>,
    read_only: bool,
    stamp: Option<Stamp>,
    document: Document,
    /// Open tables by catalog name, each with the entry it was opened from.
    open: HashMap<String, (TableEntry, Arc<Table>)>,
    /// Tables opened by path.
    paths: HashMap<PathBuf, Arc<Table>>,
}

impl State {
    /// Reads the catalog again if another session has changed it.
    fn refresh(&mut self) -> Result<()> {
        if let Some(directory) = &self.directory {
            let stamp = Stamp::of(directory)?;
            if stamp != self.stamp {
                self.document = Document::read(directory)?;
                self.stamp = stamp;
                self.forget_stale();
            }
        }
        Ok(())
    }

    /// Closes tables that are no longer what the catalog says.
    fn forget_stale(&mut self) {
        let tables = &self.document.tables;
        self.open.retain(|_, (entry, _)| tables.contains(entry));
    }

    fn entry(&self, name: &str) -> Option<&TableEntry> {
        self.document.tables.iter().find(|table| names::same(&table.name, name))
    }

    fn unknown(&self, name: &str) -> CatalogError {
        let hint = names::hint(name, self.document.tables.iter().map(|table| table.name.as_str()));
        let hint = if hint.contains("none is registered") {
            format!(
                "{hint}; register one with CALL engram_register('{name}', 'PATH'), or name a path that contains '/'"
            )
        } else {
            hint
        };
        CatalogError::UnknownTable { name: name.to_owned(), hint }
    }

    fn free_name(&self, name: &str) -> Result<(), CatalogError> {
        names::check(name)?;
        if let Some(table) = self.entry(name) {
            let remedy = "drop it first, or choose another name";
            return Err(CatalogError::NameTaken { what: "table", name: table.name.clone(), remedy });
        }
        if let Some(view) = self.document.views.iter().find(|view| names::same(&view.name, name)) {
            let remedy = "drop the view first, or choose another name";
            return Err(CatalogError::NameTaken { what: "view", name: view.name.clone(), remedy });
        }
        Ok(())
    }
}

impl Session {
    /// A session without a directory.
    pub fn in_memory() -> Session {
        Session { state: Mutex::default(), token_maps: Mutex::default() }
    }

    /// A session on a database directory. With `create`, a missing or empty directory becomes a database at the first change.
    pub fn open(directory: &Path, read_only: bool, create: bool) -> Result<Session> {
        let session = Session::in_memory();
        *session.state() = open_directory(directory, read_only, create)?;
        Ok(session)
    }

    /// Points this session at a database directory (`CALL engram_attach`); tables held in memory are dropped.
    pub fn attach(&self, directory: &Path, read_only: bool) -> Result<()> {
        let state = open_directory(directory, read_only, !read_only)?;
        *self.state() = state;
        Ok(())
    }

    /// The attached directory.
    pub fn directory(&self) -> Option<PathBuf> {
        self.state().directory.clone()
    }

    /// Reads the source's headers and remembers it under `name` (several hash layers: `name_l1`, `name_l14`).
    pub fn register(&self, name: &str, source: &Path, options: &RegisterOptions) -> Result<Vec<TableEntry>> {
        names::check(name)?;
        let source = absolute(source)?;
        let mut options = options.clone();
        options.tokenizer = options.tokenizer.as_deref().map(absolute).transpose()?;
        if let Some(spec) = options.spec.as_mut().filter(|spec| source::is_spec_path(spec)) {
            let path = absolute(Path::new(spec))?;
            *spec = path.to_str().ok_or(CatalogError::PathNotUnicode { path: path.clone() })?.to_owned();
        }
        // Outside every lock: this reads headers, and may build a token map.
        let found = source::open(&source, &options, &|path| self.token_map(path))?;
        let several = found.len() > 1;
        let mut entries: Vec<TableEntry> = found
            .iter()
            .map(|table| {
                let name = match table.layer {
                    Some(layer) if several => format!("{name}_l{layer}"),
                    _ => name.to_owned(),
                };
                TableEntry::of(name, &source, &options, table)
            })
            .collect();
        self.change(|state| {
            for (entry, table) in entries.iter_mut().zip(&found) {
                state.free_name(&entry.name)?;
                entry.in_place =
                    state.directory.as_ref().is_none_or(|home| !entry.source.starts_with(home.join(TABLES)));
                if let (Some(directory), Some(map)) =
                    (&state.directory, table.spec.as_ref().and_then(|spec| spec.token_map()))
                {
                    entry.token_map = Some(keep_token_map(directory, map)?);
                }
            }
            state.document.tables.extend(entries.iter().cloned());
            Ok(())
        })?;
        Ok(entries)
    }

    /// Forgets a table; its source stays as it is.
    pub fn drop_table(&self, name: &str) -> Result<TableEntry> {
        self.change(|state| match state.document.tables.iter().position(|table| names::same(&table.name, name)) {
            Some(index) => Ok(state.document.tables.remove(index)),
            None => Err(state.unknown(name).into()),
        })
    }

    /// All tables, in the order of their registration.
    pub fn tables(&self) -> Result<Vec<TableEntry>> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.document.tables.clone())
    }

    /// Cancels what is being prefetched from tables that are open here.
    pub fn cancel_prefetches(&self) {
        let tables: Vec<Arc<Table>> = {
            let state = self.state();
            state.open.values().map(|(_, table)| table.clone()).chain(state.paths.values().cloned()).collect()
        };
        tables.iter().for_each(|table| table.cancel_prefetches());
    }

    /// Whether `name` is a registered table (no file of the table is opened).
    pub fn contains(&self, name: &str) -> Result<bool> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.entry(name).is_some())
    }

    /// All SQL views, in creation order.
    pub fn views(&self) -> Result<Vec<ViewEntry>> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.document.views.clone())
    }

    /// Keeps a SQL view; an existing one of that name is replaced if `replace`.
    pub fn create_view(&self, name: &str, sql: &str, replace: bool) -> Result<()> {
        self.change(|state| {
            let index = state.document.views.iter().position(|view| names::same(&view.name, name));
            let entry = ViewEntry { name: name.to_owned(), sql: sql.to_owned() };
            match index {
                Some(index) if replace => state.document.views[index] = entry,
                _ => {
                    state.free_name(name)?;
                    state.document.views.push(entry);
                }
            }
            Ok(())
        })
    }

    /// Forgets a SQL view.
    pub fn drop_view(&self, name: &str) -> Result<()> {
        self.change(|state| match state.document.views.iter().position(|view| names::same(&view.name, name)) {
            Some(index) => {
                state.document.views.remove(index);
                Ok(())
            }
            None => {
                let hint = names::hint(name, state.document.views.iter().map(|view| view.name.as_str()));
                Err(CatalogError::UnknownView { name: name.to_owned(), hint }.into())
            }
        })
    }

    /// The open table of that name, or of that path (anything with a path separator; `PATH#l14` picks a layer). Opened
    /// once, then shared; opened again when its catalog entry changed.
    pub fn table(&self, name_or_path: &str) -> Result<Arc<Table>> {
        if name_or_path.contains(['/', '\\']) {
            // Absolute, because the working directory may be another one the next time.
            let path = absolute(Path::new(name_or_path))?;
            let known = self.state().paths.get(&path).cloned();
            // A path means what lies there now; unlike a registered table it promises nothing about what it was before.
            if let Some(table) = known.filter(|table| table.check_files().is_ok()) {
                return Ok(table);
            }
            let table = self.open_path(name_or_path, &path)?;
            self.state().paths.insert(path, table.clone());
            return Ok(table);
        }
        let (entry, directory) = {
            let mut state = self.state();
            state.refresh()?;
            let entry = state.entry(name_or_path).ok_or_else(|| state.unknown(name_or_path))?.clone();
            if let Some((_, table)) = state.open.get(&key(&entry.name)) {
                return Ok(table.clone());
            }
            (entry, state.directory.clone())
        };
        // Outside the lock: headers, maps, perhaps a token map. Queries on other tables do not wait for that.
        let table = self
            .open_entry(&entry, directory.as_deref())
            .map_err(|error| Error::Table { name: entry.name.clone(), error: Box::new(error) })?;
        let mut state = self.state();
        if !state.document.tables.contains(&entry) {
            // Changed meanwhile: this query has what its name meant when it began.
            return Ok(table);
        }
        let (_, kept) = state.open.entry(key(&entry.name)).or_insert((entry, table));
        Ok(kept.clone())
    }

    /// Opens the table at `path`, which the caller called `name`.
    fn open_path(&self, name: &str, path: &Path) -> Result<Arc<Table>> {
        let (path, layer) = match path.to_str().and_then(|path| path.rsplit_once("#l")) {
            // A directory may really be called so.
            Some((stem, layer)) if layer.parse::<u32>().is_ok() && !path.exists() => {
                (Path::new(stem), layer.parse().ok())
            }
            _ => (path, None),
        };
        let options = RegisterOptions { layer, ..RegisterOptions::default() };
        let mut found = source::open(path, &options, &|tokenizer| self.token_map(tokenizer))?;
        match found.len() {
            1 => Ok(Arc::new(Table::open(name, path, found.remove(0))?)),
            _ => {
                let layers = found.iter().filter_map(|table| table.layer).collect();
                Err(CatalogError::SeveralLayers { path: path.to_owned(), layers }.into())
            }
        }
    }

    fn open_entry(&self, entry: &TableEntry, directory: Option<&Path>) -> Result<Arc<Table>> {
        let token_maps = |tokenizer: &Path| -> Result<Arc<TokenMap>> {
            match (&entry.token_map, directory) {
                (Some(file), Some(directory)) => Ok(Arc::new(TokenMap::read(directory.join(file))?)),
                _ => self.token_map(tokenizer),
            }
        };
        let found: Vec<SourceTable> = source::open(&entry.source, &entry.options, &token_maps)?;
        let Some(found) = found.into_iter().find(|table| table.layer == entry.layer) else {
            let (what, registered) = ("layer", entry.layer.map_or("none".to_owned(), |layer| layer.to_string()));
            let (path, name, found) = (entry.source.clone(), entry.name.clone(), "missing".to_owned());
            return Err(CatalogError::Drifted { path, name, what, registered, found }.into());
        };
        if let Some((what, registered, found)) = entry.difference(&found) {
            let (path, name) = (entry.source.clone(), entry.name.clone());
            return Err(CatalogError::Drifted { path, name, what, registered, found }.into());
        }
        Ok(Arc::new(Table::open(&entry.name, &entry.source, found)?))
    }

    fn token_map(&self, tokenizer: &Path) -> Result<Arc<TokenMap>> {
        let stamp = FileStamp::of(tokenizer).map_err(|error| SourceError::io(tokenizer, error))?;
        // Held while building: two tables of one model need one map, and the second waits for it.
        let mut known = self.token_maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, map)) = known.get(tokenizer)
            && *of == stamp
        {
            return Ok(map.clone());
        }
        let map = Arc::new(TokenMap::from_tokenizer_json(tokenizer)?);
        known.insert(tokenizer.to_owned(), (stamp, map.clone()));
        Ok(map)
    }

    /// Applies one change to the newest catalog and publishes it; nothing changes if it fails.
    fn change<T>(&self, apply: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let (directory, read_only) = {
            let state = self.state();
            (state.directory.clone(), state.read_only)
        };
        // The lock is taken before the state: waiting for another process must not stop this one's queries.
        let lock = match &directory {
            None => None,
            Some(path) if read_only => return Err(CatalogError::ReadOnly { path: path.clone() }.into()),
            Some(path) => {
                let io = |error| CatalogError::Io { action: "create", path: path.clone(), error };
                std::fs::create_dir_all(path).map_err(io)?;
                Some(WriterLock::take(path)?)
            }
        };
        let mut state = self.state();
        if state.directory != directory {
            let path = directory.unwrap_or_default();
            return Err(CatalogError::Detached { path }.into());
        }
        state.refresh()?;
        let before = state.document.clone();
        let result = apply(&mut state).and_then(|value| {
            if let Some(directory) = &directory {
                state.document.write(directory)?;
                state.stamp = Stamp::of(directory)?;
            }
            Ok(value)
        });
        if result.is_err() {
            state.document = before;
        }
        state.forget_stale();
        drop(lock);
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the state was held left at worst an older document; the stamp brings the current one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody will ask for those rows.
        self.cancel_prefetches();
    }
}

/// Key of a table name: names are the same if they differ in ASCII case only.
fn key(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// What a first change that failed may have left in a database directory.
fn is_ours(name: &OsStr) -> bool {
    name == lock::FILE || name == TOKEN_MAPS || name.to_str().is_some_and(|name| name.starts_with(TEMPORARY))
}

/// The path as others will find it: absolute, and without `..`, which means another place behind a symbolic link.
fn absolute(path: &Path) -> Result<PathBuf, CatalogError> {
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

fn open_directory(directory: &Path, read_only: bool, create: bool) -> Result<State> {
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
            if !directory.join(FILE).exists()
                && entries.any(|entry| !entry.is_ok_and(|entry| is_ours(&entry.file_name())))
            {
                let reason = match source::kind_of(&directory) {
                    Ok(_) => "it is a checkpoint or store; register it in a database under a name",
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

/// Keeps a token map under a name made from its content, and returns its path relative to the database.
fn keep_token_map(directory: &Path, map: &TokenMap) -> Result<PathBuf> {
    let bytes: Vec<u8> = map.map().iter().flat_map(|id| id.to_le_bytes()).collect();
    let name = format!("{}.map", &blake3::hash(&bytes).to_hex()[..16]);
    let folder = directory.join(TOKEN_MAPS);
    std::fs::create_dir_all(&folder).map_err(|error| CatalogError::Io {
        action: "create",
        path: folder.clone(),
        error,
    })?;
    let path = folder.join(&name);
    // An existing file is only trusted if it reads back as this map.
    if !TokenMap::read(&path).is_ok_and(|kept| kept.map() == map.map()) {
        map.write(&path)?;
    }
    Ok(Path::new(TOKEN_MAPS).join(name))
}
