//! PyO3 skin over the engine: the module `engramsql.engine._native`.
//!
//! Nothing is computed here. An entry turns Python arguments into slices (`ids`, `output`), releases the
//! interpreter while the engine works, and turns an engine error into an exception (`errors`). Every entry runs inside
//! `guard::guard`, so that a panic becomes `engramsql.errors.InternalError`. `unsafe` is in `dlpack` and `lent` only.

#![deny(unsafe_code)]

mod arrow;
mod building;
mod decode;
mod dlpack;
#[macro_use]
mod entries;
mod errors;
mod guard;
mod ids;
mod inspection;
mod lent;
mod output;
mod peer_index;
mod probe;
mod reading;
mod running;
mod session;
mod spec;
mod static_link;
mod table;
mod verification;
mod view;

use pyo3::prelude::*;

/// The compiled engine. Import `engramsql.engine`, not this module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    guard::quiet_panics();
    module.add("ENGINE_VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("FORMATS", engram_engine::format::NAMES.to_vec())?;
    module.add("FAMILIES", engram_engine::spec::FAMILIES.to_vec())?;
    module.add_class::<session::Session>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<view::View>()?;
    module.add_class::<building::ViewBuilder>()?;
    module.add_class::<peer_index::PeerIndex>()?;
    module.add_class::<verification::Finding>()?;
    module.add_class::<verification::Difference>()?;
    module.add_class::<verification::Comparison>()?;
    module.add_class::<entries::TableEntry>()?;
    module.add_class::<entries::ViewEntry>()?;
    module.add_class::<entries::SqlViewEntry>()?;
    module.add_class::<entries::Orphan>()?;
    module.add_class::<entries::ShardInfo>()?;
    module.add_class::<entries::HeadInfo>()?;
    module.add_class::<inspection::HeadProfile>()?;
    module.add_class::<probe::Probe>()?;
    module.add_class::<probe::ProbeReading>()?;
    module.add_class::<reading::PathStats>()?;
    module.add_class::<reading::CacheUsage>()?;
    module.add_class::<reading::Prefetch>()?;
    module.add_function(wrap_pyfunction!(reading::cache_usage, module)?)?;
    module.add_function(wrap_pyfunction!(reading::set_ram_budget, module)?)?;
    module.add_function(wrap_pyfunction!(reading::set_reader, module)?)?;
    module.add_function(wrap_pyfunction!(reading::threads, module)?)?;
    module.add_function(wrap_pyfunction!(reading::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(reading::kernel, module)?)?;
    module.add_function(wrap_pyfunction!(decode::decode, module)?)?;
    module.add_function(wrap_pyfunction!(verification::compare, module)?)?;
    module.add_function(wrap_pyfunction!(probe::probe_rate, module)?)?;
    module.add_function(wrap_pyfunction!(session::default_name, module)?)?;
    module.add_function(wrap_pyfunction!(session::stray_files, module)?)?;
    module.add_function(wrap_pyfunction!(spec::token_map, module)?)?;
    module.add_function(wrap_pyfunction!(static_link::register_static, module)?)?;
    Ok(())
}
