//! Row ids and token ids from SQL integers of any type, exact or refused.

use crate::error::{Error, Result};
use crate::ffi::{IntFault, Integer, Type, Value, Vector};
use engram_engine::Table;
use engram_engine::spec::SpecError;
use std::ops::Range;

/// What an argument holds, for error texts.
pub const ROW_IDS: &str = "row ids";
/// What an argument holds, for error texts.
pub const TOKENS: &str = "token ids";
/// What an argument holds, for error texts.
pub const HISTORY: &str = "history token ids";

/// What an argument holds, for error texts.
pub const SLOTS: &str = "slots";
/// What an argument holds, for error texts.
pub const KEY_IDS: &str = "the row ids of a key";

fn is_integer(ty: &Type) -> bool {
    matches!(ty, Type::Int(_) | Type::Null | Type::Unresolved)
}

/// An integer argument of a scalar function: any integer type, or NULL.
pub fn check_integers(what: &str, column: &Vector<'_>) -> Result<()> {
    if is_integer(column.ty()) {
        return Ok(());
    }
    Err(refusal(what, "integers", column.ty(), column.ty(), column.first_shown()))
}

/// A list argument of a scalar function: elements of any integer type, or NULL.
pub fn check_lists(what: &str, column: &Vector<'_>) -> Result<()> {
    match list_fault(column.ty()) {
        None => Ok(()),
        Some((wanted, got)) => Err(refusal(what, wanted, got, column.ty(), column.first_shown())),
    }
}

/// The same, and lists of such lists.
pub fn check_nested(what: &str, column: &Vector<'_>) -> Result<()> {
    let ty = match column.ty().element() {
        Some(element) if element.element().is_some() => element,
        _ => column.ty(),
    };
    match list_fault(ty) {
        None => Ok(()),
        Some((wanted, got)) => Err(refusal(what, wanted, got, column.ty(), column.first_shown())),
    }
}

/// A list argument of a table function, of type `ty`: `value`'s own, or its elements'.
pub fn check_list(what: &str, ty: &Type, value: &Value) -> Result<()> {
    // An untyped NULL reaches a table function of DuckDB 1.5 as INTEGER.
    if value.is_null() {
        return Ok(());
    }
    match list_fault(ty) {
        None => Ok(()),
        Some((wanted, got)) => Err(refusal(what, wanted, got, value.ty(), Some(value.to_string()))),
    }
}

/// What a type that is no list of integers should be, and the part of it that is not.
fn list_fault(ty: &Type) -> Option<(&'static str, &Type)> {
    match (ty, ty.element()) {
        (Type::Null | Type::Unresolved, _) => None,
        (_, Some(element)) if is_integer(element) => None,
        (_, Some(element)) if element.element().is_none() => Some(("integers", element)),
        _ => Some(("a list of integers", ty)),
    }
}

fn singular(what: &str) -> &str {
    what.strip_suffix('s').unwrap_or(what)
}

/// `got` is `whole` or a part of it; `shown` is a value of type `whole`.
fn refusal(what: &str, wanted: &str, got: &Type, whole: &Type, shown: Option<String>) -> Error {
    Error::argument(match shown {
        Some(value) if got == whole => format!("{what} must be {wanted}, got {got} {value}"),
        Some(value) => format!("{what} must be {wanted}, got {got} in {value}"),
        None => format!("{what} must be {wanted}, got {got}"),
    })
}

/// The engine's error for a row id that int64 cannot hold.
pub fn row_id_fault(table: &Table, fault: IntFault) -> Error {
    match fault {
        IntFault::Refused(error) => error,
        IntFault::TooLarge { value, .. } => row_id_too_large(table, value),
    }
}

/// The same for its value.
pub fn row_id_too_large(table: &Table, value: Integer) -> Error {
    match value {
        Integer::Signed(id) => table.out_of_range(id).into(),
        Integer::Huge(id) => {
            Error::argument(format!("row id {id} is out of range: table '{}' has {} rows", table.name(), table.rows()))
        }
    }
}

/// Appends the token ids of `range`; NULL and ids outside int64 are refused with their position in the list.
pub fn append_tokens(
    what: &str,
    elements: &Vector<'_>,
    range: Range<usize>,
    vocab_size: u64,
    out: &mut Vec<i64>,
) -> Result<()> {
    let mut refuse =
        |position: usize| Err(Error::argument(format!("{} at position {position} is NULL", singular(what))));
    elements.append_ints(range, out, &mut refuse).map_err(|fault| match fault {
        IntFault::Refused(error) => error,
        IntFault::TooLarge { index, value } => match value {
            Integer::Signed(token) if what == HISTORY => {
                SpecError::HistoryOutOfVocabulary { token, position: index, vocab_size }.into()
            }
            Integer::Signed(token) => SpecError::TokenOutOfVocabulary { token, position: index, vocab_size }.into(),
            Integer::Huge(token) => {
                Error::argument(format!("{} {token} at position {index} is outside the vocabulary", singular(what)))
            }
        },
    })
}

/// Says of an error which of several lists it is about, by what the list begins with: a chunk does not know which line of a
/// corpus it begins with.
pub fn in_list(error: Error, lists: &Vector<'_>, elements: &Vector<'_>, row: usize) -> Error {
    const SHOWN: usize = 8;
    if lists.len() < 2 {
        return error;
    }
    let Ok(range) = lists.list(row, elements) else {
        return error;
    };
    let mut shown = Vec::with_capacity(SHOWN + 1);
    for at in range.clone().take(SHOWN) {
        let mut large = None;
        let id = integer(elements, at, |value| {
            large = Some(value.to_string());
            Error::argument("too large")
        });
        shown.push(large.unwrap_or_else(|| id.map_or_else(|_| "NULL".to_owned(), |id| id.to_string())));
    }
    if range.len() > SHOWN {
        shown.push("...".to_owned());
    }
    let which = format!("in the list [{}]", shown.join(", "));
    match error {
        Error::Argument(text) => Error::Argument(format!("{text}, {which}")),
        Error::Engine(error) => Error::Told(format!("{error}, {which}")),
        other => other,
    }
}

/// The integer in row `row`, which is not NULL, of a vector of integers; `refuse` makes the error for one outside int64.
pub fn integer(values: &Vector<'_>, row: usize, refuse: impl FnOnce(Integer) -> Error) -> Result<i64> {
    let mut found = Vec::with_capacity(1);
    match values.append_ints(row..row + 1, &mut found, &mut |_| Ok(())) {
        Ok(()) => found.first().copied().ok_or_else(|| Error::argument("an integer is NULL")),
        Err(IntFault::TooLarge { value, .. }) => Err(refuse(value)),
        Err(IntFault::Refused(error)) => Err(error),
    }
}

/// The token ids of a list value; empty for NULL.
pub fn tokens_of(what: &str, value: &Value, vocab_size: u64) -> Result<Vec<i64>> {
    check_list(what, value.ty(), value)?;
    let mut out = Vec::new();
    if let Some(vector) = value.vector()
        && !vector.is_null(0)
    {
        let elements = vector.elements();
        let range = vector.list(0, &elements)?;
        append_tokens(what, &elements, range, vocab_size, &mut out)?;
    }
    Ok(out)
}
