//! Row ids and token ids as Python gives them: any integer array, or lists. Nothing is rounded, wrapped or guessed.

use crate::errors;
use engram_engine::Table;
use engram_engine::spec::SpecError;
use engram_engine::view::View;
use numpy::{
    PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyList, PyRange, PyTuple};

/// What the ids are, for messages: an id is refused in the words of the table or the vocabulary it was meant for.
#[derive(Clone, Copy)]
pub enum Meaning<'a> {
    /// Row ids of a table.
    Row(&'a Table),
    /// Token ids of a vocabulary of this size.
    Token(u64),
    /// Tokens of a history, of a vocabulary of this size.
    History(u64),
    /// Slots of a view.
    Slot(&'a View),
    /// Row ids of keys of so many heads.
    Key(usize),
}

impl Meaning<'_> {
    fn is_token(&self) -> bool {
        matches!(self, Meaning::Token(_) | Meaning::History(_))
    }

    fn noun(&self) -> &'static str {
        match self {
            Meaning::Row(_) | Meaning::Key(_) => "row id",
            Meaning::Slot(_) => "slot",
            Meaning::Token(_) => "token id",
            Meaning::History(_) => "history token id",
        }
    }

    fn range(&self) -> String {
        match self {
            Meaning::Row(table) => format!(
                "table '{}' has {} rows, valid ids are 0 to {}",
                table.name(),
                table.rows(),
                table.rows().saturating_sub(1)
            ),
            Meaning::Slot(view) => format!(
                "view '{}' has {} slots, valid ones are 0 to {}",
                view.name(),
                view.slots(),
                view.slots().saturating_sub(1)
            ),
            Meaning::Key(heads) => format!("a key is {heads} row ids"),
            Meaning::Token(vocab_size) | Meaning::History(vocab_size) => {
                format!("the vocabulary is 0 to {}", vocab_size.saturating_sub(1))
            }
        }
    }

    /// An integer that no signed 64-bit id can be.
    fn too_large(&self, id: &Bound<'_, PyAny>, position: usize) -> PyErr {
        let py = id.py();
        let out_of_range = || {
            let class = if self.is_token() { "TokenIdError" } else { "RowIdError" };
            let message = format!("{} {} is out of range: {}", self.noun(), show(id), self.range());
            errors::raise(py, class, message)
        };
        let Ok(wide) = id.extract::<i128>() else {
            return out_of_range();
        };
        let error = match *self {
            Meaning::Row(table) => table.out_of_range(wide),
            Meaning::Slot(_) | Meaning::Key(_) => return out_of_range(),
            Meaning::Token(vocab_size) => SpecError::TokenOutOfVocabulary { token: wide, position, vocab_size }.into(),
            Meaning::History(vocab_size) => {
                SpecError::HistoryOutOfVocabulary { token: wide, position, vocab_size }.into()
            }
        };
        errors::from_engine(py, &error)
    }

    /// A value that is no integer.
    fn not_integer(&self, id: &Bound<'_, PyAny>, position: usize) -> PyErr {
        let class = if self.is_token() { "TokenIdTypeError" } else { "RowIdTypeError" };
        let (noun, range) = (self.noun(), self.range());
        let message =
            format!("{noun} {} at position {position} is not an integer ({}): {range}", show(id), type_name(id));
        errors::raise(id.py(), class, message)
    }
}

/// Ids in C order, with the shape they came in.
///
/// They are ours alone: the engine proves that every id is in range and then relies on it while the interpreter is
/// released, when another thread may write to the caller's array.
pub enum Ids<'py> {
    /// A NumPy array that NumPy made for this call, used where it lies.
    Converted(PyReadonlyArrayDyn<'py, i64>),
    /// Ids copied out of the caller's array (8 bytes an id, next to rows of a hundred and more).
    Copied {
        /// The ids.
        values: Vec<i64>,
        /// The array: its shape, and the proof that it is not also the output.
        array: PyReadonlyArrayDyn<'py, i64>,
    },
    /// Ids copied out of lists.
    Owned {
        /// The ids.
        values: Vec<i64>,
        /// Shape of the nested lists.
        shape: Vec<usize>,
    },
}

/// Refuses arrays that say that some of their values are missing: what lies in their place is no id.
fn refuse_missing(object: &Bound<'_, PyAny>, meaning: Meaning<'_>) -> PyResult<()> {
    let missing = if object.hasattr("null_count")? {
        // Arrow arrays.
        object.getattr("null_count")?.extract::<usize>().unwrap_or(0) > 0
    } else if object.hasattr("mask")? && object.hasattr("filled")? {
        // NumPy's masked arrays.
        numpy_function(object.py(), "any")?.call1((object.getattr("mask")?,))?.is_truthy()?
    } else {
        false
    };
    if missing {
        // Only Arrow results can say that a row is missing.
        let remedy = if matches!(meaning, Meaning::Row(_)) && object.hasattr("null_count")? {
            ", or call fetch_arrow or vectors_arrow"
        } else {
            ""
        };
        let message = format!("{}s must not be missing (NULL or masked); leave them out{remedy}", meaning.noun());
        return Err(errors::argument(object.py(), message));
    }
    Ok(())
}

impl<'py> Ids<'py> {
    /// Reads `object`: an integer array or nested lists of integers.
    pub fn read(object: &Bound<'py, PyAny>, meaning: Meaning<'_>) -> PyResult<Ids<'py>> {
        refuse_missing(object, meaning)?;
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return from_array(array, meaning);
        }
        if is_list(object) {
            return from_lists(object, meaning);
        }
        if let Some(array) = converted(object, meaning)? {
            return from_array(array.cast::<PyUntypedArray>()?, meaning);
        }
        let message = format!("{}s must be a list or an integer array, got {}", meaning.noun(), type_name(object));
        Err(errors::argument_type(object.py(), message))
    }

    /// One sequence of ids; more dimensions are refused.
    pub fn read_flat(object: &Bound<'py, PyAny>, meaning: Meaning<'_>) -> PyResult<Ids<'py>> {
        let ids = Ids::read(object, meaning)?;
        match ids.shape().len() {
            1 => Ok(ids),
            found => {
                let remedy =
                    if matches!(meaning, Meaning::Row(_)) { "pass ids.ravel()" } else { "call once per sequence" };
                let message = format!("{}s must have one dimension, got {found}; {remedy}", meaning.noun());
                Err(errors::argument(object.py(), message))
            }
        }
    }

    /// No ids.
    pub fn none() -> Ids<'py> {
        Ids::Owned { values: Vec::new(), shape: vec![0] }
    }

    /// The ids, in C order.
    pub fn as_slice(&self) -> PyResult<&[i64]> {
        match self {
            Ids::Converted(array) => Ok(array.as_slice()?),
            Ids::Copied { values, .. } | Ids::Owned { values, .. } => Ok(values),
        }
    }

    /// Shape of the ids.
    pub fn shape(&self) -> &[usize] {
        match self {
            Ids::Converted(array) | Ids::Copied { array, .. } => array.shape(),
            Ids::Owned { shape, .. } => shape,
        }
    }
}

/// An array of another library as NumPy's, without a loop; None for what is no array.
fn converted<'py>(object: &Bound<'py, PyAny>, meaning: Meaning<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let function = if object.hasattr("__array__")? {
        "asarray"
    } else if object.hasattr("__dlpack__")? {
        "from_dlpack"
    } else {
        return Ok(None);
    };
    numpy_function(py, function)?.call1((object,)).map(Some).map_err(|error| {
        let message = format!("{}s cannot be read as an array: {}", meaning.noun(), error.value(py));
        errors::argument_type(py, message)
    })
}

fn from_array<'py>(array: &Bound<'py, PyUntypedArray>, meaning: Meaning<'_>) -> PyResult<Ids<'py>> {
    let py = array.py();
    if array.ndim() == 0 {
        let message =
            format!("{}s must be a list or an array of at least one dimension, got a single value", meaning.noun());
        return Err(errors::argument(py, message));
    }
    let dtype = array.dtype();
    match dtype.kind() {
        b'i' => {}
        b'u' => refuse_beyond_i64(array, meaning)?,
        // Python integers beyond 64 bits, or a mixture: judged one by one.
        b'O' => return from_lists(&array.call_method0("tolist")?, meaning),
        // NumPy makes float64 of an empty list.
        _ if array.is_empty() => {}
        kind => {
            let flat = array.call_method0("ravel")?;
            let position = if kind == b'f' { first_fraction(&flat)? } else { 0 };
            return Err(meaning.not_integer(&flat.get_item(position)?, position));
        }
    }
    let as_it_lies = dtype.is_equiv_to(&numpy::dtype::<i64>(py)) && array.is_c_contiguous() && is_aligned(array)?;
    let ids = if as_it_lies {
        array.clone().into_any()
    } else {
        numpy_function(py, "ascontiguousarray")?.call1((array, "int64"))?
    };
    let ids = ids.cast::<PyArrayDyn<i64>>()?.try_readonly().map_err(|_| {
        errors::argument(py, format!("the array of {}s is also the output of a running call", meaning.noun()))
    })?;
    Ok(if as_it_lies { Ids::Copied { values: ids.as_slice()?.to_vec(), array: ids } } else { Ids::Converted(ids) })
}

/// Position of the first value with a fraction (or NaN); 0 if all are whole.
fn first_fraction(flat: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = flat.py();
    let whole = numpy_function(py, "trunc")?.call1((flat,))?;
    numpy_function(py, "not_equal")?.call1((flat, whole))?.call_method0("argmax")?.extract()
}

/// Of the unsigned types only uint64 holds ids beyond int64, where a cast would wrap.
fn refuse_beyond_i64(array: &Bound<'_, PyUntypedArray>, meaning: Meaning<'_>) -> PyResult<()> {
    if array.dtype().itemsize() < 8 || array.is_empty() {
        return Ok(());
    }
    let flat = array.call_method0("ravel")?;
    let position: usize = flat.call_method0("argmax")?.extract()?;
    let largest = flat.get_item(position)?.call_method0("item")?;
    match largest.extract::<i64>() {
        Ok(_) => Ok(()),
        Err(_) => Err(meaning.too_large(&largest, position)),
    }
}

fn from_lists<'py>(list: &Bound<'py, PyAny>, meaning: Meaning<'_>) -> PyResult<Ids<'py>> {
    let mut values = Vec::with_capacity(list.len()?);
    let mut shape = Vec::new();
    flatten(list, 0, meaning, &mut shape, &mut values)?;
    // A level that no row of the lists reached is a level of length zero.
    let shape = shape.into_iter().map(|len| len.unwrap_or(0)).collect();
    Ok(Ids::Owned { values, shape })
}

/// Appends the integers below `list`; every list of one level must have the same length.
fn flatten(
    list: &Bound<'_, PyAny>,
    level: usize,
    meaning: Meaning<'_>,
    shape: &mut Vec<Option<usize>>,
    values: &mut Vec<i64>,
) -> PyResult<()> {
    let py = list.py();
    let ragged = || {
        let message = format!("lists of {}s must all have the same length", meaning.noun());
        Err(errors::argument(py, message))
    };
    if shape.len() == level {
        shape.push(None);
    }
    let len = list.len()?;
    match shape[level] {
        Some(expected) if expected != len => return ragged(),
        _ => shape[level] = Some(len),
    }
    for (position, item) in list.try_iter()?.enumerate() {
        let item = item?;
        let nested = is_list(&item) || item.cast::<PyUntypedArray>().is_ok_and(|a| a.ndim() > 0);
        if nested != (shape.len() > level + 1) && position > 0 {
            return ragged();
        }
        if !nested {
            values.push(integer(&item, position, meaning)?);
        } else if is_list(&item) {
            flatten(&item, level + 1, meaning, shape, values)?;
        } else {
            flatten(&item.call_method0("tolist")?, level + 1, meaning, shape, values)?;
        }
    }
    Ok(())
}

/// One id. `True` is no id although Python calls it an int; NumPy integers are.
fn integer(item: &Bound<'_, PyAny>, position: usize, meaning: Meaning<'_>) -> PyResult<i64> {
    let whole = if item.is_instance_of::<PyBool>() {
        return Err(meaning.not_integer(item, position));
    } else if item.is_instance_of::<PyInt>() {
        item.clone()
    } else {
        match item.call_method0("__index__") {
            Ok(whole) => whole,
            Err(_) => return Err(meaning.not_integer(item, position)),
        }
    };
    whole.extract::<i64>().map_err(|_| meaning.too_large(&whole, position))
}

fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyRange>()
}

fn is_aligned(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    array.getattr("flags")?.getattr("aligned")?.extract()
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// The value as Python shows it, shortened: ids may be texts of any length.
fn show(object: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 60;
    // NumPy 2 shows its scalars as np.float64(1.5); the user wrote 1.5.
    let plain = object.call_method0("item").unwrap_or_else(|_| object.clone());
    let text = plain.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    if text.chars().count() <= LONGEST {
        return text;
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    short.push_str("...");
    short
}

/// A function of the numpy module.
pub fn numpy_function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    NUMPY.get_or_try_init(py, || PyModule::import(py, "numpy").map(Bound::unbind))?.bind(py).getattr(name)
}
