//! Scalar functions: a trait without `unsafe`, and its registration.

use super::guard::{Report, destroy, guard, into_raw};
use super::input::Chunk;
use super::output::OutVector;
use super::setting::Settings;
use super::sys::*;
use super::types::{Column, Parameter};
use super::value::{self, Value};
use crate::error::{Error, Result};
use engram_engine::catalog::Session;
use engram_engine::fault;
use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// One signature of a scalar function.
#[derive(Debug, Clone)]
pub struct Overload {
    /// Parameter types, in order.
    pub parameters: Cow<'static, [Parameter]>,
    /// Result type.
    pub result: Column,
}

/// A scalar SQL function. It sees NULL arguments and decides itself what they mean.
pub trait Scalar: 'static {
    /// SQL name.
    const NAME: &'static str;
    /// Name in error texts: of an internal function, that of the public one it stands for.
    const SPOKEN: &'static str = Self::NAME;
    /// What binding found out; shared by all threads.
    type Bound: Send + Sync + 'static;
    /// State of one executing thread: scratch memory, tables resolved at run time.
    type Local: Send + 'static;

    /// Whether the function is called when the statement runs even if its arguments are constants. DuckDB would keep a
    /// folded result as one value per element, which costs a hundred times what computing it does.
    const UNFOLDED: bool = false;

    /// All signatures.
    fn overloads() -> Vec<Overload>;
    /// Checks constants when a statement is prepared. Types are for [`call`](Self::call) to check: see
    /// [`ScalarArguments::constant`].
    fn bind(session: &Arc<Session>, arguments: &ScalarArguments<'_>) -> Result<Self::Bound>;
    /// Called once per executing thread of every execution.
    fn init(session: &Arc<Session>, bound: &Self::Bound) -> Result<Self::Local>;
    /// Computes one chunk.
    fn call(
        session: &Arc<Session>,
        bound: &Self::Bound,
        local: &mut Self::Local,
        input: &Chunk<'_>,
        output: &mut OutVector<'_>,
    ) -> Result<()>;
}

/// The arguments of a scalar function, seen when it binds.
pub struct ScalarArguments<'a> {
    info: duckdb_bind_info,
    context: duckdb_client_context,
    result: Column,
    lifetime: std::marker::PhantomData<&'a ()>,
}

impl ScalarArguments<'_> {
    /// Number of arguments.
    pub fn len(&self) -> usize {
        // SAFETY: the bind info is live during the bind callback, which outlives self.
        unsafe { duckdb_scalar_function_bind_get_argument_count(self.info) as usize }
    }

    /// Result type of the signature that binds.
    pub fn result(&self) -> Column {
        self.result
    }

    /// Value of argument `index`, if it is a constant.
    ///
    /// DuckDB hands out a copy of the expression, and a subquery cannot be copied: having asked for one fails the
    /// statement, whatever the callback does then. So ask only for arguments that must be known this early.
    ///
    /// # Errors
    /// The argument is or holds a subquery.
    pub fn constant(&self, index: usize) -> Result<Option<Value>> {
        assert!(index < self.len());
        // SAFETY: the index is in range; the expression is owned and freed below; the context is live during the bind
        // callback.
        unsafe {
            let mut expression = duckdb_scalar_function_bind_get_argument(self.info, index as idx_t);
            if expression.is_null() {
                return Err(Error::argument(format!(
                    "argument {} must not be a subquery; make it a column first: FROM (SELECT (SELECT ...) AS t)",
                    index + 1
                )));
            }
            let value = value::fold(self.context, expression);
            duckdb_destroy_expression(&mut expression);
            Ok(value)
        }
    }
}

impl Drop for ScalarArguments<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { duckdb_destroy_client_context(&mut self.context) }
    }
}

struct AtBind(duckdb_bind_info);
struct AtInit(duckdb_init_info);
struct AtCall(duckdb_function_info);

impl Report for AtBind {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_scalar_function_bind_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtInit {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_scalar_function_init_set_error(self.0, message.as_ptr()) }
    }
}

impl Report for AtCall {
    fn report(&self, message: &CString) {
        // SAFETY: live during the callback; DuckDB copies the text.
        unsafe { duckdb_scalar_function_set_error(self.0, message.as_ptr()) }
    }
}

/// Extra info of one registered signature.
struct Extra {
    session: Arc<Session>,
    result: Column,
}

/// Bind data; DuckDB copies it with the plan.
struct Shared<T>(Arc<T>);

unsafe extern "C" fn copy_bound<T: 'static>(data: *mut c_void) -> *mut c_void {
    // SAFETY: bind data of this function is always a Shared<T>. Cloning an Arc does not unwind.
    unsafe { into_raw(Shared(Arc::clone(&(*data.cast::<Shared<T>>()).0))) }
}

unsafe extern "C" fn bind<F: Scalar>(info: duckdb_bind_info) {
    guard(&AtBind(info), F::SPOKEN, || {
        fault::point("bind");
        // SAFETY: extra info was set at registration; the info is live during this callback; bind data is handed over
        // with its destructor and its copy function.
        unsafe {
            let extra = &*duckdb_scalar_function_bind_get_extra_info(info).cast::<Extra>();
            let mut context = std::ptr::null_mut();
            duckdb_scalar_function_get_client_context(info, &mut context);
            let arguments = ScalarArguments { info, context, result: extra.result, lifetime: std::marker::PhantomData };
            crate::functions::apply_settings(&extra.session, &Settings::new(context))?;
            let bound = F::bind(&extra.session, &arguments)?;
            duckdb_scalar_function_set_bind_data(
                info,
                into_raw(Shared(Arc::new(bound))),
                Some(destroy::<Shared<F::Bound>>),
            );
            duckdb_scalar_function_set_bind_data_copy(info, Some(copy_bound::<F::Bound>));
        }
        Ok(())
    });
}

unsafe extern "C" fn init<F: Scalar>(info: duckdb_init_info) {
    guard(&AtInit(info), F::SPOKEN, || {
        fault::point("init");
        // SAFETY: extra info and bind data were set before and are of these types; the state goes with its destructor.
        unsafe {
            let extra = &*duckdb_scalar_function_init_get_extra_info(info).cast::<Extra>();
            let bound = &*duckdb_scalar_function_init_get_bind_data(info).cast::<Shared<F::Bound>>();
            let local = F::init(&extra.session, &bound.0)?;
            duckdb_scalar_function_init_set_state(info, into_raw(local), Some(destroy::<F::Local>));
        }
        Ok(())
    });
}

unsafe extern "C" fn call<F: Scalar>(info: duckdb_function_info, input: duckdb_data_chunk, output: duckdb_vector) {
    guard(&AtCall(info), F::SPOKEN, || {
        fault::point("scalar");
        // SAFETY: extra info, bind data and state were set before and are of these types; the state belongs to this
        // thread alone; input and output are live, and the output has the declared type and room for the chunk.
        unsafe {
            let extra = &*duckdb_scalar_function_get_extra_info(info).cast::<Extra>();
            let bound = duckdb_scalar_function_get_bind_data(info).cast::<Shared<F::Bound>>();
            let local = duckdb_scalar_function_get_state(info).cast::<F::Local>();
            if bound.is_null() || local.is_null() {
                return Err(Error::argument("DuckDB lost the function's state"));
            }
            let input = Chunk::new(input);
            let mut output = OutVector::new(output, extra.result, input.len());
            F::call(&extra.session, &(*bound).0, &mut *local, &input, &mut output)
        }
    });
}

/// Registers every signature of `F`.
///
/// # Safety
/// `connection` is live.
pub(super) unsafe fn register<F: Scalar>(connection: duckdb_connection, session: &Arc<Session>) -> Result<()> {
    let name = CString::new(F::NAME).unwrap_or_default();
    // SAFETY: builders are live until destroyed below; DuckDB copies names and types and takes over the extra info.
    unsafe {
        let mut set = duckdb_create_scalar_function_set(name.as_ptr());
        for overload in F::overloads() {
            let mut function = duckdb_create_scalar_function();
            duckdb_scalar_function_set_name(function, name.as_ptr());
            for parameter in overload.parameters.iter() {
                duckdb_scalar_function_add_parameter(function, parameter.logical().0);
            }
            duckdb_scalar_function_set_return_type(function, overload.result.logical().0);
            duckdb_scalar_function_set_special_handling(function);
            if F::UNFOLDED {
                duckdb_scalar_function_set_volatile(function);
            }
            duckdb_scalar_function_set_extra_info(
                function,
                into_raw(Extra { session: Arc::clone(session), result: overload.result }),
                Some(destroy::<Extra>),
            );
            duckdb_scalar_function_set_bind(function, Some(bind::<F>));
            duckdb_scalar_function_set_init(function, Some(init::<F>));
            duckdb_scalar_function_set_function(function, Some(call::<F>));
            duckdb_add_scalar_function_to_set(set, function);
            duckdb_destroy_scalar_function(&mut function);
        }
        let state = duckdb_register_scalar_function_set(connection, set);
        duckdb_destroy_scalar_function_set(&mut set);
        if state != DuckDBSuccess {
            return Err(Error::argument("DuckDB refused to register the function"));
        }
    }
    Ok(())
}
