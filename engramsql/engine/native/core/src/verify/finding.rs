//! What verification says, one line per checked thing.

use super::error::VerifyError;
use std::path::Path;

/// How much is looked at; each level does what the ones before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Manifests, headers, sizes, missing and stray files, and three blocks of every file that has checksums.
    Headers,
    /// Some blocks of every file that has checksums, and some rows of every shard by two readers.
    Sample,
    /// Every byte.
    Full,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Headers => "headers",
            Level::Sample => "sample",
            Level::Full => "full",
        }
    }

    /// The level of that name.
    ///
    /// # Errors
    /// [`VerifyError::UnknownLevel`], which names them all.
    pub fn from_name(name: &str) -> Result<Level, VerifyError> {
        let levels = [Level::Headers, Level::Sample, Level::Full];
        let unknown = || VerifyError::UnknownLevel { name: name.to_owned() };
        levels.into_iter().find(|level| level.name() == name).ok_or_else(unknown)
    }
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of check: "manifest", "files", "size", "stray", "block", "rows", "token_map", "records", "keys", "index" or "catalog".
    pub check: &'static str,
    /// Shard, 0-based, if it is about one.
    pub shard: Option<u32>,
    /// Whether all is well.
    pub ok: bool,
    /// What should be, if that is one value: 16 hex digits of a block's checksum, bytes of a size, ...
    pub expected: Option<String>,
    /// What is.
    pub found: Option<String>,
    /// The thing, and what is wrong with it.
    pub detail: String,
}

impl Finding {
    pub(super) fn good(check: &'static str, shard: Option<u32>, detail: impl Into<String>) -> Finding {
        Finding { check, shard, ok: true, expected: None, found: None, detail: detail.into() }
    }

    pub(super) fn bad(check: &'static str, shard: Option<u32>, detail: impl Into<String>) -> Finding {
        Finding { ok: false, ..Finding::good(check, shard, detail) }
    }

    /// With both values.
    pub(super) fn values(self, expected: impl ToString, found: impl ToString) -> Finding {
        Finding { expected: Some(expected.to_string()), found: Some(found.to_string()), ..self }
    }
}

/// Hands findings on and remembers whether one was bad.
pub(super) struct Report<'a> {
    take: &'a mut dyn FnMut(Finding),
    bad: u64,
}

impl<'a> Report<'a> {
    pub(super) fn new(take: &'a mut dyn FnMut(Finding)) -> Report<'a> {
        Report { take, bad: 0 }
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.bad += u64::from(!finding.ok);
        (self.take)(finding);
    }

    /// Bad findings so far.
    pub(super) fn bad(&self) -> u64 {
        self.bad
    }
}

/// "1 shard", "2 shards".
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The name of a file, for details.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
