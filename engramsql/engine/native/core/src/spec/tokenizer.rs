//! The compressed token map of a tokenizer: token ids whose text reads alike share one compressed id.
//!
//! Rule of the Engram paper's demo, DeepSeek-V4.1 and vLLM 0.33.0, with the same normalisers from the same library.

use super::{SpecError, TokenMap};
use std::collections::HashMap;
use std::path::Path;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Lowercase, NFD, NFKC, NormalizerWrapper, Replace, Sequence, Strip, StripAccents};
use tokenizers::{NormalizedString, Normalizer, Tokenizer};

/// Stands for a text that is exactly one space while white space is stripped; private use, so no text contains it.
const LONE_SPACE: &str = "\u{E000}";

/// Parses a `tokenizer.json`.
pub(super) fn open(path: &Path) -> Result<Tokenizer, SpecError> {
    // Read apart from parsing, so that a missing file and a malformed one are told apart.
    let text = std::fs::read(path).map_err(|source| SpecError::Io { action: "read", path: path.to_owned(), source })?;
    // The library panics on some malformed files (tokenizers 0.23.2: a decoder whose type is missing); to the caller
    // that is a malformed file like any other.
    std::panic::catch_unwind(|| Tokenizer::from_bytes(&text).map_err(|e| e.to_string()))
        .unwrap_or_else(|_| Err("the library gave up on it".to_owned()))
        .map_err(|e| refuse(path, format!("not a tokenizer.json that the tokenizers library reads: {e}")))
}

pub(super) fn refuse(path: &Path, reason: String) -> SpecError {
    SpecError::Tokenizer { path: path.to_owned(), reason }
}

pub(super) fn token_map(path: &Path) -> Result<TokenMap, SpecError> {
    let refuse = |reason: String| refuse(path, reason);
    let tokenizer = open(path)?;
    let normaliser = normaliser().map_err(|e| refuse(format!("cannot build the normaliser: {e}")))?;
    let count =
        u32::try_from(tokenizer.get_vocab_size(true)).map_err(|_| refuse("more than 2^32 tokens".to_owned()))?;
    let mut seen: HashMap<String, u32> = HashMap::with_capacity(count as usize);
    let mut map = Vec::with_capacity(count as usize);
    for id in 0..count {
        let Some(token) = tokenizer.id_to_token(id) else {
            return Err(refuse(format!(
                "token id {id} of {count} is missing: a token map needs ids 0 to {} without a gap",
                count - 1
            )));
        };
        let text = tokenizer.decode(&[id], false).map_err(|e| refuse(format!("cannot decode token id {id}: {e}")))?;
        let key = if text.contains('\u{FFFD}') {
            // Part of a UTF-8 character: its text would read like every other part's.
            token
        } else {
            let mut normalised = NormalizedString::from(text.as_str());
            normaliser
                .normalize(&mut normalised)
                .map_err(|e| refuse(format!("cannot normalise token id {id}: {e}")))?;
            match normalised.get() {
                "" => text,
                key => key.to_owned(),
            }
        };
        // Below `count`, so it fits.
        let next = seen.len() as u32;
        map.push(*seen.entry(key).or_insert(next));
    }
    TokenMap::from_vec(map).map_err(|e| refuse(e.to_string()))
}

fn normaliser() -> tokenizers::Result<Sequence> {
    let regex = |pattern: &str| ReplacePattern::Regex(pattern.to_owned());
    Ok(Sequence::new(vec![
        NormalizerWrapper::NFKC(NFKC),
        NormalizerWrapper::NFD(NFD),
        NormalizerWrapper::StripAccents(StripAccents),
        NormalizerWrapper::Lowercase(Lowercase),
        NormalizerWrapper::Replace(Replace::new(regex(r"[ \t\r\n]+"), " ")?),
        NormalizerWrapper::Replace(Replace::new(regex("^ $"), LONE_SPACE)?),
        NormalizerWrapper::StripNormalizer(Strip::new(true, true)),
        NormalizerWrapper::Replace(Replace::new(LONE_SPACE, " ")?),
    ]))
}
