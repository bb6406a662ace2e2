//! Sealed documents: JSON that carries its own digest.
//!
//! The last member of the object is `blake3`: BLAKE3 of the file's bytes with the 64 hex digits of this value as zeros.
//! Whoever changes a byte, even of white space, breaks the seal.

use super::error::StorageError;
use crate::publish::publish as publish_file;
use serde_json::{Map, Value};
use std::path::Path;

const MEMBER: &str = "blake3";
const DIGITS: usize = 64;
/// No document of ours comes near.
const MOST_BYTES: u64 = 64 << 20;

/// A document ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// Its digest, 64 hex digits.
    pub digest: String,
}

/// Seals `document`, which has no member `blake3`.
pub fn seal(document: &Map<String, Value>) -> Sealed {
    let mut document = document.clone();
    document.insert(MEMBER.to_owned(), Value::String("0".repeat(DIGITS)));
    // An object of JSON values always serialises.
    let mut bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
    bytes.push(b'\n');
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let at = bytes.len().saturating_sub(ENDING.len() + DIGITS);
    bytes[at..at + DIGITS].copy_from_slice(digest.as_bytes());
    Sealed { bytes, digest }
}

/// What follows the digits.
const ENDING: &[u8] = b"\"\n}\n";
/// What precedes them.
const BEGINNING: &[u8] = b"\"blake3\": \"";

/// Reads the sealed document at `path`, and its digest.
///
/// # Errors
/// A file that cannot be read, has no seal or a broken one.
pub fn read(path: &Path) -> Result<(Map<String, Value>, String), StorageError> {
    let io = |error| StorageError::io("read", path, error);
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    if bytes > MOST_BYTES {
        return Err(StorageError::damaged(path, format!("{bytes} bytes are no document of this kind")));
    }
    open(path, &std::fs::read(path).map_err(io)?)
}

/// The same for bytes that were read from `path`.
pub fn open(path: &Path, bytes: &[u8]) -> Result<(Map<String, Value>, String), StorageError> {
    let broken = |what: &str| StorageError::damaged(path, what);
    let sealed = bytes
        .len()
        .checked_sub(ENDING.len() + DIGITS)
        .filter(|&at| bytes[..at].ends_with(BEGINNING) && bytes[at + DIGITS..] == *ENDING);
    let at = sealed.ok_or_else(|| broken("it does not end with its BLAKE3 digest"))?;
    let mut plain = bytes.to_vec();
    plain[at..at + DIGITS].fill(b'0');
    let digest = blake3::hash(&plain).to_hex().to_string();
    if bytes[at..at + DIGITS] != *digest.as_bytes() {
        return Err(broken("its content does not match the BLAKE3 digest at its end"));
    }
    let mut document: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| broken(&e.to_string()))?;
    document.remove(MEMBER);
    Ok((document, digest))
}

/// Seals `document` and publishes it at `path`; returns its digest.
pub fn publish(path: &Path, document: &Map<String, Value>) -> Result<String, StorageError> {
    let sealed = seal(document);
    publish_file(path, &sealed.bytes).map_err(|error| StorageError::io("write", path, error))?;
    Ok(sealed.digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Map<String, Value> {
        let json = r#"{"a": [1, 2], "b": {"blake3": "inner", "big": 18446744073709551615}, "c": "x\u00fc"}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_sealed_document_reads_back_and_every_flipped_bit_breaks_it() {
        let path = Path::new("manifest.json");
        let sealed = seal(&document());
        assert_eq!(open(path, &sealed.bytes).unwrap(), (document(), sealed.digest.clone()));
        for bit in 0..sealed.bytes.len() * 8 {
            let mut flipped = sealed.bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(path, &flipped).is_err(), "bit {bit}");
        }
        for cut in 0..sealed.bytes.len() {
            assert!(open(path, &sealed.bytes[..cut]).is_err(), "{cut} bytes");
        }
    }
}
