//! Opening tables: by name as the catalog says, by path as the files say.

use super::super::entry::{RegisterOptions, TableEntry};
use super::super::error::CatalogError;
use super::place::absolute;
use super::{OpenTable, Session, key};
use crate::error::{Error, Result};
use crate::source::{self, FileStamp, SourceError, SourceTable};
use crate::spec::TokenMap;
use crate::table::Table;
use std::path::Path;
use std::sync::{Arc, PoisonError};

impl Session {
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
        loop {
            let (entry, opened) = self.table_named(name_or_path)?;
            match opened {
                // Replaced between the look at the catalog and the look at the files: the name means another table now.
                Err(_) if !self.still_means(&entry)? => (),
                opened => {
                    return opened.map_err(|error| Error::Table { name: entry.name, error: Box::new(error) });
                }
            }
        }
    }

    /// The entry of that name as it was when this began, and its table.
    fn table_named(&self, name: &str) -> Result<(TableEntry, Result<Arc<Table>>)> {
        let (entry, directory) = {
            let mut state = self.state();
            state.refresh()?;
            let entry = state.entry(name).ok_or_else(|| state.unknown(name))?.clone();
            let open = state.open.get(&key(&entry.name)).map(|open| (open.table.clone(), open.views_of));
            if let Some((table, views_of)) = open {
                let changes = state.changes;
                drop(state);
                if views_of != Some(changes) {
                    self.attach_views(&entry.name, &table);
                }
                return Ok((entry, Ok(table)));
            }
            (entry, state.directory.clone())
        };
        // Outside the lock: headers, maps, perhaps a token map. Queries on other tables do not wait for that.
        let table = match self.open_entry(&entry, directory.as_deref()) {
            Ok(table) => table,
            Err(error) => return Ok((entry, Err(error))),
        };
        let mut state = self.state();
        if !state.document.tables.iter().any(|table| table.opens_as(&entry)) {
            // Changed meanwhile: this query has what its name meant when it began.
            return Ok((entry, Ok(table)));
        }
        let open = OpenTable { entry: entry.clone(), table, views_of: None };
        let table = state.open.entry(key(&entry.name)).or_insert(open).table.clone();
        drop(state);
        self.attach_views(&entry.name, &table);
        Ok((entry, Ok(table)))
    }

    /// Whether the catalog has the entry as it is.
    fn still_means(&self, entry: &TableEntry) -> Result<bool> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.document.tables.iter().any(|table| table.opens_as(entry)))
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
        let drifted = |what, registered, found| {
            let (path, name) = (entry.source.clone(), entry.name.clone());
            CatalogError::Drifted { path, name, what, registered, found }
        };
        let Some(found) = self.find(entry, directory)? else {
            let layer = entry.layer.map_or("none".to_owned(), |layer| layer.to_string());
            return Err(drifted("layer", layer, "missing".to_owned()).into());
        };
        if let Some((what, registered, found)) = entry.difference(&found) {
            return Err(drifted(what, registered, found).into());
        }
        Ok(Arc::new(Table::open(&entry.name, &entry.source, found)?))
    }

    /// What lies at the source of `entry` now, read with its options; `None` if its layer is not there.
    pub(super) fn find(&self, entry: &TableEntry, directory: Option<&Path>) -> Result<Option<SourceTable>> {
        let token_maps = |tokenizer: &Path| -> Result<Arc<TokenMap>> {
            match (&entry.token_map, directory) {
                (Some(file), Some(directory)) => Ok(Arc::new(TokenMap::read(directory.join(file))?)),
                _ => self.token_map(tokenizer),
            }
        };
        let found = source::open(&entry.source, &entry.options, &token_maps)?;
        let mut found = found.into_iter().find(|table| table.layer == entry.layer);
        if let Some(found) = &mut found {
            found.tokenizer = found.tokenizer.take().or_else(|| entry.tokenizer.clone());
        }
        Ok(found)
    }

    pub(super) fn token_map(&self, tokenizer: &Path) -> Result<Arc<TokenMap>> {
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
}
