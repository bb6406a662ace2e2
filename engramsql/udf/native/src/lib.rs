//! DuckDB extension over the engine: SQL functions over n-gram memory tables.
//!
//! `functions` holds one module per topic and no `unsafe`; `ffi` is the only place that touches DuckDB's C API.
//! Every callback runs under one guard, so neither an error nor a panic crosses the boundary as anything but an SQL
//! error. Each database instance has its own [`engram_engine::catalog::Session`].
//!
//! Built as a shared object, the crate is the extension that any client loads. A library that contains it instead calls
//! [`register_static`], and shares its one engine with the SQL functions.

#![deny(unsafe_code)]

mod error;
mod ffi;
mod functions;

pub use ffi::register_static;
