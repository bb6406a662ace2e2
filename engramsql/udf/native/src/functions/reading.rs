//! What reading costs, what is in memory, and bringing it there.

use super::listing::{Cell, Listing};
use super::tables::Pinned;
use super::wanted::Wanted;
use crate::error::{Error, Result};
use crate::ffi::{Arguments, Column, Columns, OutChunk, Parameter, TableFunction};
use engram_engine::Table;
use engram_engine::cache::{RowCache, parse_bytes};
use engram_engine::catalog::Session;
use engram_engine::read::CodePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `engram_stats()`.
pub struct Stats;

impl Listing for Stats {
    const NAME: &'static str = "engram_stats";
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("table_name", Column::Text),
        ("path", Column::Text),
        ("batches", Column::BigInt),
        ("rows", Column::BigInt),
        ("reads", Column::BigInt),
        ("bytes_read", Column::BigInt),
        ("bytes_used", Column::BigInt),
        ("cache_hits", Column::BigInt),
        ("cache_misses", Column::BigInt),
        ("seconds", Column::Double),
        ("p50_us", Column::Double),
        ("p90_us", Column::Double),
        ("p99_us", Column::Double),
    ];
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        let mut rows = Vec::new();
        for entry in session.tables()? {
            // A table that does not open (any more) says so where it is used; the others' counters are told all the same.
            let Ok(table) = session.table(&entry.name) else { continue };
            let cached = table.cached();
            for stats in table.stats() {
                let of_cache = |count: u64| if stats.path == CodePath::Cache { count.into() } else { Cell::Null };
                let micros = |time: Duration| Cell::Number(time.as_secs_f64() * 1e6);
                rows.push(vec![
                    entry.name.clone().into(),
                    stats.path.name().into(),
                    stats.batches.into(),
                    stats.rows.into(),
                    stats.reads.into(),
                    stats.bytes_read.into(),
                    stats.bytes_used.into(),
                    of_cache(cached.hits),
                    of_cache(cached.misses),
                    Cell::Number(stats.time.as_secs_f64()),
                    micros(stats.p50),
                    micros(stats.p90),
                    micros(stats.p99),
                ]);
            }
        }
        Ok(rows)
    }
}

/// `engram_cache()`.
pub struct Cache;

impl Listing for Cache {
    const NAME: &'static str = "engram_cache";
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("budget", Column::BigInt),
        ("bytes", Column::BigInt),
        ("rows", Column::BigInt),
        ("hits", Column::BigInt),
        ("misses", Column::BigInt),
        ("hit_rate", Column::Double),
    ];
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(_session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        let usage = RowCache::global()?.usage();
        let lookups = usage.hits + usage.misses;
        let rate = if lookups == 0 { Cell::Null } else { Cell::Number(usage.hits as f64 / lookups as f64) };
        Ok(vec![vec![
            usage.budget.into(),
            usage.bytes.into(),
            usage.rows.into(),
            usage.hits.into(),
            usage.misses.into(),
            rate,
        ]])
    }
}

/// `engram_prefetch(table, rowids)`.
pub struct Prefetch;

impl Listing for Prefetch {
    const NAME: &'static str = "engram_prefetch";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Any];
    const COLUMNS: &'static [(&'static str, Column)] = &[("rows", Column::BigInt), ("bytes", Column::BigInt)];
    type Arguments = (Pinned, Vec<i64>);

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<(Pinned, Vec<i64>)> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let ids = Wanted::read(table.table(), &arguments.positional(1)?)?.into_ids();
        table.table().check_ids(&ids)?;
        Ok((table, ids))
    }

    fn rows(session: &Session, (table, ids): &(Pinned, Vec<i64>)) -> Result<Vec<Vec<Cell>>> {
        let prefetch = table.current(session)?.prefetch(ids.clone())?;
        Ok(vec![vec![(prefetch.rows() as u64).into(), prefetch.bytes().into()]])
    }
}

/// `engram_warm(table [, budget])`: one line for each stretch of rows, as it is done.
pub struct Warm;

/// What to warm.
pub struct WarmBound {
    table: Pinned,
    /// Rows that fit the budget.
    rows: u64,
}

/// Progress of one execution.
pub struct WarmGlobal {
    table: Arc<Table>,
    next: AtomicU64,
}

/// Bytes of rows that are brought into memory between two looks at an interrupt: a tenth of a second of a disk's time.
const STRETCH: u64 = 128 << 20;

impl TableFunction for Warm {
    const NAME: &'static str = "engram_warm";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("budget", Parameter::Text)];
    type Bound = WarmBound;
    type Global = WarmGlobal;
    type Local = ();

    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<WarmBound> {
        let table = Pinned::new(session, arguments.text(0, "table")?)?;
        let budget = match arguments.named("budget") {
            None => None,
            Some(value) => value.text("budget")?.map(|text| parse_bytes(&text)).transpose()?,
        };
        let rows = table.table().rows_within(budget);
        for (name, column) in [
            ("first_row", Column::BigInt),
            ("rows", Column::BigInt),
            ("bytes", Column::BigInt),
            ("resident_bytes", Column::BigInt),
        ] {
            columns.add(name, column);
        }
        Ok(WarmBound { table, rows })
    }

    fn init(session: &Arc<Session>, bound: &WarmBound) -> Result<WarmGlobal> {
        Ok(WarmGlobal { table: bound.table.current(session)?, next: AtomicU64::new(0) })
    }

    fn call(bound: &WarmBound, global: &WarmGlobal, _local: &mut (), output: &mut OutChunk<'_>) -> Result<()> {
        let table = &global.table;
        let first = global.next.load(Ordering::Relaxed);
        let end = bound.rows.min(first + table.rows_of_stretch(STRETCH));
        global.next.store(end, Ordering::Relaxed);
        if first == end {
            return Ok(());
        }
        let resident = table.warm(first..end)?;
        let cells = [first, end - first, (end - first) * table.row_bytes() as u64, resident];
        output.each(|column, vector| {
            vector.values::<i64>(1)[0] = i64::try_from(cells[column]).map_err(|_| Error::argument("too many bytes"))?;
            Ok(())
        })?;
        output.set_len(1);
        Ok(())
    }
}
