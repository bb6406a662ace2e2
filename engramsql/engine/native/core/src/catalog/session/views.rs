//! Views: materialised ones and SQL ones.

use super::super::entry::{SqlViewEntry, ViewEntry};
use super::super::error::CatalogError;
use super::super::names;
use super::{Session, State};
use crate::error::Result;

impl State {
    pub(super) fn view_entry(&self, name: &str) -> Option<&ViewEntry> {
        self.document.views.iter().find(|view| names::same(&view.name, name))
    }

    pub(super) fn unknown_view<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> CatalogError {
        CatalogError::UnknownView { name: name.to_owned(), hint: names::hint(name, known) }
    }
}

impl Session {
    /// All materialised views, in the order of their first publication.
    pub fn views(&self) -> Result<Vec<ViewEntry>> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.document.views.clone())
    }

    /// The materialised view of that name, as the catalog remembers it.
    pub fn view_entry(&self, name: &str) -> Result<ViewEntry> {
        let mut state = self.state();
        state.refresh()?;
        match state.view_entry(name) {
            Some(entry) => Ok(entry.clone()),
            None => {
                let known = state.document.views.iter().map(|view| view.name.as_str());
                Err(State::unknown_view(name, known).into())
            }
        }
    }

    /// Refuses what [`Session::publish_view`] would refuse, before a view called `name` is built.
    pub(crate) fn check_new_view(&self, name: &str, replace: bool) -> Result<()> {
        let mut state = self.state();
        state.refresh()?;
        if let Some(path) = state.directory.clone().filter(|_| state.read_only) {
            return Err(CatalogError::ReadOnly { path }.into());
        }
        match state.view_entry(name) {
            Some(_) if replace => Ok(()),
            Some(view) => Err(CatalogError::taken_and_replaceable("view", &view.name).into()),
            None => Ok(state.free_name(name)?),
        }
    }

    /// Adds a finished view to the catalog. With `replace`, a view of that name is replaced and returned; its directory
    /// stays, named by nothing.
    pub fn publish_view(&self, entry: ViewEntry, replace: bool) -> Result<Option<ViewEntry>> {
        self.change(|state| {
            // The table may have been dropped while its view was built.
            if state.entry(&entry.table).is_none() {
                return Err(state.unknown(&entry.table).into());
            }
            let index = state.document.views.iter().position(|view| names::same(&view.name, &entry.name));
            match index {
                Some(index) if replace => Ok(Some(std::mem::replace(&mut state.document.views[index], entry))),
                _ => {
                    state.free_name(&entry.name)?;
                    state.document.views.push(entry);
                    Ok(None)
                }
            }
        })
    }

    /// Remembers when `verify` found this view good (microseconds since the Unix epoch), or, as `None`, that it did not.
    ///
    /// # Errors
    /// [`CatalogError::ChangedMeanwhile`] if its name means another view by now, or none.
    pub fn mark_view_verified(&self, verified: &ViewEntry, at_us: Option<i64>) -> Result<()> {
        self.change(|state| {
            let same =
                |view: &&mut ViewEntry| names::same(&view.name, &verified.name) && view.digest == verified.digest;
            match state.document.views.iter_mut().find(same) {
                Some(view) => view.verified_at = at_us,
                None => return Err(CatalogError::ChangedMeanwhile { name: verified.name.clone() }.into()),
            }
            Ok(())
        })
    }

    /// All SQL views, in creation order.
    pub fn sql_views(&self) -> Result<Vec<SqlViewEntry>> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.document.sql_views.clone())
    }

    /// Keeps a SQL view; an existing one of that name is replaced if `replace`.
    pub fn create_sql_view(&self, name: &str, sql: &str, replace: bool) -> Result<()> {
        self.change(|state| {
            let index = state.document.sql_views.iter().position(|view| names::same(&view.name, name));
            let entry = SqlViewEntry { name: name.to_owned(), sql: sql.to_owned() };
            match index {
                Some(index) if replace => state.document.sql_views[index] = entry,
                _ => {
                    state.free_name(name)?;
                    state.document.sql_views.push(entry);
                }
            }
            Ok(())
        })
    }

    /// Forgets a SQL view.
    pub fn drop_sql_view(&self, name: &str) -> Result<()> {
        self.change(|state| match state.document.sql_views.iter().position(|view| names::same(&view.name, name)) {
            Some(index) => {
                state.document.sql_views.remove(index);
                Ok(())
            }
            None => {
                let known = state.document.sql_views.iter().map(|view| view.name.as_str());
                Err(State::unknown_view(name, known).into())
            }
        })
    }
}
