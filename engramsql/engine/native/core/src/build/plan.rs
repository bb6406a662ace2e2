//! What is being built: kept with an unfinished build, and turned into the manifest of the finished store.

use super::error::BuildError;
use crate::error::Result;
use crate::fault;
use crate::source::{MANIFEST, StoreDescription, StoreLayout};
use crate::storage::checksum::BLOCK_BYTES;
use crate::storage::{StorageError, seal};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The plan of an unfinished build.
pub(super) const PLAN: &str = "build.json";
/// Block checksums of the shards, in their order.
pub(super) const CHECKSUMS: &str = "checksums.bin";

const FORMAT: &str = "engramsql-build";
const VERSION: u64 = 1;
/// Members of the manifest's `engramsql` object that are known only at the end.
const LATE: [&str; 2] = ["checksums", "built_at"];

/// One store to be built.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) layout: StoreLayout,
    pub(super) description: StoreDescription,
    /// Identity of the table whose rows it takes; `None` for rows that were computed.
    pub(super) source_identity: Option<String>,
    /// When it was begun (microseconds since the Unix epoch): the manifest says so whoever finishes it.
    pub(super) built_at: i64,
}

impl Plan {
    fn described(&self) -> Map<String, Value> {
        let mut described = self.description.to_json();
        described.insert("source_identity".to_owned(), self.source_identity.clone().into());
        described
    }

    fn to_json(&self) -> Map<String, Value> {
        let members = [
            ("format", FORMAT.into()),
            ("version", VERSION.into()),
            ("layout", Value::Object(self.layout.to_json())),
            ("source", self.description.source.clone().into()),
            ("engramsql", Value::Object(self.described())),
            ("built_at", self.built_at.into()),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Keeps the plan in `directory`.
    pub(super) fn publish(&self, directory: &Path) -> Result<(), StorageError> {
        let path = directory.join(PLAN);
        fault::io("build.plan").map_err(|error| StorageError::io("write", &path, error))?;
        seal::publish(&path, &self.to_json()).map(drop)
    }

    /// Goes on with the plan kept in `directory`; false if there is none.
    ///
    /// # Errors
    /// A plan that is damaged, or another than this one.
    pub(super) fn adopt(&mut self, directory: &Path) -> Result<bool> {
        let path = directory.join(PLAN);
        if !path.exists() {
            return Ok(false);
        }
        let (begun, _) = seal::read(&path)?;
        let now = reread(self.to_json())?;
        for (name, what) in [("format", "format"), ("version", "version"), ("source", "source")] {
            same(directory, what, begun.get(name), now.get(name))?;
        }
        for object in ["layout", "engramsql"] {
            let member = |plan: &Value, name: &str| plan.get(name).cloned();
            let (begun, now) = (member(&Value::Object(begun.clone()), object), member(&now, object));
            let names = now.as_ref().and_then(Value::as_object).into_iter().flat_map(Map::keys);
            for name in names {
                let what = match name.as_str() {
                    "source_identity" => "identity of the source".to_owned(),
                    name => name.replace('_', " "),
                };
                let of = |object: &Option<Value>| object.as_ref().and_then(|object| object.get(name)).cloned();
                same(directory, &what, of(&begun).as_ref(), of(&now).as_ref())?;
            }
        }
        let built_at = begun.get("built_at").and_then(Value::as_i64);
        self.built_at = built_at.ok_or_else(|| StorageError::damaged(&path, "it does not say when it was begun"))?;
        Ok(true)
    }

    /// Writes the manifest into `directory`, whose checksum file has the digest `checksums`; returns its own digest.
    pub(super) fn publish_manifest(&self, directory: &Path, checksums: &str) -> Result<String, StorageError> {
        let mut described = self.described();
        let checksums = json!({"file": CHECKSUMS, "block_bytes": BLOCK_BYTES, "blake3": checksums});
        described.insert(LATE[0].to_owned(), checksums);
        described.insert(LATE[1].to_owned(), self.built_at.into());
        let mut manifest = self.head();
        manifest.insert("engramsql".to_owned(), Value::Object(described));
        let path = directory.join(MANIFEST);
        fault::io("build.manifest").map_err(|error| StorageError::io("write", &path, error))?;
        seal::publish(&path, &manifest)
    }

    /// The members of the manifest that others read too.
    fn head(&self) -> Map<String, Value> {
        let mut head = Map::new();
        head.insert("layout".to_owned(), Value::Object(self.layout.to_json()));
        head.insert("source".to_owned(), self.description.source.clone().into());
        head
    }

    /// Whether `directory` holds the finished store of this plan.
    pub(super) fn is_finished_in(&self, directory: &Path) -> bool {
        let Ok((mut manifest, _)) = seal::read(&directory.join(MANIFEST)) else { return false };
        if let Some(Value::Object(described)) = manifest.get_mut("engramsql") {
            LATE.iter().for_each(|name| drop(described.shift_remove(*name)));
        }
        let mut expected = self.head();
        expected.insert("engramsql".to_owned(), Value::Object(self.described()));
        reread(expected).is_ok_and(|expected| expected == Value::Object(manifest))
    }
}

/// A document as it is after it was written and read: the last digit of a fraction in somebody's config may change on the
/// way.
fn reread(document: Map<String, Value>) -> Result<Value, StorageError> {
    let sealed = seal::seal(&document);
    Ok(Value::Object(seal::open(Path::new(PLAN), &sealed.bytes)?.0))
}

fn same(directory: &Path, what: &str, begun: Option<&Value>, now: Option<&Value>) -> Result<(), BuildError> {
    if begun == now {
        return Ok(());
    }
    let show = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::Object(object)) => match object.get("name").and_then(Value::as_str) {
            Some(name) => format!("'{name}'"),
            None => "another".to_owned(),
        },
        Some(Value::String(text)) => format!("'{text}'"),
        Some(value) => value.to_string(),
    };
    Err(BuildError::OtherPlan { path: directory.to_owned(), what: what.to_owned(), begun: show(begun), now: show(now) })
}
