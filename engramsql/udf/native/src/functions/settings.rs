//! `SET engram_ram_budget`, `SET engram_reader`, and DuckDB's own `SET threads`: settings of the engine, which is one per
//! process.

use crate::error::{Error, Result};
use crate::ffi::{Setting, Settings};
use engram_engine::cache::{CacheError, RowCache, check_budget, parse_bytes};
use engram_engine::catalog::Session;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes that the row cache may hold.
const RAM_BUDGET: Setting = Setting {
    name: "engram_ram_budget",
    description: "memory for rows read from the disk, for example '8GB'; '0' turns the row cache off",
};

/// The code path that every batch takes.
const READER: Setting = Setting {
    name: "engram_reader",
    description: "how rows are read: auto, mapped, io_uring, pread or sequential; applies to all tables of the process",
};

/// All settings.
pub const SETTINGS: [&Setting; 2] = [&RAM_BUDGET, &READER];

/// What a database was found to have set.
#[derive(Default)]
struct Values {
    budget: Option<String>,
    reader: Option<String>,
    /// DuckDB's own setting; `None` before the first look.
    threads: Option<i64>,
}

/// Passes on to the engine what a `SET` in the database of `session` has changed since the last time. What Python or
/// another database of this process set meanwhile stays, until a `SET` changes it.
pub fn apply(session: &Arc<Session>, settings: &Settings<'_>) -> Result<()> {
    static APPLIED: Mutex<Vec<(Weak<Session>, Values)>> = Mutex::new(Vec::new());
    let (new_budget, new_reader, new_threads) =
        (settings.text(&RAM_BUDGET)?, settings.text(&READER)?, settings.threads()?);
    // The list is whole at every moment.
    let mut applied = APPLIED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = applied.iter().position(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(session)));
    let known = known.unwrap_or_else(|| {
        applied.retain(|(of, _)| of.strong_count() > 0);
        applied.push((Arc::downgrade(session), Values::default()));
        applied.len() - 1
    });
    let Values { budget, reader, threads } = &mut applied[known].1;
    if new_budget != *budget {
        set_budget(new_budget.as_deref()).map_err(|error| refused(&RAM_BUDGET, &error))?;
        *budget = new_budget;
    }
    if new_reader != *reader {
        let name = new_reader.as_deref().unwrap_or_default();
        engram_engine::settings::set_reader(name).map_err(|error| refused(&READER, &error))?;
        *reader = new_reader;
    }
    if let Some(new) = new_threads
        && threads.replace(new) != Some(new)
    {
        engram_engine::settings::set_host_threads(usize::try_from(new).unwrap_or(1));
    }
    Ok(())
}

fn set_budget(text: Option<&str>) -> Result<(), CacheError> {
    let bytes = text.map(|text| parse_bytes(text).and_then(check_budget)).transpose()?;
    RowCache::global()?.set_budget(bytes)
}

/// Every function says so until the setting is put right: what was asked for must not be ignored.
fn refused(setting: &Setting, error: &dyn std::fmt::Display) -> Error {
    let name = setting.name;
    Error::argument(format!("the setting {name} was refused: {error}; SET {name} anew or RESET {name}"))
}
