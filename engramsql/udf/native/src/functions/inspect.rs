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

/// `engram_profile(table)`.
pub struct Profile;

impl Stream for Profile {
    const NAME: &'static str = "engram_profile";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("head", Column::Integer),
        ("ngram_order", Column::Integer),
        ("rows", Column::BigInt),
        ("dead", Column::BigInt),
        ("constant", Column::BigInt),
        ("nans", Column::BigInt),
        ("infs", Column::BigInt),
        ("zeros", Column::BigInt),
        ("min", Column::Float),
        ("max", Column::Float),
        ("mean", Column::Double),
        ("stddev", Column::Double),
        ("norm_min", Column::Double),
        ("norm_max", Column::Double),
        ("norm_mean", Column::Double),
        ("scale_min", Column::Float),
        ("scale_max", Column::Float),
        ("nan_rows", Column::BigInt),
        ("inf_rows", Column::BigInt),
    ];
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

fn cells(head: HeadProfile) -> Vec<Cell> {
    vec![
        head.head.into(),
        head.ngram_order.into(),
        head.rows.into(),
        head.dead.into(),
        head.constant.into(),
        head.nans.into(),
        head.infs.into(),
        head.zeros.into(),
        head.min.into(),
        head.max.into(),
        head.mean.into(),
        head.stddev.into(),
        head.norm_min.into(),
        head.norm_max.into(),
        head.norm_mean.into(),
        head.scale_min.into(),
        head.scale_max.into(),
        head.nan_rows.into(),
        head.inf_rows.into(),
    ]
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
