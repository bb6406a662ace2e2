//! Names: which are allowed, which are the same, which was probably meant.

use super::error::CatalogError;
use crate::text::distance;

/// Two names are the same if they differ in ASCII case only, as SQL identifiers do.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Refuses what could be taken for a path, or could not be typed.
pub(super) fn check(name: &str) -> Result<(), CatalogError> {
    let reason = if name.trim().is_empty() {
        "it is empty"
    } else if name.contains(['/', '\\']) {
        "it contains a path separator"
    } else if name == "." || name == ".." {
        "it means a directory"
    } else if name.contains('#') {
        "it contains '#', which marks a layer of a path"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.len() > 200 {
        "it is longer than 200 bytes"
    } else {
        return Ok(());
    };
    Err(CatalogError::BadName { name: name.to_owned(), reason })
}

/// "; did you mean 'x'?", or the names there are, or how to get one.
pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = known.collect();
    names.sort_by_key(|other| distance(name, other));
    match names.first() {
        None => "; none is registered yet".to_owned(),
        Some(nearest) if distance(name, nearest) <= name.chars().count().max(3) / 2 => {
            format!("; did you mean '{nearest}'?")
        }
        Some(_) => {
            names.truncate(8);
            names.sort_unstable();
            format!("; there are '{}'", names.join("', '"))
        }
    }
}
