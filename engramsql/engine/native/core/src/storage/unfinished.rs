//! Where builds that are not finished lie, and what becomes of what an earlier one left.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to do with an unfinished build of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Refuse to build while it is there.
    #[default]
    Refuse,
    /// Go on with it; what it has finished is kept. Its options must be the same.
    Resume,
    /// Remove it and begin anew.
    Discard,
}

/// Where what will be at `directory` grows: `.NAME.building` beside it.
pub(crate) fn building_path(directory: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(directory.file_name().unwrap_or_default());
    name.push(BUILDING);
    directory.with_file_name(name)
}

/// Whether that is how a directory called `name` is called.
pub(crate) fn is_building_name(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(BUILDING)
}

const BUILDING: &str = ".building";
