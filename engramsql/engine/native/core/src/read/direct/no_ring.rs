//! Systems without io_uring: every ring is refused, and readers take the pool of threads.

use super::files::DirectFiles;
use super::threads::PoolQueue;
use std::io::{Error, ErrorKind, Result};
use std::sync::OnceLock;

/// There is no io_uring to be refused.
pub(super) fn refusal() -> Option<&'static Error> {
    static REFUSED: OnceLock<Error> = OnceLock::new();
    Some(REFUSED.get_or_init(|| Error::from(ErrorKind::Unsupported)))
}

/// Idle rings of one reader: never any.
#[derive(Default)]
pub(super) struct Rings;

impl Rings {
    pub(super) fn lease<'a>(&'a self, _: usize, _: usize, _: &'a DirectFiles) -> Result<PoolQueue<'a>> {
        Err(Error::from(ErrorKind::Unsupported))
    }
}
