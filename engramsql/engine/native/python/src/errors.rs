//! The one place where an engine error becomes a Python exception.

use engram_engine::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// Exception class in `engramsql/errors.py` for each kind of engine error.
fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RowId => "RowIdError",
        ErrorKind::TokenId => "TokenIdError",
        ErrorKind::UnknownTable => "UnknownTableError",
        ErrorKind::Spec => "SpecError",
        ErrorKind::Format => "FormatError",
        ErrorKind::Source => "SourceError",
        ErrorKind::Read => "ReadError",
        ErrorKind::Catalog => "CatalogError",
        ErrorKind::Locked => "CatalogLockedError",
        ErrorKind::Storage => "StorageError",
        ErrorKind::Cancelled => "CancelledError",
        ErrorKind::Argument => "ArgumentError",
    }
}

/// The exception for an engine error. Its text is the engine's: complete, with the remedy.
pub fn from_engine(py: Python<'_>, error: &Error) -> PyErr {
    raise(py, class_of(error.kind()), error.to_string())
}

/// The exception of class `engramsql.errors.CLASS`, imported on first use so that `--version` stays quick.
pub fn raise(py: Python<'_>, class: &str, message: String) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let made = MODULE
        .get_or_try_init(py, || PyModule::import(py, "engramsql.errors").map(Bound::unbind))
        .and_then(|module| module.bind(py).getattr(class))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(failure) => failure,
    }
}

/// An argument of the right type and a wrong value or shape.
pub fn argument(py: Python<'_>, message: String) -> PyErr {
    raise(py, "ArgumentError", message)
}

/// An argument of the wrong type.
pub fn argument_type(py: Python<'_>, message: String) -> PyErr {
    raise(py, "ArgumentTypeError", message)
}
