//! What an interrupted verification has found good, kept in the database so that the next one goes on from there.
//!
//! `mydb/.verify/NAME.json` (sealed): `format` "engramsql-verify", `version` 1, `identity` of what was verified, `level`, and
//! `good`: file or shard -> size and modification time when it was found good. Nothing that was found bad is kept: it
//! is looked at again.

use super::finding::Level;
use crate::catalog::Session;
use crate::error::Result;
use crate::storage::{StorageError, remove_file, seal};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const FOLDER: &str = ".verify";
const FORMAT: &str = "engramsql-verify";
const VERSION: u64 = 1;

/// What was found good so far, where it is kept.
pub(super) struct Resumable {
    /// `None`: nothing is kept.
    path: Option<PathBuf>,
    identity: String,
    level: Level,
    good: Map<String, Value>,
}

impl Resumable {
    /// Keeps nothing.
    pub(super) fn nothing() -> Resumable {
        Resumable { path: None, identity: String::new(), level: Level::Headers, good: Map::new() }
    }

    /// What was found good of the thing called `name`, which has `identity`, at this level.
    ///
    /// # Errors
    /// A database that cannot be written to. One that was opened read-only, and a session in memory, keep nothing.
    pub(super) fn open(session: &Session, name: &str, identity: &str, level: Level) -> Result<Resumable> {
        let Some(directory) = session.directory().filter(|_| !session.is_read_only()) else {
            return Ok(Resumable::nothing());
        };
        let path = directory.join(FOLDER).join(format!("{}.json", name.to_ascii_lowercase()));
        let good = match seal::read(&path) {
            Ok((document, _)) if is_of(&document, identity, level) => {
                document.get("good").and_then(Value::as_object).cloned().unwrap_or_default()
            }
            // None, or of another content or level, or not whole: everything is looked at.
            _ => Map::new(),
        };
        let state = Resumable { path: Some(path), identity: identity.to_owned(), level, good };
        // A database that cannot keep it says so before the work.
        state.publish()?;
        Ok(state)
    }

    /// Whether `part` was found good when it had this stamp.
    pub(super) fn knows(&self, part: &str, stamp: &str) -> bool {
        self.good.get(part).and_then(Value::as_str) == Some(stamp)
    }

    /// Remembers that `part` is good.
    pub(super) fn finish(&mut self, part: &str, stamp: &str) -> Result<()> {
        if self.path.is_none() {
            return Ok(());
        }
        self.good.insert(part.to_owned(), Value::String(stamp.to_owned()));
        self.publish()
    }

    /// Forgets everything: the verification came to its end.
    pub(super) fn remove(self) -> Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        // Another verification of the same may have come to its end before.
        remove_file(&path)?;
        if let Some(folder) = path.parent() {
            // Others may have something in it.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }

    fn publish(&self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(folder) = path.parent() {
            // Here, because another verification that ends removes an empty one.
            std::fs::create_dir_all(folder).map_err(|error| StorageError::io("create", folder, error))?;
        }
        let mut document = Map::new();
        document.insert("format".to_owned(), json!(FORMAT));
        document.insert("version".to_owned(), json!(VERSION));
        document.insert("identity".to_owned(), json!(self.identity));
        document.insert("level".to_owned(), json!(self.level.name()));
        document.insert("good".to_owned(), Value::Object(self.good.clone()));
        seal::publish(path, &document)?;
        Ok(())
    }
}

fn is_of(document: &Map<String, Value>, identity: &str, level: Level) -> bool {
    let text = |member: &str| document.get(member).and_then(Value::as_str);
    text("format") == Some(FORMAT)
        && document.get("version").and_then(Value::as_u64) == Some(VERSION)
        && text("identity") == Some(identity)
        && text("level") == Some(level.name())
}
