//! Compiles the calls that catch DuckDB's exceptions.

fn main() {
    println!("cargo::rerun-if-changed=src/ffi/host.cpp");
    cc::Build::new().cpp(true).std("c++11").file("src/ffi/host.cpp").compile("engramsql_host");
}
