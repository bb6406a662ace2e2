//! `engram_verify(table [, level])`, `engram_diff(a, b)`: whether a table is what it should be, and what another one is not.

use super::arguments::flag;
use super::listing::Cell;
use super::stream::{Rows, Stream};
use super::tables::Pinned;
use crate::error::Result;
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::Progress;
use engram_engine::catalog::Session;
use engram_engine::verify::{Finding, Level, compare, verify};

/// `engram_verify(table [, level])`.
pub struct Verify;

/// What to verify.
pub struct Wanted {
    name: String,
    level: Level,
    resume: bool,
}

impl Stream for Verify {
    const NAME: &'static str = "engram_verify";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[("level", Parameter::Text), ("resume", Parameter::Boolean)];
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("check", Column::Text),
        ("shard", Column::Integer),
        ("ok", Column::Boolean),
        ("expected", Column::Text),
        ("found", Column::Text),
        ("detail", Column::Text),
    ];
    type Arguments = Wanted;

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<Wanted> {
        let level = arguments.named("level").map_or(Ok(None), |value| value.text("level"))?;
        Ok(Wanted {
            name: arguments.text(0, "table")?,
            level: level.map_or(Ok(Level::Full), |name| Level::from_name(&name))?,
            resume: flag(arguments, "resume")?.unwrap_or(false),
        })
    }

    fn run(session: &Session, wanted: &Wanted, progress: &Progress, rows: &Rows) -> Result<()> {
        let mut report = |finding: Finding| {
            // A query that has ended wants no more of them.
            if rows.send(cells(finding)).is_err() {
                progress.cancel();
            }
        };
        verify(session, &wanted.name, wanted.level, wanted.resume, progress, &mut report)?;
        Ok(())
    }
}

fn cells(finding: Finding) -> Vec<Cell> {
    vec![
        finding.check.into(),
        finding.shard.into(),
        finding.ok.into(),
        finding.expected.into(),
        finding.found.into(),
        finding.detail.into(),
    ]
}

/// `engram_diff(a, b)`.
pub struct Diff;

impl Stream for Diff {
    const NAME: &'static str = "engram_diff";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Text];
    const COLUMNS: &'static [(&'static str, Column)] =
        &[("rowid", Column::BigInt), ("byte", Column::BigInt), ("a", Column::Integer), ("b", Column::Integer)];
    type Arguments = (Pinned, Pinned);

    fn bind(session: &Session, arguments: &Arguments<'_>) -> Result<(Pinned, Pinned)> {
        let table = |index, what| Pinned::new(session, arguments.text(index, what)?);
        Ok((table(0, "a")?, table(1, "b")?))
    }

    fn run(session: &Session, (a, b): &(Pinned, Pinned), progress: &Progress, rows: &Rows) -> Result<()> {
        let (a, b) = (a.current(session)?, b.current(session)?);
        let byte = |value: u8| Cell::from(u32::from(value));
        compare(
            &a,
            &b,
            0,
            progress,
            Some(&mut |row| rows.send(vec![row.rowid.into(), row.byte.into(), byte(row.a), byte(row.b)])),
        )?;
        Ok(())
    }
}
