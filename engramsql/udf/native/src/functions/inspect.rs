//! `engram_profile(table)`, `engram_histogram(table [, first, count])`: what is in a table, from one pass over its rows.

use super::listing::Cell;
use super::scan::range;
use super::stream::{Rows, Stream};
use super::tables::Pinned;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::Progress;
use engram_engine::catalog::Session;
use engram_engine::inspect::{HeadProfile, histogram, profile};

/// Columns and cells of a [`HeadProfile`], from one list of its fields.
macro_rules! columns {
    ($($field:ident: $column:ident,)*) => {
        const COLUMNS: &[(&str, Column)] = &[$((stringify!($field), Column::$column)),*];

        fn cells(head: HeadProfile) -> Vec<Cell> {
            vec![$(head.$field.into()),*]
        }
    };
}

columns! {
    head: Integer,
    ngram_order: Integer,
    rows: BigInt,
    dead: BigInt,
    constant: BigInt,
    nans: BigInt,
    infs: BigInt,
    zeros: BigInt,
    min: Float,
    max: Float,
    mean: Double,
    stddev: Double,
    norm_min: Double,
    norm_max: Double,
    norm_mean: Double,
    scale_min: Float,
    scale_max: Float,
    nan_rows: BigInt,
    inf_rows: BigInt,
}

/// `engram_profile(table)`.
pub struct Profile;

impl Stream for Profile {
    const NAME: &'static str = "engram_profile";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] = COLUMNS;
    type Arguments = Pinned;

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<Pinned> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        table.table().require_dim()?;
        Ok(table)
    }

    fn run(session: &Session, table: &Pinned, progress: &Progress, rows: &Rows) -> Result<()> {
        let table = table.current(session)?;
        for head in profile(&table, progress)? {
            rows.send(cells(head))?;
        }
        Ok(())
    }
}

/// `engram_histogram(table [, first, count])`.
pub struct Histogram;

/// Which rows of which table to count.
pub struct Wanted {
    table: Pinned,
    first: u64,
    end: u64,
}

impl Stream for Histogram {
    const NAME: &'static str = "engram_histogram";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("first", Parameter::Any), ("count", Parameter::Any)];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("head", Column::Integer),
        ("code", Column::Integer),
        ("low", Column::Double),
        ("high", Column::Double),
        ("count", Column::BigInt),
    ];
    type Arguments = Wanted;

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<Wanted> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        table.table().require_dim()?;
        let (first, end) = range(table.table(), arguments)?;
        Ok(Wanted { table, first, end })
    }

    fn run(session: &Session, wanted: &Wanted, progress: &Progress, rows: &Rows) -> Result<()> {
        let table = wanted.table.current(session)?;
        for bin in histogram(&table, wanted.first..wanted.end, progress)? {
            let code = bin.code.map(u32::from);
            rows.send(vec![bin.head.into(), code.into(), bin.low.into(), bin.high.into(), bin.count.into()])?;
        }
        Ok(())
    }
}
