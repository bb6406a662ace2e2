//! What the catalog forgets, with its data or without.

use super::super::document::Document;
use super::super::entry::{SqlViewEntry, TableEntry, ViewEntry};
use super::super::error::CatalogError;
use super::super::names;
use super::place::{Held, entry_within};
use super::trash::Doomed;
use super::{Session, State};
use crate::error::Result;
use std::path::Path;

/// What was dropped.
#[derive(Debug, Clone, PartialEq)]
pub enum Dropped {
    /// A table.
    Table(Box<TableEntry>),
    /// A materialised view.
    View(Box<ViewEntry>),
    /// A SQL view.
    SqlView(SqlViewEntry),
}

/// An entry that had data: what kind, under which name, and where.
trait Entry {
    fn data(&self) -> Option<(Held, &str, &Path)>;
}

impl Entry for TableEntry {
    fn data(&self) -> Option<(Held, &str, &Path)> {
        Some((Held::Table, &self.name, &self.source))
    }
}

impl Entry for ViewEntry {
    fn data(&self) -> Option<(Held, &str, &Path)> {
        Some((Held::View, &self.name, &self.directory))
    }
}

impl Entry for Dropped {
    fn data(&self) -> Option<(Held, &str, &Path)> {
        match self {
            Dropped::Table(table) => table.data(),
            Dropped::View(view) => view.data(),
            // Its text was in the catalog.
            Dropped::SqlView(_) => None,
        }
    }
}

impl Session {
    /// Forgets the table, view or SQL view of that name. With `data`, the directory of its own that it has inside the
    /// database is removed after that; anything else is refused, because what lies elsewhere is never removed.
    pub fn drop(&self, name: &str, data: bool) -> Result<Dropped> {
        self.forget(data, |state| {
            let Document { tables, views, sql_views } = &mut state.document;
            if tables.iter().any(|table| names::same(&table.name, name)) {
                return Ok(Dropped::Table(Box::new(state.take_table(name)?)));
            }
            if let Some(index) = views.iter().position(|view| names::same(&view.name, name)) {
                return Ok(Dropped::View(Box::new(views.remove(index))));
            }
            if let Some(index) = sql_views.iter().position(|view| names::same(&view.name, name)) {
                return Ok(Dropped::SqlView(sql_views.remove(index)));
            }
            Err(state.unknown_of_any_kind(name).into())
        })
    }

    /// [`Session::drop`] for tables only.
    pub fn drop_table(&self, name: &str, data: bool) -> Result<TableEntry> {
        self.forget(data, |state| state.take_table(name))
    }

    /// [`Session::drop`] for materialised views only.
    pub fn drop_view(&self, name: &str, data: bool) -> Result<ViewEntry> {
        self.forget(data, |state| {
            let views = &mut state.document.views;
            match views.iter().position(|view| names::same(&view.name, name)) {
                Some(index) => Ok(views.remove(index)),
                None => Err(State::unknown_view(name, views.iter().map(|view| view.name.as_str())).into()),
            }
        })
    }

    fn forget<T: Entry>(&self, data: bool, take: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let (dropped, trash) = self.exclusive(|state| {
            let mut doomed = None;
            let dropped = state.commit(|state| {
                let dropped = take(state)?;
                if data && let Some((kind, name, path)) = dropped.data() {
                    state.require_owned(kind, name, path)?;
                    doomed = Doomed::claim(path, false)?;
                }
                Ok(dropped)
            })?;
            // Still under the lock: nobody can register the directory before it has another name.
            let trash = doomed.map(Doomed::rename).transpose()?;
            Ok((dropped, trash))
        })?;
        if let Some(trash) = trash {
            trash.remove()?;
        }
        Ok(dropped)
    }
}

impl State {
    fn take_table(&mut self, name: &str) -> Result<TableEntry> {
        let Some(index) = self.document.tables.iter().position(|table| names::same(&table.name, name)) else {
            return Err(self.unknown(name).into());
        };
        let name = self.document.tables[index].name.clone();
        let views = self.document.views.iter().filter(|view| names::same(&view.table, &name));
        let views: Vec<String> = views.map(|view| view.name.clone()).collect();
        if !views.is_empty() {
            return Err(CatalogError::HasViews { name, views }.into());
        }
        Ok(self.document.tables.remove(index))
    }

    /// Refuses a path that is not the database's own to remove, or that an entry which stays needs.
    fn require_owned(&self, kind: Held, name: &str, path: &Path) -> Result<(), CatalogError> {
        let folder = self.directory.as_ref().map(|home| home.join(kind.folder()));
        if folder.is_none() || path.parent() != folder.as_deref() {
            return Err(CatalogError::ForeignData { name: name.to_owned(), path: path.to_owned() });
        }
        match entry_within(&self.document, path) {
            Some(other) => {
                Err(CatalogError::SharedData { name: name.to_owned(), other: other.to_owned(), path: path.to_owned() })
            }
            None => Ok(()),
        }
    }
}
