//! What a build asks of a session before it writes anything.

use super::super::entry::RegisterOptions;
use super::super::error::CatalogError;
use super::super::names;
use super::Session;
use super::place::absolute;
use crate::error::Result;
use crate::source;
use crate::table::Table;
use std::path::Path;

impl Session {
    /// Refuses a session that may not change its database.
    pub(crate) fn require_writable(&self) -> Result<()> {
        let state = self.state();
        match &state.directory {
            Some(path) if state.read_only => Err(CatalogError::ReadOnly { path: path.clone() }.into()),
            _ => Ok(()),
        }
    }

    /// Refuses a name that no new table can have; with `replace`, that of a table may be taken again.
    pub(crate) fn require_free(&self, name: &str, replace: bool) -> Result<()> {
        let mut state = self.state();
        state.refresh()?;
        match state.entry(name) {
            Some(_) if replace => Ok(names::check(name)?),
            Some(table) => Err(CatalogError::taken_and_replaceable("table", &table.name).into()),
            None => Ok(state.free_name(name)?),
        }
    }

    /// Opens the tables of a source, which need not be registered: one, or one per hash layer.
    pub(crate) fn open_source(&self, source: &Path, options: &RegisterOptions) -> Result<Vec<Table>> {
        let path = absolute(source)?;
        let mut options = options.clone();
        options.tokenizer = options.tokenizer.as_deref().map(absolute).transpose()?;
        source::require_declared(&options)?;
        let found = source::open(&path, &options, &|tokenizer| self.token_map(tokenizer))?;
        found.into_iter().map(|table| Table::open(&source.to_string_lossy(), &path, table)).collect()
    }
}
