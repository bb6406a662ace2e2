//! What tells the content of a store that EngramSQL built from any other.

use crate::format::ValueFormat;
use crate::source::layout::Layout;
use crate::spec::Spec;
use serde_json::{Value, json};

/// BLAKE3, 64 hex digits, over what the store's rows are, where they lie, how they decode and how tokens address them;
/// `checksums` is the digest of its block checksums. When it was built and from what makes no difference.
pub(super) fn identity(
    checksums: &str,
    layout: &Layout,
    format: Option<&ValueFormat>,
    spec: Option<&Spec>,
    layer: Option<u32>,
) -> String {
    let token_map = spec.and_then(Spec::token_map).map(|map| {
        let mut hasher = blake3::Hasher::new();
        for id in map.map() {
            hasher.update(&id.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    });
    let spec = spec.map(|spec| {
        let mut config = spec.config().clone();
        // The order in which somebody wrote the members of a config says nothing.
        config.sort_all_objects();
        json!({"family": spec.family(), "config": config})
    });
    let content: Value = json!({
        "kind": "engramsql-store-identity",
        "version": 1,
        "checksums": checksums,
        "rows": layout.rows,
        "row_bytes": layout.row_bytes(),
        "rows_per_shard": layout.rows_per_shard(),
        "value_format": format.map(ValueFormat::name),
        // As bits: text may lose the last digit.
        "scale": format.and_then(ValueFormat::scale).map(f32::to_bits),
        "layer": layer,
        "spec": spec,
        "token_map": token_map,
    });
    blake3::hash(content.to_string().as_bytes()).to_hex().to_string()
}
