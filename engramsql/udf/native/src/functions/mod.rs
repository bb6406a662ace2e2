//! The SQL functions, one module per topic. No `unsafe` here.

mod analysts;
mod arguments;
mod blocks;
mod build;
mod catalog;
mod changes;
mod checks;
mod copy;
mod decode;
mod distance;
mod embeddings;
mod fetch;
mod fields;
mod gather;
mod id_scan;
mod ids;
mod inspect;
mod inspect_rows;
mod keys;
mod listing;
mod lists;
mod macros;
mod ngrams;
mod pieces;
mod plan;
mod primes;
mod reading;
mod registry;
mod relation;
mod rowids;
mod scalars;
mod scan;
mod scratch;
mod sequence;
mod settings;
mod stream;
mod stretch;
mod table_scalar;
mod tables;
mod tokens;
mod typed;
mod verify;
mod views;
mod wanted;
mod write;

use crate::error::Result;
use crate::ffi::Registrar;
use engram_engine::inspect::{RowHash, RowKind, RowScales, RowStats};
use listing::Listed;
pub use relation::relation_sql;
pub use settings::apply as apply_settings;
use stream::Streamed;

/// Registers every function in the database that is loading the extension.
pub fn register(registrar: &Registrar) -> Result<()> {
    registrar.scalar::<rowids::Sequences<rowids::RowIds>>()?;
    registrar.scalar::<rowids::Sequences<rowids::WithHistory>>()?;
    registrar.scalar::<scalars::Row>()?;
    registrar.scalar::<scalars::Vectors<scalars::OfRow>>()?;
    registrar.scalar::<scalars::Vectors<scalars::OfRows>>()?;
    registrar.scalar::<decode::Decode>()?;
    registrar.scalar::<inspect_rows::Answers<RowStats>>()?;
    registrar.scalar::<inspect_rows::Answers<RowHash>>()?;
    registrar.scalar::<inspect_rows::Answers<RowKind>>()?;
    registrar.scalar::<inspect_rows::Answers<RowScales>>()?;
    registrar.scalar::<views::Lookup>()?;
    registrar.scalar::<tokens::OfText>()?;
    registrar.scalar::<distance::RowDistance>()?;
    registrar.scalar::<primes::IsPrime>()?;
    registrar.scalar::<ngrams::OfSequence>()?;
    registrar.scalar::<ngrams::Grams>()?;
    registrar.scalar::<pieces::Pieces>()?;
    registrar.scalar::<checks::RowId>()?;
    registrar.scalar::<checks::Batch>()?;
    registrar.scalar::<keys::Key>()?;
    registrar.scalar::<keys::Head>()?;
    registrar.scalar::<typed::Typed<scalars::OfRow>>()?;
    registrar.scalar::<typed::Typed<scalars::OfRows>>()?;
    registrar.scalar::<typed::TypeText>()?;
    registrar.scalar::<relation::Relation>()?;
    registrar.scalar::<lists::Ids>()?;
    registrar.scalar::<lists::SequenceTokens>()?;

    registrar.table::<fetch::Fetch>()?;
    registrar.table::<scan::Scan>()?;
    registrar.table::<embeddings::Embeddings>()?;
    registrar.table::<views::Fetch>()?;
    // The macros that allow optional positional arguments call these; a macro cannot call the function it shadows.
    registrar.table_as::<scan::Scan>(macros::SCAN)?;
    registrar.table::<id_scan::RowIds>()?;
    registrar.table_as::<id_scan::RowIds>(macros::IDS)?;

    registrar.table::<Listed<catalog::Tables>>()?;
    registrar.table::<Listed<catalog::Views>>()?;
    registrar.table::<Listed<catalog::Orphans>>()?;
    registrar.table::<Listed<catalog::Shards>>()?;
    registrar.table::<Listed<catalog::Heads>>()?;
    registrar.table::<Listed<plan::Plan>>()?;
    registrar.table::<Listed<reading::Stats>>()?;
    registrar.table::<Listed<reading::Cache>>()?;
    registrar.table::<Listed<reading::Prefetch>>()?;
    registrar.table::<reading::Warm>()?;
    registrar.table_as::<reading::Warm>(macros::WARM)?;
    registrar.table::<Listed<changes::Attach>>()?;
    registrar.table::<Listed<changes::Register>>()?;
    registrar.table::<Listed<changes::Relocate>>()?;
    registrar.table::<Listed<changes::Drop>>()?;

    registrar.table::<Streamed<build::Build, false>>()?;
    registrar.table_as::<Streamed<build::Build, true>>(macros::BUILD)?;
    registrar.table::<Streamed<verify::Verify, false>>()?;
    registrar.table::<Streamed<verify::Diff, false>>()?;
    registrar.table_as::<Streamed<verify::Verify, true>>(macros::VERIFY)?;
    registrar.table_as::<Streamed<verify::Diff, true>>(macros::DIFF)?;
    registrar.table::<Streamed<inspect::Profile, false>>()?;
    registrar.table::<Streamed<inspect::Histogram, false>>()?;
    registrar.table_as::<Streamed<inspect::Profile, true>>(macros::PROFILE)?;
    registrar.table_as::<Streamed<inspect::Histogram, true>>(macros::HISTOGRAM)?;
    registrar.copy::<copy::Engram>()?;

    settings::SETTINGS.iter().try_for_each(|setting| registrar.setting(setting))?;
    registrar.relations(macros::SCAN);
    if macros::create(registrar)? {
        registrar.table::<Listed<registry::Functions<true>>>()
    } else {
        registrar.table::<Listed<registry::Functions<false>>>()
    }
}
