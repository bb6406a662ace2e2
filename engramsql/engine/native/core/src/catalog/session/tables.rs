//! Tables: registered, published, verified, forgotten.

use super::super::entry::{RegisterOptions, TableEntry};
use super::super::error::CatalogError;
use super::super::names;
use super::place::{TABLES, TOKEN_MAPS, absolute};
use super::{Session, State};
use crate::error::Result;
use crate::source;
use crate::spec::TokenMap;
use std::path::{Path, PathBuf};

impl State {
    /// Whether `source` lies outside the stores that the database itself holds.
    pub(super) fn is_in_place(&self, source: &Path) -> bool {
        self.directory.as_ref().is_none_or(|home| !source.starts_with(home.join(TABLES)))
    }
}

impl Session {
    /// Reads the source's headers and remembers it under `name` (several hash layers: `name_l1`, `name_l14`).
    pub fn register(&self, name: &str, source: &Path, options: &RegisterOptions) -> Result<Vec<TableEntry>> {
        names::check(name)?;
        let source = absolute(source)?;
        let mut options = options.clone();
        options.tokenizer = options.tokenizer.as_deref().map(absolute).transpose()?;
        source::require_declared(&options)?;
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
                entry.in_place = state.is_in_place(&entry.source);
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

    /// Adds a finished table to the catalog. With `replace`, a table of that name is replaced and returned; its files stay.
    pub fn publish_table(&self, entry: TableEntry, replace: bool) -> Result<Option<TableEntry>> {
        Ok(self.publish_tables(vec![entry], replace)?.pop())
    }

    /// [`Session::publish_table`] for several tables in one change: all of them, or none. Returns those replaced.
    pub fn publish_tables(&self, entries: Vec<TableEntry>, replace: bool) -> Result<Vec<TableEntry>> {
        self.change(|state| {
            let mut replaced = Vec::new();
            for mut entry in entries {
                entry.in_place = state.is_in_place(&entry.source);
                let index = state.document.tables.iter().position(|table| names::same(&table.name, &entry.name));
                match index {
                    Some(index) if replace => {
                        replaced.push(std::mem::replace(&mut state.document.tables[index], entry));
                    }
                    _ => {
                        state.free_name(&entry.name)?;
                        state.document.tables.push(entry);
                    }
                }
            }
            Ok(replaced)
        })
    }

    /// Remembers when `verify` found this table good (microseconds since the Unix epoch), or, as `None`, that it did not.
    ///
    /// # Errors
    /// [`CatalogError::ChangedMeanwhile`] if its name means another table by now, or none.
    pub fn mark_table_verified(&self, verified: &TableEntry, at_us: Option<i64>) -> Result<()> {
        self.change(|state| {
            let tables = &mut state.document.tables;
            match tables.iter_mut().find(|table| table.opens_as(verified)) {
                Some(table) => table.verified_at = at_us,
                None => return Err(CatalogError::ChangedMeanwhile { name: verified.name.clone() }.into()),
            }
            Ok(())
        })
    }

    /// The error for a name that neither a table nor a view has.
    pub(crate) fn unknown_table_or_view(&self, name: &str) -> CatalogError {
        match self.state().unknown_of_any_kind(name) {
            CatalogError::UnknownTable { name, hint } => CatalogError::UnknownName { name, hint },
            error => error,
        }
    }

    /// The table of that name, as the catalog remembers it.
    pub fn table_entry(&self, name: &str) -> Result<TableEntry> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.entry(name).ok_or_else(|| state.unknown(name))?.clone())
    }
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
