//! Tables: built ones by what describes them, others by what can be read.

use super::finding::{Finding, Level, Report, counted, name_of};
use super::rows;
use super::state::Resumable;
use super::store::{Store, describes_itself};
use crate::catalog::{CatalogError, Session, TableEntry};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::source::{Checkpoint, SourceError, SourceKind};
use crate::spec::SpecError;
use crate::table::Table;
use std::path::Path;
use std::sync::Arc;

/// Verifies a registered table.
pub(super) fn check_named(
    session: &Session,
    entry: &TableEntry,
    level: Level,
    resume: bool,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let name = resume.then_some(entry.name.as_str());
    let built = entry.digest.is_some() || describes_itself(&entry.source);
    if built {
        let store = Store { directory: &entry.source, digest: entry.digest.as_deref(), resume: name };
        store.check(session, level, progress, report)?;
    }
    let Some(table) = opened(open_anew(session, entry), report) else { return Ok(()) };
    check_open(session, &table, built, name, level, progress, report)
}

/// Verifies the table at a path.
///
/// # Errors
/// A path that is no table, or several.
pub(super) fn check_path(
    session: &Session,
    path: &str,
    level: Level,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let directory = Path::new(path);
    let built = describes_itself(directory);
    if built {
        Store { directory, digest: None, resume: None }.check(session, level, progress, report)?;
    }
    // A session of its own: what lies there now, not what this one opened once.
    let answer = Session::in_memory().table(path);
    // `PATH#l14` picks a layer, unless a directory is called so.
    let stem = path.rsplit_once("#l").map_or(directory, |(stem, _)| Path::new(stem));
    let place = if directory.exists() { directory } else { stem };
    if let Err(error) = &answer
        && !built
        && is_no_table(error, place)
    {
        return answer.map(drop);
    }
    let Some(table) = opened(answer, report) else { return Ok(()) };
    check_open(session, &table, built, None, level, progress, report)
}

/// Opens a registered table as it lies on the disk now, whatever this session has open.
fn open_anew(session: &Session, entry: &TableEntry) -> Result<Arc<Table>> {
    if let Some(directory) = session.directory() {
        return Session::open(&directory, true, false)?.table(&entry.name);
    }
    // Nothing remembers what it was when it was registered, unless it was opened then.
    session.table(&entry.name)?.check_files()?;
    let anew = Session::in_memory();
    anew.register(&entry.name, &entry.source, &entry.options)?;
    anew.table(&entry.name)
}

/// The table, or a finding that says why there is none; told once if an earlier finding says it already.
fn opened(answer: Result<Arc<Table>>, report: &mut Report<'_>) -> Option<Arc<Table>> {
    match answer {
        Ok(table) => Some(table),
        Err(error) => {
            if report.bad() == 0 {
                let (check, shard) = topic(&error);
                report.add(Finding::bad(check, shard, error.to_string()));
            }
            None
        }
    }
}

/// What there is to say of a table that opens.
fn check_open(
    session: &Session,
    table: &Table,
    built: bool,
    resume: Option<&str>,
    level: Level,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    if !built {
        let (rows, shards) = (counted(table.rows(), "row"), counted(table.shard_count().into(), "shard"));
        let detail = format!("headers and sizes agree: {rows} of {} bytes in {shards}", table.row_bytes());
        report.add(Finding::good("manifest", None, detail));
        report.add(Finding::good(
            "files",
            None,
            format!("{}, all there", counted(table.layout().files.len() as u64, "file")),
        ));
        if table.kind() == SourceKind::Checkpoint {
            stray(table.source(), report);
        }
    }
    if level >= Level::Sample {
        rows::sample(table, progress, report)?;
    }
    if level == Level::Full && !built {
        let mut state = match resume {
            Some(name) => Resumable::open(session, name, &table.identity(), level)?,
            None => Resumable::nothing(),
        };
        rows::read_all(table, &mut state, progress, report)?;
        state.remove()?;
    }
    if !built {
        let detail = "read in place, without checksums: nothing here can prove the content; compare it with another copy \
                      (verify --against), or build the table";
        report.add(Finding::good("block", None, detail));
    }
    Ok(())
}

/// Tensor files beside those that the checkpoint's index names.
fn stray(directory: &Path, report: &mut Report<'_>) {
    match Checkpoint::open(directory).and_then(|checkpoint| checkpoint.files()) {
        Ok((_, stray)) => {
            for name in stray {
                let detail = format!("{name} is named by no index and is ignored");
                report.add(Finding::good("stray", None, detail));
            }
        }
        Err(error) => report.add(Finding::bad("files", None, error.to_string())),
    }
}

/// Whether a path leads to no table at all, as a mistyped one does.
fn is_no_table(error: &Error, path: &Path) -> bool {
    match error {
        Error::Catalog(CatalogError::SeveralLayers { .. }) => true,
        Error::Source(error) => match error {
            SourceError::Io { .. } => !path.exists(),
            SourceError::NotADirectory { .. }
            | SourceError::Unrecognised { .. }
            | SourceError::UnknownModel { .. }
            | SourceError::NoReader { .. }
            | SourceError::NoSuchLayer { .. }
            | SourceError::UnknownWidth { .. } => true,
            _ => false,
        },
        _ => false,
    }
}

/// Which check an error at opening belongs to, and which shard it names.
fn topic(error: &Error) -> (&'static str, Option<u32>) {
    use SourceError::{
        EmptyFile, HtmlPage, Io, LfsPointer, MissingFiles, MissingShard, PartialRow, TrailingBytes, Truncated,
        WrongShardSize,
    };
    match error {
        Error::Table { error, .. } => topic(error),
        Error::Read(_) => ("files", None),
        Error::Source(error) => match error {
            MissingFiles { .. } => ("files", None),
            MissingShard { file, .. } => ("files", shard_of(file)),
            Io { path, .. } | LfsPointer { path } | HtmlPage { path } => ("files", shard_of(&name_of(path))),
            WrongShardSize { path, .. }
            | PartialRow { path, .. }
            | Truncated { path, .. }
            | TrailingBytes { path, .. }
            | EmptyFile { path } => ("size", shard_of(&name_of(path))),
            _ => ("manifest", None),
        },
        Error::Spec(SpecError::TokenMapFile { .. }) => ("token_map", None),
        _ => ("manifest", None),
    }
}

/// The number in `shard_003.bin`.
fn shard_of(name: &str) -> Option<u32> {
    name.strip_prefix("shard_")?.strip_suffix(".bin")?.parse().ok()
}
