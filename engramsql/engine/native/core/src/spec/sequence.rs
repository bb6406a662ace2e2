//! One sequence to hash, and the checks it passes before any hash is computed.

use super::{Constants, SpecError};

/// One sequence to hash. Start from [`Sequence::new`] or `..Default::default()`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sequence<'a> {
    /// Token ids, oldest first.
    pub tokens: &'a [i64],
    /// Tokens before `tokens[0]`, newest last; may be empty, and longer than the family needs.
    pub history: &'a [i64],
    /// One flag per token: dead positions besides those of the spec's own dead token. Empty: none.
    pub dead: &'a [bool],
    /// One flag per token of `history`. Empty: none.
    pub history_dead: &'a [bool],
}

impl<'a> Sequence<'a> {
    /// A sequence from its start.
    pub fn new(tokens: &'a [i64]) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// The same after `history` (newest last).
    pub fn with_history(self, history: &'a [i64]) -> Self {
        Self { history, ..self }
    }

    /// The same with dead positions; an empty slice means none.
    pub fn with_dead(self, dead: &'a [bool], history_dead: &'a [bool]) -> Self {
        Self { dead, history_dead, ..self }
    }

    /// Every id lies in the vocabulary and the masks fit; the history is cut to what matters.
    pub(super) fn check(self, constants: &Constants) -> Result<Checked<'a>, SpecError> {
        check_mask("dead", self.dead, self.tokens.len(), constants.family)?;
        check_mask("history_dead", self.history_dead, self.history.len(), constants.family)?;
        check_tokens(self.tokens, constants.vocab_size)?;
        check_history(self.history, constants.vocab_size)?;
        Ok(self.cut(constants.history_len))
    }

    /// The last `length` tokens of history are those that a window can reach.
    pub(super) fn cut(self, length: usize) -> Checked<'a> {
        let skip = self.history.len().saturating_sub(length);
        Checked {
            tokens: self.tokens,
            dead: self.dead,
            history: &self.history[skip..],
            history_dead: self.history_dead.get(skip..).unwrap_or_default(),
        }
    }
}

/// A sequence whose ids are all below the vocabulary size and whose history is at most n - 1 long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked<'a> {
    pub(super) tokens: &'a [i64],
    pub(super) dead: &'a [bool],
    pub(super) history: &'a [i64],
    pub(super) history_dead: &'a [bool],
}

pub(super) fn check_mask(
    mask: &'static str,
    flags: &[bool],
    expected: usize,
    family: &'static str,
) -> Result<(), SpecError> {
    if flags.is_empty() {
        return Ok(());
    }
    if flags.len() != expected {
        return Err(SpecError::MaskLength { mask, expected, found: flags.len() });
    }
    // A mask without a dead position is harmless anywhere; callers may pass one for every family.
    if family != "deepseek_v41" && flags.contains(&true) {
        return Err(SpecError::NoDeadTokens { family });
    }
    Ok(())
}

pub(super) fn check_tokens(tokens: &[i64], vocab_size: u64) -> Result<(), SpecError> {
    match first_outside(tokens, vocab_size) {
        None => Ok(()),
        Some(position) => {
            Err(SpecError::TokenOutOfVocabulary { token: i128::from(tokens[position]), position, vocab_size })
        }
    }
}

pub(super) fn check_history(history: &[i64], vocab_size: u64) -> Result<(), SpecError> {
    match first_outside(history, vocab_size) {
        None => Ok(()),
        Some(position) => {
            Err(SpecError::HistoryOutOfVocabulary { token: i128::from(history[position]), position, vocab_size })
        }
    }
}

fn first_outside(tokens: &[i64], vocab_size: u64) -> Option<usize> {
    // Negative ids become huge. The first pass has no early exit, so it vectorises.
    let outside = |token: i64| token as u64 >= vocab_size;
    let any = tokens.iter().fold(false, |any, &token| any | outside(token));
    if any { tokens.iter().position(|&token| outside(token)) } else { None }
}
