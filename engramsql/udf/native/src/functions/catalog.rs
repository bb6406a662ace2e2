//! What the catalog and its tables consist of.

use super::listing::{Cell, Listing};
use crate::error::Result;
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::catalog::{Orphan, Session, TableEntry, ViewEntry};

/// Columns of `engram_tables()` and of the functions that change the catalog.
pub const TABLE_COLUMNS: &[(&str, Column)] = &[
    ("name", Column::Text),
    ("spec", Column::Text),
    ("layer", Column::Integer),
    ("rows", Column::BigInt),
    ("dim", Column::BigInt),
    ("format", Column::Text),
    ("row_bytes", Column::BigInt),
    ("heads", Column::BigInt),
    ("shards", Column::BigInt),
    ("bytes", Column::BigInt),
    ("source", Column::Text),
    ("in_place", Column::Boolean),
    ("verified_at", Column::Timestamp),
];

/// One table as a row of [`TABLE_COLUMNS`].
pub fn table_cells(entry: TableEntry) -> Vec<Cell> {
    vec![
        entry.name.into(),
        entry.spec.into(),
        entry.layer.into(),
        entry.rows.into(),
        entry.dim.into(),
        entry.format.into(),
        entry.row_bytes.into(),
        entry.heads.into(),
        entry.shards.into(),
        entry.bytes.into(),
        entry.source.to_string_lossy().into_owned().into(),
        entry.in_place.into(),
        entry.verified_at.into(),
    ]
}

/// `engram_tables()`.
pub struct Tables;

impl Listing for Tables {
    const NAME: &'static str = "engram_tables";
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        Ok(session.tables()?.into_iter().map(table_cells).collect())
    }
}

/// `engram_views()`: materialised views, then SQL views.
pub struct Views;

impl Listing for Views {
    const NAME: &'static str = "engram_views";
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("name", Column::Text),
        ("kind", Column::Text),
        ("table_name", Column::Text),
        ("slots", Column::BigInt),
        ("heads", Column::BigInt),
        ("record_bytes", Column::BigInt),
        ("bytes", Column::BigInt),
        ("form", Column::Text),
        ("record_order", Column::Text),
        ("tokens", Column::BigInt),
        ("covered", Column::BigInt),
        ("directory", Column::Text),
        ("sql", Column::Text),
        ("verified_at", Column::Timestamp),
    ];
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        let materialised = session.views()?.into_iter().map(view_cells);
        let sql = session.sql_views()?.into_iter().map(|view| {
            let mut cells = vec![Cell::Null; Self::COLUMNS.len()];
            (cells[0], cells[1], cells[SQL_COLUMN]) = (view.name.into(), "sql".into(), view.sql.into());
            cells
        });
        Ok(materialised.chain(sql).collect())
    }
}

/// Place of the column `sql` in [`Views::COLUMNS`].
const SQL_COLUMN: usize = 12;

/// One materialised view as a row of [`Views::COLUMNS`].
fn view_cells(entry: ViewEntry) -> Vec<Cell> {
    vec![
        entry.name.into(),
        "materialised".into(),
        entry.table.into(),
        entry.slots.into(),
        entry.heads.into(),
        entry.record_bytes.into(),
        entry.bytes.into(),
        entry.form.into(),
        entry.order.into(),
        entry.tokens.into(),
        entry.covered.into(),
        entry.directory.to_string_lossy().into_owned().into(),
        Cell::Null,
        entry.verified_at.into(),
    ]
}

/// `engram_orphans()`.
pub struct Orphans;

impl Listing for Orphans {
    const NAME: &'static str = "engram_orphans";
    const COLUMNS: &'static [(&'static str, Column)] =
        &[("path", Column::Text), ("kind", Column::Text), ("bytes", Column::BigInt), ("in_use", Column::Boolean)];
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        let cells = |orphan: Orphan| {
            let path = orphan.path.to_string_lossy().into_owned();
            vec![path.into(), orphan.kind.name().into(), orphan.bytes.into(), orphan.in_use.into()]
        };
        Ok(session.orphans()?.into_iter().map(cells).collect())
    }
}

/// A table name whose table opens.
fn table_argument(session: &Session, arguments: &Arguments<'_>) -> Result<String> {
    let name = arguments.text(0, "table")?;
    session.table(&name)?;
    Ok(name)
}

/// `engram_shards(table)`.
pub struct Shards;

impl Listing for Shards {
    const NAME: &'static str = "engram_shards";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("shard", Column::Integer),
        ("file", Column::Text),
        ("first_row", Column::BigInt),
        ("rows", Column::BigInt),
        ("offset", Column::BigInt),
        ("bytes", Column::BigInt),
        ("present", Column::Boolean),
        ("resident_bytes", Column::BigInt),
    ];
    type Arguments = String;

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<String> {
        table_argument(session, arguments)
    }

    fn rows(session: &Session, name: &String) -> Result<Vec<Vec<Cell>>> {
        let shards = session.table(name)?.shards();
        Ok(shards
            .into_iter()
            .map(|shard| {
                vec![
                    shard.shard.into(),
                    shard.file.into(),
                    shard.first_row.into(),
                    shard.rows.into(),
                    shard.offset.into(),
                    shard.bytes.into(),
                    shard.present.into(),
                    shard.resident_bytes.into(),
                ]
            })
            .collect())
    }
}

/// `engram_heads(table)`.
pub struct Heads;

impl Listing for Heads {
    const NAME: &'static str = "engram_heads";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("head", Column::Integer),
        ("ngram_order", Column::Integer),
        ("size", Column::BigInt),
        ("first_row", Column::BigInt),
        ("rows", Column::BigInt),
    ];
    type Arguments = String;

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<String> {
        let name = table_argument(session, arguments)?;
        // Without a spec there are no heads; an empty result would hide why.
        session.table(&name)?.require_spec()?;
        Ok(name)
    }

    fn rows(session: &Session, name: &String) -> Result<Vec<Vec<Cell>>> {
        let heads = session.table(name)?.heads();
        Ok(heads
            .into_iter()
            .map(|head| {
                vec![
                    head.head.into(),
                    head.ngram_order.into(),
                    head.size.into(),
                    head.first_row.into(),
                    head.rows.into(),
                ]
            })
            .collect())
    }
}
