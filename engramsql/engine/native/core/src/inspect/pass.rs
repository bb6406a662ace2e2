//! One pass over the rows of a table by several threads, in memory that does not grow with the table.
//!
//! Threads take stretches of consecutive rows in turn. What they find is merged in row order, so that an answer does not
//! depend on how many they are or on which was faster.

use super::sections::{Section, sections};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::read::{Row, RowSink};
use crate::settings;
use crate::table::Table;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows of a stretch, and their bytes: enough that taking the next one costs nothing, few enough to share a small table, to
/// be read ahead as a whole, and for an interrupt to wait for.
const STRETCH_ROWS: u64 = 16 << 10;
const STRETCH_BYTES: u64 = 4 << 20;
/// What is asked of every row.
pub(super) trait Question: Sync {
    /// What is found out of some rows of one head.
    type Found: Default + Send;
    /// Memory of one thread.
    type Scratch;

    fn scratch(&self) -> Self::Scratch;
    /// Looks at one row.
    fn take(&self, scratch: &mut Self::Scratch, found: &mut Self::Found, row: Row<'_>);
    /// Ends a run of rows that belong to `found`: nothing of them stays in `scratch`.
    fn finish(&self, scratch: &mut Self::Scratch, found: &mut Self::Found);
    /// Adds what was found of later rows.
    fn merge(found: &mut Self::Found, later: Self::Found);
}

/// What was found of the rows of one head, or of those that no head reaches.
pub(super) struct OfHead<F> {
    pub(super) head: Option<u32>,
    pub(super) found: F,
}

/// Asks `question` of the rows `rows` of `table`. One answer for each head, then one for the rows that no head reaches;
/// those that have no row in the range have the empty answer.
///
/// # Errors
/// [`Error::Cancelled`], and what reading meets: then nothing was found out.
pub(super) fn ask<Q: Question>(
    table: &Table,
    question: &Q,
    rows: Range<u64>,
    stage: &'static str,
    progress: &Progress,
) -> Result<Vec<OfHead<Q::Found>>> {
    let width = table.row_bytes() as u64;
    progress.begin(stage, (rows.end - rows.start) * width);
    let pass = Pass {
        table,
        question,
        sections: sections(table, rows.clone()),
        stretch: (STRETCH_BYTES / width).clamp(1, STRETCH_ROWS),
        rows,
        progress,
        next: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        merged: Mutex::new(Merged::new(table.heads().len() + 1)),
    };
    pass.run()?;
    let merged = pass.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unreached = merged.totals.len() - 1;
    let of = |(index, found)| OfHead { head: u32::try_from(index).ok().filter(|_| index < unreached), found };
    Ok(merged.totals.into_iter().enumerate().map(of).collect())
}

struct Pass<'a, Q: Question> {
    table: &'a Table,
    question: &'a Q,
    rows: Range<u64>,
    sections: Vec<Section>,
    /// Rows of a stretch.
    stretch: u64,
    progress: &'a Progress,
    /// Number of the next stretch that nobody has taken.
    next: AtomicU64,
    /// Set by a thread that met an error: what the others find is of no use.
    stopped: AtomicBool,
    merged: Mutex<Merged<Q::Found>>,
}

/// What was found of the stretches before `next`, and of later ones that wait for their turn.
struct Merged<F> {
    next: u64,
    waiting: BTreeMap<u64, Vec<(usize, F)>>,
    totals: Vec<F>,
}

impl<F: Default> Merged<F> {
    fn new(count: usize) -> Merged<F> {
        Merged { next: 0, waiting: BTreeMap::new(), totals: std::iter::repeat_with(F::default).take(count).collect() }
    }

    fn add(&mut self, number: u64, found: Vec<(usize, F)>, merge: impl Fn(&mut F, F)) {
        self.waiting.insert(number, found);
        while let Some(found) = self.waiting.remove(&self.next) {
            found.into_iter().for_each(|(index, found)| merge(&mut self.totals[index], found));
            self.next += 1;
        }
    }
}

impl<Q: Question> Pass<'_, Q> {
    fn run(&self) -> Result<()> {
        let stretches = (self.rows.end - self.rows.start).div_ceil(self.stretch);
        let threads = u64::try_from(settings::threads()).unwrap_or(u64::MAX).min(stretches);
        std::thread::scope(|scope| {
            let start =
                |_| std::thread::Builder::new().name("engramsql-look".to_owned()).spawn_scoped(scope, || self.work());
            // Where the system gives no more threads, those that there are do the rest.
            let others: Vec<_> = (1..threads).map_while(|thread| start(thread).ok()).collect();
            let mut outcome = self.work();
            for other in others {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                // The others stop as if cancelled once one has met an error, which is the one to tell.
                if matches!(outcome, Ok(()) | Err(Error::Cancelled)) && other.is_err() {
                    outcome = other;
                }
            }
            outcome
        })
    }

    fn work(&self) -> Result<()> {
        let worked = self.work_on_stretches();
        if worked.is_err() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        worked
    }

    fn work_on_stretches(&self) -> Result<()> {
        let (mut scratch, mut ids) = (self.question.scratch(), Vec::new());
        let mut ahead = self.claim();
        while let Some((number, rows)) = ahead {
            // The disk works on the next stretch while this one is looked at.
            ahead = self.claim();
            let mut found = Vec::new();
            let first = self.sections.partition_point(|section| section.rows.end <= rows.start);
            for section in self.sections[first..].iter().take_while(|section| section.rows.start < rows.end) {
                let rows = section.rows.start.max(rows.start)..section.rows.end.min(rows.end);
                let index = section.head.map_or(self.table.heads_count(), |head| head as usize);
                found.push((index, self.look(rows, &mut scratch, &mut ids)?));
            }
            let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
            merged.add(number, found, Q::merge);
        }
        Ok(())
    }

    /// Takes the next stretch and asks the disk for it.
    fn claim(&self) -> Option<(u64, Range<u64>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let first =
            number.checked_mul(self.stretch)?.checked_add(self.rows.start).filter(|&row| row < self.rows.end)?;
        let rows = first..first.saturating_add(self.stretch).min(self.rows.end);
        self.table.announce(rows.clone());
        Some((number, rows))
    }

    /// Looks at rows of one head.
    fn look(&self, rows: Range<u64>, scratch: &mut Q::Scratch, ids: &mut Vec<i64>) -> Result<Q::Found> {
        let mut found = Q::Found::default();
        let mut sink = Ask { question: self.question, scratch, found: &mut found };
        self.table.scan_rows(rows.clone(), ids, &mut sink)?;
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.progress.advance((rows.end - rows.start) * self.table.row_bytes() as u64)?;
        self.question.finish(scratch, &mut found);
        Ok(found)
    }
}

struct Ask<'a, Q: Question> {
    question: &'a Q,
    scratch: &'a mut Q::Scratch,
    found: &'a mut Q::Found,
}

impl<Q: Question> RowSink for Ask<'_, Q> {
    #[inline]
    fn take(&mut self, rows: &[Row<'_>]) {
        for row in rows {
            self.question.take(self.scratch, self.found, *row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_merged_in_row_order() {
        let mut merged: Merged<Vec<u64>> = Merged::new(2);
        let append = |found: &mut Vec<u64>, mut later: Vec<u64>| found.append(&mut later);
        for number in [2, 0, 3, 1] {
            merged.add(number, vec![(0, vec![number]), (1, vec![10 + number])], append);
        }
        assert_eq!(merged.totals, [vec![0, 1, 2, 3], vec![10, 11, 12, 13]]);
        assert!(merged.waiting.is_empty());
    }
}
