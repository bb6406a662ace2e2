//! Sources: where the rows of a table lie.
/// Why a source was refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {}
