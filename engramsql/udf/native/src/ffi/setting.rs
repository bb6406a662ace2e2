//! Settings: DuckDB options of this extension. DuckDB does not say when one changes, so they are read when a function binds.

use super::sys::*;
use super::value::Value;
use crate::error::{Error, Result};
use std::ffi::CString;
use std::marker::PhantomData;

/// A text option that `SET` changes for every connection of the database.
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What `duckdb_settings()` says of it.
    pub description: &'static str,
}

/// Registers `setting` with the empty text as its default.
///
/// # Safety
/// `connection` is live.
pub(super) unsafe fn register(connection: duckdb_connection, setting: &Setting) -> Result<()> {
    let name = CString::new(setting.name).unwrap_or_default();
    let description = CString::new(setting.description).unwrap_or_default();
    // SAFETY: the builder is live until destroyed below; DuckDB copies name, description, type and value.
    unsafe {
        let mut option = duckdb_create_config_option();
        duckdb_config_option_set_name(option, name.as_ptr());
        duckdb_config_option_set_description(option, description.as_ptr());
        let mut text = duckdb_create_logical_type(DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR);
        duckdb_config_option_set_type(option, text);
        duckdb_destroy_logical_type(&mut text);
        let mut empty = duckdb_create_varchar_length(c"".as_ptr(), 0);
        duckdb_config_option_set_default_value(option, empty);
        duckdb_destroy_value(&mut empty);
        duckdb_config_option_set_default_scope(option, duckdb_config_option_scope_DUCKDB_CONFIG_OPTION_SCOPE_GLOBAL);
        let state = duckdb_register_config_option(connection, option);
        duckdb_destroy_config_option(&mut option);
        if state != DuckDBSuccess {
            return Err(Error::argument(format!("DuckDB refused to register the setting {}", setting.name)));
        }
    }
    Ok(())
}

/// The settings as a statement sees them.
pub struct Settings<'a> {
    context: duckdb_client_context,
    lifetime: PhantomData<&'a ()>,
}

impl Settings<'_> {
    /// # Safety
    /// `context` is live for the lifetime of the result, which does not free it.
    pub(super) unsafe fn new<'a>(context: duckdb_client_context) -> Settings<'a> {
        Settings { context, lifetime: PhantomData }
    }

    /// The text of `setting`; `None` while it is empty, which is its default.
    pub fn text(&self, setting: &Setting) -> Result<Option<String>> {
        let text = self.value(setting.name).map_or(Ok(None), |value| value.text(setting.name))?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// Threads that DuckDB may use; `None` if it does not tell.
    pub fn threads(&self) -> Result<Option<i64>> {
        self.value("threads").map_or(Ok(None), |value| value.integer("threads"))
    }

    fn value(&self, name: &str) -> Option<Value> {
        let name = CString::new(name).unwrap_or_default();
        let mut scope = duckdb_config_option_scope_DUCKDB_CONFIG_OPTION_SCOPE_INVALID;
        // SAFETY: the context is live by contract; the value that is returned is owned by Value.
        unsafe { Value::new(duckdb_client_context_get_config_option(self.context, name.as_ptr(), &mut scope)) }
    }
}
