//! The C API functions this extension uses, in one list.
//!
//! The rest of [`crate::ffi`] gets DuckDB's functions from here alone, and one that is not listed does not compile. The
//! static registration, which gets no function table from DuckDB, fills one from the same list.

// Types and constants by name too: a glob would let every function through.
pub use libduckdb_sys::{
    DUCKDB_TYPE_DUCKDB_TYPE_ANY, DUCKDB_TYPE_DUCKDB_TYPE_ARRAY, DUCKDB_TYPE_DUCKDB_TYPE_BIGINT,
    DUCKDB_TYPE_DUCKDB_TYPE_BIGNUM, DUCKDB_TYPE_DUCKDB_TYPE_BIT, DUCKDB_TYPE_DUCKDB_TYPE_BLOB,
    DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN, DUCKDB_TYPE_DUCKDB_TYPE_DATE, DUCKDB_TYPE_DUCKDB_TYPE_DECIMAL,
    DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_DUCKDB_TYPE_ENUM, DUCKDB_TYPE_DUCKDB_TYPE_FLOAT,
    DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT, DUCKDB_TYPE_DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_DUCKDB_TYPE_INTEGER_LITERAL,
    DUCKDB_TYPE_DUCKDB_TYPE_INTERVAL, DUCKDB_TYPE_DUCKDB_TYPE_INVALID, DUCKDB_TYPE_DUCKDB_TYPE_LIST,
    DUCKDB_TYPE_DUCKDB_TYPE_MAP, DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT, DUCKDB_TYPE_DUCKDB_TYPE_SQLNULL,
    DUCKDB_TYPE_DUCKDB_TYPE_STRING_LITERAL, DUCKDB_TYPE_DUCKDB_TYPE_STRUCT, DUCKDB_TYPE_DUCKDB_TYPE_TIME,
    DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP, DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_MS, DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_NS,
    DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_S, DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_TZ, DUCKDB_TYPE_DUCKDB_TYPE_TINYINT,
    DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT, DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT, DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER,
    DUCKDB_TYPE_DUCKDB_TYPE_UNION, DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT, DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT,
    DUCKDB_TYPE_DUCKDB_TYPE_UUID, DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR, DuckDBSuccess, duckdb_bind_info,
    duckdb_client_context, duckdb_config_option_scope_DUCKDB_CONFIG_OPTION_SCOPE_GLOBAL,
    duckdb_config_option_scope_DUCKDB_CONFIG_OPTION_SCOPE_INVALID, duckdb_connection, duckdb_copy_function_bind_info,
    duckdb_copy_function_finalize_info, duckdb_copy_function_global_init_info, duckdb_copy_function_sink_info,
    duckdb_data_chunk, duckdb_database, duckdb_expression, duckdb_ext_api_v1, duckdb_extension_access,
    duckdb_extension_info, duckdb_function_info, duckdb_hugeint, duckdb_init_info, duckdb_list_entry,
    duckdb_logical_type, duckdb_replacement_scan_info, duckdb_result, duckdb_rs_extension_api_init, duckdb_state,
    duckdb_string_t, duckdb_string_t__bindgen_ty_1, duckdb_string_t__bindgen_ty_1__bindgen_ty_1,
    duckdb_string_t__bindgen_ty_1__bindgen_ty_2, duckdb_type, duckdb_uhugeint, duckdb_value, duckdb_vector, idx_t,
};
use std::ffi::{CStr, c_void};

macro_rules! used {
    (called: $($called:ident),*; by_address: $($address:ident),*;) => {
        pub use libduckdb_sys::{$($called),*};
        used!(fill: $($called,)* $($address),*);
    };
    (fill: $($name:ident),*) => {

        #[expect(clippy::missing_transmute_annotations, reason = "the slot names the type")]
        /// Fills the slots that are used with what `find` returns for each name.
        ///
        /// # Errors
        /// The first name that `find` does not know.
        ///
        /// # Safety
        /// `find` returns, for the name of a C API function, null or that function.
        pub unsafe fn fill(
            table: &mut duckdb_ext_api_v1,
            find: impl Fn(&CStr) -> *mut c_void,
        ) -> Result<(), &'static str> {
            $(
                let address = find(
                    CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
                        .unwrap_or_default(),
                );
                if address.is_null() {
                    return Err(stringify!($name));
                }
                // SAFETY: the slot has the type of the C function of that name, which is what `find` returned.
                table.$name = unsafe { std::mem::transmute::<*mut c_void, _>(address) };
            )*
            Ok(())
        }
    };
}

used!(
    called:
    duckdb_add_replacement_scan,
    duckdb_add_scalar_function_to_set,
    duckdb_array_type_array_size,
    duckdb_array_type_child_type,
    duckdb_array_vector_get_child,
    duckdb_bind_add_result_column,
    duckdb_bind_get_extra_info,
    duckdb_bind_get_named_parameter,
    duckdb_bind_get_parameter,
    duckdb_bind_get_parameter_count,
    duckdb_bind_set_bind_data,
    duckdb_bind_set_cardinality,
    duckdb_bind_set_error,
    duckdb_client_context_get_config_option,
    duckdb_config_option_set_default_scope,
    duckdb_config_option_set_default_value,
    duckdb_config_option_set_description,
    duckdb_config_option_set_name,
    duckdb_config_option_set_type,
    duckdb_connect,
    duckdb_copy_function_bind_get_column_count,
    duckdb_copy_function_bind_get_column_type,
    duckdb_copy_function_bind_get_extra_info,
    duckdb_copy_function_bind_get_options,
    duckdb_copy_function_bind_set_bind_data,
    duckdb_copy_function_bind_set_error,
    duckdb_copy_function_finalize_get_bind_data,
    duckdb_copy_function_finalize_get_global_state,
    duckdb_copy_function_finalize_set_error,
    duckdb_copy_function_global_init_get_bind_data,
    duckdb_copy_function_global_init_get_file_path,
    duckdb_copy_function_global_init_set_error,
    duckdb_copy_function_global_init_set_global_state,
    duckdb_copy_function_set_bind,
    duckdb_copy_function_set_extra_info,
    duckdb_copy_function_set_finalize,
    duckdb_copy_function_set_global_init,
    duckdb_copy_function_set_name,
    duckdb_copy_function_set_sink,
    duckdb_copy_function_sink_get_bind_data,
    duckdb_copy_function_sink_get_global_state,
    duckdb_copy_function_sink_set_error,
    duckdb_create_array_type,
    duckdb_create_config_option,
    duckdb_create_copy_function,
    duckdb_create_list_type,
    duckdb_create_logical_type,
    duckdb_create_scalar_function,
    duckdb_create_scalar_function_set,
    duckdb_create_struct_type,
    duckdb_create_table_function,
    duckdb_create_varchar_length,
    duckdb_create_vector,
    duckdb_data_chunk_get_column_count,
    duckdb_data_chunk_get_size,
    duckdb_data_chunk_get_vector,
    duckdb_data_chunk_set_size,
    duckdb_decimal_scale,
    duckdb_decimal_width,
    duckdb_destroy_client_context,
    duckdb_destroy_config_option,
    duckdb_destroy_copy_function,
    duckdb_destroy_error_data,
    duckdb_destroy_expression,
    duckdb_destroy_logical_type,
    duckdb_destroy_result,
    duckdb_destroy_scalar_function,
    duckdb_destroy_scalar_function_set,
    duckdb_destroy_table_function,
    duckdb_destroy_value,
    duckdb_destroy_vector,
    duckdb_disconnect,
    duckdb_error_data_has_error,
    duckdb_expression_fold,
    duckdb_expression_is_foldable,
    duckdb_free,
    duckdb_function_get_bind_data,
    duckdb_function_get_init_data,
    duckdb_function_get_local_init_data,
    duckdb_function_set_error,
    duckdb_get_double,
    duckdb_get_struct_child,
    duckdb_get_type_id,
    duckdb_get_value_type,
    duckdb_init_get_bind_data,
    duckdb_init_get_column_count,
    duckdb_init_get_column_index,
    duckdb_init_get_extra_info,
    duckdb_init_set_error,
    duckdb_init_set_init_data,
    duckdb_init_set_max_threads,
    duckdb_is_null_value,
    duckdb_list_type_child_type,
    duckdb_list_vector_get_child,
    duckdb_list_vector_get_size,
    duckdb_query,
    duckdb_register_config_option,
    duckdb_register_copy_function,
    duckdb_register_scalar_function_set,
    duckdb_register_table_function,
    duckdb_replacement_scan_add_parameter,
    duckdb_replacement_scan_set_error,
    duckdb_replacement_scan_set_function_name,
    duckdb_result_error,
    duckdb_row_count,
    duckdb_scalar_function_add_parameter,
    duckdb_scalar_function_bind_get_argument,
    duckdb_scalar_function_bind_get_argument_count,
    duckdb_scalar_function_bind_get_extra_info,
    duckdb_scalar_function_bind_set_error,
    duckdb_scalar_function_get_bind_data,
    duckdb_scalar_function_get_client_context,
    duckdb_scalar_function_get_extra_info,
    duckdb_scalar_function_get_state,
    duckdb_scalar_function_init_get_bind_data,
    duckdb_scalar_function_init_get_extra_info,
    duckdb_scalar_function_init_set_error,
    duckdb_scalar_function_init_set_state,
    duckdb_scalar_function_set_bind,
    duckdb_scalar_function_set_bind_data,
    duckdb_scalar_function_set_bind_data_copy,
    duckdb_scalar_function_set_error,
    duckdb_scalar_function_set_extra_info,
    duckdb_scalar_function_set_function,
    duckdb_scalar_function_set_init,
    duckdb_scalar_function_set_name,
    duckdb_scalar_function_set_return_type,
    duckdb_scalar_function_set_special_handling,
    duckdb_scalar_function_set_volatile,
    duckdb_struct_type_child_count,
    duckdb_struct_type_child_name,
    duckdb_struct_vector_get_child,
    duckdb_table_function_add_named_parameter,
    duckdb_table_function_add_parameter,
    duckdb_table_function_get_client_context,
    duckdb_table_function_set_bind,
    duckdb_table_function_set_extra_info,
    duckdb_table_function_set_function,
    duckdb_table_function_set_init,
    duckdb_table_function_set_local_init,
    duckdb_table_function_set_name,
    duckdb_table_function_supports_projection_pushdown,
    duckdb_validity_set_row_invalid,
    duckdb_value_to_string,
    duckdb_vector_get_column_type,
    duckdb_vector_get_data,
    duckdb_vector_get_validity,
    duckdb_vector_reference_value,
    duckdb_vector_reference_vector;
    // Called by what catches their exceptions: see `host`.
    by_address:
    duckdb_list_vector_reserve,
    duckdb_list_vector_set_size,
    duckdb_unsafe_vector_assign_string_element_len,
    duckdb_vector_ensure_validity_writable;
);
