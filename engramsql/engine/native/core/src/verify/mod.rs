//! Verification: is what lies on the disk what was written, and is a copy a copy?
//!
//! [`verify`] proves what can be proven of one table or view and says it finding by finding; [`compare`] holds two tables
//! against each other bit for bit, which is the only proof for sources that carry no checksums.

mod blocks;
mod compare;
mod error;
mod files;
mod finding;
mod random;
mod records;
mod rows;
mod state;
mod store;
mod table;
mod view;

pub(crate) use blocks::{Items, place_of};
pub use compare::{Comparison, Difference, TakeDifference, compare};
pub use error::VerifyError;
pub use finding::{Finding, Level};

use crate::catalog::{CatalogError, Session};
use crate::clock::now;
use crate::error::{Error, Result};
use crate::progress::Progress;
use finding::Report;

/// Verifies the table or view called `name`, or the table at that path; each finding goes to `report` as it is made.
/// Returns whether all of them are good.
///
/// A name that `level` full finds good gets its time of verification in the catalog, and one that any level finds bad loses
/// it, unless the database is read-only. With
/// `resume`, what was found good is kept in the database until the verification is complete, and a later one with
/// `resume` begins where this one ended; paths and read-only databases keep nothing.
///
/// # Errors
/// Unknown names, paths that are no table, and [`Error::Cancelled`]. Whatever is wrong with the table itself is a finding.
pub fn verify(
    session: &Session,
    name: &str,
    level: Level,
    resume: bool,
    progress: &Progress,
    report: &mut dyn FnMut(Finding),
) -> Result<bool> {
    let mut report = Report::new(report);
    if name.contains(['/', '\\']) {
        table::check_path(session, name, level, progress, &mut report)?;
        return Ok(report.bad() == 0);
    }
    // The time to remember, if anything is to be changed: what was good once and is not any more was not verified.
    let time = |good: bool, known: Option<i64>| match good {
        _ if session.is_read_only() => None,
        true => (level == Level::Full).then(|| Some(now())),
        false => known.map(|_| None),
    };
    if let Ok(entry) = session.view_entry(name) {
        let answer = view::check(session, &entry, level, resume, progress, &mut report);
        let good = report.bad() == 0;
        if let Some(time) = time(good, entry.verified_at).filter(|_| answer.is_ok() || !good) {
            remember(session.mark_view_verified(&entry, time), &mut report);
        }
        return answer.map(|()| good);
    }
    let entry = session.table_entry(name).map_err(|error| match error {
        Error::Catalog(CatalogError::UnknownTable { .. }) => session.unknown_table_or_view(name).into(),
        error => error,
    })?;
    let answer = table::check_named(session, &entry, level, resume, progress, &mut report);
    let good = report.bad() == 0;
    if let Some(time) = time(good, entry.verified_at).filter(|_| answer.is_ok() || !good) {
        remember(session.mark_table_verified(&entry, time), &mut report);
    }
    answer.map(|()| good)
}

/// A name that means something else by now, or nothing, was not verified: there is nothing to remember it of. Whatever else
/// kept the catalog from being written is told, and takes nothing from what was found out.
fn remember(answer: Result<()>, report: &mut Report<'_>) {
    match answer {
        Ok(()) | Err(Error::Catalog(CatalogError::ChangedMeanwhile { .. })) => (),
        Err(error) => {
            let detail = format!("the catalog could not be told when it was verified: {error}");
            report.add(Finding::good("catalog", None, detail));
        }
    }
}
