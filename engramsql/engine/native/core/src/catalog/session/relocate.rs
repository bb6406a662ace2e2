//! Tables whose files were moved.

use super::super::entry::TableEntry;
use super::super::error::CatalogError;
use super::super::names;
use super::Session;
use super::place::absolute;
use crate::error::Result;
use crate::source::is_spec_path;
use std::path::{Path, PathBuf};

impl Session {
    /// Points a table to the place where its files are now. Headers are read there, and must say what was registered; the
    /// time of its verification is forgotten, because the bytes there are not proven to be the same.
    pub fn relocate(&self, name: &str, source: &Path) -> Result<TableEntry> {
        self.require_writable()?;
        let source = absolute(source)?;
        let before = self.table_entry(name)?;
        let mut entry = TableEntry { source: source.clone(), verified_at: None, ..before.clone() };
        // What was declared as a file of the old place has moved along with it.
        for tokenizer in [&mut entry.options.tokenizer, &mut entry.tokenizer] {
            *tokenizer = tokenizer.take().map(|path| moved(path, &before.source, &source));
        }
        if let Some(spec) = entry.options.spec.as_mut().filter(|spec| is_spec_path(spec)) {
            let path = moved(PathBuf::from(&*spec), &before.source, &source);
            *spec = path.to_str().ok_or(CatalogError::PathNotUnicode { path: path.clone() })?.to_owned();
        }
        let other = |what, registered, found| CatalogError::OtherSource {
            path: source.clone(),
            name: before.name.clone(),
            what,
            registered,
            found,
        };
        // Outside every lock: this reads headers, and may build a token map.
        let Some(found) = self.find(&entry, self.directory().as_deref())? else {
            let layer = entry.layer.map_or("none".to_owned(), |layer| layer.to_string());
            return Err(other("layer", layer, "missing".to_owned()).into());
        };
        if let Some((what, registered, found)) = before.difference(&found) {
            return Err(other(what, registered, found).into());
        }
        entry.shards = found.layout.shard_count().into();
        entry.bytes = found.layout.bytes();
        self.change(|state| {
            entry.in_place = state.is_in_place(&entry.source);
            let Some(index) = state.document.tables.iter().position(|table| names::same(&table.name, name)) else {
                return Err(state.unknown(name).into());
            };
            if !state.document.tables[index].opens_as(&before) {
                return Err(CatalogError::ChangedMeanwhile { name: before.name.clone() }.into());
            }
            state.document.tables[index] = entry.clone();
            Ok(())
        })?;
        // As the catalog now has it, which says whether it is in place.
        self.table_entry(&before.name)
    }
}

/// A path inside `from`, as it is called after `from` has become `to`; any other path as it is.
fn moved(path: PathBuf, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) => to.join(rest),
        Err(_) => path,
    }
}
