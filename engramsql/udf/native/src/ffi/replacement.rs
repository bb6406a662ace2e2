//! `FROM name` for registered tables and for views kept in the catalog.

use super::guard::{Report, destroy, guard, into_raw};
use super::sys::*;
use super::value::varchar;
use engram_engine::catalog::Session;
use engram_engine::fault;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

struct AtScan(duckdb_replacement_scan_info);

impl Report for AtScan {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_replacement_scan_set_error(self.0, message.as_ptr()) }
    }
}

struct Extra {
    session: Arc<Session>,
    function: CString,
}

unsafe extern "C" fn replace(info: duckdb_replacement_scan_info, name: *const c_char, data: *mut c_void) {
    guard(&AtScan(info), "engram_scan", || {
        fault::point("replacement");
        // SAFETY: `data` is the Extra given at registration; the name is a C string.
        let (extra, name) = unsafe { (&*data.cast::<Extra>(), CStr::from_ptr(name)) };
        // Names that are neither ours nor text belong to others. A catalog that cannot be read must not fail queries
        // over CSV files either; engram_scan says what is wrong with it.
        let Ok(name) = name.to_str() else {
            return Ok(());
        };
        if extra.session.contains(name).unwrap_or(false) {
            // A table that cannot be opened is left to the scan, which says why.
            match extra.session.table(name) {
                Ok(table) => call(info, c"query", &crate::functions::relation_sql(&table, name)),
                Err(_) => call(info, &extra.function, name),
            }
        } else if let Some(sql) = view(&extra.session, name) {
            call(info, c"query", &sql);
        }
        Ok(())
    });
}

/// The SELECT behind a view of the catalog.
fn view(session: &Session, name: &str) -> Option<String> {
    let views = session.sql_views().ok()?;
    views.into_iter().find(|view| view.name.eq_ignore_ascii_case(name)).map(|view| view.sql)
}

/// Replaces the name by `function('argument')`.
fn call(info: duckdb_replacement_scan_info, function: &CStr, argument: &str) {
    // SAFETY: the info is live during the callback; DuckDB copies name and value.
    unsafe {
        duckdb_replacement_scan_set_function_name(info, function.as_ptr());
        let mut value = varchar(argument);
        duckdb_replacement_scan_add_parameter(info, value);
        duckdb_destroy_value(&mut value);
    }
}

/// Makes `FROM name` mean the relation of that table of the session, and for a view of the catalog its SELECT. `function`
/// takes the name of a table that cannot be opened.
///
/// # Safety
/// `database` is live.
pub(super) unsafe fn register(database: duckdb_database, session: &Arc<Session>, function: &str) {
    let extra = Extra { session: Arc::clone(session), function: CString::new(function).unwrap_or_default() };
    // SAFETY: live by contract; the extra data goes with its destructor.
    unsafe {
        duckdb_add_replacement_scan(database, Some(replace), into_raw(extra), Some(destroy::<Extra>));
    }
}
