//! `FROM name` for registered tables.

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
        // SAFETY: `data` is the Extra given at registration; the name is a C string; DuckDB copies what it is given.
        unsafe {
            let extra = &*data.cast::<Extra>();
            // Names that are no table of ours (or no text at all) belong to others.
            let Ok(name) = CStr::from_ptr(name).to_str() else {
                return Ok(());
            };
            // A catalog that cannot be read must not fail queries over CSV files; engram_scan says what is wrong.
            if !extra.session.contains(name).unwrap_or(false) {
                return Ok(());
            }
            duckdb_replacement_scan_set_function_name(info, extra.function.as_ptr());
            let mut value = varchar(name);
            duckdb_replacement_scan_add_parameter(info, value);
            duckdb_destroy_value(&mut value);
        }
        Ok(())
    });
}

/// Makes `FROM name` mean `FROM function('name')` for every table of the session.
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
