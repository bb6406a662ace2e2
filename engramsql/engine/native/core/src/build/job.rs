//! One table of a build, from whatever state it is found in to a finished directory.

use super::directory::WorkingDirectory;
use super::error::BuildError;
use super::plan::{PLAN, Plan};
use super::source_sums::SourceSums;
use super::writer::complete;
use super::{BuildOptions, Unfinished, geometry, sample, shards};
use crate::catalog::{Held, Session, TableEntry};
use crate::clock::now;
use crate::error::Result;
use crate::progress::Progress;
use crate::source::{MANIFEST, StoreDescription};
use crate::storage::checksum::BLOCK_BYTES;
use crate::storage::{DirectoryLock, StorageError, building_path};
use crate::table::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Manifest, plan and what the file system needs for a directory of files.
const SMALL_FILES: u64 = 64 << 10;

/// How far a table is.
enum Standing {
    /// Nothing of it is there.
    New,
    /// Shards are missing, or what follows them.
    Begun { work: WorkingDirectory, pending: Vec<u64> },
    /// All of it is there, under the name it grew under or under its own.
    Finished(WorkingDirectory),
    /// The catalog has it.
    Registered(Box<TableEntry>),
}

/// One table to be built.
pub(super) struct Job {
    name: String,
    table: Arc<Table>,
    /// Checksums of the source, if it has some and rows are still to be copied.
    sums: Option<SourceSums>,
    plan: Plan,
    /// Where it grows.
    place: PathBuf,
    standing: Standing,
}

impl Job {
    /// Looks at what is there of the table; nothing is written.
    pub(super) fn plan(session: &Session, name: String, table: Arc<Table>, options: &BuildOptions) -> Result<Job> {
        let layout = geometry(table.row_bytes() as u64, table.rows(), options.shard_bytes)?;
        sample::check_size(options.sample_rows, layout.rows)?;
        let description = StoreDescription {
            format: table.format().copied(),
            spec: table.spec().cloned(),
            layer: table.layer(),
            source: table.source().to_string_lossy().into_owned(),
        };
        let mut plan = Plan { layout, description, source_identity: Some(table.identity()), built_at: now() };
        let first = session.first_directory(Held::Table, &name)?;
        let place = building_path(&first);
        let standing = Self::find(session, &name, &mut plan, &place, options)?;
        let mut sums = None;
        if matches!(standing, Standing::New | Standing::Begun { .. }) {
            // What would only be found when all is copied, and that the check in the end cannot be made, is told now.
            table.check_files()?;
            sample::second_reader(&table, layout)?;
            sums = SourceSums::of(&table)?;
        }
        Ok(Job { name, table, sums, plan, place, standing })
    }

    fn find(session: &Session, name: &str, plan: &mut Plan, place: &Path, options: &BuildOptions) -> Result<Standing> {
        let resume = options.unfinished == Unfinished::Resume;
        if let Err(taken) = session.require_free(name, options.replace) {
            // The last moments of a build: registered, but whoever asked for it was not told.
            let entry = session.table_entry(name).ok().filter(|entry| resume && plan.is_finished_in(&entry.source));
            return entry.map_or(Err(taken), |entry| Ok(Standing::Registered(Box::new(entry))));
        }
        if let Some(work) = WorkingDirectory::take(place)? {
            return Self::go_on(name, plan, work, options.unfinished);
        }
        // A crash between the two renames leaves a finished directory that the catalog does not name.
        for orphan in session.orphans()? {
            let may_be_ours = session.is_directory_of(Held::Table, name, &orphan.path)?;
            if !may_be_ours || !plan.is_finished_in(&orphan.path) {
                continue;
            }
            let Some(work) = WorkingDirectory::take(&orphan.path)? else { continue };
            match options.unfinished {
                Unfinished::Resume => return Ok(Standing::Finished(work)),
                Unfinished::Refuse => {
                    let path = orphan.path.clone();
                    work.release()?;
                    return Err(BuildError::NotRegistered { name: name.to_owned(), path }.into());
                }
                // It may be what a dropped table was to leave; it stays an orphan.
                Unfinished::Discard => work.release()?,
            }
        }
        if resume
            && let Ok(entry) = session.table_entry(name)
            && plan.is_finished_in(&entry.source)
        {
            return Ok(Standing::Registered(Box::new(entry)));
        }
        Ok(Standing::New)
    }

    /// What an interrupted build left in `work`.
    fn go_on(name: &str, plan: &mut Plan, work: WorkingDirectory, unfinished: Unfinished) -> Result<Standing> {
        let shards = plan.layout.shards();
        if unfinished == Unfinished::Discard {
            work.remove_files(|_| true)?;
            return Ok(Standing::Begun { work, pending: (0..shards).collect() });
        }
        let finished = plan.is_finished_in(work.path());
        if !finished && !work.path().join(PLAN).exists() && !work.path().join(MANIFEST).exists() {
            // Its process died before the plan was there, so nothing was done.
            work.remove_files(|_| true)?;
            return Ok(Standing::Begun { work, pending: (0..shards).collect() });
        }
        if unfinished == Unfinished::Refuse {
            let done = (0..shards).filter(|&shard| shards::sums_of(work.path(), plan.layout, shard).is_some()).count();
            let (name, path, done) = (name.to_owned(), work.path().to_owned(), done as u64);
            return Err(BuildError::Unfinished { name, path, done, shards }.into());
        }
        if finished {
            return Ok(Standing::Finished(work));
        }
        if !plan.adopt(work.path())? {
            let path = work.path().join(MANIFEST);
            return Err(StorageError::damaged(
                &path,
                "it is not the manifest of what is being built; discard it (restart)",
            )
            .into());
        }
        let pending = shards::remove_unfinished(&work, plan.layout)?;
        Ok(Standing::Begun { work, pending })
    }

    /// Bytes that are still to be written.
    pub(super) fn bytes_to_write(&self) -> u64 {
        let layout = self.plan.layout;
        let sums = |bytes: u64| bytes.div_ceil(BLOCK_BYTES as u64) * 8;
        let map = self.plan.description.spec.as_ref().and_then(|spec| spec.token_map());
        // Checksums are written twice: beside the shard, and for all shards.
        let rest = sums(layout.rows * layout.row_bytes) + map.map_or(0, |map| 4 * map.tokens()) + SMALL_FILES;
        let of = |shard: u64| layout.bytes_of(shard) + sums(layout.bytes_of(shard));
        match &self.standing {
            Standing::New => (0..layout.shards()).map(of).sum::<u64>() + rest,
            Standing::Begun { pending, .. } => pending.iter().map(|&shard| of(shard)).sum::<u64>() + rest,
            Standing::Finished(_) | Standing::Registered(_) => 0,
        }
    }

    /// Builds what is missing, checks it, and gives the directory its name.
    pub(super) fn run(&mut self, session: &Session, options: &BuildOptions, progress: &Progress) -> Result<()> {
        let (work, pending) = match std::mem::replace(&mut self.standing, Standing::New) {
            Standing::New => {
                let work = WorkingDirectory::create(&self.place)?;
                (work, (0..self.plan.layout.shards()).collect())
            }
            Standing::Begun { work, pending } => (work, pending),
            Standing::Finished(work) => {
                self.standing = Standing::Finished(self.rename(session, work)?);
                return Ok(());
            }
            registered @ Standing::Registered(_) => {
                self.standing = registered;
                return Ok(());
            }
        };
        if !work.path().join(PLAN).exists() {
            self.plan.publish(work.path())?;
        }
        let layout = self.plan.layout;
        progress.begin("build", layout.rows * layout.row_bytes);
        let missing: u64 = pending.iter().map(|&shard| layout.bytes_of(shard)).sum();
        progress.advance(layout.rows * layout.row_bytes - missing)?;
        shards::build(&self.table, self.sums.as_ref(), layout, work.path(), &pending, options.jobs, progress)?;
        sample::check(&self.table, layout, work.path(), options.sample_rows, progress)?;
        // Whatever the source is now, it is what it was when the build began.
        self.table.check_files()?;
        let lost =
            |shard: u64| StorageError::damaged(work.path(), format!("shard {shard} was lost while it was built"));
        let sums = (0..layout.shards())
            .map(|shard| shards::sums_of(work.path(), layout, shard).ok_or_else(|| lost(shard)))
            .collect::<Result<Vec<_>, _>>()?;
        complete(&self.plan, work.path(), sums)?;
        self.standing = Standing::Finished(self.rename(session, work)?);
        Ok(())
    }

    /// Gives a finished directory a name of its own, unless it has one.
    fn rename(&self, session: &Session, work: WorkingDirectory) -> Result<WorkingDirectory> {
        work.remove_files(|name| name == PLAN || name.ends_with(".sums"))?;
        if work.path() != self.place {
            return Ok(work);
        }
        Ok(work.rename(&session.free_directory(Held::Table, &self.name)?)?)
    }

    /// Name of the table.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The tokenizer of the table that is copied.
    pub(super) fn tokenizer(&self) -> Option<&Path> {
        self.table.tokenizer_path()
    }

    /// Where the table is, or grows.
    pub(super) fn directory(&self) -> &Path {
        match &self.standing {
            Standing::Finished(work) | Standing::Begun { work, .. } => work.path(),
            Standing::Registered(entry) => &entry.source,
            Standing::New => &self.place,
        }
    }

    /// The catalog's entry, if it has one.
    pub(super) fn registered(&self) -> Option<&TableEntry> {
        match &self.standing {
            Standing::Registered(entry) => Some(entry),
            _ => None,
        }
    }

    /// Lets go of the directory, which the catalog names.
    pub(super) fn release(self) -> Result<()> {
        match self.standing {
            Standing::Finished(work) => Ok(work.release()?),
            // What a process left that died between registering the table and this.
            Standing::Registered(entry) if entry.source.join(DirectoryLock::FILE).exists() => {
                WorkingDirectory::take(&entry.source)?.map_or(Ok(()), |work| Ok(work.release()?))
            }
            Standing::Registered(_) => Ok(()),
            Standing::New | Standing::Begun { .. } => Ok(()),
        }
    }
}
