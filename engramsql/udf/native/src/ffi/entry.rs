//! The entry point DuckDB calls when it loads the extension into a database.

use super::copy_function::{self, CopyFunction};
use super::guard::{Report, guard};
use super::host;
use super::replacement;
use super::scalar::{self, Scalar};
use super::setting::{self, Setting};
use super::sys::*;
use super::table_function::{self, TableFunction};
use crate::error::{Error, Result};
use engram_engine::catalog::Session;
use engram_engine::fault;
use std::ffi::{CStr, CString};
use std::sync::{Arc, OnceLock};

/// The C API this extension asks for; the footer's field must say the same.
///
/// DuckDB 1.5.6 declared every slot used here stable; scalar bind lies beyond the 357 slots of v1.2.0, so asking for
/// less would load into older releases and call wrong functions.
pub(super) const API_VERSION: &CStr = c"v1.5.6";

struct AtEntry {
    info: duckdb_extension_info,
    access: *const duckdb_extension_access,
}

impl Report for AtEntry {
    fn report(&self, message: &CString) {
        // SAFETY: both are live while the entry point runs; DuckDB copies the text.
        unsafe {
            if let Some(set_error) = (*self.access).set_error {
                set_error(self.info, message.as_ptr());
            }
        }
    }
}

/// Called by DuckDB once per database that loads the extension. True on success; else the error was reported.
///
/// # Safety
/// DuckDB calls it with a live info and access struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engramsql_init_c_api(
    info: duckdb_extension_info,
    access: *const duckdb_extension_access,
) -> bool {
    if access.is_null() {
        return false;
    }
    guard(&AtEntry { info, access }, "engramsql", || {
        fault::point("entry");
        // SAFETY: DuckDB keeps both alive during this call; the database outlives the connection, which is closed
        // before the database is used by anybody else.
        unsafe {
            if !connect_api(info, access)? {
                // get_api has reported why.
                return Ok(false);
            }
            let Some(get_database) = (*access).get_database else {
                return Err(Error::argument("DuckDB offers no database to register in"));
            };
            let database = get_database(info);
            if database.is_null() {
                return Ok(false);
            }
            let mut connection = std::ptr::null_mut();
            if duckdb_connect(*database, &mut connection) != DuckDBSuccess {
                return Err(Error::argument("could not connect to the loading database"));
            }
            let registrar = Registrar { connection, database: *database, session: Arc::new(Session::in_memory()) };
            crate::functions::register(&registrar)?;
        }
        Ok(true)
    })
    .unwrap_or(false)
}

/// Loads the function table of the host.
///
/// # Safety
/// As for [`engramsql_init_c_api`].
unsafe fn connect_api(info: duckdb_extension_info, access: *const duckdb_extension_access) -> Result<bool> {
    // SAFETY: live by contract; a table that get_api returns stays valid as long as the host library is loaded.
    unsafe {
        let mut access = *access;
        if access.get_api.is_none() {
            access.get_api = static_api();
        }
        let Some(get_api) = access.get_api else {
            return Err(Error::argument("DuckDB offers no function table"));
        };
        let table = get_api(info, API_VERSION.as_ptr()).cast::<duckdb_ext_api_v1>();
        if table.is_null() {
            return Ok(false);
        }
        claim_host((*table).duckdb_connect.map_or(0, |function| function as usize))?;
        host::connect(&*table)?;
        let version = API_VERSION.to_str().unwrap_or_default();
        duckdb_rs_extension_api_init(info, &access, version).map_err(Error::argument)
    }
}

/// Binds this file to the DuckDB library whose `duckdb_connect` lies at `connect`, for the life of the process.
///
/// The function table is one per process: a second DuckDB library would run on the first one's functions.
///
/// # Errors
/// Another library came first.
pub(super) fn claim_host(connect: usize) -> Result<()> {
    static HOST: OnceLock<usize> = OnceLock::new();

    if *HOST.get_or_init(|| connect) == connect {
        return Ok(());
    }
    Err(Error::argument(
        "this file is already loaded by another DuckDB library in this process; load a copy of the file",
    ))
}

type GetApi =
    unsafe extern "C" fn(info: duckdb_extension_info, version: *const std::ffi::c_char) -> *const std::ffi::c_void;

#[cfg(unix)]
fn static_api() -> Option<GetApi> {
    Some(super::static_link::get_api)
}

#[cfg(not(unix))]
fn static_api() -> Option<GetApi> {
    None
}

/// Registers functions in one database.
pub struct Registrar {
    connection: duckdb_connection,
    database: duckdb_database,
    session: Arc<Session>,
}

impl Registrar {
    /// Registers a scalar function under its name.
    pub fn scalar<F: Scalar>(&self) -> Result<()> {
        // SAFETY: the connection is live until drop.
        named(F::NAME, unsafe { scalar::register::<F>(self.connection, &self.session) })
    }

    /// Registers a table function under its name.
    pub fn table<F: TableFunction>(&self) -> Result<()> {
        self.table_as::<F>(F::NAME)
    }

    /// Registers a table function under another name (its errors keep its own).
    pub fn table_as<F: TableFunction>(&self, name: &str) -> Result<()> {
        // SAFETY: the connection is live until drop.
        named(name, unsafe { table_function::register::<F>(self.connection, &self.session, name) })
    }

    /// Registers a format of `COPY ... TO` under its name.
    pub fn copy<F: CopyFunction>(&self) -> Result<()> {
        // SAFETY: the connection is live until drop.
        named(F::NAME, unsafe { copy_function::register::<F>(self.connection, &self.session) })
    }

    /// Registers a setting.
    pub fn setting(&self, setting: &Setting) -> Result<()> {
        // SAFETY: the connection is live until drop.
        unsafe { setting::register(self.connection, setting) }
    }

    /// Makes every table of the session readable as a relation through `function`.
    pub fn relations(&self, function: &str) {
        // SAFETY: the database is live while the entry point runs.
        unsafe { replacement::register(self.database, &self.session, function) }
    }

    /// Runs `sql` and returns its number of rows.
    pub fn query(&self, sql: &str) -> Result<u64> {
        let sql = CString::new(sql).map_err(|_| Error::argument("SQL holds a NUL byte"))?;
        // SAFETY: the connection is live; the result is zeroed as the C API expects and destroyed once, error or not.
        unsafe {
            let mut result = std::mem::zeroed::<duckdb_result>();
            let state = duckdb_query(self.connection, sql.as_ptr(), &mut result);
            let outcome = if state == DuckDBSuccess {
                Ok(duckdb_row_count(&mut result))
            } else {
                let text = duckdb_result_error(&mut result);
                Err(Error::argument(if text.is_null() {
                    "query failed".into()
                } else {
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                }))
            };
            duckdb_destroy_result(&mut result);
            outcome
        }
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        // SAFETY: owned, closed once.
        unsafe { duckdb_disconnect(&mut self.connection) }
    }
}

fn named(name: &str, outcome: Result<()>) -> Result<()> {
    outcome.map_err(|error| Error::argument(error.message(name)))
}
