//! A table: rows that lie somewhere, a spec that addresses them, a format that decodes them.

use crate::cache::{self, TableUsage};
use crate::cpu;
use crate::error::{Error, Result};
use crate::fault;
use crate::format::{Decoder, ValueFormat};
use crate::gather::{Bfloat16, Bytes, Output, Vectors, gather};
use crate::prefetch::Prefetch;
use crate::read::{PathStats, PlannedRead, ReadPlan, Readers, RowSink, TakeBytes};
use crate::source::{Layout, SourceKind, SourceTable};
use crate::spec::{Sequence, Spec, TextTokenizer};
use crate::view::View;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// One row of `engram_shards()`: an extent of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardInfo {
    /// Shard number, 0-based; a shard whose rows lie in two extents (values, scales) appears twice.
    pub shard: u32,
    /// File that holds the extent.
    pub file: String,
    /// First row id of the shard.
    pub first_row: u64,
    /// Rows of the shard.
    pub rows: u64,
    /// Byte offset of the extent in the file.
    pub offset: u64,
    /// Bytes of the extent.
    pub bytes: u64,
    /// Whether the file is there now and long enough.
    pub present: bool,
    /// Bytes of the extent in the page cache, or `None` where the system does not say.
    pub resident_bytes: Option<u64>,
}

/// The extents of `layout`, which `readers` have open, by shard.
pub(crate) fn shards_of(layout: &Layout, readers: &Readers) -> Vec<ShardInfo> {
    let mut shards: Vec<ShardInfo> = layout
        .parts
        .iter()
        .flat_map(|part| part.extents().iter().map(move |extent| (part.width() as u64, extent)))
        .map(|(width, extent)| {
            let (file, _) = &layout.files[extent.file];
            let bytes = extent.rows * width;
            let present = std::fs::metadata(file).is_ok_and(|m| m.len() >= extent.offset + bytes);
            ShardInfo {
                shard: extent.shard,
                file: file.to_string_lossy().into_owned(),
                first_row: extent.first_row,
                rows: extent.rows,
                offset: extent.offset,
                bytes,
                present,
                resident_bytes: readers.resident_bytes(extent.file, extent.offset, bytes),
            }
        })
        .collect();
    // Stable: the values of a shard stay before its scales.
    shards.sort_by_key(|shard| shard.shard);
    shards
}

/// One row of `engram_heads()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadInfo {
    /// Head, 0-based.
    pub head: u32,
    /// n-gram order: 2 for bigrams, ...
    pub ngram_order: u32,
    /// Head size: buckets of this head.
    pub size: u64,
    /// First row id of this head (its offset).
    pub first_row: u64,
    /// Rows of this head.
    pub rows: u64,
}

/// An open table. Cheap to share (`Arc`), safe to use from many threads.
pub struct Table {
    name: String,
    source: PathBuf,
    kind: SourceKind,
    layer: Option<u32>,
    layout: Layout,
    decoder: Option<Decoder>,
    dim: Option<usize>,
    spec: Option<Spec>,
    digest: Option<String>,
    checksums: Option<String>,
    identity: String,
    tokenizer: Option<PathBuf>,
    /// Read when the first text comes.
    text: OnceLock<Arc<TextTokenizer>>,
    readers: Readers,
    /// Those that may still run.
    prefetches: Mutex<Vec<Prefetch>>,
    /// Views that may answer in its place.
    views: RwLock<Arc<[Arc<View>]>>,
}

impl Table {
    /// Opens the files of a table found in `source`.
    pub fn open(name: &str, source: &Path, found: SourceTable) -> Result<Table> {
        // A wrong setting is told before the first row that a kernel would decode.
        cpu::level()?;
        let readers = Readers::open(&found.layout)?;
        let dim = found.format.as_ref().and_then(|format| format.dim_of(found.layout.row_bytes()));
        Ok(Table {
            name: name.to_owned(),
            source: source.to_owned(),
            kind: found.kind,
            layer: found.layer,
            decoder: found.format.map(Decoder::new),
            dim,
            spec: found.spec,
            digest: found.digest,
            checksums: found.checksums,
            identity: found.identity.unwrap_or_else(|| found.layout.identity()),
            layout: found.layout,
            tokenizer: found.tokenizer,
            text: OnceLock::new(),
            readers,
            prefetches: Mutex::default(),
            views: RwLock::new(Arc::new([])),
        })
    }

    /// Catalog name, or the path it was opened from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The source path.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// What kind of source it is.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// Number of rows; valid row ids are `0..rows`.
    pub fn rows(&self) -> u64 {
        self.layout.rows
    }

    /// Bytes of one row as `fetch` returns it (all extents, in order).
    pub fn row_bytes(&self) -> usize {
        self.layout.row_bytes()
    }

    /// Values per row, if the format is known.
    pub fn dim(&self) -> Option<usize> {
        self.dim
    }

    /// Value format, if known.
    pub fn format(&self) -> Option<&ValueFormat> {
        self.decoder.as_ref().map(Decoder::format)
    }

    /// Hash spec, if known.
    pub fn spec(&self) -> Option<&Spec> {
        self.spec.as_ref()
    }

    /// Decoder layer (0-based), if the source has layers.
    pub fn layer(&self) -> Option<u32> {
        self.layer
    }

    /// Digest of its manifest, for a store that EngramSQL built.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Digest of its block checksums, for a store that EngramSQL built.
    pub(crate) fn checksums_digest(&self) -> Option<&str> {
        self.checksums.as_deref()
    }

    /// Where the rows lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What tells this table's content from any other: for a store that EngramSQL built, BLAKE3 over its checksums, layout,
    /// value format and spec (the same bits built again are the same content); else BLAKE3 over the names, sizes,
    /// modification times and extents of its files (what is read in place carries no digest).
    pub fn identity(&self) -> String {
        self.identity.clone()
    }

    /// The `tokenizer.json` that text goes through: declared, beside the files, or that of the table it was built from.
    pub fn tokenizer_path(&self) -> Option<&Path> {
        self.tokenizer.as_deref()
    }

    /// Where its tokenizer lies, or the error that says how to give one.
    pub fn require_tokenizer(&self) -> Result<&Path> {
        self.tokenizer.as_deref().ok_or_else(|| Error::NoTokenizer { table: self.name.clone() })
    }

    /// The tokenizer, which is read when it is asked for first.
    ///
    /// # Errors
    /// A table without one, or a file that is gone or no tokenizer.
    pub fn tokenizer(&self) -> Result<&Arc<TextTokenizer>> {
        if let Some(known) = self.text.get() {
            return Ok(known);
        }
        let path = self.require_tokenizer()?;
        let refuse = |error| Error::Tokenizer { table: self.name.clone(), error };
        let found = TextTokenizer::shared(path).map_err(refuse)?;
        Ok(self.text.get_or_init(|| found))
    }

    /// Number of shards.
    pub fn shard_count(&self) -> u32 {
        self.layout.shard_count()
    }

    /// Bytes of all rows on disk.
    pub fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// What reading this table cost so far, by code path; sessions that open the same files share the counters.
    pub fn stats(&self) -> Vec<PathStats> {
        self.readers.stats().paths()
    }

    /// Whether rows that are not in memory are read by io_uring, around the page cache; else through the map, or by the
    /// reader that a setting names.
    pub fn reads_directly(&self) -> bool {
        self.readers.reads_directly()
    }

    /// Its rows in the row cache.
    pub fn cached(&self) -> TableUsage {
        self.readers.cache().usage()
    }

    /// One line per extent, by shard.
    pub fn shards(&self) -> Vec<ShardInfo> {
        shards_of(&self.layout, &self.readers)
    }

    /// One line per head; empty without a spec.
    pub fn heads(&self) -> Vec<HeadInfo> {
        let Some(spec) = &self.spec else { return Vec::new() };
        (0..)
            .zip(spec.head_sizes().iter().zip(spec.head_offsets()).zip(spec.ngram_orders()))
            .map(|(head, ((&size, &first_row), &ngram_order))| HeadInfo {
                head,
                ngram_order,
                size,
                first_row,
                rows: size,
            })
            .collect()
    }

    /// Number of heads; 0 without a spec.
    pub(crate) fn heads_count(&self) -> usize {
        self.spec.as_ref().map_or(0, Spec::heads)
    }

    /// Head of a row id, or `None` for rows that no head reaches (padding) and tables without a spec.
    pub fn head_of(&self, rowid: u64) -> Option<u32> {
        let spec = self.spec.as_ref()?;
        let head = spec.head_offsets().partition_point(|&offset| offset <= rowid).checked_sub(1)?;
        (rowid - spec.head_offsets()[head] < spec.head_sizes()[head]).then_some(head as u32)
    }

    /// Every id is in `0..rows`, or the error names the first that is not.
    pub fn check_ids(&self, ids: &[i64]) -> Result<()> {
        ReadPlan::new(&self.layout, ids).map(drop).map_err(|id| self.out_of_range(id.into()))
    }

    /// The reads that a fetch of `ids`, as one batch, would take now. Reads no row.
    pub fn plan(&self, ids: &[i64]) -> Result<Vec<PlannedRead>> {
        self.check_ids(ids)?;
        Ok(self.readers.plan(&ReadPlan::proven(&self.layout, ids))?)
    }

    /// Row bytes of `ids` in order, duplicates kept: `out.len() == ids.len() * row_bytes()`.
    pub fn fetch_into(&self, ids: &[i64], out: &mut [u8]) -> Result<()> {
        let width = self.row_bytes();
        check_output("bytes", ids.len() * width, out.len())?;
        self.gather(ids, Bytes { width, out })
    }

    /// Decoded rows of `ids` in order: `out.len() == ids.len() * dim`. The exact product value x scale in float32.
    pub fn vectors_into(&self, ids: &[i64], out: &mut [f32]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        check_output("values", ids.len() * dim, out.len())?;
        self.gather(ids, Vectors { decoder, dim, out })
    }

    /// The same rounded once to bfloat16 (nearest, ties to even), as bit patterns: what the model consumes.
    pub fn vectors_bf16_into(&self, ids: &[i64], out: &mut [u16]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        check_output("values", ids.len() * dim, out.len())?;
        self.gather(ids, Bfloat16 { decoder, dim, out })
    }

    /// Decodes rows that were fetched: `rows` as [`fetch_into`](Self::fetch_into) gives them, `out` as
    /// [`vectors_into`](Self::vectors_into) does.
    pub fn decode_into(&self, rows: &[u8], out: &mut [f32]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        let width = self.row_bytes();
        check_output("values", rows.len() / width * dim, out.len())?;
        check_output("bytes", out.len() / dim * width, rows.len())?;
        let value_bytes = decoder.format().value_bytes(dim);
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(dim)) {
            let (values, scales) = row.split_at(value_bytes);
            decoder.decode(values, scales, out);
        }
        Ok(())
    }

    /// Row bytes from row `first` on, as many as `out` holds, for scans: rows pass the row cache by.
    pub fn scan_into(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.row_bytes();
        let count = out.len() / width;
        check_output("bytes", count * width, out.len())?;
        self.scan(first, count, Bytes { width, out })
    }

    /// Hands rows `rows` to `sink`, for scans: rows pass the row cache by. `ids` is memory that is used again.
    pub(crate) fn scan_rows(
        &self,
        rows: std::ops::Range<u64>,
        ids: &mut Vec<i64>,
        sink: &mut dyn RowSink,
    ) -> Result<()> {
        fault::point("gather");
        ids.clear();
        ids.extend(rows.map(|id| id as i64));
        self.check_ids(ids)?;
        Ok(self.readers.scan(&ReadPlan::proven(&self.layout, ids), sink)?)
    }

    /// Decoded rows from row `first` on, as many as `out` holds, for scans: rows pass the row cache by.
    pub fn scan_vectors_into(&self, first: u64, out: &mut [f32]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        let count = out.len() / dim;
        check_output("values", count * dim, out.len())?;
        self.scan(first, count, Vectors { decoder, dim, out })
    }

    /// The same rounded once to bfloat16, as bit patterns.
    pub fn scan_vectors_bf16_into(&self, first: u64, out: &mut [u16]) -> Result<()> {
        let (decoder, dim) = self.decoder()?;
        let count = out.len() / dim;
        check_output("values", count * dim, out.len())?;
        self.scan(first, count, Bfloat16 { decoder, dim, out })
    }

    /// Hands the rows `rows` to `take` in order, as (first row, whole rows as [`fetch_into`](Self::fetch_into) gives them),
    /// about half a megabyte at a time, at the disk's sequential rate and past every cache. What was taken counts only
    /// once this has returned without an error.
    pub fn stream(&self, rows: std::ops::Range<u64>, take: &mut TakeBytes<'_, Error>) -> Result<()> {
        self.readers.stream(&self.layout, rows.start..rows.end.min(self.rows()), take)
    }

    /// Brings rows into the row cache before they are asked for, in the background (where the cache is off: asks the
    /// system to bring them into the page cache). The ids are checked here; a read that fails is told by the handle.
    pub fn prefetch(self: &Arc<Self>, ids: Vec<i64>) -> Result<Prefetch> {
        self.check_ids(&ids)?;
        let prefetch = Prefetch::start(self.clone(), ids);
        let mut running = self.running();
        running.retain(|prefetch| !prefetch.is_done());
        running.push(prefetch.clone());
        Ok(prefetch)
    }

    /// Cancels every prefetch of this table.
    pub fn cancel_prefetches(&self) {
        self.running().drain(..).for_each(|prefetch| prefetch.cancel());
    }

    /// Lets `views` answer for the keys that they hold, in place of those that did before: [`e_t_into`](Self::e_t_into)
    /// asks the first one that has a key. Only views that are [usable](View::is_usable) with this table and whose keys
    /// are its spec's are taken.
    pub fn attach_views(&self, mut views: Vec<Arc<View>>) {
        views.retain(|view| view.is_usable() && self.spec.as_ref().is_some_and(|spec| spec.heads() == view.heads()));
        *self.views.write().unwrap_or_else(PoisonError::into_inner) = views.into();
    }

    /// The views that answer for keys that they hold.
    pub fn attached_views(&self) -> Arc<[Arc<View>]> {
        // A list is replaced as a whole.
        self.views.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn running(&self) -> MutexGuard<'_, Vec<Prefetch>> {
        // A list of handles is whole at every moment.
        self.prefetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the rows of `ids` into the row cache now.
    pub(crate) fn read_ahead(&self, ids: &[i64]) -> Result<()> {
        fault::point("prefetch");
        Ok(self.readers.prefetch(&ReadPlan::proven(&self.layout, ids))?)
    }

    /// Rows, from the first on, that [`warm`](Self::warm) can bring into memory and keep there: as many as fit `budget`
    /// bytes of rows and, if a RAM budget was set, the row cache. Without `budget` and RAM budget as many as half of the
    /// memory that the process may use: the rest belongs to others.
    pub fn rows_within(&self, budget: Option<u64>) -> u64 {
        let cache = self.readers.cache();
        let explicit = cache.budget_is_explicit() && cache.budget() > 0;
        let most = if explicit { cache.capacity() } else { self.rows_of_bytes(cache::usable_memory() / 2) };
        let wanted = match budget {
            Some(bytes) if explicit => self.rows_of_bytes(bytes).min(most),
            Some(bytes) => self.rows_of_bytes(bytes),
            None => most,
        };
        wanted.min(self.rows())
    }

    /// Rows that `bytes` bytes hold.
    pub fn rows_of_bytes(&self, bytes: u64) -> u64 {
        bytes / self.row_bytes() as u64
    }

    /// Rows to warm in one call of about `bytes` bytes: at least one, and no more than their ids, which take eight bytes
    /// each, are worth holding.
    pub fn rows_of_stretch(&self, bytes: u64) -> u64 {
        const MOST: u64 = 1 << 20;
        self.rows_of_bytes(bytes).clamp(1, MOST)
    }

    /// Brings rows `rows` into memory, in file order, and returns how many bytes of them are there then: into the row
    /// cache if a RAM budget was set, else into the page cache.
    pub fn warm(&self, rows: std::ops::Range<u64>) -> Result<u64> {
        let ids: Vec<i64> = rows.map(|id| id as i64).collect();
        self.check_ids(&ids)?;
        let resident = self.readers.warm(&ReadPlan::proven(&self.layout, &ids))?;
        Ok(resident as u64 * self.row_bytes() as u64)
    }

    /// An error if any of the table's files was replaced, modified, shortened or removed since it was opened.
    pub fn check_files(&self) -> Result<()> {
        Ok(self.readers.check()?)
    }

    /// Says that rows `rows` will be read soon and in order, so that the disk can be read ahead; results do not change.
    pub fn announce(&self, rows: std::ops::Range<u64>) {
        self.readers.announce(rows.start..rows.end.min(self.rows()));
    }

    /// Row ids of one sequence (tokens x heads, token-major). `history`: tokens before, newest last.
    pub fn rowids(&self, tokens: &[i64], history: &[i64]) -> Result<Vec<i64>> {
        let spec = self.require_spec()?;
        let mut rowids = vec![0; tokens.len() * spec.heads()];
        spec.rowids_into(Sequence::new(tokens).with_history(history), &mut rowids)?;
        Ok(rowids)
    }

    /// The spec, or the error that says how to give one.
    pub fn require_spec(&self) -> Result<&Spec> {
        self.spec.as_ref().ok_or_else(|| Error::NoSpec { table: self.name.clone() })
    }

    /// Values per row, or the error that says how to give a format.
    pub fn require_dim(&self) -> Result<usize> {
        self.decoder().map(|(_, dim)| dim)
    }

    pub(crate) fn decoder(&self) -> Result<(&Decoder, usize)> {
        self.decoder.as_ref().zip(self.dim).ok_or_else(|| Error::NoFormat { table: self.name.clone() })
    }

    /// The error for a row id that this table does not have.
    pub fn out_of_range(&self, id: i128) -> Error {
        Error::RowIdOutOfRange { table: self.name.clone(), rows: self.rows(), id }
    }

    /// Reads the rows of `ids` into `output`.
    pub(crate) fn gather(&self, ids: &[i64], output: impl Output) -> Result<()> {
        fault::point("gather");
        self.check_ids(ids)?;
        Ok(gather(&self.readers, &self.layout, ids, 1, output)?)
    }

    /// Reads `count` rows from `first` on into `output`.
    pub(crate) fn scan(&self, first: u64, count: usize, mut output: impl Output) -> Result<()> {
        fault::point("gather");
        let ids: Vec<i64> = (first..first.saturating_add(count as u64)).map(|id| id as i64).collect();
        self.check_ids(&ids)?;
        Ok(self.readers.scan(&ReadPlan::proven(&self.layout, &ids), &mut output.sink())?)
    }
}

pub(crate) fn check_output(unit: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::OutputSize { unit, expected, found }) }
}
