//! Building a view: keys, records, slot index, in a directory that nobody sees until the catalog names it.
//!
//! What is finished is known by files that appear once it is on the disk: the plan with its keys, checksums beside every
//! shard, the manifest. A build that is resumed goes on behind the last of them.

use super::collect::{Collected, Collector};
use super::error::ViewError;
use super::manifest::{CHECKSUMS, INDEX, KEYS, Manifest, modified_at};
use super::options::{Order, ViewOptions};
use super::place::Place;
use super::plan::{self, Plan, PlanKeys, PlanTable};
use super::records::Records;
use crate::catalog::{CatalogError, Session, ViewEntry};
use crate::clock::now;
use crate::error::Result;
use crate::fault;
use crate::progress::Progress;
use crate::slot_index::{KeyShape, Keys, SlotIndex};
use crate::source::{FileStamp, MOST_SHARDS, StoreLayout};
use crate::storage::checksum::{Checksums, FileSums};
use crate::storage::{OrderedWriter, StorageError, remove_file, sync_directory};
use crate::table::Table;
use std::path::PathBuf;
use std::sync::Arc;

/// Memory that sorting an index never needs more of.
const INDEX_MEMORY: u64 = 16 << 20;

/// A view that is being built. Dropped before its keys are complete, it leaves nothing; dropped or interrupted later, it
/// leaves what a build with `Unfinished::Resume` goes on with.
pub struct ViewBuilder {
    name: String,
    home: PathBuf,
    table: Arc<Table>,
    shape: KeyShape,
    options: ViewOptions,
    plan: Plan,
    place: Place,
    source: Source,
}

/// Where the keys come from.
enum Source {
    /// Nothing was given yet.
    None,
    /// The tokens of a corpus.
    Tokens(Box<Collector>),
    /// Keys that the caller brings, and how many there are.
    Keys { out: OrderedWriter, slots: u64 },
}

impl ViewBuilder {
    /// Begins a view called `name` of the table that the catalog calls `table`, or goes on with an unfinished one.
    ///
    /// # Errors
    /// A database in memory or opened read-only, a name that is taken (unless it is to be replaced), a table without heads,
    /// options that do not fit it, an unfinished build that is neither to go on nor to go, another process that builds it.
    pub fn begin(session: &Session, name: &str, table: &str, options: ViewOptions) -> Result<ViewBuilder> {
        session.check_new_view(name, options.replace)?;
        let home = session.directory().ok_or(CatalogError::InMemory { what: "building a view" })?;
        let entry = session.table_entry(table)?;
        let table = session.table(&entry.name)?;
        let refused = |reason: String| ViewError::Options { name: name.to_owned(), reason };
        let heads = match (table.spec().map(|spec| spec.heads()), options.heads) {
            (Some(heads), Some(asked)) if heads != asked => {
                return Err(refused(format!("its table has {heads} heads, not {asked}")).into());
            }
            (Some(heads), _) | (None, Some(heads)) => heads,
            (None, None) => {
                return Err(refused("its table has no hash spec; name the number of heads".to_owned()).into());
            }
        };
        let shape = KeyShape::for_rows(heads, table.rows())?;
        let of = PlanTable {
            name: entry.name,
            identity: table.identity(),
            heads,
            row_bytes: table.row_bytes(),
            dim: table.dim(),
            key_bytes: shape.key_bytes(),
        };
        let asked = Plan::new(name, of, &options, now())?;
        let (place, plan) = Place::take(session, &home, name, asked, options.unfinished)?;
        Ok(ViewBuilder { name: name.to_owned(), home, table, shape, options, plan, place, source: Source::None })
    }

    /// Whether the keys are complete already, because the build goes on where another one ended: nothing is to be added.
    pub fn keys_are_complete(&self) -> bool {
        self.plan.keys.is_some()
    }

    /// Row ids of a key.
    pub fn heads(&self) -> usize {
        self.shape.heads()
    }

    /// The next tokens of the corpus: sequence `i` begins at `starts[i]`, the first at 0. Sequences never see each other.
    /// With a history (the tokens before, newest last) the first one goes on with the sequence that was given last.
    ///
    /// # Errors
    /// A token outside the vocabulary, named with its sequence and position; starts that do not cut the tokens; a full disk.
    pub fn add(&mut self, tokens: &[i64], starts: &[usize], history: &[i64]) -> Result<()> {
        self.check_open()?;
        if let Source::None = self.source {
            let spec = self.table.require_spec()?.clone();
            let collector = Collector::new(spec, self.shape, self.place.directory(), self.options.memory);
            self.source = Source::Tokens(Box::new(collector));
        }
        match &mut self.source {
            Source::Tokens(collector) => collector.add(tokens, starts, history),
            _ => Err(self.refused("tokens cannot be added to keys").into()),
        }
    }

    /// The next keys (n x heads row ids): they become the next slots, in this order, duplicates kept.
    ///
    /// # Errors
    /// A row id that the table does not have; row ids that are no whole keys; options that choose among keys.
    pub fn add_keys(&mut self, keys: &[i64]) -> Result<()> {
        self.check_open()?;
        if self.plan.limit().is_some() {
            return Err(self.refused("top and budget choose among the keys of a corpus, and keys were given").into());
        }
        if !keys.len().is_multiple_of(self.shape.heads()) {
            let (name, found, heads) = (self.name.clone(), keys.len(), self.shape.heads());
            return Err(ViewError::KeyLength { name, found, heads }.into());
        }
        self.table.check_ids(keys)?;
        if let Source::None = self.source {
            let out = OrderedWriter::create(&self.place.directory().join(KEYS), 0)?;
            self.source = Source::Keys { out, slots: 0 };
        }
        let mut stored = vec![0; keys.len() * self.shape.key_bytes()];
        self.shape.encode(keys, &mut stored);
        match &mut self.source {
            Source::Keys { out, slots } => {
                out.write(&stored)?;
                *slots += (keys.len() / self.shape.heads()) as u64;
                Ok(())
            }
            _ => Err(self.refused("keys cannot be added to tokens").into()),
        }
    }

    /// Completes the view and names it in the catalog of `session`, the one it was begun with. Whatever happens before that
    /// leaves the catalog as it was.
    pub fn finish(mut self, session: &Session, progress: &Progress) -> Result<ViewEntry> {
        if session.directory().as_ref() != Some(&self.home) {
            return Err(CatalogError::Detached { path: self.home.clone() }.into());
        }
        let (manifest, digest) = match self.place.finished()? {
            Some(finished) => finished,
            None => {
                let keys = self.complete_keys(progress)?;
                let sums = self.complete_records(keys, progress)?;
                self.complete_index(keys, sums, progress)?
            }
        };
        self.place.keep();
        self.publish(session, &manifest, digest)
    }

    fn refused(&self, reason: &str) -> ViewError {
        ViewError::Options { name: self.name.clone(), reason: reason.to_owned() }
    }

    fn check_open(&self) -> Result<(), ViewError> {
        if self.keys_are_complete() {
            return Err(self.refused("its keys are complete already, from the build that goes on"));
        }
        Ok(())
    }

    /// Writes the keys file, and the plan that says that it is there.
    fn complete_keys(&mut self, progress: &Progress) -> Result<PlanKeys> {
        if let Some(keys) = self.plan.keys {
            return Ok(keys);
        }
        let path = self.place.directory().join(KEYS);
        let empty = |name: &str, reason: &str| ViewError::Empty { name: name.to_owned(), reason: reason.to_owned() };
        let (keys, out) = match std::mem::replace(&mut self.source, Source::None) {
            Source::None => return Err(empty(&self.name, "no token and no key was given").into()),
            Source::Tokens(collector) => {
                let mut out = OrderedWriter::create(&path, 0)?;
                let found = collector.finish(self.plan.limit(), self.plan.order(), &mut out, progress)?;
                let Collected { slots, tokens, covered } = found;
                (PlanKeys { slots, tokens: Some(tokens), covered: Some(covered) }, out)
            }
            Source::Keys { out, slots } => {
                self.plan.order = Order::Access.name().to_owned();
                (PlanKeys { slots, tokens: None, covered: None }, out)
            }
        };
        if keys.slots == 0 {
            return Err(empty(&self.name, "no token and no key was given").into());
        }
        let shards = keys.slots.div_ceil(self.plan.slots_per_shard(keys.slots));
        if shards > MOST_SHARDS {
            let reason =
                format!("it would have {shards} shards, and has at most {MOST_SHARDS}; give larger shard_bytes");
            return Err(self.refused(&reason).into());
        }
        let sums = out.finish()?;
        fault::io("view.keys").map_err(|error| StorageError::io("write", &path, error))?;
        Checksums { files: vec![sums] }.publish(&self.place.directory().join(KEYS_SUMS))?;
        self.plan.keys = Some(keys);
        self.plan.publish(self.place.directory())?;
        // Records that are there already are compared anew in any case: nothing is saved by going on.
        if self.plan.records.is_none() {
            self.place.keep();
        }
        Ok(keys)
    }

    /// Completes the records; the checksums of all files but the index's.
    fn complete_records(&mut self, keys: PlanKeys, progress: &Progress) -> Result<Vec<FileSums>> {
        let directory = self.place.directory();
        let outside = self.plan.records.as_ref().map(PathBuf::from);
        let stamp_of = |path: &PathBuf| FileStamp::of(path).map_err(|error| StorageError::io("read", path, error));
        let before = outside.as_ref().map(stamp_of).transpose()?;
        let sums_path = directory.join(KEYS_SUMS);
        let (mut of_keys, _) = Checksums::read(&sums_path)?;
        let of_keys = of_keys.files.pop().filter(|sums| sums.bytes == keys.slots * self.shape.bytes() as u64);
        let of_keys = of_keys.ok_or_else(|| StorageError::damaged(&sums_path, "it is not that of the keys"))?;
        let records = Records {
            table: &self.table,
            plan: &self.plan,
            shape: self.shape,
            slots: keys.slots,
            directory,
            memory: self.options.memory,
            progress,
        };
        let mut sums = records.complete()?;
        // In place sources carry no digest; what tells them from others must have stayed the same while they were read.
        self.table.check_files()?;
        if let (Some(path), Some(before)) = (&outside, before) {
            if let Some(change) = before.change(FileStamp::of(path)) {
                return Err(StorageError::damaged(path, format!("it {change} while it was compared")).into());
            }
            self.plan.records_modified = Some(modified_at(&before));
        }
        sums.push(of_keys);
        Ok(sums)
    }

    /// Builds the slot index and seals the manifest.
    fn complete_index(&self, keys: PlanKeys, sums: Vec<FileSums>, progress: &Progress) -> Result<(Manifest, String)> {
        let directory = self.place.directory();
        let digest = Checksums { files: sums }.publish(&directory.join(CHECKSUMS))?;
        fault::io("view.index").map_err(|error| StorageError::io("write", &directory.join(INDEX), error))?;
        let shape = self.shape;
        let of = Keys::open(&directory.join(KEYS), shape.heads(), shape.key_bytes(), keys.slots)?;
        SlotIndex::build(&of, &directory.join(INDEX), &digest, self.options.memory.max(INDEX_MEMORY), progress)?;
        let manifest = Manifest::of(&self.plan, keys, digest);
        fault::io("view.manifest").map_err(|error| StorageError::io("write", directory, error))?;
        let digest = manifest.publish(directory)?;
        Ok((manifest, digest))
    }

    /// Gives the directory its name, and names it in the catalog.
    fn publish(mut self, session: &Session, manifest: &Manifest, digest: String) -> Result<ViewEntry> {
        // Records of a table that was replaced meanwhile are of no use; resume finds them if it comes back.
        let table = session.table(&manifest.view.table)?;
        if table.identity() != manifest.view.table_identity {
            return Err(CatalogError::ChangedMeanwhile { name: manifest.view.table.clone() }.into());
        }
        let directory = self.place.directory().to_owned();
        // From here on the manifest says all that the plan did.
        let shards = manifest.shards();
        for name in (0..shards).map(StoreLayout::sums_name).chain([KEYS_SUMS.to_owned(), plan::FILE.to_owned()]) {
            remove_file(&directory.join(name))?;
        }
        sync_directory(&directory)?;
        let target = self.place.rename(session, &self.name)?;
        fault::io("view.catalog").map_err(|error| StorageError::io("write", &target, error))?;
        let view = &manifest.view;
        let entry = ViewEntry {
            name: self.name,
            directory: target,
            table: view.table.clone(),
            table_identity: view.table_identity.clone(),
            slots: view.slots,
            heads: view.heads,
            record_bytes: view.record_bytes,
            bytes: view.slots * view.record_bytes,
            form: manifest.form().name().to_owned(),
            order: manifest.order().name().to_owned(),
            tokens: view.tokens,
            covered: view.covered,
            digest,
            built_at: view.built_at,
            verified_at: None,
        };
        let replaced = session.publish_view(entry.clone(), self.options.replace)?;
        // The view is there whatever becomes of these: a lock file does no harm, and what cannot be removed is an orphan.
        let _ = self.place.give_away();
        if let Some(replaced) = replaced {
            let _ = session.remove_orphan(&replaced.directory);
        }
        Ok(entry)
    }
}

/// Checksums of the keys while the rest is built.
const KEYS_SUMS: &str = "keys.sums";
