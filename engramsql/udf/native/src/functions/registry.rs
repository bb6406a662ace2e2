//! `engram_functions()`: every SQL function with its signature, what it does, and an example.

use super::analysts;
use super::listing::{Cell, Listing};
use crate::error::Result;
use crate::ffi::{Arguments, Column};
use engram_engine::catalog::Session;

/// One SQL function.
struct Entry {
    name: &'static str,
    /// "scalar", "table" or "copy"; macros are told by their own files.
    kind: &'static str,
    signature: &'static str,
    description: &'static str,
    example: &'static str,
}

const ENTRIES: &[Entry] = &[
    Entry {
        name: "rowids_for_seq",
        kind: "scalar",
        signature: "rowids_for_seq(tokens) | (table, tokens) | (table, tokens, history) -> BIGINT[][]",
        description: "Row ids of each token (tokens x heads) under the table's spec, or the released Qwen PLE spec; history = tokens before, newest last.",
        example: "SELECT rowids_for_seq('ple', [17, 4, 256])[2] AS second_token",
    },
    Entry {
        name: "rowids_for_seq_with_history",
        kind: "scalar",
        signature: "rowids_for_seq_with_history(table, history, tokens) -> BIGINT[][]",
        description: "The same as rowids_for_seq(table, tokens, history).",
        example: "SELECT rowids_for_seq_with_history('ple', [17, 4], [256])[1] AS third_token",
    },
    Entry {
        name: "engram_tokens",
        kind: "scalar",
        signature: "engram_tokens(table, text) -> BIGINT[]",
        description: "Token ids of a text by the tokenizer.json of the table: the one that was declared, that lies beside its files, or that the table had which it was built from. All of the text, without special tokens added; NULL for NULL.",
        example: "SELECT engram_tokens('engram_l1', 'ABBA')",
    },
    Entry {
        name: "engram_row",
        kind: "scalar",
        signature: "engram_row(table, rowid) -> BLOB",
        description: "Stored bytes of one row; NULL for a NULL id.",
        example: "SELECT engram_row('ple', 7)[:8] AS first_bytes",
    },
    Entry {
        name: "engram_vector",
        kind: "scalar",
        signature: "engram_vector(table, rowid) -> FLOAT[]",
        description: "Decoded values of one row; NULL for a NULL id.",
        example: "SELECT engram_vector('ple', 7)[:4] AS first_values",
    },
    Entry {
        name: "engram_e_t",
        kind: "scalar",
        signature: "engram_e_t(table, rowids) -> FLOAT[]",
        description: "Decoded rows of one token's row ids, concatenated in the order given; NULL if the list or an id in it is NULL.",
        example: "SELECT len(engram_e_t('ple', rowids_for_seq('ple', [17])[1])) AS floats",
    },
    Entry {
        name: "engram_head",
        kind: "scalar",
        signature: "engram_head(table, rowid) -> INTEGER",
        description: "The head whose rows the id is among; NULL where no head reaches and for a NULL id. No row is read.",
        example: "SELECT engram_head('ple', 700) AS head",
    },
    Entry {
        name: "engram_row_stats",
        kind: "scalar",
        signature: "engram_row_stats(table, rowid) -> STRUCT(nans BIGINT, infs BIGINT, zeros BIGINT, min FLOAT, max FLOAT, sum DOUBLE, sum_squares DOUBLE, mean DOUBLE, stddev DOUBLE, constant BOOLEAN, dead BOOLEAN, scale_min FLOAT, scale_max FLOAT)",
        description: "What the values of one row are. nans, infs, zeros: how many are NaN, infinite, zero (of either sign); min, max, sum, sum_squares, mean, stddev (population): of the finite ones, NULL if there are none; dead: all are zero; constant: all are equal, none NaN, and the row is not dead; scale_min, scale_max: of the block scales that the row stores, decoded, NaN left out and the scale of the table left aside, NULL for formats that store none. NULL for a NULL id.",
        example: "SELECT sqrt(engram_row_stats('ple', 7).sum_squares) AS norm",
    },
    Entry {
        name: "engram_row_hash",
        kind: "scalar",
        signature: "engram_row_hash(table, rowid) -> HUGEINT",
        description: "XXH3-128 of the stored bytes of one row, as a signed number. It is the same wherever the row is stored; rows with equal hashes are equal, but by a chance of 2^-128 a pair. NULL for a NULL id.",
        example: "SELECT count(*) - count(DISTINCT engram_row_hash('ple', rowid)) AS duplicates FROM ple",
    },
    Entry {
        name: "engram_decode",
        kind: "scalar",
        signature: "engram_decode(blob, format [, scale]) -> FLOAT[]",
        description: "Values of a row's bytes under a named value format.",
        example: "SELECT engram_decode('\\x3C\\xC0'::BLOB, 'fp8_e4m3', 0.5) AS floats",
    },
    Entry {
        name: "engram_view_lookup",
        kind: "scalar",
        signature: "engram_view_lookup(view, key BIGINT[]) -> BIGINT",
        description: "The slot of a key, the row ids of one token in head order, in a materialised view; the lowest if it has several, NULL if it has none or the key is or holds a NULL.",
        example: "SELECT engram_view_lookup('corpus', rowids_for_seq('ple', [17])[1]) AS slot",
    },
    Entry {
        name: "engram_fetch",
        kind: "table",
        signature: "engram_fetch(table, rowids BIGINT[] or BIGINT[][]) -> (ord, token, head, rowid, embedding, row)",
        description: "One row per id, in the order given, duplicates kept; only selected columns are read. token is the inner list's index. rowids may be a constant, a parameter, a subquery, or a column of what stands before it in FROM: then ord counts within each list, and the lists come in any order. In a database file it is a constant, a parameter or a variable.",
        example: "SELECT ord, token, head, rowid, embedding[:2] AS first_values FROM engram_fetch('ple', rowids_for_seq('ple', [17, 4])) WHERE head < 2",
    },
    Entry {
        name: "engram_embeddings",
        kind: "table",
        signature: "engram_embeddings(table, tokens [, history]) -> (token, token_id, e_t)",
        description: "e_t of every token of a sequence. tokens and history may be constants, parameters, subqueries, or columns of what stands before it in FROM. In a database file they are constants, parameters or variables, and the optional argument is written as history := [...].",
        example: "SELECT token, token_id, e_t[:2] AS first_values FROM engram_embeddings('ple', [17, 4])",
    },
    Entry {
        name: "engram_view_fetch",
        kind: "table",
        signature: "engram_view_fetch(view, slots BIGINT[]) -> (slot, e_t, record)",
        description: "One row per slot of a materialised view, in the order given, duplicates kept; only selected columns are read. record is what the view stores: rows side by side, or float32 values.",
        example: "SELECT slot, e_t[:2] AS first_values FROM engram_view_fetch('corpus', [0, 1])",
    },
    Entry {
        name: "engram_scan",
        kind: "table",
        signature: "engram_scan(table [, first, count]) -> (rowid, head, embedding, row)",
        description: "Rows in id order, by several threads. In a database file write the optional arguments as first := ..., count := ....",
        example: "SELECT head, count(*) AS rows FROM engram_scan('ple') WHERE head < 3 GROUP BY head ORDER BY head",
    },
    Entry {
        name: "engram_tables",
        kind: "table",
        signature: "engram_tables() -> (name, spec, layer, rows, dim, format, row_bytes, heads, shards, bytes, source, in_place, verified_at)",
        description: "The registered tables.",
        example: "SELECT name, rows FROM engram_tables()",
    },
    Entry {
        name: "engram_views",
        kind: "table",
        signature: "engram_views() -> (name, kind, table_name, slots, heads, record_bytes, bytes, form, record_order, tokens, covered, directory, sql, verified_at)",
        description: "The views kept in the catalog: materialised ones (kind 'materialised'), then SQL views (kind 'sql'). What one kind does not have is NULL.",
        example: "SELECT name, kind FROM engram_views()",
    },
    Entry {
        name: "engram_orphans",
        kind: "table",
        signature: "engram_orphans() -> (path, kind, bytes, in_use)",
        description: "What lies in the database directory and belongs to no table or view: 'store', 'view', 'unfinished build', 'trash', 'temporary', 'token map', or 'foreign'. in_use: a process is writing to it.",
        example: "SELECT count(*) AS orphans FROM engram_orphans()",
    },
    Entry {
        name: "engram_shards",
        kind: "table",
        signature: "engram_shards(table) -> (shard, file, first_row, rows, offset, bytes, present, resident_bytes)",
        description: "Where the rows of a table lie, one line per extent.",
        example: "SELECT shard, first_row, rows, bytes, present FROM engram_shards('ple')",
    },
    Entry {
        name: "engram_heads",
        kind: "table",
        signature: "engram_heads(table) -> (head, ngram_order, size, first_row, rows)",
        description: "The heads of a table's spec and the rows they reach.",
        example: "SELECT * FROM engram_heads('ple') WHERE head < 3",
    },
    Entry {
        name: "engram_plan",
        kind: "table",
        signature: "engram_plan(table, rowids BIGINT[] or BIGINT[][]) -> (path, shard, file, offset, bytes, rows, bytes_used, resident)",
        description: "What a fetch of these rows would read now, one line per read, as one batch on the path it would take (engram_reader, or chosen by what is in memory); no row is read. bytes come from the file, bytes_used of them are of rows asked for (rows of them, duplicates counted; a row of values and scales is in a read of each): sum(bytes) / sum(bytes_used) is the read amplification. resident: the page cache holds all of it. Path cache: rows that the row cache has, without a file. Path mapped: whole pages, which come from the disk only where they are not resident. SQL functions read 2048 rows at a time, so of a longer list they merge fewer reads. rowids is a constant, a parameter or a variable; for ids of a query, SET VARIABLE ids = (SELECT list(id) FROM ...) and engram_plan('ple', getvariable('ids')).",
        example: "SELECT path, count(*) AS reads, sum(bytes) / sum(bytes_used) AS amplification FROM engram_plan('ple', rowids_for_seq('ple', [17, 4])) GROUP BY path",
    },
    Entry {
        name: "engram_stats",
        kind: "table",
        signature: "engram_stats() -> (table_name, path, batches, rows, reads, bytes_read, bytes_used, cache_hits, cache_misses, seconds, p50_us, p90_us, p99_us)",
        description: "What reading cost so far in this process, per table of this database and code path; the last three say how long a batch took. cache_hits and cache_misses are NULL but for the path cache.",
        example: "SELECT path, rows, seconds FROM engram_stats()",
    },
    Entry {
        name: "engram_cache",
        kind: "table",
        signature: "engram_cache() -> (budget, bytes, rows, hits, misses, hit_rate)",
        description: "The row cache of this process: rows from the disk are kept here, within the RAM budget.",
        example: "SELECT bytes, hit_rate FROM engram_cache()",
    },
    Entry {
        name: "engram_prefetch",
        kind: "table",
        signature: "engram_prefetch(table, rowids BIGINT[] or BIGINT[][]) -> (rows, bytes)",
        description: "Brings rows into the row cache in the background and returns at once. rowids is a constant, a parameter or a variable; for ids of a query, SET VARIABLE ids = (SELECT list(id) FROM ...) and engram_prefetch('ple', getvariable('ids')).",
        example: "SELECT rows FROM engram_prefetch('ple', rowids_for_seq('ple', [17, 4]))",
    },
    Entry {
        name: "engram_warm",
        kind: "table",
        signature: "engram_warm(table [, budget]) -> (first_row, rows, bytes, resident_bytes)",
        description: "Brings the rows of a table into memory: into the row cache if a RAM budget was set, else into the page cache. In a database file write the optional argument as budget := '...'.",
        example: "SELECT sum(rows) AS rows FROM engram_warm('ple', '100MB')",
    },
    Entry {
        name: "engram_verify",
        kind: "table",
        signature: "engram_verify(table [, level, resume]) -> (check, shard, ok, expected, found, detail)",
        description: "What verification finds, as it finds it; table may be a view. Levels: headers, sample, full (the default: every byte). With resume a full verification that was interrupted goes on where it ended. In a database file write the optional arguments as level := ..., resume := ..., and an interrupt waits for the next finding.",
        example: "SELECT \"check\", shard, ok, detail FROM engram_verify('ple', 'headers')",
    },
    Entry {
        name: "engram_diff",
        kind: "table",
        signature: "engram_diff(a, b) -> (rowid, byte, a, b)",
        description: "The rows of two tables that differ, in row order, with their first byte that does, counted from 0, and that byte in each. In a database file an interrupt waits for the next such row.",
        example: "SELECT count(*) AS differences FROM engram_diff('ple', 'tuned')",
    },
    Entry {
        name: "engram_profile",
        kind: "table",
        signature: "engram_profile(table) -> (head, ngram_order, rows, dead, constant, nans, infs, zeros, min, max, mean, stddev, norm_min, norm_max, norm_mean, scale_min, scale_max, nan_rows, inf_rows)",
        description: "What the rows of each head are, from one pass over the table. head NULL: the rows that no head reaches. dead rows have only values zero (of either sign), constant ones only equal values, none NaN, and are not dead. min, max, mean and stddev (population) are over the finite values, Euclidean norms over the rows whose values are all finite, scales as in engram_row_stats; NULL where there is nothing to tell of. In a database file an interrupt waits for the end.",
        example: "SELECT head, rows, dead, norm_mean FROM engram_profile('ple')",
    },
    Entry {
        name: "engram_histogram",
        kind: "table",
        signature: "engram_histogram(table [, first, count]) -> (head, code, low, high, count)",
        description: "How often each value is stored, head by head, from one pass over the rows. Formats with codes of at most 8 bits: the code, and as low and high its value before any scale. Wider ones (code NULL): by sign and power of two, low <= value < high above zero and low < value <= high below; zero, each infinity and NaN have lines of their own, and the line next to zero has the subnormal numbers of float32. What does not occur has no line. In a database file write the optional arguments as first := ..., count := ..., and an interrupt waits for the end.",
        example: "SELECT head, code, low, count FROM engram_histogram('ple') ORDER BY count DESC, head, code LIMIT 5",
    },
    Entry {
        name: "engram_functions",
        kind: "table",
        signature: "engram_functions() -> (name, kind, signature, description, example)",
        description: "This list. What is of kind macro is made in databases in memory only, where it touches no file of yours.",
        example: "SELECT name, signature FROM engram_functions() WHERE kind = 'scalar' LIMIT 3",
    },
    Entry {
        name: "engram_attach",
        kind: "table",
        signature: "CALL engram_attach(dir [, read_only := true])",
        description: "Points the session at a database directory; tables held in memory are dropped. Returns its tables.",
        example: "CALL engram_attach('mydb')",
    },
    Entry {
        name: "engram_register",
        kind: "table",
        signature: "CALL engram_register(name, source [, spec :=, format :=, scale :=, width :=, rows_per_shard :=, layer :=, tokenizer :=])",
        description: "Registers a checkpoint or store under a name; reads headers only. Returns the tables added.",
        example: "CALL engram_register('more', 'models/qwen')",
    },
    Entry {
        name: "engram_relocate",
        kind: "table",
        signature: "CALL engram_relocate(name, source)",
        description: "Points a table to the place where its files are now; reads headers only, which must say what they said at registration. Returns the table.",
        example: "CALL engram_relocate('more', 'models/qwen')",
    },
    Entry {
        name: "engram_build",
        kind: "table",
        signature: "CALL engram_build(name, source [, shard_bytes :=, jobs :=, replace :=, resume :=, restart :=, spec :=, format :=, scale :=, width :=, rows_per_shard :=, layer :=, tokenizer :=])",
        description: "Copies a registered table, or the checkpoint or store at a path, into a store of the database and registers it. With replace, in place of a table of that name. A build that was interrupted is kept: resume goes on with it, restart begins anew. The last seven say what a path does not, as for engram_register. Returns the tables built. In a database file an interrupt waits for the end.",
        example: "CALL engram_build('fast', 'ple', shard_bytes := '4GB', jobs := 2)",
    },
    Entry {
        name: "engram_drop",
        kind: "table",
        signature: "CALL engram_drop(name [, data := true])",
        description: "Forgets a table or view; its files stay. With data := true the directory goes that it has inside the database. Returns what was dropped; of a view, rows are its slots.",
        example: "CALL engram_drop('more')",
    },
    Entry {
        name: "COPY engram",
        kind: "copy",
        signature: "COPY (SELECT [rowid,] row or embedding ...) TO 'dir' (FORMAT engram [, VALUE_FORMAT, SCALE, SPEC, LAYER, TOKENIZER, SHARD_BYTES])",
        description: "Writes a new store, which appears when it is complete. Rows are one BLOB column, all of one width, or one FLOAT[] column with VALUE_FORMAT f32, bf16 or f16, which must hold every value exactly. Row ids, if given, must count from 0 without a gap; without them rows are numbered as they come.",
        example: "COPY (SELECT rowid, row FROM ple ORDER BY rowid) TO 'store' (FORMAT engram, VALUE_FORMAT fp8_e4m3, SCALE 0.0625)",
    },
];

/// The table function; whether the macros of analysts were made in the database that loaded the extension.
pub struct Functions<const MACROS: bool>;

impl<const MACROS: bool> Listing for Functions<MACROS> {
    const NAME: &'static str = "engram_functions";
    const COLUMNS: &'static [(&'static str, Column)] = &[
        ("name", Column::Text),
        ("kind", Column::Text),
        ("signature", Column::Text),
        ("description", Column::Text),
        ("example", Column::Text),
    ];
    type Arguments = ();

    fn bind(_session: &Session, _arguments: &Arguments<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(_session: &Session, _arguments: &()) -> Result<Vec<Vec<Cell>>> {
        let native = ENTRIES
            .iter()
            .map(|entry| [entry.name, entry.kind, entry.signature, entry.description, entry.example].map(Cell::from));
        let macros = analysts::all()
            .iter()
            .filter(|_| MACROS)
            .map(|found| [found.name, "macro", &found.signature, &found.description, &found.example].map(Cell::from));
        Ok(native.chain(macros).map(|cells| cells.to_vec()).collect())
    }
}
