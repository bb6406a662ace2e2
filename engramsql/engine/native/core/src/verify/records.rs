//! Records of a view against the rows of its table, and its keys against its index.

use super::finding::{Finding, Level, Report};
use super::random::Random;
use super::state::Resumable;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::read::{DirectFiles, FileWatch, RowStream};
use crate::source::{Extent, Part};
use crate::table::Table;
use crate::view::{Form, View};
use std::sync::Arc;

/// Slots of a sample.
const SAMPLE: u64 = 1024;
/// Bytes of records that are compared at once: enough rows for reads that keep the disk busy.
const BATCH: usize = 16 << 20;
/// Keys that are looked up at once.
const KEYS: usize = 64 << 10;
/// Slots that get a line each.
const MOST_BAD: u64 = 100;

/// What an open view says of its table, and what is in it.
pub(super) fn check(
    table: &Table,
    view: &View,
    level: Level,
    state: &mut Resumable,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let identity = table.identity();
    if view.table_identity() != identity {
        let detail = format!("the view was built from another state of table '{}'; build it again", view.table());
        report.add(Finding::bad("manifest", None, detail).values(view.table_identity(), identity));
        return Ok(());
    }
    if let Some(why) = view.why().filter(|_| report.bad() == 0) {
        report.add(Finding::bad("manifest", None, format!("view '{}' {why}", view.name())));
        return Ok(());
    }
    let answer = match level {
        Level::Headers => return Ok(()),
        Level::Sample => sample(table, view, report),
        Level::Full => {
            all_records(table, view, state, progress, report).and_then(|()| all_keys(view, progress, report))
        }
    };
    match answer {
        // Whatever cannot be read is wrong with the view or its table.
        Err(error @ (Error::Read(_) | Error::RowIdOutOfRange { .. } | Error::SlotIndex(_))) => {
            let check = if matches!(error, Error::SlotIndex(_)) { "index" } else { "records" };
            report.add(Finding::bad(check, None, error.to_string()));
            Ok(())
        }
        answer => answer,
    }
}

/// Some records against the rows of their keys, and these keys in the index.
fn sample(table: &Table, view: &View, report: &mut Report<'_>) -> Result<()> {
    let slots = Random::new().sample(view.slots(), SAMPLE);
    let (mut wrong, mut lost) = (Tally::new("records"), Tally::new("index"));
    let mut record = vec![0; view.record_bytes()];
    let mut records = Records::new(table, view);
    for &slot in &slots {
        view.stored_records_into(&[slot as i64], &mut record)?;
        records.compare(slot, &record, view.record_bytes(), &mut wrong)?;
    }
    let ids: Vec<i64> = slots.iter().map(|&slot| slot as i64).collect();
    wrong.tell(report, || format!("{} of {} records equal the rows of their keys", slots.len(), view.slots()));
    if view.index().is_none() {
        return Ok(());
    }
    look_up(view, &ids, &mut lost)?;
    lost.tell(report, || format!("{} of {} keys lead to their slots", slots.len(), view.slots()));
    Ok(())
}

/// Every record against the rows of its key, in the order of the slots.
fn all_records(
    table: &Table,
    view: &View,
    state: &mut Resumable,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let layout = view.layout();
    let shards = || layout.parts.iter().flat_map(Part::extents);
    let part = |shard: &Extent| format!("records of shard {}", shard.shard);
    // The state is kept under the digest of the manifest, and the blocks were found to be those of that.
    let to_do = |state: &Resumable, shard: &Extent| !state.knows(&part(shard), COMPARED);
    let slots: u64 = shards().filter(|shard| to_do(state, shard)).map(|shard| shard.rows).sum();
    progress.begin("records", slots * view.slot_bytes() as u64);
    let stream = RowStream::open(Arc::new(DirectFiles::look(Arc::new(FileWatch::new(&layout.files)?))));
    let mut records = Records::new(table, view);
    let mut wrong = Tally::new("records");
    for shard in shards() {
        if !to_do(state, shard) {
            continue;
        }
        let before = wrong.found;
        let width = view.slot_bytes();
        let (mut batch, mut first) = (Vec::new(), shard.first_row);
        let rows = shard.first_row..shard.first_row + shard.rows;
        stream.read(layout, rows, &mut |_, bytes: &[u8]| {
            batch.extend_from_slice(bytes);
            if batch.len() >= BATCH {
                records.compare(first, &batch, width, &mut wrong)?;
                progress.advance(batch.len() as u64)?;
                first += (batch.len() / width) as u64;
                batch.clear();
            }
            Ok::<(), Error>(())
        })?;
        records.compare(first, &batch, width, &mut wrong)?;
        progress.advance(batch.len() as u64)?;
        if wrong.found == before {
            state.finish(&part(shard), COMPARED)?;
        }
    }
    wrong.tell(report, || format!("{} records equal the rows of their keys", view.slots()));
    Ok(())
}

/// What the state says of a shard whose records were compared.
const COMPARED: &str = "compared";

/// Every key in the index, and nothing else in it.
fn all_keys(view: &View, progress: &Progress, report: &mut Report<'_>) -> Result<()> {
    let Some(index) = view.index() else { return Ok(()) };
    progress.begin("keys", view.slots() * view.keys().shape().bytes() as u64);
    let mut lost = Tally::new("index");
    let mut first = 0;
    while first < view.slots() {
        let slots: Vec<i64> = (first..view.slots().min(first + KEYS as u64)).map(|slot| slot as i64).collect();
        look_up(view, &slots, &mut lost)?;
        first += slots.len() as u64;
        progress.advance((slots.len() * view.keys().shape().bytes()) as u64)?;
    }
    let entries = index.entries()?;
    if entries != view.slots() {
        let detail = "the slot index has another number of entries than the view has slots";
        report.add(Finding::bad("index", None, detail).values(view.slots(), entries));
    }
    lost.tell(report, || format!("{} keys lead to their slots", view.slots()));
    Ok(())
}

/// Looks up the keys of `slots`.
fn look_up(view: &View, slots: &[i64], lost: &mut Tally) -> Result<()> {
    let heads = view.heads();
    let mut keys = vec![0; slots.len() * heads];
    view.keys().keys_into(slots, &mut keys)?;
    let mut found = vec![0; slots.len()];
    view.lookup_many(&keys, &mut found)?;
    let mut other = vec![0; heads];
    for ((&slot, &found), key) in slots.iter().zip(&found).zip(keys.chunks_exact(heads)) {
        if found == slot {
            continue;
        }
        // Of slots with one key, the index answers with the lowest.
        if (0..slot).contains(&found) {
            view.key_into(found as u64, &mut other)?;
            if other == key {
                continue;
            }
        }
        let detail = format!("the key of slot {slot} does not lead to it");
        lost.add(|| Finding::bad("index", None, detail).values(slot, found));
    }
    Ok(())
}

/// Records that the rows of the table make.
struct Records<'a> {
    table: &'a Table,
    view: &'a View,
    keys: Vec<i64>,
    rows: Vec<u8>,
    values: Vec<f32>,
}

impl<'a> Records<'a> {
    fn new(table: &'a Table, view: &'a View) -> Records<'a> {
        Records { table, view, keys: Vec::new(), rows: Vec::new(), values: Vec::new() }
    }

    /// Compares the records of the slots from `first` on, which lie `width` bytes apart in `found`.
    fn compare(&mut self, first: u64, found: &[u8], width: usize, wrong: &mut Tally) -> Result<()> {
        let slots: Vec<i64> = (0..(found.len() / width) as u64).map(|index| (first + index) as i64).collect();
        let record = self.view.record_bytes();
        self.keys.resize(slots.len() * self.view.heads(), 0);
        self.view.keys().keys_into(&slots, &mut self.keys)?;
        self.rows.resize(slots.len() * record, 0);
        match self.view.form() {
            Form::Rows => self.table.fetch_into(&self.keys, &mut self.rows)?,
            Form::Float32 => {
                self.values.resize(self.rows.len() / 4, 0.0);
                self.table.vectors_into(&self.keys, &mut self.values)?;
                for (bytes, value) in self.rows.as_chunks_mut::<4>().0.iter_mut().zip(&self.values) {
                    *bytes = value.to_le_bytes();
                }
            }
        }
        let expected = self.rows.chunks_exact(record);
        for ((&slot, found), expected) in slots.iter().zip(found.chunks_exact(width)).zip(expected) {
            if let Some(byte) = expected.iter().zip(found).position(|(expected, found)| expected != found) {
                let detail = format!("slot {slot}, byte {byte}: the record differs from the rows of its key");
                let (expected, found) = (format!("{:02x}", expected[byte]), format!("{:02x}", found[byte]));
                wrong.add(|| Finding::bad("records", None, detail).values(expected, found));
            }
        }
        Ok(())
    }
}

/// Slots that are wrong: the first get a line each.
struct Tally {
    check: &'static str,
    findings: Vec<Finding>,
    found: u64,
}

impl Tally {
    fn new(check: &'static str) -> Tally {
        Tally { check, findings: Vec::new(), found: 0 }
    }

    fn add(&mut self, finding: impl FnOnce() -> Finding) {
        self.found += 1;
        if self.found <= MOST_BAD {
            self.findings.push(finding());
        }
    }

    fn tell(self, report: &mut Report<'_>, good: impl FnOnce() -> String) {
        if self.found == 0 {
            report.add(Finding::good(self.check, None, good()));
        }
        let more = self.found.saturating_sub(MOST_BAD);
        self.findings.into_iter().for_each(|finding| report.add(finding));
        if more > 0 {
            report.add(Finding::bad(self.check, None, format!("{more} more slots")));
        }
    }
}
