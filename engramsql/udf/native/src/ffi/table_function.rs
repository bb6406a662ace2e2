//! Table functions: a trait without `unsafe`, and its registration.

use super::guard::{Report, destroy, guard, into_raw};
use super::output::OutVector;
use super::setting::Settings;
use super::sys::*;
use super::types::{Column, Parameter};
use super::value::Value;
use crate::error::{Error, Result};
use engram_engine::catalog::Session;
use engram_engine::fault;
use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;

/// A native table function.
pub trait TableFunction: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Name in error texts: that of what users call, where they do not call this.
    const SPOKEN: &'static str = Self::NAME;
    /// Positional parameters.
    const PARAMETERS: &'static [Parameter];
    /// Named parameters.
    const NAMED: &'static [(&'static str, Parameter)] = &[];
    /// What binding found out.
    type Bound: Send + Sync + 'static;
    /// State of one execution, shared by its threads.
    type Global: Send + Sync + 'static;
    /// State of one thread.
    type Local: Default + Send + 'static;

    /// Checks the arguments and declares the columns. May run several times, and without an execution.
    fn bind(session: &Arc<Session>, arguments: &Arguments<'_>, columns: &mut Columns<'_>) -> Result<Self::Bound>;
    /// Starts one execution.
    fn init(session: &Arc<Session>, bound: &Self::Bound) -> Result<Self::Global>;
    /// Most threads that may call at once.
    fn max_threads(_bound: &Self::Bound) -> usize {
        1
    }
    /// Writes the next rows; none written ends the result (for this thread).
    fn call(
        bound: &Self::Bound,
        global: &Self::Global,
        local: &mut Self::Local,
        output: &mut OutChunk<'_>,
    ) -> Result<()>;
}

/// The arguments of a table function.
pub struct Arguments<'a> {
    info: duckdb_bind_info,
    lifetime: PhantomData<&'a ()>,
}

impl Arguments<'_> {
    /// Positional argument `index`.
    pub fn positional(&self, index: usize) -> Result<Value> {
        // SAFETY: the info is live during the bind callback; the value is owned by Value.
        let value = unsafe {
            if (index as idx_t) < duckdb_bind_get_parameter_count(self.info) {
                Value::new(duckdb_bind_get_parameter(self.info, index as idx_t))
            } else {
                None
            }
        };
        value.ok_or_else(|| Error::argument(format!("argument {} is missing", index + 1)))
    }

    /// Named argument `name`; `None` if it was not given or is NULL.
    pub fn named(&self, name: &str) -> Option<Value> {
        self.given(name).filter(|value| !value.is_null())
    }

    /// Named argument `name`, also a NULL; `None` if it was not given.
    pub fn given(&self, name: &str) -> Option<Value> {
        let name = CString::new(name).ok()?;
        // SAFETY: the info is live during the bind callback; the value is owned by Value.
        unsafe { Value::new(duckdb_bind_get_named_parameter(self.info, name.as_ptr())) }
    }

    /// A text argument that must not be NULL.
    pub fn text(&self, index: usize, what: &str) -> Result<String> {
        self.positional(index)?.text(what)?.ok_or_else(|| Error::argument(format!("{what} is NULL")))
    }
}

/// The result columns, declared at bind.
pub struct Columns<'a> {
    info: duckdb_bind_info,
    types: Vec<Column>,
    lifetime: PhantomData<&'a ()>,
}

impl Columns<'_> {
    /// Adds a column.
    pub fn add(&mut self, name: &str, ty: Column) {
        let name = CString::new(name).unwrap_or_default();
        let logical = ty.logical();
        // SAFETY: the info is live during the bind callback; DuckDB copies name and type.
        unsafe { duckdb_bind_add_result_column(self.info, name.as_ptr(), logical.0) }
        self.types.push(ty);
    }

    /// Tells the optimizer how many rows will come.
    pub fn cardinality(&mut self, rows: u64) {
        // SAFETY: the info is live during the bind callback.
        unsafe { duckdb_bind_set_cardinality(self.info, rows, true) }
    }
}

/// One chunk to fill.
pub struct OutChunk<'a> {
    raw: duckdb_data_chunk,
    types: &'a [Column],
    projection: &'a [usize],
}

/// Rows per chunk: DuckDB's vector size, a constant of all its releases.
pub const CHUNK: usize = 2048;

impl OutChunk<'_> {
    /// Most rows of one chunk.
    pub fn capacity(&self) -> usize {
        CHUNK
    }

    /// Whether the query needs the declared column `column`.
    pub fn wants(&self, column: usize) -> bool {
        self.projection.contains(&column)
    }

    /// Calls `write` for each column the query needs: index of the declared column, its vector.
    pub fn each(&mut self, mut write: impl FnMut(usize, &mut OutVector<'_>) -> Result<()>) -> Result<()> {
        for (slot, &column) in self.projection.iter().enumerate() {
            // A column that was not declared is DuckDB's own (count(*) asks for one); it is never read.
            let Some(&ty) = self.types.get(column) else {
                continue;
            };
            // SAFETY: DuckDB made one vector of CHUNK rows per projected column, with the declared types.
            let mut vector =
                unsafe { OutVector::new(duckdb_data_chunk_get_vector(self.raw, slot as idx_t), ty, CHUNK) };
            write(column, &mut vector)?;
        }
        Ok(())
    }

    /// Says how many rows were written.
    pub fn set_len(&mut self, rows: usize) {
        assert!(rows <= CHUNK);
        // SAFETY: the chunk is live during the callback.
        unsafe { duckdb_data_chunk_set_size(self.raw, rows as idx_t) }
    }
}

struct AtBind(duckdb_bind_info);
struct AtInit(duckdb_init_info);
struct AtCall(duckdb_function_info);

impl Report for AtBind {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_bind_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtInit {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_init_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtCall {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_function_set_error(self.0, message.as_ptr()) }
    }
}

struct Bound<T> {
    inner: T,
    types: Vec<Column>,
}

struct Global<T> {
    inner: T,
    projection: Vec<usize>,
}

unsafe extern "C" fn bind<F: TableFunction>(info: duckdb_bind_info) {
    guard(&AtBind(info), F::SPOKEN, || {
        fault::point("bind");
        // SAFETY: extra info was set at registration; bind data is handed over with its destructor.
        unsafe {
            let session = &*duckdb_bind_get_extra_info(info).cast::<Arc<Session>>();
            apply_settings(session, info)?;
            let arguments = Arguments { info, lifetime: PhantomData };
            let mut columns = Columns { info, types: Vec::new(), lifetime: PhantomData };
            let inner = F::bind(session, &arguments, &mut columns)?;
            let types = columns.types;
            duckdb_bind_set_bind_data(info, into_raw(Bound { inner, types }), Some(destroy::<Bound<F::Bound>>));
        }
        Ok(())
    });
}

/// Reads the settings of the statement that is bound.
///
/// # Safety
/// `info` is live.
unsafe fn apply_settings(session: &Arc<Session>, info: duckdb_bind_info) -> Result<()> {
    let mut context = std::ptr::null_mut();
    // SAFETY: live by contract; the context is owned, live until it is freed once below.
    unsafe {
        duckdb_table_function_get_client_context(info, &mut context);
        let applied = crate::functions::apply_settings(session, &Settings::new(context));
        duckdb_destroy_client_context(&mut context);
        applied
    }
}

unsafe extern "C" fn init<F: TableFunction>(info: duckdb_init_info) {
    guard(&AtInit(info), F::SPOKEN, || {
        fault::point("init");
        // SAFETY: extra info and bind data were set before and are of these types; the state goes with its destructor.
        unsafe {
            let session = &*duckdb_init_get_extra_info(info).cast::<Arc<Session>>();
            let bound = &*duckdb_init_get_bind_data(info).cast::<Bound<F::Bound>>();
            let projection = (0..duckdb_init_get_column_count(info))
                .map(|slot| usize::try_from(duckdb_init_get_column_index(info, slot)).unwrap_or(usize::MAX))
                .collect();
            let inner = F::init(session, &bound.inner)?;
            duckdb_init_set_max_threads(info, F::max_threads(&bound.inner) as idx_t);
            duckdb_init_set_init_data(info, into_raw(Global { inner, projection }), Some(destroy::<Global<F::Global>>));
        }
        Ok(())
    });
}

unsafe extern "C" fn local_init<F: TableFunction>(info: duckdb_init_info) {
    guard(&AtInit(info), F::SPOKEN, || {
        // SAFETY: the state goes with its destructor.
        unsafe {
            duckdb_init_set_init_data(info, into_raw(F::Local::default()), Some(destroy::<F::Local>));
        }
        Ok(())
    });
}

unsafe extern "C" fn call<F: TableFunction>(info: duckdb_function_info, output: duckdb_data_chunk) {
    guard(&AtCall(info), F::SPOKEN, || {
        fault::point("table");
        // SAFETY: bind data and both states were set before and are of these types; the local state belongs to this
        // thread alone; the chunk is live and empty.
        unsafe {
            let bound = &*duckdb_function_get_bind_data(info).cast::<Bound<F::Bound>>();
            let global = &*duckdb_function_get_init_data(info).cast::<Global<F::Global>>();
            let local = &mut *duckdb_function_get_local_init_data(info).cast::<F::Local>();
            let mut output = OutChunk { raw: output, types: &bound.types, projection: &global.projection };
            F::call(&bound.inner, &global.inner, local, &mut output)
        }
    });
}

/// Registers `F` as `name`.
///
/// # Safety
/// `connection` is live.
pub(super) unsafe fn register<F: TableFunction>(
    connection: duckdb_connection,
    session: &Arc<Session>,
    name: &str,
) -> Result<()> {
    let c_name = CString::new(name).unwrap_or_default();
    // SAFETY: the builder is live until destroyed below; DuckDB copies names and types and takes over the extra info.
    unsafe {
        let mut function = duckdb_create_table_function();
        duckdb_table_function_set_name(function, c_name.as_ptr());
        for parameter in F::PARAMETERS {
            duckdb_table_function_add_parameter(function, parameter.logical().0);
        }
        for (name, parameter) in F::NAMED {
            let name = CString::new(*name).unwrap_or_default();
            duckdb_table_function_add_named_parameter(function, name.as_ptr(), parameter.logical().0);
        }
        duckdb_table_function_set_extra_info(function, into_raw(Arc::clone(session)), Some(destroy::<Arc<Session>>));
        duckdb_table_function_set_bind(function, Some(bind::<F>));
        duckdb_table_function_set_init(function, Some(init::<F>));
        duckdb_table_function_set_local_init(function, Some(local_init::<F>));
        duckdb_table_function_set_function(function, Some(call::<F>));
        duckdb_table_function_supports_projection_pushdown(function, true);
        let state = duckdb_register_table_function(connection, function);
        duckdb_destroy_table_function(&mut function);
        if state != DuckDBSuccess {
            return Err(Error::argument("DuckDB refused to register the function"));
        }
    }
    Ok(())
}
