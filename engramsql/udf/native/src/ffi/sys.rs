//! The C API functions this extension uses, in one list.
//!
//! Everything else in [`crate::ffi`] imports from here, so the list is complete by construction; the static
//! registration, which gets no function table from DuckDB, fills one from the same list.

pub use libduckdb_sys::*;
use std::ffi::{CStr, c_void};

macro_rules! used {
    ($($name:ident),* $(,)?) => {
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
    duckdb_connect,
    duckdb_create_array_type,
    duckdb_create_list_type,
    duckdb_create_logical_type,
    duckdb_create_scalar_function,
    duckdb_create_scalar_function_set,
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
    duckdb_function_get_extra_info,
    duckdb_function_get_init_data,
    duckdb_function_get_local_init_data,
    duckdb_function_set_error,
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
    duckdb_list_vector_reserve,
    duckdb_list_vector_set_size,
    duckdb_query,
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
    duckdb_table_function_add_named_parameter,
    duckdb_table_function_add_parameter,
    duckdb_table_function_set_bind,
    duckdb_table_function_set_extra_info,
    duckdb_table_function_set_function,
    duckdb_table_function_set_init,
    duckdb_table_function_set_local_init,
    duckdb_table_function_set_name,
    duckdb_table_function_supports_projection_pushdown,
    duckdb_unsafe_vector_assign_string_element_len,
    duckdb_validity_set_row_invalid,
    duckdb_value_to_string,
    duckdb_vector_ensure_validity_writable,
    duckdb_vector_get_column_type,
    duckdb_vector_get_data,
    duckdb_vector_get_validity,
    duckdb_vector_reference_value,
);
