//! What becomes of what an earlier build left unfinished.

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
