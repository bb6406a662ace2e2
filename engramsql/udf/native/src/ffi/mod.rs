//! The boundary to DuckDB's C API: the only modules with `unsafe` code.
//!
//! What they hand out is safe: vectors know their type and length, callbacks run under [`guard`], boxed state is freed
//! by destructors that cannot unwind.

#![allow(unsafe_code)]

mod copy_function;
mod entry;
mod guard;
mod host;
mod input;
mod output;
mod replacement;
mod scalar;
mod setting;
mod show;
#[cfg(unix)]
mod static_link;
mod sys;
mod table_function;
mod types;
mod value;

pub use copy_function::{CopyFunction, CopyOptions};
pub use entry::Registrar;
pub use guard::contained;
pub use input::{Chunk, IntFault, Integer, Vector, leaves_elements};
pub use output::{HugeInt, ListEntry, OutVector};
pub use scalar::{Overload, Scalar, ScalarArguments};
pub use setting::{Setting, Settings};
#[cfg(unix)]
pub use static_link::register_static;
pub use table_function::{Arguments, CHUNK, Columns, OutChunk, TableFunction};
pub use types::{Column, Fields, IntType, Parameter, Type};
pub use value::Value;
