//! Reading rows: a plan, and the readers behind it.
/// Why a read failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ReadError {}
