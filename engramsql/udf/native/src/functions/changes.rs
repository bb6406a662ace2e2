//! `CALL engram_attach(...)`, `engram_register(...)`, `engram_relocate(...)`, `engram_drop(...)`: the catalog, changed from
//! SQL.
//!
//! Binding only reads arguments; the change happens once, when the statement runs. The result is one row per table
//! touched.

use super::arguments::{self, flag, source_options};
use super::catalog::{TABLE_COLUMNS, table_cells};
use super::listing::{Cell, Listing};
use crate::error::Result;
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::catalog::{Dropped, RegisterOptions, Session};
use std::path::{Path, PathBuf};

/// `engram_attach(dir [, read_only := true])`.
pub struct Attach;

impl Listing for Attach {
    const NAME: &'static str = "engram_attach";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("read_only", Parameter::Boolean)];
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = (PathBuf, bool);

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<(PathBuf, bool)> {
        Ok((arguments.text(0, "dir")?.into(), flag(arguments, "read_only")?.unwrap_or(false)))
    }

    fn rows(session: &Session, (dir, read_only): &(PathBuf, bool)) -> Result<Vec<Vec<Cell>>> {
        session.attach(dir, *read_only)?;
        Ok(session.tables()?.into_iter().map(table_cells).collect())
    }
}

/// `engram_register(name, source [, spec :=, format :=, ...])`.
pub struct Register;

/// Arguments of a registration.
pub struct Registration {
    name: String,
    source: String,
    options: RegisterOptions,
}

impl Listing for Register {
    const NAME: &'static str = "engram_register";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &arguments::SOURCE;
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = Registration;

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<Registration> {
        Ok(Registration {
            name: arguments.text(0, "name")?,
            source: arguments.text(1, "source")?,
            options: source_options(arguments)?,
        })
    }

    fn rows(session: &Session, arguments: &Registration) -> Result<Vec<Vec<Cell>>> {
        let added = session.register(&arguments.name, Path::new(&arguments.source), &arguments.options)?;
        Ok(added.into_iter().map(table_cells).collect())
    }
}

/// `engram_relocate(name, source)`.
pub struct Relocate;

impl Listing for Relocate {
    const NAME: &'static str = "engram_relocate";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = (String, PathBuf);

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<(String, PathBuf)> {
        Ok((arguments.text(0, "name")?, arguments.text(1, "source")?.into()))
    }

    fn rows(session: &Session, (name, source): &(String, PathBuf)) -> Result<Vec<Vec<Cell>>> {
        Ok(vec![table_cells(session.relocate(name, source)?)])
    }
}

/// `engram_drop(name [, data := true])`.
pub struct Drop;

impl Listing for Drop {
    const NAME: &'static str = "engram_drop";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("data", Parameter::Boolean)];
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = (String, bool);

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<(String, bool)> {
        Ok((arguments.text(0, "name")?, flag(arguments, "data")?.unwrap_or(false)))
    }

    fn rows(session: &Session, (name, data): &(String, bool)) -> Result<Vec<Vec<Cell>>> {
        Ok(vec![match session.drop(name, *data)? {
            Dropped::Table(table) => table_cells(*table),
            // What a view has of a table's properties.
            Dropped::View(view) => cells_of(vec![
                ("name", view.name.into()),
                ("rows", view.slots.into()),
                ("row_bytes", view.record_bytes.into()),
                ("heads", view.heads.into()),
                ("bytes", view.bytes.into()),
                ("source", view.directory.to_string_lossy().into_owned().into()),
                ("verified_at", view.verified_at.into()),
            ]),
            Dropped::SqlView(view) => cells_of(vec![("name", view.name.into())]),
        }])
    }
}

/// A row of [`TABLE_COLUMNS`] in which everything else is NULL.
fn cells_of(known: Vec<(&str, Cell)>) -> Vec<Cell> {
    let of = |name: &str| known.iter().find(|(column, _)| *column == name).map_or(Cell::Null, |(_, cell)| cell.clone());
    TABLE_COLUMNS.iter().map(|(name, _)| of(name)).collect()
}
