//! Calls of DuckDB that may throw a C++ exception: those that allocate within its memory limit.
//!
//! The exception ends in `host.cpp`. On this side it goes on as an unwinding with a [`HostError`], which the guard reports in
//! DuckDB's words: every write to a vector may fail so, and none could do anything about it.

use super::sys::*;
use crate::error::{Error, Result};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// What DuckDB said when it could not do what it was asked for.
pub(super) struct HostError(pub(super) String);

type Reserve = unsafe extern "C" fn(duckdb_vector, idx_t) -> duckdb_state;
type Assign = unsafe extern "C" fn(duckdb_vector, idx_t, *const c_char, idx_t);
type Validity = unsafe extern "C" fn(duckdb_vector);

/// The functions, which are never called from Rust: an exception must not pass through its frames.
#[derive(Clone, Copy)]
struct Functions {
    reserve: Reserve,
    set_size: Reserve,
    assign: Assign,
    validity: Validity,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Room for the text of an exception (bytes).
const ROOM: usize = 4096;

unsafe extern "C" {
    fn engramsql_host_reserve(
        function: Reserve,
        vector: duckdb_vector,
        count: idx_t,
        state: *mut duckdb_state,
        text: *mut c_char,
        room: usize,
    ) -> bool;
    fn engramsql_host_assign(
        function: Assign,
        vector: duckdb_vector,
        row: idx_t,
        bytes: *const c_char,
        length: idx_t,
        text: *mut c_char,
        room: usize,
    ) -> bool;
    fn engramsql_host_validity(function: Validity, vector: duckdb_vector, text: *mut c_char, room: usize) -> bool;
}

/// Takes the functions from the host's table, which is one per process: [`claim_host`](super::entry::claim_host) refuses
/// another one.
///
/// # Errors
/// The table lacks one.
pub(super) fn connect(table: &duckdb_ext_api_v1) -> Result<()> {
    let found = (|| {
        Some(Functions {
            reserve: table.duckdb_list_vector_reserve?,
            set_size: table.duckdb_list_vector_set_size?,
            assign: table.duckdb_unsafe_vector_assign_string_element_len?,
            validity: table.duckdb_vector_ensure_validity_writable?,
        })
    })();
    let found = found.ok_or_else(|| Error::argument("DuckDB's function table lacks functions that write vectors"))?;
    FUNCTIONS.get_or_init(|| found);
    Ok(())
}

/// Gives a list vector room for `count` elements and that size; false if DuckDB refused, unwinds if it threw.
///
/// # Safety
/// `vector` is a live, writable list vector.
pub(super) unsafe fn resize_list(vector: duckdb_vector, count: usize) -> bool {
    let functions = functions();
    [functions.reserve, functions.set_size].into_iter().all(|function| {
        let mut state = DuckDBSuccess;
        // SAFETY: live by contract; the state is written if the call comes back.
        completed(|text| unsafe { engramsql_host_reserve(function, vector, count as idx_t, &mut state, text, ROOM) });
        state == DuckDBSuccess
    })
}

/// Writes `bytes`, UTF-8 in a VARCHAR vector, to row `row`.
///
/// # Safety
/// `vector` is a live, writable VARCHAR or BLOB vector with that row.
pub(super) unsafe fn assign(vector: duckdb_vector, row: usize, bytes: &[u8]) {
    let (function, at, length) = (functions().assign, bytes.as_ptr().cast(), bytes.len() as idx_t);
    // SAFETY: live by contract; DuckDB copies `length` bytes.
    completed(|text| unsafe { engramsql_host_assign(function, vector, row as idx_t, at, length, text, ROOM) });
}

/// Gives a vector a validity mask that may be written.
///
/// # Safety
/// `vector` is a live, writable vector.
pub(super) unsafe fn ensure_validity(vector: duckdb_vector) {
    let function = functions().validity;
    // SAFETY: live by contract.
    completed(|text| unsafe { engramsql_host_validity(function, vector, text, ROOM) });
}

fn functions() -> Functions {
    match FUNCTIONS.get() {
        Some(functions) => *functions,
        None => panic!("a vector before DuckDB's function table"),
    }
}

/// Makes a call that gets room for a text; unwinds with the text if DuckDB threw.
fn completed(call: impl FnOnce(*mut c_char) -> bool) {
    // Not cleared: this is on the way of every text written.
    let mut text = [const { std::mem::MaybeUninit::<c_char>::uninit() }; ROOM];
    if call(text.as_mut_ptr().cast()) {
        return;
    }
    // SAFETY: a call that does not come back has written a text, cut to fit, with its NUL.
    let said = unsafe { CStr::from_ptr(text.as_ptr().cast()) }.to_string_lossy();
    std::panic::resume_unwind(Box::new(HostError(spoken(&said))));
}

/// The text of an exception as DuckDB shows it: `Out of Memory Error: failed to allocate ...`.
///
/// DuckDB's exceptions carry a JSON object of type and message, others a text of their own. One that is too long comes cut.
fn spoken(what: &str) -> String {
    let member = |name: &str| {
        let (_, rest) = what.split_once(&format!("\"{name}\":\""))?;
        // Up to the quote that ends the text, or as far as it goes.
        let end = rest
            .match_indices('"')
            .find(|(at, _)| rest[..*at].bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 0);
        let text = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        Some(serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.to_owned()))
    };
    match (member("exception_type"), member("exception_message")) {
        (Some(kind), Some(message)) => format!("{kind} Error: {message}"),
        _ => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_shown_as_duckdb_shows_it() {
        let what = r#"{"exception_type":"Out of Memory","exception_message":"failed to allocate \"x\"\n\nsee"}"#;
        assert_eq!(spoken(what), "Out of Memory Error: failed to allocate \"x\"\n\nsee");
        assert_eq!(spoken("std::bad_alloc"), "std::bad_alloc");
        assert_eq!(spoken("[1]"), "[1]");
        assert_eq!(spoken(&what[..what.len() - 7]), "Out of Memory Error: failed to allocate \"x\"\n");
    }
}
