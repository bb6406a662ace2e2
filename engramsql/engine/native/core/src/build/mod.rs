//! Building stores: the rows of any source, copied bit by bit into row files of our own.
//!
//! A build grows in a directory that nothing names, shard by shard, and can be resumed after any interruption. Before it
//! is published, a sample of its rows is compared with the source through a second reader. The rename of the catalog is
//! the moment at which the table exists.

mod directory;
mod error;
mod job;
mod plan;
mod sample;
mod second_reader;
mod shards;
mod source_sums;
mod writer;

pub use crate::source::StoreDescription;
pub use crate::storage::Unfinished;
pub use error::BuildError;
pub(crate) use second_reader::{OpenFiles, SecondReader};
pub use writer::StoreWriter;

use crate::catalog::{Held, RegisterOptions, Session, TableEntry};
use crate::error::Result;
use crate::fault;
use crate::progress::Progress;
use crate::source::{self, MOST_SHARDS, SourceError, StoreLayout};
use crate::storage::{StorageError, require_space};
use crate::table::Table;
use job::Job;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most shards that are built at a time; each takes about 12 MB of memory.
const MOST_JOBS: usize = 64;

/// Where the rows come from.
#[derive(Debug, Clone)]
pub enum BuildSource {
    /// A checkpoint or store, and what it does not say itself.
    Path(PathBuf, RegisterOptions),
    /// A registered table.
    Table(String),
}

/// How to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildOptions {
    /// Bytes of a shard, rounded down to whole rows (at least one).
    pub shard_bytes: u64,
    /// Shards that are built at a time.
    pub jobs: usize,
    /// What to do about an unfinished build of the same name.
    pub unfinished: Unfinished,
    /// Replace a table of that name; what it had of its own in the database is removed.
    pub replace: bool,
    /// Rows that are compared with the source, besides the first and last of every shard.
    pub sample_rows: u64,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions {
            shard_bytes: 1 << 30,
            // One shard is synced while another is copied; more gain nothing.
            jobs: 2,
            unfinished: Unfinished::Refuse,
            replace: false,
            sample_rows: 4096,
        }
    }
}

/// Builds the table `name` from `source` in the database of `session` (several hash layers: `name_l1`, `name_l14`), and
/// registers it.
///
/// # Errors
/// Everything that can be known is told before anything is written: a name that is taken, a source that does not open, a
/// disk without the space. After any later error, nothing is registered; what was done is kept and can be resumed.
pub fn build(
    session: &Session,
    name: &str,
    source: &BuildSource,
    options: &BuildOptions,
    progress: &Progress,
) -> Result<Vec<TableEntry>> {
    if !(1..=MOST_JOBS).contains(&options.jobs) {
        let rule = format!("1 to {MOST_JOBS} shards are built at a time");
        return Err(BuildError::BadOption { option: "jobs", value: options.jobs as u64, rule }.into());
    }
    // The first question to the session: one without a directory, or one that may not change it, is told at once.
    session.free_directory(Held::Table, name)?;
    session.require_writable()?;
    let tables = open(session, source)?;
    let several = tables.len() > 1;
    let mut jobs = Vec::with_capacity(tables.len());
    for table in tables {
        let name = match table.layer() {
            Some(layer) if several => format!("{name}_l{layer}"),
            _ => name.to_owned(),
        };
        jobs.push(Job::plan(session, name, table, options)?);
    }
    let needed = jobs.iter().map(Job::bytes_to_write).sum();
    // The place itself: `tables` may be a link to another disk.
    if let Some(job) = jobs.iter().find(|job| job.bytes_to_write() > 0) {
        let exists = job.directory().ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        require_space(exists, needed)?;
    }
    for job in &mut jobs {
        job.run(session, options, progress)?;
    }
    publish(session, jobs, options.replace)
}

/// The tables of a source.
fn open(session: &Session, source: &BuildSource) -> Result<Vec<Arc<Table>>> {
    match source {
        BuildSource::Table(name) => Ok(vec![session.table(name)?]),
        BuildSource::Path(path, options) => Ok(session.open_source(path, options)?.into_iter().map(Arc::new).collect()),
    }
}

/// Registers what was built, all of it in one change, and removes what that replaced.
fn publish(session: &Session, jobs: Vec<Job>, replace: bool) -> Result<Vec<TableEntry>> {
    let mut entries = Vec::with_capacity(jobs.len());
    let mut new = Vec::new();
    for job in &jobs {
        let entry = match job.registered() {
            Some(entry) => entry.clone(),
            None => {
                let mut entry = entry_of(job.name(), job.directory())?;
                entry.tokenizer = job.tokenizer().map(Path::to_owned);
                new.push(entry.clone());
                entry
            }
        };
        entries.push(entry);
    }
    if !new.is_empty() {
        fault::io("build.catalog").map_err(|error| StorageError::io("write", jobs[0].directory(), error))?;
        let replaced = session.publish_tables(new, replace)?;
        fault::point("build.published");
        for old in replaced {
            // Only what lies inside the database and is named by nothing else now. The tables are there whatever becomes of
            // it: what cannot be removed is an orphan.
            let _ = session.remove_orphan(&old.source);
        }
    }
    // A lock file that stays does no harm either.
    jobs.into_iter().for_each(|job| drop(job.release()));
    let names = entries.iter().map(|entry| session.table_entry(&entry.name));
    names.collect()
}

/// The catalog entry of a store that describes itself.
fn entry_of(name: &str, directory: &Path) -> Result<TableEntry> {
    let options = RegisterOptions::default();
    let no_tokenizer = |path: &Path| Err(SourceError::io(path, std::io::ErrorKind::NotFound.into()).into());
    let mut found = source::open(directory, &options, &no_tokenizer)?;
    Ok(TableEntry::of(name.to_owned(), directory, &options, &found.remove(0)))
}

/// Shards of as many whole rows as `shard_bytes` hold, at least one.
fn geometry(row_bytes: u64, rows: u64, shard_bytes: u64) -> Result<StoreLayout, BuildError> {
    let rule = |rule: &str| BuildError::BadOption { option: "shard_bytes", value: shard_bytes, rule: rule.to_owned() };
    if shard_bytes == 0 {
        return Err(rule("a shard has at least one row"));
    }
    let rows_per_shard = (shard_bytes / row_bytes.max(1)).max(1);
    let layout = StoreLayout { row_bytes, rows_per_shard, rows };
    if layout.shards() > MOST_SHARDS {
        let shards = layout.shards();
        return Err(rule(&format!("it makes {shards} shards, and a store has at most {MOST_SHARDS}")));
    }
    Ok(layout)
}

/// Refuses one shard too many.
fn check_shards(shards: u64) -> Result<(), BuildError> {
    if shards <= MOST_SHARDS {
        return Ok(());
    }
    let rule = format!("a store has at most {MOST_SHARDS}; give larger shard_bytes");
    Err(BuildError::BadOption { option: "the number of shards", value: shards, rule })
}
