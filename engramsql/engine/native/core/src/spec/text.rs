//! Token ids of text.

use super::{SpecError, tokenizer};
use crate::source::FileStamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokenizers::Tokenizer;

/// A `tokenizer.json` that turns text into token ids. Tables of one file share it.
pub struct TextTokenizer {
    path: PathBuf,
    tokenizer: Tokenizer,
}

/// Those in use, by path and by what the file was.
type Known = HashMap<PathBuf, (FileStamp, Weak<TextTokenizer>)>;

impl TextTokenizer {
    /// The tokenizer at `path`, read once in a process as long as somebody uses it and the file stays as it is. A large
    /// one takes about a second.
    ///
    /// # Errors
    /// A file that is missing or no tokenizer.
    pub fn shared(path: &Path) -> Result<Arc<TextTokenizer>, SpecError> {
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let stamp =
            FileStamp::of(path).map_err(|source| SpecError::Io { action: "read", path: path.to_owned(), source })?;
        // Held while reading: a second table of the same file waits for the first instead of reading it too.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some((of, tokenizer)) = known.get(path)
            && *of == stamp
            && let Some(tokenizer) = tokenizer.upgrade()
        {
            return Ok(tokenizer);
        }
        known.retain(|_, (_, tokenizer)| tokenizer.strong_count() > 0);
        let mut tokenizer = tokenizer::open(path)?;
        // What a file may ask for on behalf of a model's input; here every token of the text counts, and no other.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| tokenizer::refuse(path, error.to_string()))?;
        let shared = Arc::new(TextTokenizer { path: path.to_owned(), tokenizer });
        known.insert(path.to_owned(), (stamp, Arc::downgrade(&shared)));
        Ok(shared)
    }

    /// Appends the token ids of `text` to `out`: all of it, without special tokens that a model's input begins or ends
    /// with. Special tokens that the text spells out are tokens.
    ///
    /// # Errors
    /// A text that the tokenizer has no tokens for.
    pub fn append(&self, text: &str, out: &mut Vec<i64>) -> Result<(), SpecError> {
        let encoding = self.tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|e| tokenizer::refuse(&self.path, format!("cannot encode a text: {e}")))?;
        out.extend(encoding.get_ids().iter().map(|&id| i64::from(id)));
        Ok(())
    }
}
