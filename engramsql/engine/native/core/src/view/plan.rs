//! The plan of a build, kept beside what is built: what an interrupted build was to become and how far it came.

use super::error::ViewError;
use super::options::{Form, Order, ViewOptions};
use crate::error::Result;
use crate::storage::{StorageError, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// Its file in the directory of the build.
pub(super) const FILE: &str = "build.json";
pub(super) const FORMAT: &str = "engramsql-view-build";
pub(super) const VERSION: u64 = 1;

/// What is being built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) format: String,
    pub(super) version: u64,
    pub(super) table: String,
    pub(super) table_identity: String,
    pub(super) heads: u64,
    pub(super) key_bytes: u64,
    pub(super) record_bytes: u64,
    /// Bytes from one record to the next.
    pub(super) slot_bytes: u64,
    pub(super) form: String,
    pub(super) order: String,
    /// The file that holds the records, if somebody else wrote them.
    pub(super) records: Option<String>,
    /// When that file was last written (nanoseconds since the Unix epoch), once its records were compared.
    #[serde(default)]
    pub(super) records_modified: Option<i64>,
    pub(super) options: PlanOptions,
    pub(super) built_at: i64,
    /// Once the keys are complete and on the disk.
    pub(super) keys: Option<PlanKeys>,
}

/// Options that decide what is built and cannot be seen in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanOptions {
    pub(super) top: Option<u64>,
    pub(super) budget: Option<u64>,
    pub(super) shard_bytes: u64,
    /// What tells the corpus, or the keys, from others, where the caller can say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) corpus: Option<String>,
}

/// The keys of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanKeys {
    pub(super) slots: u64,
    /// Tokens of the corpus; nobody knows for keys that the caller brought.
    pub(super) tokens: Option<u64>,
    pub(super) covered: Option<u64>,
}

/// The table that a view is built from.
pub(super) struct PlanTable {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) heads: usize,
    pub(super) row_bytes: usize,
    pub(super) dim: Option<usize>,
    pub(super) key_bytes: usize,
}

impl Plan {
    /// The plan of a build that begins now.
    pub(super) fn new(name: &str, table: PlanTable, options: &ViewOptions, now: i64) -> Result<Plan, ViewError> {
        let refused = |reason: &str| ViewError::Options { name: name.to_owned(), reason: reason.to_owned() };
        let heads = table.heads as u64;
        let record_bytes = match options.form {
            Form::Rows => heads * table.row_bytes as u64,
            Form::Float32 => {
                let dim =
                    table.dim.ok_or_else(|| refused("its table has no value format, so records can only hold rows"))?;
                heads * dim as u64 * 4
            }
        };
        let (mut slot_bytes, mut records) = (record_bytes, None);
        if let Some(file) = &options.records {
            if file.slot_bytes < record_bytes {
                let reason = format!(
                    "a record has {record_bytes} bytes, and the record file has one every {}; name the size of its slots",
                    file.slot_bytes
                );
                return Err(refused(&reason));
            }
            // The working directory may be another one when the view is read.
            let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
            let path = path.to_str().ok_or_else(|| refused("the path of the record file is not valid Unicode"))?;
            (slot_bytes, records) = (file.slot_bytes, Some(path.to_owned()));
        }
        if options.shard_bytes == 0 {
            return Err(refused("shard_bytes cannot be 0: a shard has at least one record"));
        }
        if options.top == Some(0) || options.budget.is_some_and(|budget| budget < record_bytes) {
            let reason = format!("top and budget leave room for no record of {record_bytes} bytes");
            return Err(ViewError::Empty { name: name.to_owned(), reason });
        }
        Ok(Plan {
            format: FORMAT.to_owned(),
            version: VERSION,
            table: table.name,
            table_identity: table.identity,
            heads,
            key_bytes: table.key_bytes as u64,
            record_bytes,
            slot_bytes,
            form: options.form.name().to_owned(),
            order: options.order.name().to_owned(),
            records,
            records_modified: None,
            options: PlanOptions {
                top: options.top,
                budget: options.budget,
                shard_bytes: options.shard_bytes,
                corpus: options.corpus.clone(),
            },
            built_at: now,
            keys: None,
        })
    }

    /// Keys that the view holds at most, if not all.
    pub(super) fn limit(&self) -> Option<u64> {
        let budget = self.options.budget.map(|budget| budget / self.record_bytes);
        [self.options.top, budget].into_iter().flatten().min()
    }

    /// What a record holds.
    pub(super) fn form(&self) -> Form {
        Form::from_name(&self.form).unwrap_or_default()
    }

    /// The order of the slots.
    pub(super) fn order(&self) -> Order {
        Order::from_name(&self.order).unwrap_or_default()
    }

    /// Slots of every shard but a shorter last one.
    pub(super) fn slots_per_shard(&self, slots: u64) -> u64 {
        match self.records {
            Some(_) => slots.max(1),
            None => (self.options.shard_bytes / self.slot_bytes).max(1),
        }
    }

    /// Refuses to go on with this build as the one that `asked` describes.
    pub(super) fn agrees(&self, name: &str, asked: &Plan) -> Result<(), ViewError> {
        // Keys that the caller brought have an order of their own.
        let given = self.keys.is_some_and(|keys| keys.tokens.is_none());
        let show = |value: &Option<u64>| value.map_or("none".to_owned(), |value| value.to_string());
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let pairs = [
            ("table", self.table.to_ascii_lowercase(), asked.table.to_ascii_lowercase()),
            ("table identity", self.table_identity.clone(), asked.table_identity.clone()),
            ("heads", self.heads.to_string(), asked.heads.to_string()),
            ("form", self.form.clone(), asked.form.clone()),
            ("order", self.order.clone(), if given { self.order.clone() } else { asked.order.clone() }),
            ("top", show(&self.options.top), show(&asked.options.top)),
            ("budget", show(&self.options.budget), show(&asked.options.budget)),
            ("shard bytes", self.options.shard_bytes.to_string(), asked.options.shard_bytes.to_string()),
            ("corpus", text(&self.options.corpus), text(&asked.options.corpus)),
            ("records", text(&self.records), text(&asked.records)),
            ("slot bytes", self.slot_bytes.to_string(), asked.slot_bytes.to_string()),
        ];
        match pairs.into_iter().find(|(_, found, asked)| found != asked) {
            None => Ok(()),
            Some((what, found, asked)) => Err(ViewError::OtherBuild { name: name.to_owned(), what, found, asked }),
        }
    }

    /// The plan in `directory`, or `None` if there is none.
    pub(super) fn read(directory: &Path) -> Result<Option<Plan>, StorageError> {
        let path = directory.join(FILE);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let (document, _) = seal::read(&path)?;
        let version = document.get("version").and_then(Value::as_u64).unwrap_or(0);
        if version > VERSION {
            return Err(StorageError::NewerVersion { path, found: version, supported: VERSION });
        }
        let plan: Plan = serde_json::from_value(Value::Object(document))
            .map_err(|error| StorageError::damaged(&path, error.to_string()))?;
        let known = plan.format == FORMAT
            && Form::from_name(&plan.form).is_some()
            && Order::from_name(&plan.order).is_some()
            && plan.record_bytes > 0
            && plan.slot_bytes >= plan.record_bytes;
        if known { Ok(Some(plan)) } else { Err(StorageError::damaged(&path, "it is no plan of a view")) }
    }

    /// Keeps the plan in `directory`.
    pub(super) fn publish(&self, directory: &Path) -> Result<(), StorageError> {
        seal::publish(&directory.join(FILE), &object(self)).map(drop)
    }
}

/// A document of ours as JSON.
pub(super) fn object(document: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(document) {
        Ok(Value::Object(object)) => object,
        // Structs with text keys become objects.
        _ => Map::new(),
    }
}
