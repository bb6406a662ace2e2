//! An open view: records, keys and slots as NumPy arrays.

use crate::errors;
use crate::guard::{detached, guard};
use crate::ids::{Ids, Meaning};
use crate::output;
use crate::peer_index;
use crate::running;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An open materialised view. Safe to share between threads; the interpreter is released while records are read.
#[pyclass(frozen, module = "engramsql.engine")]
pub struct View {
    inner: Arc<engram_engine::view::View>,
}

impl View {
    pub fn new(inner: Arc<engram_engine::view::View>) -> View {
        View { inner }
    }

    /// Row ids of whole keys, and their number.
    fn read_keys<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<(Ids<'py>, Vec<usize>)> {
        let heads = self.inner.heads();
        let keys = Ids::read(keys, Meaning::Key(heads))?;
        let shape = keys.shape().to_vec();
        match shape.split_last() {
            Some((&last, front)) if last == heads => {
                let front = front.to_vec();
                Ok((keys, front))
            }
            _ => {
                let message = format!("keys must be of shape [..., {heads}], a row id per head; got {shape:?}");
                Err(errors::argument(keys_py(&self.inner, message.as_str()), message))
            }
        }
    }
}
