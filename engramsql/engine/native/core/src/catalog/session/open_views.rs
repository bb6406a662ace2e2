//! Open materialised views, and the tables that answer from them.

use super::super::entry::ViewEntry;
use super::super::names;
use super::{Session, State, key};
use crate::error::Result;
use crate::table::Table;
use crate::view::View;
use std::sync::{Arc, Weak};

/// An open view.
pub(super) struct OpenView {
    entry: ViewEntry,
    /// The table that it was opened with.
    table: Weak<Table>,
    view: Arc<View>,
}

impl OpenView {
    /// Whether it is what `entry` means, whenever that was verified.
    fn is(&self, entry: &ViewEntry) -> bool {
        self.entry == ViewEntry { verified_at: self.entry.verified_at, ..entry.clone() }
    }
}

impl State {
    /// Closes views that are no longer what the catalog says.
    pub(super) fn forget_stale_views(&mut self) {
        let views = &self.document.views;
        self.open_views.retain(|_, open| views.iter().any(|entry| open.is(entry)));
    }
}

impl Session {
    /// The open materialised view of that name, with its table. Opened once, then shared.
    ///
    /// # Errors
    /// A name that is no view's, a table that cannot be opened, files that are missing or damaged.
    pub fn view(&self, name: &str) -> Result<Arc<View>> {
        let entry = self.view_entry(name)?;
        let table = self.table(&entry.table)?;
        self.open_view(&entry, &table)
    }

    fn open_view(&self, entry: &ViewEntry, table: &Arc<Table>) -> Result<Arc<View>> {
        let known = |state: &State| {
            let open = state.open_views.get(&key(&entry.name))?;
            (open.is(entry) && std::ptr::eq(open.table.as_ptr(), Arc::as_ptr(table))).then(|| open.view.clone())
        };
        if let Some(view) = known(&self.state()) {
            return Ok(view);
        }
        // Outside the lock: files are opened and mapped.
        let view = Arc::new(View::open(entry, table)?);
        let mut state = self.state();
        if let Some(view) = known(&state) {
            return Ok(view);
        }
        if state
            .document
            .views
            .iter()
            .any(|known| known.digest == entry.digest && names::same(&known.name, &entry.name))
        {
            let open = OpenView { entry: entry.clone(), table: Arc::downgrade(table), view: view.clone() };
            state.open_views.insert(key(&entry.name), open);
        }
        Ok(view)
    }

    /// Lets the table that the catalog calls `name` answer from the views that the catalog has of it now.
    pub(super) fn attach_views(&self, name: &str, table: &Arc<Table>) {
        let (entries, changes) = {
            let state = self.state();
            let of_table = |view: &&ViewEntry| names::same(&view.table, name);
            let entries: Vec<ViewEntry> = state.document.views.iter().filter(of_table).cloned().collect();
            (entries, state.changes)
        };
        // One that cannot be opened is told by whoever asks for it; the rows are there without it.
        let views = entries.iter().filter_map(|entry| self.open_view(entry, table).ok()).collect();
        let mut state = self.state();
        if state.changes != changes {
            // These are not those of now, which somebody else may have attached already; whoever asks next looks again.
            return;
        }
        table.attach_views(views);
        if let Some(open) = state.open.get_mut(&key(name))
            && Arc::ptr_eq(&open.table, table)
        {
            open.views_of = Some(changes);
        }
    }
}
