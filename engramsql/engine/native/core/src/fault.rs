//! Fault injection for tests of the real artifact: `ENGRAMSQL_FAULT=panic@gather` makes that point fail.
//!
//! Points are few and off unless the variable is set when the library is first used.

use std::sync::OnceLock;

static ARMED: OnceLock<Option<(String, String)>> = OnceLock::new();

/// Panics if `ENGRAMSQL_FAULT` is `panic@POINT`.
///
/// # Panics
/// That is its purpose: it proves that the boundary above turns a panic into an error.
pub fn point(name: &str) {
    let armed = ARMED.get_or_init(|| {
        let value = std::env::var("ENGRAMSQL_FAULT").ok()?;
        let (action, point) = value.split_once('@')?;
        Some((action.to_owned(), point.to_owned()))
    });
    if let Some((action, point)) = armed
        && action == "panic"
        && point == name
    {
        panic!("fault injected at '{name}'");
    }
}
