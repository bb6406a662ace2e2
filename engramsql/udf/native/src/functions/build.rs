//! `CALL engram_build(name, source, ...)`: a table of our own from the rows of any source.

use super::arguments::{self, count, flag};
use super::catalog::{TABLE_COLUMNS, table_cells};
use super::stream::{Rows, Stream};
use crate::error::{Error, Result};
use crate::ffi::{Arguments, Column, Parameter};
use engram_engine::Progress;
use engram_engine::build::{BuildOptions, BuildSource, Unfinished, build};
use engram_engine::catalog::{RegisterOptions, Session};
use std::path::Path;

/// `engram_build(name, source, ...)`.
pub struct Build;

/// What to build, and how.
pub struct Wanted {
    name: String,
    source: String,
    source_options: RegisterOptions,
    options: BuildOptions,
}

const SOURCE: [(&str, Parameter); 7] = arguments::SOURCE;

impl Stream for Build {
    const NAME: &'static str = "engram_build";
    const PARAMETERS: &'static [Parameter] = &[Parameter::Text, Parameter::Text];
    const NAMED: &'static [(&'static str, Parameter)] = &[
        ("shard_bytes", Parameter::Any),
        ("jobs", Parameter::Any),
        ("replace", Parameter::Boolean),
        ("resume", Parameter::Boolean),
        ("restart", Parameter::Boolean),
        SOURCE[0],
        SOURCE[1],
        SOURCE[2],
        SOURCE[3],
        SOURCE[4],
        SOURCE[5],
        SOURCE[6],
    ];
    const COLUMNS: &'static [(&'static str, Column)] = TABLE_COLUMNS;
    type Arguments = Wanted;

    fn bind(_session: &Session, arguments: &Arguments<'_>) -> Result<Wanted> {
        let mut options = BuildOptions::default();
        if let Some(value) = arguments.named("shard_bytes") {
            options.shard_bytes = arguments::size(&value, "shard_bytes")?;
        }
        if let Some(jobs) = count(arguments, "jobs")? {
            options.jobs = jobs;
        }
        let is_set = |name| -> Result<bool> { Ok(flag(arguments, name)?.unwrap_or(false)) };
        options.replace = is_set("replace")?;
        options.unfinished = match (is_set("resume")?, is_set("restart")?) {
            (false, false) => Unfinished::Refuse,
            (true, false) => Unfinished::Resume,
            (false, true) => Unfinished::Discard,
            (true, true) => return Err(Error::argument("resume goes on and restart begins anew; give one of them")),
        };
        Ok(Wanted {
            name: arguments.text(0, "name")?,
            source: arguments.text(1, "source")?,
            source_options: arguments::source_options(arguments)?,
            options,
        })
    }

    fn run(session: &Session, wanted: &Wanted, progress: &Progress, rows: &Rows) -> Result<()> {
        let source = wanted.source(session)?;
        for entry in build(session, &wanted.name, &source, &wanted.options, progress)? {
            rows.send(table_cells(entry))?;
        }
        Ok(())
    }
}

impl Wanted {
    /// A registered table, or what lies at a path. A name without a file is a table that is not there, which is told with
    /// the names that are.
    fn source(&self, session: &Session) -> Result<BuildSource> {
        let is_table = session.contains(&self.source)?;
        let is_path = self.source.contains(['/', '\\']) || Path::new(&self.source).exists();
        if is_path && !is_table {
            return Ok(BuildSource::Path(self.source.clone().into(), self.source_options.clone()));
        }
        if is_table && self.source_options != RegisterOptions::default() {
            return Err(Error::argument(format!(
                "'{}' is a registered table, and spec, format, scale, width, rows_per_shard, layer and tokenizer say what a \
                 path does not; leave them out",
                self.source
            )));
        }
        Ok(BuildSource::Table(self.source.clone()))
    }
}
