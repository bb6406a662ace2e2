//! Optional positional arguments for table functions.
//!
//! DuckDB's C API cannot overload a table function, and named arguments are all it offers for optional ones. Macros
//! with default values accept both. They live in a schema of a database, so they are made only where the default
//! database is in memory: a user's database file is never written to.

use super::analysts;
use crate::error::Result;
use crate::ffi::Registrar;

/// Name under which the macro `engram_scan` calls the native function.
pub const SCAN: &str = "_engram_scan";
/// Name under which the macro `_engram_ids` calls the native function.
pub const IDS: &str = "_engram_ids_native";
/// Name under which the macro `engram_warm` calls the native function.
pub const WARM: &str = "_engram_warm";
/// Name under which the macro `engram_build` calls the native function.
pub const BUILD: &str = "_engram_build";
/// Name under which the macro `engram_verify` calls the native function.
pub const VERIFY: &str = "_engram_verify";
/// Name under which the macro `engram_diff` calls the native function.
pub const DIFF: &str = "_engram_diff";
/// Name under which the macro `engram_profile` calls the native function.
pub const PROFILE: &str = "_engram_profile";
/// Name under which the macro `engram_histogram` calls the native function.
pub const HISTOGRAM: &str = "_engram_histogram";

const DEFAULT_IS_IN_MEMORY: &str = "SELECT 1 FROM duckdb_databases() \
     WHERE database_name = current_database() AND path IS NULL AND NOT internal AND NOT readonly";

const MACROS: &[&str] = &[
    "CREATE OR REPLACE MACRO main.engram_scan(\"table\", first := NULL, count := NULL) AS TABLE \
     (FROM _engram_scan(\"table\", first := first, count := count))",
    "CREATE OR REPLACE MACRO main._engram_ids(\"table\") AS TABLE (FROM _engram_ids_native(\"table\")), \
     (\"table\", low, high) AS TABLE (FROM _engram_ids_native(\"table\", low := low, high := high))",
    // Unnesting one scalar call in a subquery of its own is what DuckDB plans without a join where the list is a column.
    "CREATE OR REPLACE MACRO main.engram_fetch(\"table\", rowids) AS TABLE (\
     SELECT u.ord AS ord, u.token AS token, engram_head(\"table\", u.rowid) AS head, u.rowid AS rowid, \
     cast_to_type(_engram_vector(\"table\", u.rowid, from_json('null', _engram_type(\"table\", 'vector witness'))), \
     from_json('null', _engram_type(\"table\"))) AS embedding, engram_row(\"table\", u.rowid) AS \"row\" \
     FROM (SELECT unnest(_engram_list(\"table\", rowids)) AS u))",
    "CREATE OR REPLACE MACRO main.engram_embeddings(\"table\", tokens, history := NULL) AS TABLE (\
     SELECT u.token AS token, u.token_id AS token_id, \
     cast_to_type(_engram_e_t(\"table\", u.rowids, from_json('null', _engram_type(\"table\", 'e_t witness'))), \
     from_json('null', _engram_type(\"table\", 'e_t'))) AS e_t \
     FROM (SELECT unnest(_engram_sequence(\"table\", tokens, history)) AS u))",
    "CREATE OR REPLACE MACRO main.engram_warm(\"table\", budget := NULL) AS TABLE \
     (FROM _engram_warm(\"table\", budget := budget))",
    // Rows of NULLs let DuckDB look for an interrupt; see the module `stream`.
    "CREATE OR REPLACE MACRO main.engram_build(name, source, shard_bytes := NULL, jobs := NULL, replace := NULL, \
     resume := NULL, restart := NULL, spec := NULL, format := NULL, scale := NULL, width := NULL, rows_per_shard := NULL, layer := NULL, \
     tokenizer := NULL) AS TABLE (FROM _engram_build(name, source, shard_bytes := shard_bytes, jobs := jobs, \
     replace := replace, resume := resume, restart := restart, spec := spec, format := format, scale := scale, width := width, \
     rows_per_shard := rows_per_shard, layer := layer, tokenizer := tokenizer) AS built WHERE built.name IS NOT NULL)",
    "CREATE OR REPLACE MACRO main.engram_verify(\"table\", level := NULL, resume := NULL) AS TABLE \
     (FROM _engram_verify(\"table\", level := level, resume := resume) AS found WHERE found.ok IS NOT NULL)",
    "CREATE OR REPLACE MACRO main.engram_diff(a, b) AS TABLE \
     (FROM _engram_diff(a, b) AS found WHERE found.rowid IS NOT NULL)",
    "CREATE OR REPLACE MACRO main.engram_profile(\"table\") AS TABLE \
     (FROM _engram_profile(\"table\") AS found WHERE found.\"rows\" IS NOT NULL)",
    "CREATE OR REPLACE MACRO main.engram_histogram(\"table\", first := NULL, count := NULL) AS TABLE \
     (FROM _engram_histogram(\"table\", first := first, count := count) AS found WHERE found.\"count\" IS NOT NULL)",
];

/// Creates the macros if the default database is in memory; whether it is.
pub fn create(registrar: &Registrar) -> Result<bool> {
    if registrar.query(DEFAULT_IS_IN_MEMORY)? == 0 {
        return Ok(false);
    }
    let analysts = analysts::all().iter().map(|found| found.statement);
    let statements = ["BEGIN"].into_iter().chain(MACROS.iter().copied()).chain(analysts).chain(["COMMIT"]);
    // One transaction and one text: each of its own takes half a millisecond of every opening. A statement that fails leaves
    // the transaction to the connection, which is closed then.
    registrar.query(&statements.collect::<Vec<_>>().join(";\n"))?;
    Ok(true)
}
