//! Compiles the calls that catch DuckDB's exceptions.

/// Set where the project itself is checked: a warning of the C++ compiler is then an error. A user's compiler may be one
/// that warns of more.
const STRICT: &str = "ENGRAMSQL_CXX_STRICT";

fn main() {
    println!("cargo::rerun-if-changed=src/ffi/host.cpp");
    println!("cargo::rerun-if-env-changed={STRICT}");
    let strict = std::env::var_os(STRICT).is_some();
    cc::Build::new()
        .cpp(true)
        .std("c++11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(strict)
        .file("src/ffi/host.cpp")
        .compile("engramsql_host");
}
