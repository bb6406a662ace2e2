//! `engram_plan(table, rowids)`: what a fetch would read.

use super::listing::{Cell, Listing};
use super::tables::Pinned;
use super::wanted::Wanted;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::catalog::Session;

/// The table function.
pub struct Plan;

impl Listing for Plan {
    const NAME: &'static str = "engram_plan";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Any];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("path", Column::Text),
        ("shard", Column::Integer),
        ("file", Column::Text),
        ("offset", Column::BigInt),
        ("bytes", Column::BigInt),
        ("rows", Column::BigInt),
        ("bytes_used", Column::BigInt),
        ("resident", Column::Boolean),
    ];
    type Arguments = (Pinned, Vec<i64>);

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<(Pinned, Vec<i64>)> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let ids = Wanted::read(table.table(), &arguments.positional(1)?)?.into_ids();
        table.table().check_ids(&ids)?;
        Ok((table, ids))
    }

    fn rows(session: &Session, (table, ids): &(Pinned, Vec<i64>)) -> Result<Vec<Vec<Cell>>> {
        let table = table.current(session)?;
        let files = &table.layout().files;
        let cells = |read: engram_engine::read::PlannedRead| {
            vec![
                read.path.name().into(),
                read.place.map(|place| place.shard).into(),
                read.place.map(|place| files[place.file].0.to_string_lossy().into_owned()).into(),
                read.place.map(|place| place.offset).into(),
                read.bytes.into(),
                read.rows.into(),
                read.bytes_used.into(),
                read.resident.into(),
            ]
        };
        Ok(table.plan(ids)?.into_iter().map(cells).collect())
    }
}
