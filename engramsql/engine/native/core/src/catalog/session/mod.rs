//! A set of named tables and views, on a directory or in memory.

mod building;
mod drop;
mod open;
mod open_views;
mod orphans;
mod place;
mod relocate;
mod tables;
mod trash;
mod views;

use super::document::{Document, Stamp};
use super::entry::TableEntry;
use super::error::CatalogError;
use super::lock::WriterLock;
use super::names;
use crate::error::Result;
use crate::source::FileStamp;
use crate::spec::TokenMap;
use crate::table::Table;
pub use drop::Dropped;
use open_views::OpenView;
pub use orphans::{Orphan, OrphanKind};
pub use place::Held;
use place::open_directory;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Changes to the document that this session has seen.
    changes: u64,
    /// Open tables by catalog name.
    open: HashMap<String, OpenTable>,
    /// Open materialised views by name.
    open_views: HashMap<String, OpenView>,
    /// Tables opened by path.
    paths: HashMap<PathBuf, Arc<Table>>,
}

/// An open table.
struct OpenTable {
    /// What it was opened from.
    entry: TableEntry,
    table: Arc<Table>,
    /// Up to which change its views are those of the catalog.
    views_of: Option<u64>,
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

    /// Closes tables and views that are no longer what the catalog says.
    fn forget_stale(&mut self) {
        self.changes += 1;
        let tables = &self.document.tables;
        self.open.retain(|_, open| tables.iter().any(|table| table.opens_as(&open.entry)));
        self.forget_stale_views();
    }

    /// Applies one change and publishes it; nothing changes if it fails. The caller is the only writer.
    fn commit<T>(&mut self, apply: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let (before, stamp) = (self.document.clone(), self.stamp);
        // Until it is done, the catalog is read again whatever happens: a panic would leave what was never published.
        self.stamp = Some(Stamp::UNKNOWN);
        let result = apply(self).and_then(|value| {
            if let Some(directory) = &self.directory {
                self.document.write(directory)?;
                self.stamp = Stamp::of(directory)?;
            }
            Ok(value)
        });
        if result.is_err() {
            (self.document, self.stamp) = (before, stamp);
        }
        self.forget_stale();
        result
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

    /// [`State::unknown`], where a view would have done as well.
    fn unknown_of_any_kind(&self, name: &str) -> CatalogError {
        let Document { tables, views, sql_views } = &self.document;
        if views.is_empty() && sql_views.is_empty() {
            return self.unknown(name);
        }
        let known = tables.iter().map(|table| &table.name).chain(views.iter().map(|view| &view.name));
        let known = known.chain(sql_views.iter().map(|view| &view.name)).map(String::as_str);
        CatalogError::UnknownTable { name: name.to_owned(), hint: names::hint(name, known) }
    }

    /// Refuses a name that cannot be one, or that a table, view or SQL view has: they share one set of names.
    fn free_name(&self, name: &str) -> Result<(), CatalogError> {
        names::check(name)?;
        let taken = |what, name: &str, remedy| Err(CatalogError::NameTaken { what, name: name.to_owned(), remedy });
        if let Some(table) = self.entry(name) {
            return taken("table", &table.name, "drop it first, or choose another name");
        }
        if let Some(view) = self.document.views.iter().find(|view| names::same(&view.name, name)) {
            return taken("view", &view.name, "drop the view first, or choose another name");
        }
        if let Some(view) = self.document.sql_views.iter().find(|view| names::same(&view.name, name)) {
            return taken("SQL view", &view.name, "drop the view first, or choose another name");
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

    /// Whether it was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.state().read_only
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
            state.open.values().map(|open| open.table.clone()).chain(state.paths.values().cloned()).collect()
        };
        tables.iter().for_each(|table| table.cancel_prefetches());
    }

    /// Whether `name` is a registered table (no file of the table is opened).
    pub fn contains(&self, name: &str) -> Result<bool> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.entry(name).is_some())
    }

    /// Applies one change to the newest catalog and publishes it; nothing changes if it fails.
    fn change<T>(&self, apply: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.exclusive(|state| state.commit(apply))
    }

    /// Does work as the only writer of the database, knowing the newest catalog.
    fn exclusive<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
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
        let result = work(&mut state);
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
