//! `COPY ... TO 'path' (FORMAT name)`: a trait without `unsafe`, and its registration.
//!
//! What DuckDB tells such a function is little: the types of the columns, not their names; the options but for those that
//! it takes itself (`OVERWRITE`, `PARTITION_BY`, ...), and the path only once rows are about to come.

use super::guard::{Report, destroy, guard, into_raw};
use super::input::Chunk;
use super::sys::*;
use super::types::{LogicalType, Type};
use super::value::Value;
use crate::error::{Error, Result};
use engram_engine::catalog::Session;
use engram_engine::fault;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A format that `COPY ... TO` writes.
pub trait CopyFunction: 'static {
    /// Name of the format.
    const NAME: &'static str;
    /// The statement, as errors show it.
    const STATEMENT: &'static str;
    /// What binding found out.
    type Bound: Send + Sync + 'static;
    /// The output of one execution. Dropped unfinished it takes back what it wrote.
    type Output: Send + 'static;

    /// Checks columns and options.
    fn bind(session: &Arc<Session>, columns: &[Type], options: &CopyOptions) -> Result<Self::Bound>;
    /// Starts the output at `path`, before the first row.
    fn begin(bound: &Self::Bound, path: &Path) -> Result<Self::Output>;
    /// Takes one chunk. After an error the output is dropped.
    fn write(bound: &Self::Bound, output: &mut Self::Output, rows: &Chunk<'_>) -> Result<()>;
    /// Publishes the output: there are no more rows.
    fn finish(bound: &Self::Bound, output: Self::Output) -> Result<()>;
}

/// The options of a `COPY`, with the names in lower case. None is NULL.
pub struct CopyOptions(Vec<(String, Value)>);

impl CopyOptions {
    /// Option `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

struct AtBind(duckdb_copy_function_bind_info);
struct AtInit(duckdb_copy_function_global_init_info);
struct AtSink(duckdb_copy_function_sink_info);
struct AtFinalize(duckdb_copy_function_finalize_info);

impl Report for AtBind {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_copy_function_bind_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtInit {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_copy_function_global_init_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtSink {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_copy_function_sink_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtFinalize {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_copy_function_finalize_set_error(self.0, message.as_ptr()) }
    }
}

struct Bound<T> {
    inner: T,
    /// Whether an output of this statement is being written.
    running: Arc<AtomicBool>,
}

/// The output of one execution. DuckDB keeps it for as long as it likes, so it is emptied as early as possible. The lock is
/// never waited for, except where DuckDB writes partitions.
struct Global<T> {
    output: Mutex<Option<T>>,
    running: Arc<AtomicBool>,
}

impl<T> Global<T> {
    fn output(&self) -> MutexGuard<'_, Option<T>> {
        // Taken out while it is used: a panic leaves none.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Global<T> {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Release);
    }
}

unsafe extern "C" fn bind<F: CopyFunction>(info: duckdb_copy_function_bind_info) {
    guard(&AtBind(info), F::STATEMENT, || {
        fault::point("bind");
        // SAFETY: extra info was set at registration; the info is live during this callback; types and values are owned
        // by their wrappers; bind data is handed over with its destructor.
        unsafe {
            let session = &*duckdb_copy_function_bind_get_extra_info(info).cast::<Arc<Session>>();
            let columns: Vec<Type> = (0..duckdb_copy_function_bind_get_column_count(info))
                .map(|column| LogicalType(duckdb_copy_function_bind_get_column_type(info, column)).describe())
                .collect();
            let options = match Value::new(duckdb_copy_function_bind_get_options(info)) {
                Some(options) => options.fields(),
                None => Vec::new(),
            };
            let options = options.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
            let inner = F::bind(session, &columns, &CopyOptions(options.collect()))?;
            let bound = Bound { inner, running: Arc::default() };
            duckdb_copy_function_bind_set_bind_data(info, into_raw(bound), Some(destroy::<Bound<F::Bound>>));
        }
        Ok(())
    });
}

unsafe extern "C" fn init<F: CopyFunction>(info: duckdb_copy_function_global_init_info) {
    guard(&AtInit(info), F::STATEMENT, || {
        fault::point("init");
        // SAFETY: bind data was set before and is of this type; the path is a C string, live during this callback; the
        // state goes with its destructor.
        unsafe {
            let bound = &*duckdb_copy_function_global_init_get_bind_data(info).cast::<Bound<F::Bound>>();
            let path = CStr::from_ptr(duckdb_copy_function_global_init_get_file_path(info));
            let path = path.to_str().map_err(|_| Error::argument("the path is not UTF-8"))?;
            // Set back by the state's destructor: from here on there must be one.
            if bound.running.swap(true, Ordering::AcqRel) {
                return Err(Error::argument(
                    "one statement writes one directory: PARTITION_BY, PER_THREAD_OUTPUT and the like are not offered",
                ));
            }
            let global = Global { output: Mutex::new(None), running: Arc::clone(&bound.running) };
            let output = F::begin(&bound.inner, Path::new(path))?;
            *global.output() = Some(output);
            let state = into_raw(global);
            duckdb_copy_function_global_init_set_global_state(info, state, Some(destroy::<Global<F::Output>>));
        }
        Ok(())
    });
}

unsafe extern "C" fn sink<F: CopyFunction>(info: duckdb_copy_function_sink_info, input: duckdb_data_chunk) {
    guard(&AtSink(info), F::STATEMENT, || {
        // SAFETY: bind data and state were set before and are of these types; the chunk is live and flat.
        let (bound, global, rows) = unsafe {
            (
                &*duckdb_copy_function_sink_get_bind_data(info).cast::<Bound<F::Bound>>(),
                &*duckdb_copy_function_sink_get_global_state(info).cast::<Global<F::Output>>(),
                Chunk::new(input),
            )
        };
        let mut slot = global.output();
        let mut output =
            slot.take().ok_or_else(|| Error::argument("an earlier chunk of this statement was refused"))?;
        fault::point("copy");
        // An error or a panic drops the output here.
        F::write(&bound.inner, &mut output, &rows)?;
        *slot = Some(output);
        Ok(())
    });
}

unsafe extern "C" fn finalize<F: CopyFunction>(info: duckdb_copy_function_finalize_info) {
    guard(&AtFinalize(info), F::STATEMENT, || {
        // SAFETY: bind data and state were set before and are of these types.
        let (bound, global) = unsafe {
            (
                &*duckdb_copy_function_finalize_get_bind_data(info).cast::<Bound<F::Bound>>(),
                &*duckdb_copy_function_finalize_get_global_state(info).cast::<Global<F::Output>>(),
            )
        };
        let output = global.output().take();
        fault::point("finalize");
        F::finish(
            &bound.inner,
            output.ok_or_else(|| Error::argument("an earlier chunk of this statement was refused"))?,
        )
    });
}

/// Registers `F` as the format of its name.
///
/// # Safety
/// `connection` is live.
pub(super) unsafe fn register<F: CopyFunction>(connection: duckdb_connection, session: &Arc<Session>) -> Result<()> {
    let name = CString::new(F::NAME).unwrap_or_default();
    // SAFETY: the builder is live until destroyed below; DuckDB copies the name and takes over the extra info.
    unsafe {
        let mut function = duckdb_create_copy_function();
        duckdb_copy_function_set_name(function, name.as_ptr());
        duckdb_copy_function_set_extra_info(function, into_raw(Arc::clone(session)), Some(destroy::<Arc<Session>>));
        duckdb_copy_function_set_bind(function, Some(bind::<F>));
        duckdb_copy_function_set_global_init(function, Some(init::<F>));
        duckdb_copy_function_set_sink(function, Some(sink::<F>));
        duckdb_copy_function_set_finalize(function, Some(finalize::<F>));
        let state = duckdb_register_copy_function(connection, function);
        duckdb_destroy_copy_function(&mut function);
        if state != DuckDBSuccess {
            return Err(Error::argument("DuckDB refused to register the format"));
        }
    }
    Ok(())
}
